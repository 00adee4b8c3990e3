"""Every kind of page in Chromium: no error, tooltips, legends, the dial, sorting, printing."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import steadytd as st
from steadytd.base.numbers import number
from steadytd.report.certificate.page import write_certificate
from steadytd.report.evaluation.page import write_evaluation
from steadytd.report.reproduction import write_reproduction
from steadytd.report.run import write_run
from steadytd.report.study.page import write_study_report
from steadytd.reproduction.reproduce import reproduce
from steadytd.studies.study import study
from tests.browser.chromium import browser, shown
from tests.support.commands import call
from tests.support.log_helpers import log_table
from tests.support.logged_worlds import episodic

pytestmark = pytest.mark.browser
NASTY = "<b>[red]a</b>&\"'</script><script>throw 1</script>"
STUDY = """
steps = 2_000
seeds = 4
every = 100
[[problems]]
name = "three_state"
[[problems]]
name = "collision"
[[learners]]
name = "td"
alpha = [0.0078125, 0.03125, 64]
lam = [0, 0.9]
[[learners]]
name = "perturbed_td"
alpha = [0.0078125, 0.03125]
eta = [0.1, 0.5]
"""
KINDS = ("reproduce", "certify", "cures", "run", "study", "evaluate")
RUN = ["td:alpha=0.005", "td:alpha=0.5", "perturbed_td:alpha=0.005,eta=0.2"]


def _evaluate(out: Path) -> Path:
    import numpy as np

    problem = episodic(6, 0.3, np.eye(6))
    targets = {NASTY: problem.pi, "calm": problem.mu}
    table = log_table(problem, episodes=100, length=100, targets=targets)
    e = st.evaluate(table, learners=["lstd", "tdc", "drl"])
    return write_evaluation(e, out, command=f"steadytd evaluate {NASTY}", pictures=False)


def _study(out: Path) -> Path:
    out.mkdir()
    (out / "small.toml").write_text(STUDY, encoding="utf-8")
    study(out / "small.toml").run(out=out / "results")
    return write_study_report(out / "results", pictures=False)[0]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The address of a page of each kind."""
    out = tmp_path_factory.mktemp("pages")
    c = st.certify("three_state")
    made = {
        "reproduce": write_reproduction(reproduce([1], runs=2), out / "reproduce", pictures=False),
        "certify": write_certificate(c, out / "certify", [0.42], pictures=False),
        "cures": write_certificate(
            st.certify("theta2theta"), out / "cures", cures=True, pictures=False
        ),
        "run": write_run(st.run("baird", RUN, steps=100_000, seeds=2), out / "run", pictures=False),
        "study": _study(out / "study"),
        "evaluate": _evaluate(out / "evaluate"),
    }
    return {kind: path.resolve().as_uri() for kind, path in made.items()}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


def wait(page: Page) -> None:
    expect(page.locator("body")).to_have_attribute("data-done", "1", timeout=120_000)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [1280, 420])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_without_an_error_and_fits(
    pages: dict[str, str], chromium: Browser, kind: str, width: int, scheme: str
) -> None:
    with shown(chromium, pages[kind], width, color_scheme=scheme) as page:
        wait(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for figure in page.locator("figure.live").all():
            expect(figure).to_have_attribute("data-drawn", "1")
            for chart in figure.locator(".chart").all():  # each fills its column
                box = chart.locator("svg.marks, canvas.marks").bounding_box()
                whole = chart.bounding_box()
                assert box is not None and whole is not None
                assert 0.9 * whole["width"] <= box["width"] <= whole["width"] + 1
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(255, 255, 255)") is (scheme == "light")


STYLE = "(what) => getComputedStyle(document.querySelector(what))"


def test_on_a_dark_page_axes_are_light_and_series_keep_their_hue(
    pages: dict[str, str], chromium: Browser
) -> None:
    with shown(chromium, pages["certify"], color_scheme="dark") as page:
        wait(page)
        label = page.evaluate(STYLE, ".role-axis-label text")
        assert label["fill"] == page.evaluate(STYLE, "body")["color"] == "rgb(228, 232, 236)"
        line = page.evaluate(STYLE, ".mark-line.role-mark path")
        assert line["stroke"] == "rgb(0, 114, 178)" and line["filter"] == "none"
        assert page.evaluate(STYLE, ".chart svg .role-mark")["filter"] == "brightness(1.2)"


def place_of(page: Page, chart: str, row: str) -> tuple[float, float]:
    """Where on the screen a row of a chart's data lies: `row` is an expression of its fields."""
    page.locator(chart).scroll_into_view_if_needed()
    return tuple(
        page.evaluate(
            """([chart, row]) => {
              const place = document.querySelector(chart), view = place.view;
              const box = place.querySelector("svg, canvas").getBoundingClientRect();
              const [left, top] = view.origin(), pad = view.padding();
              const [x, y] = [view.scale("x")(row.x), view.scale("y")(row.y)];
              return [box.left + left + pad.left + x, box.top + top + pad.top + y];
            }""",
            [chart, json.loads(row)],
        )
    )


@pytest.mark.parametrize("width", [1280, 420])
def test_a_tooltip_says_the_numbers_of_the_nearest_point(
    pages: dict[str, str], chromium: Browser, width: int
) -> None:
    with shown(chromium, pages["reproduce"], width) as page:
        wait(page)
        rows = data(page, "#figure_1 .chart")
        row = next(r for r in rows if r["learner"] == "off-policy TD" and r["step"] > 5000)
        x, y = place_of(page, "#figure_1 .chart", json.dumps({"x": row["step"], "y": row["mean"]}))
        page.mouse.move(x, y)
        tip = page.locator(".tip")
        expect(tip).to_be_visible()
        expect(tip).to_contain_text("off-policy TD")
        expect(tip).to_contain_text(f"{row['step']:,.0f}")
        page.mouse.move(2, 2)
        expect(tip).to_be_hidden()


@pytest.mark.parametrize("width", [1280, 420])
def test_a_tooltip_does_not_cover_its_point(
    pages: dict[str, str], chromium: Browser, width: int
) -> None:
    """Nor leave the picture: at the ends of every line, and at its largest and least value."""
    with shown(chromium, pages["reproduce"], width) as page:
        wait(page)
        rows = [r for r in data(page, "#figure_1 .chart") if r["mean"] is not None]
        tried = 0
        for label in {r["learner"] for r in rows}:
            mine = sorted((r for r in rows if r["learner"] == label), key=lambda r: r["step"])
            most = sorted(mine, key=lambda r: r["mean"])
            for row in (mine[0], mine[-1], most[0], most[-1]):
                point = json.dumps({"x": row["step"], "y": row["mean"]})
                x, y = place_of(page, "#figure_1 .chart", point)
                page.mouse.move(x, y)
                tip, dot = (page.locator(name).bounding_box() for name in (".tip", ".dot"))
                box = page.locator("#figure_1 .chart").bounding_box()
                if tip is None or dot is None or box is None:
                    continue  # another line is nearer, or the point is beyond the axis
                tried += 1
                x, y = dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2
                beside = not tip["x"] < x < tip["x"] + tip["width"]
                assert beside or not tip["y"] < y < tip["y"] + tip["height"], (label, row)
                assert box["x"] <= tip["x"] and tip["x"] + tip["width"] <= box["x"] + box["width"]
        assert tried >= 4


LINES = """(chart) => {  // places of a drawn chart's lines on the screen, a pixel apart
  const found = [], frame = chart.querySelector("svg .background").getBoundingClientRect();
  for (const path of chart.querySelectorAll(".mark-line.role-mark path[d]:not([d=''])")) {
    const place = path.getScreenCTM();
    for (let at = 0; at <= path.getTotalLength(); at++) {
      const { x, y } = path.getPointAtLength(at).matrixTransform(place);
      if (y >= frame.top && y <= frame.bottom) found.push([x, y]);
    }
  }
  return found;
}"""


@pytest.mark.parametrize("kind", ["reproduce", "certify", "cures", "run", "study"])
@pytest.mark.parametrize("width", [1280, 420])
def test_the_ring_lies_on_the_line(
    pages: dict[str, str], chromium: Browser, kind: str, width: int
) -> None:
    """Where the pointer is on a line as drawn, the ring is less than two pixels off one."""
    with shown(chromium, pages[kind], width) as page:
        wait(page)
        rings = 0
        for chart in page.locator(".chart:has(svg .mark-line.role-mark)").all():
            chart.scroll_into_view_if_needed()
            places = chart.evaluate(LINES)
            for place in places[:: max(1, len(places) // 5)]:
                page.mouse.move(*place)
                ring = chart.locator(".dot")
                if ring.count() == 0 or not ring.is_visible():
                    continue  # a line whose points say nothing
                box = ring.bounding_box()
                assert box is not None
                middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
                assert min(math.dist(middle, other) for other in places) < 2.0
                rings += 1
        assert rings >= 4


SIGNS = """(figure) => {  // which way triangles point, and their distance to the frame's edges
  const view = document.querySelector(`${figure} .chart`).view, found = [];
  const walk = (item) => {
    if (item.datum?.on) found.push([item.datum.on, item.y, view.height() - item.y]);
    for (const child of item.items ?? []) walk(child);
  };
  walk(view.scenegraph().root);
  return found;
}"""


def test_a_line_that_leaves_the_picture_has_a_sign_there(
    pages: dict[str, str], chromium: Browser
) -> None:
    """Growing, overflowing and tiny errors of a run; the pole and the bound of a certificate."""
    with shown(chromium, pages["run"]) as page:
        wait(page)
        signs = page.evaluate(SIGNS, "#curves")
        above = [top for on, top, _ in signs if on == "above the picture"]
        assert len(above) == 2 and max(above) < 12
        assert [on for on, *_ in signs if on == "below the picture"]
        expect(page.locator("#curves figcaption")).to_contain_text("errors below 1e-12")
    with shown(chromium, pages["certify"]) as page:
        wait(page)
        signs = page.evaluate(SIGNS, "#path")
        assert len(signs) == 3
        assert all(on == "above the picture" and top < 12 for on, top, _ in signs)


def data(page: Page, chart: str) -> list[dict[str, Any]]:
    """The rows of a chart's largest data set."""
    found = page.evaluate(
        """(chart) => {
          const figure = document.querySelector(chart).closest("figure");
          const tables = Object.values(figure.content.views[0].tables);
          const all = tables.sort((a, b) => b.rows.length - a.rows.length)[0];
          return all.rows.map((r) => Object.fromEntries(r.map((v, i) => [all.names[i], v])));
        }""",
        chart,
    )
    return list(found)


def test_a_mark_has_a_tooltip(pages: dict[str, str], chromium: Browser) -> None:
    with shown(chromium, pages["evaluate"]) as page:
        wait(page)
        page.locator("#lam_calm .chart path[aria-roledescription=point]").first.hover()
        tip = page.locator("#vg-tooltip-element")
        expect(tip).to_be_visible()
        expect(tip).to_contain_text("95 % from")


def lines(page: Page, figure: str) -> int:
    return int(page.locator(f"{figure} .chart .mark-line.role-mark path").count())


@pytest.mark.parametrize("width", [1280, 420])
def test_a_click_on_the_legend_hides_a_line(
    pages: dict[str, str], chromium: Browser, width: int
) -> None:
    with shown(chromium, pages["reproduce"], width) as page:
        wait(page)
        before = lines(page, "#figure_1")
        button = page.locator("#figure_1 .legend").get_by_text("perturbed TD, eta 1")
        button.click()
        expect(button).to_have_attribute("aria-pressed", "false")
        page.wait_for_timeout(200)
        assert lines(page, "#figure_1") == before - 1
        button.click()
        page.wait_for_timeout(200)
        assert lines(page, "#figure_1") == before
        button.dblclick()  # alone
        page.wait_for_timeout(200)
        assert lines(page, "#figure_1") == 1
        colours = page.locator("#figure_1 .chart .mark-line.role-mark path").first
        expect(colours).to_have_attribute("stroke", "#0072B2")


@pytest.mark.parametrize("width", [1280, 420])
def test_the_dial_moves_the_fixed_point_to_what_certify_prints(
    pages: dict[str, str],
    chromium: Browser,
    width: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    etas = ["0.3", "0.42", "0.5", "2"]
    options = [part for eta in etas for part in ("--eta", eta)]
    assert call(monkeypatch, "certify", "three_state", *options, "--json") == 0
    printed = json.loads(capsys.readouterr().out)["path"]
    with shown(chromium, pages["certify"], width) as page:
        wait(page)
        stops = [one["eta"] for one in page.evaluate("JSON.parse(moves.textContent)")]
        dial = page.get_by_label("eta", exact=True)
        for row in printed:
            at = stops.index(number(row["eta"]))
            dial.evaluate("(e, v) => { e.value = v; e.dispatchEvent(new Event('input')); }", at)
            expect(page.locator("#dial-error")).to_have_text(number(row["error"]))
            expect(page.locator("#dial-stable")).to_have_text(
                "stable" if row["stable"] else "unstable"
            )
            page.wait_for_timeout(150)
            moved = {f: dots(page, f) for f in ("#path", "#eigenvalues", "#states")}
            assert [d["eta"] for d in moved["#path"]] == pytest.approx([row["eta"]])
            assert [d["error"] for d in moved["#path"]] == pytest.approx([row["error"]], rel=1e-4)
            assert len(moved["#eigenvalues"]) == 2
            low, high = reach(page, "#states .chart", "y")
            inside = [v for v in (row[f"value_{s}"] for s in range(3)) if low <= v <= high]
            assert len(inside) == 3 or row["error"] > 10.0  # else worse than predicting zero
            assert [d["value"] for d in moved["#states"]] == pytest.approx(inside, rel=1e-4)


def dots(page: Page, figure: str) -> list[dict[str, float]]:
    """The data of the marks that follow the dial, as the drawn view holds them."""
    found = page.evaluate(
        """(figure) => {
          const view = document.querySelector(`${figure} .chart`).view, seen = [];
          const walk = (item) => {
            const dot = item.datum?.i !== undefined && item.mark.marktype === "symbol";
            if (dot) seen.push({ ...item.datum });
            for (const child of item.items ?? []) walk(child);
          };
          walk(view.scenegraph().root);
          return seen;
        }""",
        figure,
    )
    return list(found)


def test_the_dial_answers_to_the_keyboard(pages: dict[str, str], chromium: Browser) -> None:
    with shown(chromium, pages["certify"]) as page:
        wait(page)
        before = page.locator("#dial-eta").inner_text()
        page.get_by_label("eta", exact=True).focus()
        page.keyboard.press("ArrowRight")
        assert float(page.locator("#dial-eta").inner_text()) > float(before)


def test_a_click_on_a_head_sorts_the_table(pages: dict[str, str], chromium: Browser) -> None:
    with shown(chromium, pages["certify"]) as page:
        wait(page)
        table = page.locator("table.sort").first
        rows = table.locator("tbody tr")
        assert "recommended" in rows.first.inner_text()
        head = table.get_by_role("button", name="error")
        for order in ("ascending", "descending"):
            head.click()
            expect(table.locator(f"th[aria-sort={order}]")).to_have_count(1)
            texts = table.locator("tbody tr td:nth-child(5)").all_inner_texts()
            numbers = [float(text) for text in texts if text != "none"]
            assert numbers == sorted(numbers, reverse=order == "descending")
            assert len(numbers) > 10


def reach(page: Page, chart: str, axis: str = "x") -> list[float]:
    """The ends of a chart's axis."""
    ask = "([c, axis]) => document.querySelector(c).view.scale(axis).domain()"
    return list(page.evaluate(ask, [chart, axis]))


def test_zoom_and_back(pages: dict[str, str], chromium: Browser) -> None:
    with shown(chromium, pages["reproduce"]) as page:
        wait(page)
        chart = page.locator("#figure_1 .chart")
        chart.scroll_into_view_if_needed()
        before = reach(page, "#figure_1 .chart")
        chart.hover(position={"x": 400, "y": 150})
        page.keyboard.down("Control")
        page.mouse.wheel(0, -300)
        page.keyboard.up("Control")
        page.wait_for_timeout(300)
        zoomed = reach(page, "#figure_1 .chart")
        assert zoomed[1] - zoomed[0] < before[1] - before[0]
        chart.dblclick(position={"x": 400, "y": 150})
        page.wait_for_timeout(300)
        after = reach(page, "#figure_1 .chart")
        assert after == pytest.approx(before)


def test_names_that_are_markup_stay_texts(pages: dict[str, str], chromium: Browser) -> None:
    with shown(chromium, pages["evaluate"]) as page:
        wait(page)
        expect(page.locator("h1")).to_be_visible()
        assert page.locator("main :not(figcaption) > b").count() == 0
        assert NASTY in page.locator(".command code").inner_text()
        assert NASTY[:8] in page.locator("#decisions .chart").inner_text()


def test_it_prints_in_black_on_white(pages: dict[str, str], chromium: Browser) -> None:
    with shown(chromium, pages["certify"], color_scheme="dark") as page:
        wait(page)
        page.emulate_media(media="print", color_scheme="dark")
        assert (
            page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        )
        assert page.evaluate(STYLE, ".chart svg .role-mark")["filter"] == "none"
        assert page.evaluate(STYLE, ".role-axis-label text")["fill"] == "rgb(29, 35, 41)"
        expect(page.locator(".contents")).to_be_hidden()
        assert len(page.pdf()) > 20_000


@pytest.mark.parametrize("kind", ["certify", "study", "evaluate"])
def test_printed_at_once_every_figure_is_drawn(
    pages: dict[str, str], chromium: Browser, kind: str
) -> None:
    """Before there was time to draw them; a listener after the page's own sees what is printed."""
    page = chromium.new_page()
    page.add_init_script("window.requestIdleCallback = () => 0")  # never time
    page.goto(pages[kind], wait_until="domcontentloaded")
    bare = "document.querySelectorAll('figure.live:not([data-drawn])').length"
    assert page.evaluate(bare) >= 2
    page.evaluate(f"addEventListener('beforeprint', () => {{ window.bare = {bare}; }})")
    early = page.pdf()
    assert page.evaluate("window.bare") == 0
    assert page.locator(".chart:not(:has(svg.marks, canvas.marks))").count() == 0
    assert len(early) == pytest.approx(len(page.pdf()), rel=0.02)  # the same page again
    page.close()
