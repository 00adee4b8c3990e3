"""`steadytd certify`: terminal page, JSON, HTML page with three pictures."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import steadytd as st
from steadytd.base.numbers import number
from steadytd.report.certificate.cures import cure_rows, cures_chart
from steadytd.report.certificate.figures import (
    dial_stops,
    first_stop,
    largest_eta,
    path_chart,
    thresholds,
    values_chart,
)
from steadytd.report.certificate.page import (
    certificate_page,
    findings,
    learner_rows,
    learners_table,
    thresholds_table,
    verdict,
    write_certificate,
)
from steadytd.report.live import Live
from steadytd.report.pages import page
from steadytd.report.palette import PALE
from steadytd.report.text import Table
from steadytd.theory.certificate import Certificate
from tests.support.commands import call
from tests.support.draws import thinned
from tests.support.helpers import random_problem
from tests.support.html import read_page


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


def test_terminal_page_begins_with_what_to_use(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "certify", "three_state", "--eta", "0.42", "--eta", "0.3") == 0
    text = capsys.readouterr().out
    flat = " ".join(text.split())
    assert flat.startswith(
        "three_state: use perturbed_td with eta = 0.5143, alpha = 0.01. "
        "Off-policy TD's mean update is unstable."
    )
    assert 0 < flat.index("recommended:") < flat.index("eta = 0.42 is close")
    assert "eta = 0.42 is close to the pole at 0.4143" in flat
    assert "eta = 0.3 does not stabilise the mean update" in flat
    assert "159.6" in flat


def test_both_verdicts_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Emphatic TD on Baird: the mean is stable, the variance infinite. Every column fits."""
    assert call(monkeypatch, "certify", "baird", "--full") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["etd", "stable", "infinite", "grow", "0", "0.5419"] in lines
    assert ["td", "unstable", "finite", "0", "none"] in lines
    assert ["learner", "update", "variance", "runs", "error", "alpha"] in lines


@pytest.mark.parametrize("features", [5, 45])
def test_a_scan_is_called_a_scan(features: int) -> None:
    """Above rank 40 the unstable penalties are searched for, and terminal and page say so."""
    c = Certificate(random_problem(3, states=60, features=features, gamma=0.9))
    words = " ".join(str(row[2]) for row in thresholds_table(c).rows)
    assert ("found by a scan" in words) is (features > 40)
    assert c.pencil.exact is (features <= 40)
    nothing = Live("", "", [], [], [], "{}", False)
    figures = dict.fromkeys(("path", "eigenvalues", "states"), nothing)
    none = Table("", (), [])
    shown = page("certify.html", c=c, thresholds=none, learners=learners_table(c), findings=[],
                 path=none, cures=None, curve=None, figures=figures, verdict="", first=(),
                 command="", adaptive="",
                 moves="[]", start=0, last=0)  # fmt: skip
    assert ("searched for by a" in shown) is (features > 40)
    assert "variance of the traces" in shown


@pytest.mark.parametrize(
    "name",
    [
        "three_state",
        *(
            pytest.param(n, marks=pytest.mark.slow)
            for n in ("on_policy", "theta2theta", "baird", "wide")
        ),
    ],
)
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
    names = {"eigenvalues", "path", "states"}
    if st.certify(what).expected() is not None:
        names |= {"curve"}
    pictures = {f"{n}.{k}" for n in names for k in ("svg", "png", "pdf")}
    assert {p.name for p in out.iterdir()} == pictures | {"certificate.html"}
    shown = read_page((out / "certificate.html").read_text(encoding="utf-8"))
    assert set(shown.figures) == names
    assert {link for link in shown.links if not link.startswith("#")} == pictures
    assert "recommended" in shown.text


def test_the_cures_fit_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert call(monkeypatch, "certify", "three_state", "--cures") == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "nstep_td below 2, 3 n 2 2.548 4.16" in lines
    assert "perturbed_td * below 0.4143 eta 0.5143 2.548 3.03 0.2682" in lines
    assert "partially_fitted all none none none" in lines
    assert any(
        line.startswith("td below 0.6856* lam") and line.endswith("infinite") for line in lines
    )
    assert "recommended: use perturbed_td with eta = 0.5143" in " ".join(text.split())


def ways(html: str) -> str:
    """The table of cures."""
    start = html.index('id="ways"')
    return html[html.index("<tbody>", start) : html.index("</tbody>", start)]


@pytest.mark.slow
def test_the_page_of_cures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A fourth picture, one panel per cure; here all values are zero."""
    assert call(monkeypatch, "certify", "theta2theta", "--cures", "--out", str(tmp_path)) == 0
    shown = read_page((tmp_path / "certificate.html").read_text(encoding="utf-8"))
    assert "Every way to stability, and its price" in shown.text
    assert "steadytd certify theta2theta --cures" in shown.text
    views, rows = shown.figures["cures"]["views"], cure_rows(Certificate(st.problem("theta2theta")))
    assert len(views) == len(rows)
    picture = (tmp_path / "cures.svg").read_text(encoding="utf-8")
    for row in rows:
        assert row["name"] in picture
    assert picture.count(": recommended<") == 1
    assert PALE in picture  # what is not stable
    html = (tmp_path / "certificate.html").read_text(encoding="utf-8")
    first, *others = re.findall(
        r"<tr[^>]*><td>([^<]*)(<span class=.badge.>recommended)?", ways(html)
    )
    assert first[1] and not any(mark for _, mark in others)
    assert f"use {first[0].split()[0]} with" in shown.text


def test_the_page_alone_has_no_links_to_files() -> None:
    shown = read_page(certificate_page(Certificate(st.problem("three_state"))))
    assert all(link.startswith("#") for link in shown.links)


def test_without_pictures_only_the_page_is_written(tmp_path: Path) -> None:
    path = write_certificate(Certificate(st.problem("theta2theta")), tmp_path, pictures=False)
    assert [p.name for p in tmp_path.iterdir()] == [path.name] == ["certificate.html"]


@pytest.mark.parametrize(
    "name", ["three_state", "theta2theta", pytest.param("baird", marks=pytest.mark.slow)]
)
def test_the_dial_says_what_certify_says(name: str) -> None:
    """Every stop: the error, the verdict and the eigenvalues of the certificate at that penalty."""
    c = Certificate(st.problem(name))
    asked = [0.42, 1.0]
    shown = read_page(certificate_page(c, asked))
    said, stops = shown.other["moves"], dial_stops(c, asked, largest_eta(c))
    assert [row["eta"] for row in said] == [number(move.eta) for move in stops]
    assert said[first_stop(c, stops)]["eta"] == number(c.best_eta)
    assert {number(eta) for eta in (0.0, *asked)} <= {row["eta"] for row in said}
    for row, move in zip(said, stops, strict=True):
        (known,) = c.path([move.eta]).to_dicts()
        assert row["stable"] == ("stable" if known["stable"] else "unstable")
        assert row["error"] == ("none" if known["error"] is None else number(known["error"]))
        A = c.pencil.A(move.eta)
        if c.pencil.sizes is None:
            assert sorted(move.rates.real) == pytest.approx(sorted(np.linalg.eigvals(A).real))
    drawn = [row for row in shown.rows("path") if row.get("i") is not None]
    assert {row["i"] for row in drawn} == {i for i, m in enumerate(stops) if m.error is not None}
    for i, move in enumerate(stops):
        here = [r for r in shown.rows("eigenvalues") if r.get("i") == i]
        assert sorted(r["re"] for r in here) == pytest.approx(
            sorted(move.rates.real), rel=1e-4, abs=1e-5
        )


@pytest.mark.parametrize("name", thinned(["three_state", "baird", "kolter", "nonmonotone"], 2))
def test_names_of_thresholds_lie_on_no_curve(name: str) -> None:
    """Every threshold has its name above the frame, in a row of its own, at its place."""
    c = Certificate(st.problem(name))
    chart = path_chart(c).to_dict(validate=False)
    texts = [layer for layer in chart["layer"] if layer["mark"]["type"] == "text"]
    assert texts and all(layer["encoding"]["y"] == {"value": 0} for layer in texts)
    assert all(layer["mark"]["dy"] == {"expr": "-3 - 13 * datum.row"} for layer in texts)
    rows = [row for layer in texts for row in chart["datasets"][layer["data"]["name"]]]
    assert sorted(row["row"] for row in rows) == list(range(len(rows)))
    top = largest_eta(c)
    assert {(row["eta"], row["text"]) for row in rows} == {
        (value, f"{what} {number(value)}") for what, value in thresholds(c, top)
    }
    narrow, letter = 348.0, 5.6  # pixels of the frame on a small screen, and of a letter
    for row in rows:
        at, wide = np.sqrt(row["eta"] / top) * narrow, letter * len(row["text"]) + 3.0
        assert at + wide <= narrow + 12.0 if row["left"] else at - wide >= 0.0
    assert chart["layer"][-1]["encoding"]["x"]["title"] == "eta (square-root scale)"


def test_where_every_error_is_zero_the_rates_are_drawn() -> None:
    """On Baird's problem: of penalties the smallest real part, negative while TD is unstable."""
    c = Certificate(st.problem("baird"))
    chart = path_chart(c).to_dict(validate=False)
    line = next(layer for layer in chart["layer"] if layer["mark"]["type"] == "line")
    assert line["encoding"]["y"]["title"] == "rate of its slowest mode"
    for row in chart["datasets"][line["data"]["name"]][::40]:
        eigenvalues = np.linalg.eigvals(c.pencil.A(row["eta"])).real
        assert row["error"] == pytest.approx(eigenvalues.min(), rel=1e-6, abs=1e-9)
        assert (row["error"] > 0.0) == (row["eta"] > c.eta_hurwitz)
    cures = json.dumps(cures_chart(c).to_dict(validate=False))
    assert "rate of its slowest mode over its amount" in cures
    spread = [[row["y"] for row in panel] for panel in panels(cures_chart(c))]
    assert all(max(y) > 0.0 for y in spread) and len(spread) == len(c.treatments)


def panels(chart: Any) -> list[list[dict[str, Any]]]:
    """The stable points of each panel."""
    spec = chart.to_dict(validate=False)
    lines = [[x for x in one["layer"] if x["mark"]["type"] == "line"][-1] for one in spec["concat"]]
    return [spec["datasets"][line["data"]["name"]] for line in lines]


def test_a_legend_of_dots_has_dots() -> None:
    """A stroke in the legend of filled marks would not be seen."""
    chart = values_chart(Certificate(st.problem("three_state"))).to_dict(validate=False)
    for layer in chart["layer"]:
        assert layer["encoding"]["color"]["legend"]["symbolType"] == "circle"


def test_the_recommended_learner_comes_first(tmp_path: Path) -> None:
    c = Certificate(st.problem("three_state"))
    (choice,) = [f.numbers["learner"] for f in c.advice if f.code == "recommended"]
    html = certificate_page(c).replace("<wbr>", "")
    table = html[html.index('id="learners"') :]
    order = [table.index(f"<td>{row['name']}") for row in learner_rows(c)]
    names = [row["learner"] for row in learner_rows(c)]
    assert names[order.index(min(order))] == choice == "perturbed_td"


@pytest.mark.parametrize("cures", [False, True])
@pytest.mark.parametrize(
    ("name", "learner"), [("nonmonotone", "perturbed_td"), ("kolter", "truncated_etd")]
)
def test_one_learner_is_marked(name: str, learner: str, cures: bool) -> None:
    """The first line, the table of learners and that of cures name one, the same.

    On kolter a cure that is no learner of the table is better than those without cures.
    """
    c = Certificate(st.problem(name))
    use, *others = findings(c, cures=cures)
    assert use.code == "recommended" and all(f.code != "recommended" for f in others)
    first = verdict(c, cures=cures)
    assert first.startswith(f"{name}: {use.text.partition(':')[0]}. Off-policy TD's mean update")
    assert first.count("use ") == 1 and "needed" not in first
    rows = learner_rows(c, cures=cures)
    starred = [row["learner"] for row in rows if row["recommended"]]
    if not cures:
        assert starred == [use.numbers["learner"]] == [rows[0]["learner"]]
        return
    chosen = [row["name"] for row in cure_rows(c) if row["recommended"]]
    assert chosen == [use.numbers["learner"]] == [learner]
    assert starred == ([learner] if name == "nonmonotone" else [])


def test_cures_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "certify", "theta2theta", "--cures", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    rows = {row["cure"]: row for row in shown["cures"]}
    assert rows["partially_fitted"]["unstable"] == [[1.0, None]]  # without end
    assert rows["ridge_td"]["stable_from"] == pytest.approx(0.2)
    assert shown["advice"][-1]["code"] == "recommended"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["baird", "--eta", "-1"], "eta must be a finite number >= 0, got -1"),
        (["baird", "--policy", "1"], "policy must be 0: this problem has one, got 1"),
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
