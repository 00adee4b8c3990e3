"""Pages for everyone: axe-core finds no serious fault of labels, contrast or structure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

import steadytd as st
from steadytd.lab.page import lab_page
from steadytd.logs.example import sample_log
from tests.browser.chromium import opened

pytestmark = pytest.mark.browser
DRAWN = {"exclude": [["svg"]]}  # marks inside of a chart; the chart itself has a text


def lab(directory: Path) -> Path:
    file = directory / "lab.html"
    file.write_text(lab_page(), encoding="utf-8")
    return file


def certificate(directory: Path) -> Path:
    st.certify("baird").report(directory / "certificate.html")
    return directory / "certificate.html"


def run(directory: Path) -> Path:
    r = st.run("three_state", ["td:alpha=0.01", "perturbed_td:alpha=0.01,eta=0.6"], steps=2000)
    r.report(directory / "run.html")
    return directory / "run.html"


def evaluation(directory: Path) -> Path:
    st.evaluate(sample_log(directory / "log.parquet"), discount=0.95).report(
        directory / "evaluation.html"
    )
    return directory / "evaluation.html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("make", [lab, certificate, run, evaluation])
def test_axe_finds_no_serious_fault(
    make: Callable[[Path], Path], scheme: Literal["light", "dark"], tmp_path: Path
) -> None:
    with opened(make(tmp_path).as_uri(), color_scheme=scheme, bypass_csp=True) as page:
        expect(page.locator("body")).to_have_attribute("data-done", "1", timeout=60_000)
        found: Any = Axe().run(page, context=DRAWN).response["violations"]
        serious = [v for v in found if v["impact"] in ("serious", "critical")]
        assert [(v["id"], [n["target"] for n in v["nodes"]]) for v in serious] == []


@pytest.mark.parametrize("width", [420, 1280])
def test_the_lab_stays_where_it_is_while_it_plays(width: int, tmp_path: Path) -> None:
    """No layout shift once the page stands, while the star plays and runs come in."""
    with opened(lab(tmp_path).as_uri(), width) as page:
        expect(page.locator("#triad-error svg")).to_be_visible()
        places = "[...document.querySelectorAll('section, fieldset')].map((e) => e.offsetTop)"
        before = page.evaluate(places)[:3]
        expect(page.locator("body")).to_have_attribute("data-triad", "1", timeout=60_000)
        assert page.evaluate(places)[:3] == before
