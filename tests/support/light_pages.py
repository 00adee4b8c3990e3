"""Drawing a page: most of its time is the PNG files and the script, which few tests look at."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from steadytd.report import figures, objects, pages

DOT = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'


@pytest.fixture(scope="module", autouse=True)
def light_pages() -> Iterator[None]:
    """Every PNG is one pixel, and what was drawn before is not drawn again.

    `test_reproduce` draws real ones.
    """
    import vl_convert

    pixel = vl_convert.svg_to_png(DOT)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("vegalite_to_svg", "svg_to_pdf"):
            patch.setattr(vl_convert, name, cache(getattr(vl_convert, name)))
        patch.setattr(vl_convert, "svg_to_png", lambda svg, scale=1.0: pixel)
        patch.setattr(pages, "library", lambda: "/* the script that draws */")
        yield


def no_pictures(patch: pytest.MonkeyPatch) -> None:
    """Pages whose pictures nobody looks at: none is drawn."""
    drawn = dict.fromkeys(("svg", "png", "pdf"), b"<svg></svg>")
    for room in (figures, objects):
        patch.setattr(room, "drawn", lambda text, kinds=(): drawn)
    patch.setattr(pages, "library", lambda: "/* the script that draws */")
