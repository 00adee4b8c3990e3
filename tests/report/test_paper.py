"""Figures for a paper: what is drawn, under which names, and how large."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import steadytd as st
from steadytd.studies.results import StudyResults

TD, PENALTY, TDC = "td:alpha=0.01", "perturbed_td:alpha=0.01,eta=0.6", "tdc:alpha=0.01,ratio=1"


@pytest.fixture(scope="module")
def run() -> st.Result:
    return st.run("three_state", [TD, PENALTY, TDC], steps=40, seeds=3, points=5)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> StudyResults:
    study = st.study({"problems": ["three_state", "baird"], "learners": [TD, PENALTY, TDC],
                      "steps": 40, "seeds": 3})  # fmt: skip
    return study.run(out=tmp_path_factory.mktemp("paper") / "out", threads=1)


def described(chart: Any) -> dict[str, Any]:
    found: dict[str, Any] = chart.to_dict(validate=False)
    return found


def legend(panel: dict[str, Any]) -> list[str]:
    """The names in the legend of a panel."""
    colours = (layer["encoding"]["color"]["scale"]["domain"] for layer in panel["layer"])
    domain: list[str] = next(colours)
    return domain


def lines(chart: dict[str, Any], panel: dict[str, Any]) -> set[str]:
    """The names of the lines in the data of a panel."""
    rows = [layer["data"] for layer in panel["layer"]]
    values = [data.get("values") or chart["datasets"][data["name"]] for data in rows]
    return {row["learner"] for some in values for row in some if "learner" in row}


def test_some_learners_of_a_run_under_other_names(run: st.Result) -> None:
    found = described(run.plot(learners={PENALTY: "ours", "TD": "theirs"}))
    assert legend(found) == ["ours", "theirs"]  # in the order asked for
    assert lines(found, found) == {"ours", "theirs"}
    assert legend(described(run.plot(learners=["td"]))) == ["td"]
    assert len(legend(described(run.plot()))) == 3


def test_colours_stay_with_their_learners(run: st.Result) -> None:
    def colour(chart: dict[str, Any], name: str) -> str:
        scale = chart["layer"][0]["encoding"]["color"]["scale"]
        return str(scale["range"][scale["domain"].index(name)])

    alone = described(run.plot(learners={"tdc": "TDC"}))
    assert colour(alone, "TDC") == colour(described(run.plot()), TDC)


def test_panels_of_a_study(results: StudyResults) -> None:
    chart = results.plot(
        learners=["tdc", "td"], problems={"baird": "Star", "three_state": "Three"}, columns=2,
        width=120, font_size=8,
    )  # fmt: skip
    found = described(chart)
    assert found["columns"] == 2 and [p["title"]["text"] for p in found["concat"]] == [
        "Star",
        "Three",
    ]
    assert all(legend(panel) == ["tdc", "td"] for panel in found["concat"])
    assert "color" not in found["resolve"]["scale"]  # one legend
    assert [p["width"] for p in found["concat"]] == [120, 120]
    one = described(results.plot(problems=["Baird"]))
    assert one["title"]["text"].startswith("baird") and one["title"]["subtitle"]


def test_sizes_are_those_asked_for(run: st.Result, tmp_path: Path) -> None:
    small, plain = (run.plot(width=w, font_size=9) for w in (150, 300))
    found = described(small)
    assert found["width"] == 150 and 2 * found["height"] == described(plain)["height"]
    assert found["config"]["axis"]["labelFontSize"] == 9
    assert "subtitle" not in found["title"]
    small.save(tmp_path / "f.pdf")
    pdf = (tmp_path / "f.pdf").read_bytes()
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    assert box is not None and 150 < float(box[1]) < 230  # points: the panel and its labels
    assert b"/FontFile" in pdf


def test_other_results_have_sizes_too() -> None:
    found = described(st.certify("three_state").plot(width=100, font_size=7))
    assert '"width": 100' in str(found).replace("'", '"')


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learners": ["etd"]}, "unknown learner of this run:"),
        ({"learners": []}, "nothing is left to draw"),
        ({"learners": {"td": "a", "tdc": "a"}}, "two lines would be called 'a'"),
        ({"problems": ["baird"]}, "this picture has no option problems; leave it out"),
        ({"width": 3}, "width must be"),
        ({"font_size": 0}, "font_size must be"),
    ],
)
def test_mistakes(run: st.Result, options: dict[str, Any], message: str) -> None:
    with pytest.raises(st.InputError, match=message):
        run.plot(**options)


def test_mistakes_in_the_names_of_a_study(results: StudyResults) -> None:
    with pytest.raises(st.InputError, match="unknown problem of this study: 'biard'; did you mean"):
        results.plot(problems=["biard"])
    with pytest.raises(st.InputError, match="unknown learner of this study: 'etd'"):
        results.plot(learners=["etd"])
