"""Reading pages in tests: well formed, self-contained, with the data of their figures."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "br", "wbr", "input", "img", "link", "hr"}
MOST = 3_000_000  # bytes of a page


@dataclass
class Page:
    """What a page holds."""

    text: str = ""
    figures: dict[str, Any] = field(default_factory=dict)
    other: dict[str, Any] = field(default_factory=dict)  # further JSON, by the script's id
    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    scripts: int = 0

    def rows(self, figure: str, view: int = 0) -> list[dict[str, Any]]:
        """All rows of data in a view of a figure."""
        tables = self.figures[figure]["views"][view]["tables"].values()
        return [dict(zip(t["names"], row, strict=True)) for t in tables for row in t["rows"]]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page, self.figure = Page(), ""
        self.open: list[str] = []
        self.script: dict[str, str | None] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        assert tag not in ("iframe", "object", "embed", "link", "img"), tag
        assert "src" not in found and not any(name.startswith("on") for name in found), (tag, found)
        if tag not in VOID and not (tag == "line" and self.open[-1] == "svg"):
            self.open.append(tag)
        if found.get("id"):
            self.page.ids.append(str(found["id"]))
        if tag == "figure":
            self.figure = str(found.get("id"))
        if tag == "a":
            self.page.links.append(str(found.get("href")))
        if tag == "script":
            self.script = found

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self.script = None
        if tag != "line":
            assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        if self.script is None:
            if self.open[-1:] != ["style"]:
                self.page.text += data
        elif self.script.get("type") == "application/json":
            name = self.script.get("id")
            (self.page.other if name else self.page.figures)[name or self.figure] = json.loads(data)
        else:
            self.page.scripts += 1


def read_page(html: str) -> Page:
    """The page, after checks that hold for every page."""
    assert len(html.encode()) < MOST
    reader = _Reader()
    reader.feed(html)
    reader.close()
    page = reader.page
    assert reader.open == []
    assert page.scripts == 2  # the library and the page's own; all else is data
    assert len(set(page.ids)) == len(page.ids), "an id twice"
    inner = {link[1:] for link in page.links if link.startswith("#")}
    assert inner <= set(page.ids), inner - set(page.ids)
    assert not [link for link in page.links if re.match(r"[a-z]+:|//", link)]
    style = html[html.index("<style>") : html.index("</style>")]
    assert "@import" not in style and "url(" not in style
    assert "default-src 'none'" in html and "unsafe-eval" not in html
    assert "prefers-color-scheme: dark" in style and "@media print" in style
    page.text = " ".join(page.text.split())
    return page
