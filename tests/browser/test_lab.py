"""The lab in Chromium: dragging, the course, permalinks, and the same bits as `st.run`."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import steadytd as st
from steadytd.lab.page import lab_page
from steadytd.lab.server import LabServer
from tests.browser import firefox
from tests.browser.chromium import opened

pytestmark = pytest.mark.browser
STATE = "#p=three_state&l=perturbed_td:alpha=0.001,eta=0.6;tdc:alpha=0.002&n=20000&k=2"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with LabServer(lab_page()) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.address
        server.shutdown()


def wait(page: Page) -> None:
    expect(page.locator("body")).to_have_attribute("data-done", "1", timeout=60_000)


@pytest.mark.parametrize("width", [1280, 420])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_without_an_error_and_fits(address: str, width: int, scheme: str) -> None:
    with opened(address, width, color_scheme=scheme) as page:
        wait(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("#chart-curves path").count() >= 2


def test_a_permalink_gives_the_bits_of_run(address: str) -> None:
    with opened(address + STATE) as page:
        wait(page)
        weights = page.evaluate("curves.weights")
        errors = page.evaluate("curves.errors")
        code = page.locator("#python").inner_text()
    scope: dict[str, object] = {}
    lines = [line for line in code.splitlines() if not line.startswith("print")]
    exec("\n".join(lines), scope)  # the page's own line, as a user would paste it
    r = scope["r"]
    assert isinstance(r, st.Result)
    for i, learner in enumerate(r.learners):
        np.testing.assert_array_equal(r.weights(learner), [seed[i] for seed in weights])
        np.testing.assert_array_equal(r.errors[i], [seed[i] for seed in errors])


def test_dragging_eta_moves_the_fixed_point_to_what_certify_says(address: str) -> None:
    with opened(address + STATE) as page:
        wait(page)
        slider = page.locator("input[type=range][aria-label='perturbed_td eta']")
        for value in ("0.9", "1.5"):
            slider.evaluate(
                "(e, v) => { e.value = v; e.dispatchEvent(new Event('input')); }", value
            )
            eta = float(page.locator("input[aria-label='perturbed_td eta, number']").input_value())
            c = st.certify("three_state")
            error = c.error(c.pencil.fixed_point(eta))
            shown = page.evaluate("analysis.error(analysis.fixedPoint(presentEta()))")
            assert shown == pytest.approx(error, rel=1e-9)
            expect(page.locator("#sentences")).to_contain_text(f"{float(f'{error:.4g}'):g}")
            assert f"eta={eta:g}" in page.evaluate("decodeURIComponent(location.hash)")
        wait(page)


def test_the_slider_answers_to_the_keyboard(address: str) -> None:
    with opened(address + STATE) as page:
        wait(page)
        before = page.evaluate("presentEta()")
        page.locator("input[type=range][aria-label='perturbed_td eta']").focus()
        for _ in range(5):
            page.keyboard.press("ArrowRight")
        assert page.evaluate("presentEta()") > before


def test_the_seven_steps_can_be_followed_and_answered(address: str) -> None:
    with opened(address) as page:
        page.get_by_role("button", name="step 1:").click()
        for step in range(1, 8):
            expect(page.locator("#lesson-title")).to_contain_text(f"{step}.")
            expect(page.locator("#charts")).not_to_be_visible()
            page.locator("#choices button").first.click()
            expect(page.locator("#charts")).to_be_visible()
            page.fill("#answer", "123456")
            page.get_by_role("button", name="check").click()
            expect(page.locator("#verdict")).to_contain_text("Not yet")
            truth = page.evaluate("data.course[state.step - 1].answer")
            page.fill("#answer", f"{truth:.3g}")
            page.get_by_role("button", name="check").click()
            expect(page.locator("#verdict")).to_contain_text("Yes.")
            if step < 7:
                page.get_by_role("button", name="next step").click()
        expect(page.locator("#sheet-sum")).to_have_text("7 of 7 questions answered rightly.")
        link = page.evaluate("location.href")
    with opened(link) as page:  # as a teacher opens what was handed in
        expect(page.locator("#sheet-sum")).to_have_text("7 of 7 questions answered rightly.")
        page.locator("#sheet summary").click()
        page.emulate_media(media="print")
        expect(page.locator("#sheet-rows li")).to_have_count(7)
        expect(page.locator("#sheet-rows")).to_be_visible()
        expect(page.locator("#controls")).not_to_be_visible()


def test_three_switches_show_the_triad(address: str) -> None:
    with opened(address) as page:
        expect(page.locator("#triad-verdict")).to_contain_text("All three together: unstable.")
        expect(page.locator("body")).to_have_attribute("data-triad", "1")
        assert page.locator("#triad-star .wild").count() == 7
        for name in ("Function approximation", "Bootstrapping", "Off-policy"):
            switch = page.get_by_role("switch", name=name)
            switch.press("Space")
            expect(switch).to_have_attribute("aria-checked", "false")
            expect(page.locator("#triad-verdict")).to_contain_text("Any two of the three are safe.")
            expect(page.locator("body")).to_have_attribute("data-triad", "1")
            assert page.locator("#triad-star .wild").count() == 0
            switch.click()
        page.locator("#triad-eta").fill("0.5")
        expect(page.locator("#triad-verdict")).to_contain_text("Stable with the penalty η = 0.5.")


def test_the_dot_on_the_path_can_be_dragged(address: str) -> None:
    with opened(address + STATE) as page:
        wait(page)
        page.locator("#chart-path").scroll_into_view_if_needed()
        box = page.locator("#chart-path svg").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
        page.mouse.down()
        page.mouse.move(box["x"] + 0.8 * box["width"], box["y"] + 0.5 * box["height"], steps=4)
        page.mouse.up()
        eta = page.evaluate("presentEta()")
        assert 0.7 < eta < 0.9  # the range is 0 to 1
        slider = page.locator("input[type=range][aria-label='perturbed_td eta']")
        assert float(slider.input_value()) == pytest.approx(eta, abs=0.002)
        assert float(slider.get_attribute("max") or 0) == page.evaluate("etaTop()") == 1


def test_the_largest_step_size_is_shown_and_what_lies_beyond(address: str) -> None:
    with opened(address + STATE) as page:
        first = page.locator(".limit").first
        edge = st.certify("three_state").mean_square("perturbed_td:alpha=0.1,eta=0.6")
        assert edge is not None
        expect(first).to_contain_text(f"Largest stable α: {edge.largest_alpha:.2g}", timeout=60_000)
        field = page.locator("input[aria-label='perturbed_td alpha, number']")
        field.fill("0.5")
        field.press("Enter")
        expect(first).to_contain_text("as here", timeout=60_000)
        field.fill("-1")
        field.press("Enter")
        expect(page.locator(".knob em").first).to_contain_text("alpha must be a number")


def test_slides_are_turned_by_keys(address: str) -> None:
    with opened(address + "#slides=1") as page:
        expect(page.locator("#lesson-title")).to_contain_text("1.")
        page.keyboard.press("ArrowRight")
        expect(page.locator("#lesson-title")).to_contain_text("2.")
        expect(page.locator("#controls")).not_to_be_visible()


def test_the_page_says_which_kind_of_td_it_runs(address: str) -> None:
    with opened(address + STATE) as page:
        expect(page.locator("#sentences")).to_contain_text("Off-policy TD's mean update")
        page.locator("#on-policy").check()
        expect(page.locator("#sentences")).to_contain_text("On-policy TD is stable in the mean")
        expect(page.locator("#sentences")).not_to_contain_text("ff-policy")


def test_a_line_that_leaves_the_picture_has_a_sign(address: str) -> None:
    grown = "#p=baird&l=td:alpha=0.005;perturbed_td:alpha=0.005,eta=0.2&n=100000&k=1"
    with opened(address + grown) as page:
        wait(page)
        assert page.locator("#chart-curves .sign").count() >= 1
    with opened(address + STATE) as page:
        wait(page)
        assert page.locator("#chart-curves .sign").count() == 0


def test_a_chain_of_ones_own(address: str) -> None:
    with opened(address + STATE) as page:
        page.locator("#editor summary").click()
        expect(page.locator("#edit-Phi")).not_to_have_value("")  # the page has filled it in
        page.fill("#edit-mu", "0.5 0.4\n0.5 0.5\n0.5 0.5")
        page.get_by_role("button", name="use it").click()
        expect(page.locator("#edit-fault")).to_contain_text("mu: state 0 sums to 0.9, not 1.")
        page.fill("#edit-mu", "1/2 1/2\n0.5 0.5\n0.5 0.5")
        page.get_by_role("button", name="use it").click()
        expect(page.locator("#about")).to_contain_text("your own")
        wait(page)
        link = page.evaluate("location.href")
    with opened(link) as page:
        wait(page)
        expect(page.locator("#about")).to_contain_text("your own")


def test_a_bad_address_is_named_and_harmless(address: str) -> None:
    with opened(address + "#p=nowhere&l=td:alpha=0.1&n=1000&k=1") as page:
        expect(page.locator("#fault")).to_contain_text("There is no problem nowhere here.")
        wait(page)


def test_a_tooltip_names_the_errors(address: str) -> None:
    with opened(address + STATE) as page:
        wait(page)
        page.locator("#chart-curves svg").hover(position={"x": 200, "y": 80})
        expect(page.locator("#chart-curves .tip")).to_contain_text("tdc")


@pytest.mark.skipif(firefox.executable() is None, reason="there is no Firefox on this system")
def test_firefox_gives_the_bits_of_run_too(address: str) -> None:
    with firefox.opened(address + STATE) as page:
        page.wait_for("document.body.dataset.done === '1'")
        weights, errors = (
            page.value_of("window.curves.weights"),
            page.value_of("window.curves.errors"),
        )
        assert page.value_of("document.querySelectorAll('#chart-curves path').length") >= 2
        assert page.value_of("document.documentElement.scrollWidth <= window.innerWidth")
    found = ["perturbed_td:alpha=0.001,eta=0.6", "tdc:alpha=0.002"]
    r = st.run("three_state", found, steps=20_000, seeds=2)
    for i, learner in enumerate(r.learners):
        np.testing.assert_array_equal(r.weights(learner), [seed[i] for seed in weights])
        assert errors[0][i][-1] == r.errors[i][0][-1]
