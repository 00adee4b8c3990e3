"""The documentation site in Chromium, opened from files: errors, overflow, search, small labs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

import pytest
from playwright.sync_api import expect

import steadytd as st
from steadytd.learners import algorithm
from tests.browser.chromium import opened

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]
PAGES = [
    "index", "theory", "paper", "lab", "gallery", "evaluate", "learners/index",
    "learners/perturbed_td", "learners/truncated_etd", "learners/lstd", "learners/gq",
    "tutorials/ten_minutes", "tutorials/deadly_triad", "tutorials/policy_from_log",
    "results/index", "results/cures", "results/certificate", "average_reward", "api/index",
    "api/certificate", "developers",
]  # fmt: skip


VIEWS: list[tuple[int, Literal["light", "dark"]]] = [(1280, "light"), (420, "light"), (420, "dark")]
# What stands in the text and reaches over the edge; code, tables and formulas may be scrolled.
OUTSIDE = """
[...document.querySelectorAll("article :is(p, li, h1, h2, h3, pre, table, img, iframe, math)")]
    .filter((e) => e.checkVisibility() && !e.parentElement.closest("pre, table, .formula"))
    .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
    .map((e) => `${e.tagName}: ${e.textContent.slice(0, 80)}`)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built by `make docs`: any warning fails."""
    out = tmp_path_factory.mktemp("site")
    here = f"BIN={Path(sys.executable).parent}"
    subprocess.run(["make", "docs", f"SITE={out}", here], cwd=ROOT, check=True)
    return out


def address(site: Path, page: str) -> str:
    return (site / f"{page}.html").as_uri()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_without_an_error_and_fits(site: Path, page: str) -> None:
    with opened(address(site, page), color_scheme="light") as shown:
        for width, scheme in VIEWS:
            shown.emulate_media(color_scheme=scheme)
            shown.set_viewport_size({"width": width, "height": 900})
            expect(shown.locator("html")).to_have_attribute("data-theme", scheme)
            assert shown.evaluate("document.documentElement.scrollWidth") <= width
            assert shown.evaluate(OUTSIDE) == []


def test_equations_are_drawn_by_the_browser(site: Path) -> None:
    with opened(address(site, "theory")) as page:
        box = page.locator(".formula math").first.bounding_box()
        assert box is not None and box["height"] > 15
        assert page.locator("mfrac").count() >= 1
        assert page.locator("math merror").count() == 0
    with opened(address(site, "learners/perturbed_td")) as page:
        expect(page.locator("#update pre").first).to_contain_text("w ← w + α ρ δ x")


@pytest.mark.parametrize("name", ["perturbed_td", "truncated_etd"])
def test_a_small_lab_runs_in_a_learners_page(site: Path, name: str) -> None:
    with opened(address(site, f"learners/{name}")) as page:
        page.locator("iframe.small-lab").scroll_into_view_if_needed()
        lab = page.frame_locator("iframe.small-lab")
        expect(lab.locator("body")).to_have_attribute("data-done", "1", timeout=60_000)
        expect(lab.locator("#chart-curves path").first).to_be_visible()
        expect(lab.locator("#course")).to_be_hidden()
        slider = lab.locator(f"input[type=range][aria-label='{name} alpha']")
        expect(slider).to_be_visible()
        slider.evaluate("(e) => { e.value = -2; e.dispatchEvent(new Event('input')); }")
        expect(lab.locator("#whole")).to_have_attribute("href", re.compile("alpha%3D0.01"))
        expect(lab.locator("body")).to_have_attribute("data-done", "1", timeout=60_000)


def test_every_small_lab_opens_its_example(site: Path) -> None:
    """The address of each one is understood: a wrong one would be named in the page."""
    sources = {}
    for name in st.learners():
        text = (site / "learners" / f"{name}.html").read_text(encoding="utf-8")
        found = re.search(r'src="\.\./(lab/live\.html#[^"]+)"', text)
        if found:
            sources[name] = found[1].replace("&amp;", "&")
    discounted = [name for name in st.learners() if not algorithm(name).average_reward]
    assert len(sources) == len(discounted) - 4  # solvers, and values of actions
    with opened((site / "lab" / "live.html").as_uri()) as page:
        for name, source in sources.items():
            page.goto("about:blank")
            page.goto(f"{site.as_uri()}/{source}")
            expect(page.locator("#fault")).to_have_text("")
            expect(page.locator("#learners legend").first).to_have_text(name)


@pytest.mark.parametrize(
    ("name", "charts"),
    [
        ("gallery", 8),
        ("tutorials/ten_minutes", 2),
        ("tutorials/study", 2),
        ("learners/gq", 1),
        ("results/rooms", 3),
    ],
)
def test_the_charts_of_a_page_live(site: Path, name: str, charts: int) -> None:
    with opened(address(site, name)) as page:
        expect(page.locator("body")).to_have_attribute("data-done", "1", timeout=30_000)
        assert page.locator("figure.live[data-drawn='1']").count() == charts
        figure = page.locator("figure.live").first
        figure.scroll_into_view_if_needed()
        lines = figure.locator(".mark-line.role-mark path")
        for button in figure.locator(".legend button").all():
            before = lines.count()
            button.click()
            expect(lines).to_have_count(before - 1)
            button.click()
            expect(lines).to_have_count(before)
        x, y = page.evaluate(POINT, figure.locator(".chart").element_handle())
        page.mouse.move(x, y)
        expect(page.locator(".tip")).to_contain_text("step")


# Where on the screen the middle one of a chart's points lies.
POINT = """(place) => {
  const { near, tables } = place.closest("figure").content.views[0], view = place.view;
  const table = tables[near.table], row = table.rows[Math.floor(table.rows.length / 2)];
  const value = (field) => row[table.names.indexOf(field)];
  const box = place.querySelector("svg, canvas").getBoundingClientRect();
  const [left, top] = view.origin(), at = (axis) => view.scale(axis)(value(near[axis]));
  return [box.left + left + at("x"), box.top + top + at("y")];
}"""


@pytest.mark.parametrize("width", [1280, 420])
def test_every_view_of_the_results_has_its_marks(site: Path, width: int) -> None:
    """A description without its numbers draws axes alone; a legend stays inside of its picture."""
    with opened(address(site, "results/rooms"), width) as page:
        expect(page.locator("body")).to_have_attribute("data-done", "1", timeout=60_000)
        figure = page.locator("#rooms_sensitivity_perturbed_td")
        for view in figure.locator(".chart").all():
            assert view.locator(".mark-line.role-mark path").count() >= 10
            assert view.locator(".role-legend-label text").count() >= 10
            box = view.locator("svg").bounding_box()
            last = view.locator(".role-legend-label text").last.bounding_box()
            assert box is not None and last is not None
            assert last["y"] + last["height"] <= box["y"] + box["height"]


def test_without_a_script_a_figure_is_a_picture(site: Path) -> None:
    with opened(address(site, "results/rooms"), java_script_enabled=False) as page:
        picture = page.locator("noscript img").first
        expect(picture).to_be_visible()
        box = picture.bounding_box()
        assert box is not None and box["height"] > 200  # it was found
        expect(page.locator("figure.live").first).to_be_hidden()


def test_pages_of_results_are_light(site: Path) -> None:
    script = (site / "_static" / "live.js").stat().st_size
    for path in (site / "results").glob("*.html"):
        assert path.stat().st_size + script < 3_000_000, path.name


def test_notebooks_can_be_downloaded(site: Path) -> None:
    with opened(address(site, "tutorials/ten_minutes")) as page:
        link = page.get_by_text("this page as a notebook").get_attribute("href")
    made = json.loads((site / "tutorials" / str(link)).read_text(encoding="utf-8"))
    assert made["nbformat"] == 4 and len(made["cells"]) > 10


def test_search_works_offline(site: Path) -> None:
    with opened(f"{address(site, 'search')}?q=follow-on") as page:
        expect(page.locator("#search-results")).to_contain_text("etd", timeout=20_000)


@pytest.mark.parametrize("word", ["install", "cite"])
def test_a_newcomers_words_find_their_page_first(site: Path, word: str) -> None:
    with opened(f"{address(site, 'search')}?q={word}") as page:
        first = page.locator("#search-results li a").first
        expect(first).to_have_text(word.capitalize(), timeout=20_000)


def test_no_page_asks_another_host(site: Path) -> None:
    loads = re.compile(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="(?:https?:)?//[^"]+"')
    for path in site.rglob("*.html"):
        assert loads.findall(path.read_text(encoding="utf-8")) == [], path.name


def test_every_local_address_exists(site: Path) -> None:
    """Also those in plain HTML, which the builder does not check."""
    missing = []
    for path in (p for p in site.rglob("*.html") if "_static" not in p.parts):
        text = re.sub(r"(?s)<script.*?</script>", "", path.read_text(encoding="utf-8"))
        for found in re.findall(r'(?:href|src)="([^"#?:]+)["#?]', text):
            if not (path.parent / unquote(found)).exists():
                missing.append(f"{path.relative_to(site)}: {found}")
    assert missing == []
    assert (site / "lab" / "live.html").is_file()
