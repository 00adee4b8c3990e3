"""Learning curves known before any run, in pictures, pages and on the terminal."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import steadytd as st
from steadytd.report.certificate.page import write_certificate
from steadytd.report.figures import described
from tests.support.commands import call
from tests.support.html import read_page

CURVE = "perturbed_td:alpha=0.02,eta=0.6"


def tables(chart: Any) -> list[list[dict[str, Any]]]:
    whole = described(chart)
    return [
        whole["datasets"][layer.get("data", whole.get("data"))["name"]] for layer in whole["layer"]
    ]


def test_the_picture_has_the_numbers_of_the_curve(tmp_path: Path) -> None:
    curve = st.certify("three_state").learning_curve(CURVE, steps=300)
    rows = tables(curve.plot())[0]
    for name in ("error", "bias", "spread"):
        drawn = [row["mean"] for row in rows if row["learner"] == name]
        np.testing.assert_allclose(drawn, np.maximum(getattr(curve, name)[1:], 1e-12))
    limit = {row["mean"] for row in rows if row["learner"] == "error of its fixed point"}
    assert limit == {curve.limit}
    end = f"error {curve.error[-1]:.4g}, bias {curve.bias[-1]:.4g}, spread {curve.spread[-1]:.4g}."
    assert str(curve) == f"{CURVE}: {curve.text}" and curve.text.endswith(
        f" After 300 steps: {end}"
    )
    assert curve.text in unescape(curve.report(tmp_path / "curve.html").read_text())
    curve.to_csv(tmp_path / "curve.csv")
    assert (tmp_path / "curve.csv").read_text().startswith("step,error,spread,bias,stderr\n0,")


def test_a_run_is_drawn_with_what_theory_expects(tmp_path: Path) -> None:
    """The mean of runs lies between the bias and the root mean square, up to 4.5 of its errors."""
    learners = [CURVE, "nstep_td:alpha=0.005,n=2", "td:alpha=0.01,lam=0.5"]
    r = st.run("three_state", learners, steps=200, seeds=300)
    assert sorted(r.expected) == [0, 1]  # the third is not exact
    shade = tables(r.plot(expected=True))[-1]
    assert {row["learner"] for row in shade} == set(learners[:2])
    for i, curve in r.expected.items():
        rows = [row for row in shade if row["learner"] == learners[i]]
        assert [row["expected"] for row in rows] == curve.error.tolist()
        assert [row["bias"] for row in rows] == curve.bias.tolist()
        at = np.isin(curve.step, r.steps)
        errors = r.errors[i][:, np.isin(r.steps, curve.step)]
        slack = 4.5 * errors.std(axis=0) / np.sqrt(len(r.seeds)) + 1e-9
        assert (errors.mean(axis=0) <= curve.error[at] + slack).all()
        assert (errors.mean(axis=0) >= curve.bias[at] - slack).all()
    assert len(tables(r.plot())) == len(tables(r.plot(expected=True))) - 2
    some = tables(r.plot(learners={learners[1]: "n steps"}, expected=True))[-1]
    assert {row["learner"] for row in some} == {"n steps"}
    assert "thin: expected error" in described(r.plot(expected=True))["title"]["subtitle"][1]
    assert "thin: expected error" in r.report(tmp_path / "run.html").read_text()


def test_where_no_curve_is_exact_none_is_drawn() -> None:
    for problem, learner in (("collision", "td:alpha=0.1"), ("rooms", "td:alpha=0.1"),
                             ("baird", "etd:alpha=0.001")):  # fmt: skip
        r = st.run(problem, learner, steps=20, seeds=2)
        assert r.expected == {}
        assert len(tables(r.plot(expected=True))) == len(tables(r.plot()))


@pytest.mark.parametrize("seed", range(4))
def test_the_page_says_when_the_recommended_learner_is_there(seed: int, tmp_path: Path) -> None:
    """Where 400 runs cross 10 % above the fixed point's error, within 4.5 standard errors."""
    c = st.certify(st.problem("random_mdp", states=4, features=2, seed=seed))
    curve = c.expected()
    assert curve is not None and curve.limit is not None
    use = c.recommended()
    assert use is not None
    assert curve.step[-1] == 2 * use.numbers["decay_steps"]
    assert curve.learner == c.resolved(use.numbers["learner"], **use.numbers["params"],
                                       alpha=use.numbers["alpha"])  # fmt: skip
    text = write_certificate(c, tmp_path, pictures=False).read_text()
    read_page(text)
    assert curve.text in unescape(text)
    reached = curve.reaches()
    if reached:
        r = st.run(c.problem, curve.learner, steps=reached, seeds=400, points=6)
        level = (1.1 * curve.limit) ** 2
        squares = r.errors[0, :, -1] ** 2
        assert squares.mean() <= level + 4.5 * squares.std() / 20.0
        before = r.errors[0, :, -2] ** 2  # a fifth of the steps earlier
        assert before.mean() > level - 4.5 * before.std() / 20.0


def test_on_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    curve = st.certify("three_state").learning_curve("perturbed_td:eta=0.6", steps=500)
    asked = ("certify", "three_state", "--learner", "perturbed_td:eta=0.6", "--steps", "500")
    assert call(monkeypatch, *asked) == 0
    assert str(curve) in " ".join(capsys.readouterr().out.split())
    assert call(monkeypatch, *asked, "--json") == 0
    assert json.loads(capsys.readouterr().out)["asked"][0]["curve"] == curve.to_dict()
    assert call(monkeypatch, "certify", "three_state", "--steps", "500") == 2
    assert "name one with --learner" in capsys.readouterr().err
    assert call(monkeypatch, "certify", "three_state", "--learner", "etd", "--steps", "500") == 2
    assert "give alpha a number" in " ".join(capsys.readouterr().err.split())
