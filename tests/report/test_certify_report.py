"""`steadytd certify`: terminal page, JSON, HTML page with three pictures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import steadytd as st
from steadytd.report.certificate.page import threshold_rows
from steadytd.report.pages import page
from steadytd.theory.certificate import Certificate
from tests.support.commands import call
from tests.support.helpers import random_problem


def test_json_is_the_certificate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "certify", "three_state", "--eta", "0.5", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["td_stable"] is False
    assert shown["eta_pd"] == pytest.approx(29 / 70)
    assert shown["bounds"]["paper"] == pytest.approx(8.0)
    assert shown["unstable_etas"] == [[0.0, pytest.approx(29 / 70)]]
    assert shown["path"][0]["error"] == pytest.approx(3.0151, abs=5e-5)
    codes = [finding["code"] for finding in shown["advice"]]
    assert codes[0] == "td_unstable"
    assert codes[-1] == "recommended"
    expected = st.certify("three_state").to_dict([0.5])
    assert shown == json.loads(json.dumps(expected))


def test_terminal_page_begins_with_the_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "certify", "three_state", "--eta", "0.42", "--eta", "0.3") == 0
    text = capsys.readouterr().out
    assert text.startswith("three_state: off-policy TD diverges.")
    flat = " ".join(text.split())
    assert "eta = 0.42 is close to the pole at 0.4143" in flat
    assert "eta = 0.3 does not stabilise the mean update" in flat
    assert "159.6" in flat


def test_both_verdicts_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Emphatic TD on Baird: the mean is stable, the variance infinite. Every column fits."""
    assert call(monkeypatch, "certify", "baird") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["etd", "stable", "infinite", "0", "0.5419"] in lines
    assert ["td", "unstable", "finite", "0", "none"] in lines
    assert ["learner", "mean", "variance", "error", "alpha", "<"] in lines


@pytest.mark.parametrize("features", [5, 45])
def test_a_scan_is_called_a_scan(features: int) -> None:
    """Above rank 40 the unstable penalties are searched for, and terminal and page say so."""
    c = Certificate(random_problem(3, states=60, features=features, gamma=0.9))
    words = " ".join(row["text"] for row in threshold_rows(c))
    assert ("found by a scan" in words) is (features > 40)
    assert c.pencil.exact is (features <= 40)
    shown = page("certify.html", c=c, thresholds=[], learners=[], findings=[], path=[],
                 pictures={"path": "", "eigenvalues": "", "states": ""}, verdict="", name="x",
                 summary="", rank=features, features=features, command="")  # fmt: skip
    assert ("searched for by a" in shown) is (features > 40)
    assert "variance of its traces" in shown


@pytest.mark.parametrize("name", ["theta2theta", "baird", "three_state", "on_policy", "wide"])
def test_page(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    what = name
    if name == "on_policy":
        p = random_problem(1, states=6)
        same = st.Problem(
            name=name, P=p.P, r=p.r, gamma=p.gamma, mu=p.mu, pi=p.mu, Phi=p.Phi
        )  # fmt: skip
        what = str(same.save(tmp_path / "on_policy.npz"))
    elif name == "wide":
        what = str(random_problem(2, states=40, features=5).save(tmp_path / "wide.npz"))
    out = tmp_path / "out"
    assert call(monkeypatch, "certify", what, "--out", str(out)) == 0
    pictures = {
        f"{n}.{k}" for n in ("eigenvalues", "path", "states") for k in ("svg", "png", "pdf")
    }
    assert {p.name for p in out.iterdir()} == pictures | {"certificate.html"}
    html = (out / "certificate.html").read_text(encoding="utf-8")
    assert html.count("<svg") == 3
    assert "http" not in html.replace("http://www.w3.org", "")
    assert "recommended" in html


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["baird", "--eta", "-1"], "eta must be a finite number >= 0, got -1"),
        (["baird", "--policy", "1"], "policy must be in 0..0, got 1"),
        (["brd"], "unknown problem 'brd'"),
    ],
)
def test_bad_input(
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call(monkeypatch, "certify", *arguments) == 2
    assert message in capsys.readouterr().err
