"""Charts for a paper: some of the learners or problems, under other names, and sizes for print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from steadytd.base.errors import InputError, unknown
from steadytd.base.numbers import whole
from steadytd.report.figures import FONT, alt
from steadytd.runs.result import Result

Chosen = str | Sequence[Any] | Mapping[Any, str]  # what is drawn; a mapping gives other names


def names_of(chosen: Chosen) -> dict[Any, str]:
    """What is drawn, and what it is called in the picture.

    >>> names_of(["td", "tdc"]), names_of({"td": "TD"})
    ({'td': 'td', 'tdc': 'tdc'}, {'td': 'TD'})
    """
    if isinstance(chosen, Mapping):
        found = dict(chosen)
    else:
        found = {one: str(one) for one in ([chosen] if isinstance(chosen, str) else chosen)}
    if not found:
        raise InputError("nothing is left to draw; name at least one, or leave the option out.")
    if twice := [name for name, times in Counter(found.values()).items() if times > 1]:
        raise InputError(f"two lines would be called '{twice[0]}'; give them different names.")
    return found


def known_names(kind: str, chosen: Chosen, known: Sequence[str]) -> dict[str, str]:
    """`names_of`, each one of the known ones; capital letters make no difference."""
    written = {name.lower(): name for name in known}
    found = {}
    for one, shown in names_of(chosen).items():
        if str(one).lower() not in written:
            raise unknown(kind, one, known)
        name = written[str(one).lower()]
        found[name] = shown if isinstance(chosen, Mapping) else name
    return found


def some_learners(r: Result, chosen: Chosen) -> tuple[Result, list[str]]:
    """A run with some of its learners, and what they are called in the picture.

    A learner is named as in `Result.weights`, or by its law alone where only one learner has it.
    """
    laws = Counter(one.name for one in r.learners)
    alone = {one.name: one for one in r.learners if laws[one.name] == 1}
    named = names_of(chosen)
    places = [r.place(alone.get(str(one).lower(), one)) for one in named]
    some = replace(
        r,
        learners=[r.learners[i] for i in places],
        asked=[r.asked[i] for i in places],
        errors=r.errors[places],
        final_weights=r.final_weights[places],
        first_divergence=r.first_divergence[places],
    )
    return some, list(named.values())


def for_print(chart: Any, width: float | None, font_size: float | None) -> Any:
    """A chart whose panels are `width` points wide, as high in proportion, with this font size.

    Its notes, the lines below titles, are left to the caption.
    """
    wide = None if width is None else whole("width", width, 50, 5000)
    size = None if font_size is None else whole("font_size", font_size, 4, 60)
    _resize(chart, wide)
    if size is None:
        return chart
    texts = {"labelFontSize": size, "titleFontSize": size, "titleFontWeight": "normal"}
    return chart.configure(
        font=FONT, axis=texts, legend={**texts, "offset": 6, "rowPadding": 1},
        title={"fontSize": size, "offset": 4}, text={"fontSize": size}, background="white",
    )  # fmt: skip


def _resize(part: Any, width: int | None) -> None:
    """Every panel of a chart; small signs in its legend, and no lines below its title."""
    panels = [panel for kind in ("concat", "hconcat", "vconcat") for panel in _get(part, kind)]
    for panel in panels:
        _resize(panel, width)
    for layer in _get(part, "layer"):
        colour = getattr(layer.encoding, "color", alt.Undefined)
        if colour is not alt.Undefined and colour["legend"] not in (None, alt.Undefined):
            colour["legend"].symbolSize, colour["legend"].symbolStrokeWidth = 150, 2
    if part.title is not alt.Undefined and not isinstance(part.title, str):
        part.title.subtitle = part.title.offset = alt.Undefined
    if width is not None and not panels:
        part.height = round(width * float(part.height) / float(part.width))
        part.width = width


def _get(part: Any, kind: str) -> list[Any]:
    found = getattr(part, kind, None)
    return list(found) if isinstance(found, list) else []
