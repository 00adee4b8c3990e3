"""The reproduction against independent figures, its verdicts, and what it leaves on disk.

Figure 1 is small and runs here at full size. What needs a million steps is marked slow.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import steadytd as st
from steadytd.base.numbers import interval, number
from steadytd.cli.main import main
from steadytd.report import figures
from steadytd.report.figures import FORMATS, save_figures
from steadytd.report.reproduction import answer, command, figure_chart, rest, write_reproduction
from steadytd.report.text import Table, rendered
from steadytd.reproduction import spread, verdict
from steadytd.reproduction import statements as say
from steadytd.reproduction.paper import AS_DEFINED, FIGURES, NO_RATIO, WITH_PI, Claim
from steadytd.reproduction.reproduce import Reproduction, choose, reproduce, reproduce_figures
from steadytd.reproduction.spread import FIRST_SEED, is_heavy, spreads
from steadytd.reproduction.supplement import PANELS
from steadytd.reproduction.verdict import Theory, judge, predict
from steadytd.theory.exact import exact_error
from tests.support.html import read_page

SMALL = 20_000  # steps of a panel in the ordinary tests


@pytest.fixture(scope="module")
def full() -> Reproduction:
    return reproduce()


@pytest.fixture(scope="module")
def first() -> Reproduction:
    """Figure 1 at full size."""
    return reproduce([1])


@pytest.fixture(scope="module")
def small() -> Reproduction:
    """Figure 3 and two panels, short."""
    chosen = [replace(f, steps=SMALL) for f in (FIGURES[2], PANELS[4], PANELS[6])]
    return reproduce_figures(chosen, range(5), many=30)


def row(done: Reproduction, figure: int, learner: str) -> Any:
    (found,) = [r for r in done.rows if r.figure == figure and r.learner == learner]
    return found


# measured by an independent implementation at the paper's size; the tolerance is five of our
# standard errors plus half a unit of the last digit printed there
INDEPENDENT = [
    (3, "perturbed_td:alpha=0.0001,eta=0.5", 2.986, 0.0005),
    (4, "perturbed_td:alpha=0.0001,eta=0.6", 5.141, 0.0005),
    (3, "tdc:alpha=0.0001", 12.28, 0.005),
    (3, "tdc_as_published:alpha=0.0001,weight=pi", 9.02, 0.01),
    (4, "perturbed_td:alpha=0.0001,eta=0.4", 90.6, 0.05),
]


@pytest.mark.slow
@pytest.mark.parametrize(("figure", "learner", "value", "digit"), INDEPENDENT)
def test_independent_figures(
    full: Reproduction, figure: int, learner: str, value: float, digit: float
) -> None:
    found = row(full, figure, learner)
    assert found.measured == pytest.approx(value, abs=5 * found.stderr + digit)


@pytest.mark.slow
def test_every_row_agrees_with_theory_and_with_the_paper(full: Reproduction) -> None:
    assert [(r.name, r.learner, r.because) for r in full.rows if not r.agrees] == []
    assert len(full.rows) == 6 * 3 + 3 + 8 * 5
    assert full.summary == (
        "61 of 61 rows agree with theory. The paper makes a statement about 47 of them, and 47 "
        "agree with it."
    )
    silent = {r.label for r in full.rows if r.agrees_paper is None}
    assert silent == {WITH_PI, AS_DEFINED}


@pytest.mark.slow
def test_theory_is_exact_and_close(full: Reproduction) -> None:
    found = row(full, 3, "perturbed_td:alpha=0.0001,eta=0.5")
    assert found.theory_exact
    assert found.theory == pytest.approx(2.986, abs=1e-3)
    assert found.fixed_point_error == pytest.approx(3.0151, abs=5e-5)
    assert found.mean_dynamics == pytest.approx(2.990, abs=5e-4)
    assert found.paper == 2.97
    assert not row(full, 4, "perturbed_td:alpha=0.0001,eta=0.4").stable
    assert row(full, 3, "tdc:alpha=0.0001").fixed_point_error == pytest.approx(12.27, abs=0.005)


def test_figure_1_agrees(first: Reproduction) -> None:
    assert [r.because for r in first.rows] == [""] * 6
    assert [r.agrees_theory for r in first.rows] == [True] * 6
    assert [r.agrees_paper for r in first.rows] == [True] * 4 + [None] * 2
    assert [r.label for r in first.rows[3:]] == [NO_RATIO, WITH_PI, AS_DEFINED]
    assert first.rows[3].measured < 0.0275  # one pixel of the authors' axis from -1 to 5
    assert first.rows[5].measured > 1.0
    assert first.summary.startswith("6 of 6 rows agree with theory. The paper")


def test_rows_for_json(small: Reproduction) -> None:
    keys = {"figure", "name", "problem", "learner", "quantity", "paper", "paper_says", "theory",
            "theory_low", "theory_high", "theory_kind", "single_low", "single_high", "measured",
            "stderr", "agrees_theory", "agrees_paper", "agrees", "because", "note"}  # fmt: skip
    for r in small.rows:
        found = r.to_dict()
        assert keys <= set(found)
        json.dumps(found, allow_nan=False)
        assert found["agrees"] == (found["agrees_theory"] and found["agrees_paper"] is not False)
        assert (found["agrees_paper"] is None) == (found["paper_says"] is None)
        assert bool(found["because"]) is not found["agrees"]
        assert found["theory_low"] <= found["theory"] <= found["theory_high"]
        many = found["theory_kind"] == "many runs"
        assert many == found["learner"].startswith("etd")
        assert (found["single_low"] is not None) == many
    assert {r.figure for r in small.rows} == {3, None}
    assert row(small, 3, "perturbed_td:alpha=0.0001,eta=0.5").paper == 2.97


def test_a_short_run_differs_from_the_paper_and_agrees_with_theory(small: Reproduction) -> None:
    """Each verdict by itself: after 20,000 of a million steps nothing has arrived."""
    found = row(small, 3, "perturbed_td:alpha=0.0001,eta=0.5")
    assert found.agrees_theory
    assert found.agrees_paper is False
    assert not found.agrees
    measured = number(found.measured)
    assert found.because == f"the paper: converges, 2.97; here the runs end at {measured}."
    agreeing = [r for r in small.rows if r.agrees_paper]
    said = [r for r in small.rows if r.agrees_paper is not None]
    of_theory = sum(r.agrees_theory for r in small.rows)
    assert small.summary == (
        f"{of_theory} of 16 rows agree with theory. The paper makes a statement about {len(said)} "
        f"of them, and {len(agreeing)} agree with it."
    )


def judged(done: Reproduction, theory: Theory, statement: say.Statement | None = None) -> Any:
    """A row of Figure 3's perturbed TD with another theory."""
    text = "perturbed_td:alpha=0.0001,eta=0.5"
    result = done.results["three_state"]
    return judge(done.figures[0], Claim(text, "", statement), result, {text: theory})


def test_a_wrong_learner_would_be_noticed(small: Reproduction) -> None:
    """Judged as if it had another penalty, a curve no longer agrees with theory."""
    problem = st.problem("three_state")
    learner = st.learner("perturbed_td:alpha=0.0001,eta=0.5")
    right = predict(problem, learner, SMALL)
    assert judged(small, right).agrees
    wrong = predict(problem, learner.replace(eta=2.0), SMALL)
    found = judged(small, wrong)
    assert not found.agrees_theory
    assert found.agrees_paper is None
    off = float(re.search(r"more than ([\d.]+) away", found.because)[1])  # type: ignore[index]
    assert off == pytest.approx(4 * found.stderr, rel=1e-3)
    assert abs(found.measured - wrong.low) > off
    assert f"theory expects {number(wrong.low)}" in found.because


def test_outside_of_many_runs_is_noticed(small: Reproduction) -> None:
    etd = small.theories["three_state"]["etd:alpha=0.0001"]
    assert etd.spread is not None
    assert (etd.low, etd.high) == etd.spread.likely(etd.spread.means[:, -1])
    found = judged(small, replace(etd, low=100.0, high=200.0))
    assert not found.agrees_theory
    assert found.because == (
        f"99 of 100 such means lie in 100 to 200; this one is {number(found.measured)}."
    )


def test_many_runs(small: Reproduction) -> None:
    """Only where the variance is infinite; seeds of their own; means of as many as are shown."""
    p = st.problem("three_state")
    learners = [st.learner("td:alpha=0.001"), st.learner("etd:alpha=0.001")]
    assert [is_heavy(p, x) for x in learners] == [False, True]
    same = st.Problem(name="mu", P=p.P, r=p.r, gamma=p.gamma, mu=p.mu, pi=p.mu, Phi=p.Phi)
    assert not is_heavy(same, learners[1])
    found = spreads(p, learners, 3000, shown=4, runs=30)
    assert list(found) == ["etd:alpha=0.001"]
    (one,) = found.values()
    direct = st.run(p, learners[1:], steps=3000, seeds=range(FIRST_SEED, FIRST_SEED + 30), points=2)
    np.testing.assert_allclose(one.single[:, -1], direct.errors[0, :, -1], rtol=1e-12)
    assert one.means.shape == (2000, 201)
    # the mean of four has the mean of the runs and half their standard deviation
    ends, means = one.single[:, -1], one.means[:, -1]
    assert means.mean() == pytest.approx(ends.mean(), abs=4 * ends.std() / 2 / np.sqrt(2000))
    assert means.std() == pytest.approx(ends.std() / 2, rel=0.2)
    again = spreads(p, learners, 3000, shown=4, runs=30)
    np.testing.assert_array_equal(again["etd:alpha=0.001"].means, one.means)


def test_notes_are_true(first: Reproduction, small: Reproduction) -> None:
    published, pi, tdc = first.rows[3:]
    assert published.note.startswith(
        "No importance ratio, so it learns the value of the behaviour policy"
    )
    assert pi.note.startswith("Weighted by pi where rho = pi/mu is meant.")
    assert tdc.note.startswith("The paper's figures do not show it.")
    td = first.rows[0]
    assert "grows e-fold every 500 steps" in td.note  # 1/(0.01 (0.2)): A = -0.2 for theta2theta
    etd = row(small, 3, "etd:alpha=0.0001")
    spread = small.theories["three_state"]["etd:alpha=0.0001"].spread
    assert spread is not None
    low, high = np.quantile(spread.single[:, -1], say.LIKELY, method="nearest")
    assert (etd.single_low, etd.single_high) == (low, high)
    assert f"99 of 100 single runs end in {interval(low, high)}." in etd.note
    assert f"would end at {number(etd.mean_dynamics)}." in etd.note
    # gamma^2 sum pi^2/mu p: states 0 and 2 exchange through 1 with 10, 1/2 and 1/2
    growth = (
        0.81 * np.abs(np.linalg.eigvals(np.array([[0, 10, 0], [0.5, 0, 0.5], [0, 10, 0]]))).max()
    )
    assert f"by up to {growth:.2g})" in etd.note
    assert "starts at w0" not in pi.note
    (baird,) = [c for c in FIGURES[1].claims if c.label == WITH_PI]
    assert "h0=1" in baird.learner


def test_files(small: Reproduction, tmp_path: Path) -> None:
    report = write_reproduction(small, tmp_path)
    drawn = ("figure_3", "supplement_3a", "supplement_3c")
    images = {f"{name}.{kind}" for name in drawn for kind in figures.FORMATS}
    names = {p.name for p in tmp_path.iterdir()}
    assert names == images | {"curves.parquet", "table.parquet", "report.html"}
    assert (tmp_path / "figure_3.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "figure_3.pdf").read_bytes().startswith(b"%PDF")
    curves = pl.read_parquet(tmp_path / "curves.parquet")
    assert curves.columns == ["problem", "learner", "seed", "step", "error"]
    assert curves.height == (6 + 5 + 5) * 5 * 1001
    html = report.read_text(encoding="utf-8")
    page = read_page(html)
    assert set(page.figures) == set(drawn)
    assert small.summary in page.text
    for r in small.rows:
        assert r.learner in page.text
    assert {link for link in page.links if not link.startswith("#")} == names - {"report.html"}
    assert "window.vegaEmbed=" in html  # the script that draws, from the library installed


def test_a_panel_has_the_authors_axis_beside_a_logarithmic_one(small: Reproduction) -> None:
    chart = figure_chart(small.figures[1], small).to_dict(validate=False)
    left, right = ({**half, **half["layer"][0]} for half in chart["hconcat"])  # its lines
    scales = [half["encoding"]["y"]["scale"] for half in (left, right)]
    assert scales[0]["domain"] == [0.0, 20.0]
    assert scales[1]["type"] == "log"
    result = small.results["three_state"]
    for half in (left, right):
        values = chart["datasets"][half["data"]["name"]]
        ends = {v["learner"]: v["mean"] for v in values if v["step"] == SMALL}
        shown = dict(zip([c.label for c in small.figures[1].claims], ends.values(), strict=True))
        mean = result.errors[[str(x) for x in result.learners].index("tdc:alpha=0.001")]
        assert shown[AS_DEFINED] == pytest.approx(mean[:, -1].mean())


def test_a_figure_shows_the_likely_range_of_the_mean(small: Reproduction) -> None:
    chart = figure_chart(small.figures[0], small).to_dict(validate=False)
    (thin,) = [x for x in chart["layer"] if x["encoding"].get("y", {}).get("field") == "end"]
    values = chart["datasets"][thin["data"]["name"]]
    assert {v["learner"] for v in values} == {"emphatic TD"}
    theory = small.theories["three_state"]["etd:alpha=0.0001"]
    ends = [v["end"] for v in values if v["step"] == SMALL]
    assert ends == pytest.approx([theory.low, theory.high], rel=1e-4)


def test_json_and_identical_parquet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name in ("one", "two"):
        where = ["--out", str(tmp_path / name)]
        monkeypatch.setattr(
            sys, "argv", ["steadytd", "reproduce", "--figure", "1", *where, "--json"]
        )
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 0
    shown = capsys.readouterr().out
    rows = json.loads(shown[: shown.index("]\n") + 1])
    keys = {"figure", "problem", "learner", "quantity", "paper", "theory", "measured", "stderr"}
    assert keys | {"agrees", "agrees_theory", "agrees_paper"} <= set(rows[0])
    assert {r["quantity"] for r in rows} == {"final_error"}
    assert rows[0]["learner"] == "td:alpha=0.01"
    assert rows[0]["paper"] is None
    one, two = (pl.read_parquet(tmp_path / n / "curves.parquet") for n in ("one", "two"))
    assert one.equals(two)
    assert one.height == 6 * 10 * 1001


def test_the_supplement_on_the_command_line(
    small: Reproduction,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """The flag reaches the program; rows of the supplement have no figure's number."""
    asked = []

    def instead(figures: Any, **options: Any) -> Reproduction:
        asked.append((list(figures), options["supplement"]))
        return small

    monkeypatch.setattr("steadytd.reproduction.reproduce.reproduce", instead)
    for more in ([], ["--supplement"], ["--supplement", "--figure", "2"]):
        where = ["--out", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", ["steadytd", "reproduce", *more, *where, "--json"])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 0
        rows = json.loads(capsys.readouterr().out)
        assert [r["figure"] for r in rows] == [3] * 6 + [None] * 10
        assert {r["name"] for r in rows[6:]} == {"Supplement 3a", "Supplement 3c"}
    assert asked == [([], False), ([], True), ([2], True)]


def test_the_printed_table(first: Reproduction, small: Reproduction) -> None:
    """The verdict first, verdicts of every kind, and the reason of a difference."""
    other = row(small, 3, "perturbed_td:alpha=0.0001,eta=0.5")
    done = replace(first, rows=[*first.rows, other])
    verdict, table, reason = answer(done)
    assert str(verdict) == done.summary and isinstance(table, Table)
    said = [cells[-1] for cells in table.rows]
    assert [said.count(x) for x in ("theory and paper", "theory", "not paper")] == [4, 2, 1]
    assert str(reason).startswith("Figure 3, perturbed TD, eta 0.5: the paper: converges, 2.97;")
    assert rest(done) == []
    shown = rendered(verdict, table)
    assert shown.startswith("6 of") or shown.startswith("7 of")
    text = [" ".join(line.split()) for line in shown.splitlines()]
    assert sum(line.endswith("theory and paper") for line in text) == 4


@pytest.mark.parametrize("moment", ["svg_to_pdf", "vegalite_to_svg"])
def test_an_interrupt_leaves_only_whole_files(
    moment: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import vl_convert

    small = reproduce([1], runs=1)

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setenv("STEADYTD_CACHE_DIR", str(tmp_path / "kept"))  # nothing drawn before
    monkeypatch.setattr(vl_convert, moment, interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_reproduction(small, tmp_path)
    assert {p.name for p in tmp_path.iterdir()} <= {"kept"}  # all files together, or none


def test_an_interrupt_while_running_stops_every_thread() -> None:
    """Each thread ends the chunk of 786,432 updates that it is in, and hardly begins another."""
    calls = []

    def interrupted(done: int, total: int) -> None:
        calls.append(done)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce([2], runs=50, progress=interrupted)
    updates = 50 * 6 * 1_000_000
    assert max(calls) < 0.05 * updates


def test_one_run_has_no_standard_error() -> None:
    done = reproduce([1], runs=1, seed=7)
    assert [r.stderr for r in done.rows] == [None] * 6
    assert row(done, 1, "perturbed_td:alpha=0.01,eta=1").agrees


def test_kept_runs_and_theory_are_what_would_be_computed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The second time nothing is computed and every bit is the same; another problem is another."""
    monkeypatch.setenv("STEADYTD_CACHE_DIR", str(tmp_path))
    problem, learners = st.problem("theta2theta"), [st.learner("etd:alpha=0.01")]
    td = st.learner("td:alpha=0.01")

    def numbers(problem: st.Problem) -> tuple[bytes, object]:
        (found,) = spreads(problem, learners, 100, 5, 8).values()
        return found.single.tobytes(), verdict.exact_bounds(problem, td, 50)

    first = numbers(problem)
    exact = exact_error(problem, td, 50)
    assert exact is not None and first[1] == tuple(sorted(exact[:2]))
    calls: list[str] = []

    def counted(module: Any, name: str) -> None:
        real = getattr(module, name)

        def call(*args: Any, **options: Any) -> Any:
            calls.append(name)
            return real(*args, **options)

        monkeypatch.setattr(module, name, call)

    counted(spread, "run")
    counted(verdict, "exact_error")
    assert numbers(problem) == first and calls == []
    gamma = np.full_like(problem.gamma, 0.5)
    other = st.Problem(name=problem.name, P=problem.P, r=problem.r, gamma=gamma, mu=problem.mu,
                       pi=problem.pi, Phi=problem.Phi, w0=problem.w0)  # fmt: skip
    verdict.exact_bounds(other, td, 50)
    verdict.exact_bounds(problem, td, 51)
    spreads(problem, learners, 100, 5, 9)
    assert calls == ["exact_error", "exact_error", "run"]


def test_a_picture_that_was_drawn_is_not_drawn_again(
    small: Reproduction, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import vl_convert

    monkeypatch.setenv("STEADYTD_CACHE_DIR", str(tmp_path / "kept"))
    chart = figure_chart(small.figures[0], small)
    save_figures({"one": chart}, tmp_path, keep=True)
    monkeypatch.setattr(vl_convert, "vegalite_to_svg", lambda text: "drawn again")
    save_figures({"two": chart}, tmp_path, keep=True)
    for kind in FORMATS:
        assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"two.{kind}").read_bytes()
    monkeypatch.setattr(vl_convert, "svg_to_png", lambda svg, scale: b"")
    monkeypatch.setattr(vl_convert, "svg_to_pdf", lambda svg: b"")
    other = chart.properties(title="another")
    save_figures({"three": other}, tmp_path, keep=True)
    assert (tmp_path / "three.svg").read_text(encoding="utf-8") == "drawn again"


@pytest.mark.parametrize(
    ("figures", "supplement", "asked"),
    [((), False, ""), ((1,), False, " --figure 1"), ((), True, " --supplement"),
     ((3, 4), True, " --figure 3 --figure 4 --supplement")],
)  # fmt: skip
def test_the_command_of_the_page_names_what_is_in_it(
    small: Reproduction, figures: tuple[int, ...], supplement: bool, asked: str
) -> None:
    done = replace(small, figures=choose(figures, supplement))
    runs = small.rows[0].runs
    assert command(done) == f"steadytd reproduce{asked} --runs {runs} --seed {small.seed}"
