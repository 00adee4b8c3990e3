"""The report of a study: its numbers against plain NumPy and SciPy, its page, its bad inputs."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.stats
from typer.testing import CliRunner

from steadytd.base.errors import InputError, listed
from steadytd.base.json import plain
from steadytd.cli.main import app
from steadytd.mdp.problem import Problem
from steadytd.problems import problem as make_problem
from steadytd.report.figures import described, ticks
from steadytd.report.live import live
from steadytd.report.study import figures as study_figures
from steadytd.report.study import page as study_report
from steadytd.report.study.figures import (
    curves_chart,
    envelope,
    grid_axes,
    leaders_text,
    overview_chart,
    sensitivity_chart,
    shelf,
)
from steadytd.report.study.page import study_document, summary_table, write_study_report
from steadytd.studies.analysis import summary as words
from steadytd.studies.analysis.penalty import Penalty, by_lam, penalties
from steadytd.studies.analysis.reading import Chapter, Reading, read_study
from steadytd.studies.analysis.tables import at_the_edge, compare, mean_of, paired, ranking
from steadytd.studies.study import study
from tests.support.html import read_page

STUDY = """
title = "Half <b>open</b> & {{ title }}"
about = "A <script>alert(1)</script> study."
steps = 2_000
seeds = 6
every = 100

[confirm]
seeds = 5

[[problems]]
name = "three_state"

[[problems]]
name = "collision"
label = "crash"
steps = 1_500

[[learners]]
name = "td"
alpha = [0.0078125, 0.03125, 0.125, 64]
lam = [0, 0.9]

[[learners]]
name = "perturbed_td"
alpha = [0.0078125, 0.03125, 0.125]
eta = [0.1, 0.5]

[[learners]]
name = "lstd"

[[learners]]
name = "gtd2"
alpha = [64, 128]
ratio = 16
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("study")
    (place / "small.toml").write_text(STUDY)
    study(place / "small.toml").run(out=place / "out")
    return place / "out"


@pytest.fixture(scope="module")
def reading(finished: Path) -> Reading:
    return read_study(finished)


@pytest.fixture(scope="module")
def written(finished: Path) -> Iterator[Path]:
    page, _ = write_study_report(finished)
    yield page
    shutil.rmtree(page.parent)


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    skip = shutil.ignore_patterns("report", ".lock")
    return Path(shutil.copytree(finished, tmp_path / "copy", ignore=skip))


def chapter(reading: Reading, label: str) -> Chapter:
    return next(c for c in reading.chapters if c.label == label)


def raw(directory: Path, stage: str, label: str) -> pl.DataFrame:
    """The rows of a problem straight from the files."""
    files = sorted((directory / stage).glob("*.parquet"))
    parts = [pl.read_parquet(f).select(pl.exclude("^curve_.*$")) for f in files]
    return pl.concat(parts).filter(pl.col("problem") == label)


def of_run(rows: pl.DataFrame, run: str, column: str = "auc_value") -> np.ndarray:
    return rows.filter(pl.col("run") == run).sort("seed")[column].to_numpy()


LABELS = ("three_state", "crash")


@pytest.mark.parametrize("label", LABELS)
def test_best_configurations_are_those_of_the_raw_rows(
    finished: Path, reading: Reading, label: str
) -> None:
    grid, fresh = (raw(finished, stage, label) for stage in ("grid", "confirm"))
    own = chapter(reading, label)
    assert {b.algorithm for b in own.best} == {"td", "perturbed_td", "lstd"}
    for b in own.best:
        runs = [r for r in grid["run"].unique() if r.split(":")[0] == b.algorithm]
        means = {r: of_run(grid, r).mean() for r in runs}
        assert means[b.run] == min(means.values())
        assert b.configurations == len(runs)
        assert b.never_diverged == sum(
            grid.filter(pl.col("run") == r)["diverged"].null_count() == 6 for r in runs
        )
        assert b.useful == sum(m < own.start for m in means.values())
        for mean, rows, column, n in (
            (b.grid, grid, "auc_value", 6),
            (b.measured, fresh, "auc_value", 5),
            (b.final, fresh, "final_value", 5),
        ):
            values = of_run(rows, b.run, column)
            assert mean.value == pytest.approx(values.mean(), rel=1e-12)
            assert mean.stderr == pytest.approx(scipy.stats.sem(values), rel=1e-12)
            assert (mean.seeds, mean.diverged) == (n, 0)
        assert b.bias == pytest.approx(b.measured.value - b.grid.value)
        parts = [scipy.stats.sem(of_run(rows, b.run)) for rows in (grid, fresh)]
        assert b.bias_stderr == pytest.approx(np.sqrt(parts[0] ** 2 + parts[1] ** 2))
    errors = [b.measured.value for b in own.best]
    assert errors == sorted(errors)
    td = own.of("td")
    assert td is not None
    assert 0 < td.never_diverged < td.configurations


def test_start_error_is_that_of_the_start_weights(reading: Reading) -> None:
    for label, name in zip(LABELS, ("three_state", "collision"), strict=True):
        p = make_problem(name)
        assert chapter(reading, label).start == pytest.approx(float(p.error(p.w0)), rel=1e-6)


@pytest.mark.parametrize("label", LABELS)
def test_paired_differences_are_those_of_scipy(
    finished: Path, reading: Reading, label: str
) -> None:
    fresh, own = raw(finished, "confirm", label), chapter(reading, label)
    found = own.against("perturbed_td")
    names = [b.algorithm for b in own.best]
    tests = {
        (x, y): scipy.stats.ttest_rel(of_run(fresh, own.of(x).run), of_run(fresh, own.of(y).run))  # type: ignore[union-attr]
        for i, x in enumerate(names)
        for y in names[:i]
    }
    order = sorted(tests, key=lambda pair: tests[pair].pvalue)
    steps = [(len(order) - i) * tests[pair].pvalue for i, pair in enumerate(order)]
    adjusted = {frozenset(pair): min(1.0, max(steps[: i + 1])) for i, pair in enumerate(order)}
    assert [p.learner for p in found] == [
        b.algorithm for b in own.best if b.algorithm != "perturbed_td"
    ]
    reference = own.of("perturbed_td")
    assert reference is not None
    for p in found:
        mine = own.of(p.learner)
        assert mine is not None
        a, b = of_run(fresh, mine.run), of_run(fresh, reference.run)
        interval = scipy.stats.ttest_rel(a, b).confidence_interval(0.95)
        assert p.difference == pytest.approx(np.mean(a - b), rel=1e-9)
        assert (p.low, p.high) == pytest.approx((interval.low, interval.high), rel=1e-9)
        assert p.comparisons == 3
        assert p.p == pytest.approx(adjusted[frozenset((p.learner, p.reference))], rel=1e-9)
        worse = p.difference is not None and p.difference > 0.0
        assert p.p is not None
        assert p.verdict == ("same" if p.p >= 0.05 else "worse" if worse else "better")


def test_pairs_use_common_seeds_only_and_know_divergence() -> None:
    errors = {
        "a": {1: 1.0, 2: 2.0, 3: 4.0, 9: 100.0},
        "b": {1: 0.5, 2: 1.0, 3: 1.5, 8: -7.0},
        "lost": {1: np.inf, 2: 1.0, 3: 1.0},
        "one": {1: 3.0},
    }
    found = paired("a", "b", errors)
    interval = scipy.stats.ttest_rel([1.0, 2.0, 4.0], [0.5, 1.0, 1.5]).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert (found.seeds, found.verdict) == (3, "same")
    worse = paired("lost", "a", errors)
    assert (worse.difference, worse.low, worse.verdict) == (None, None, "worse")
    assert paired("a", "lost", errors).verdict == "better"
    assert paired("one", "a", errors)[2:] == (2.0, None, None, 1, None, 1, "unknown")
    same = paired("a", "a", errors)
    assert same[2:] == (0.0, 0.0, 0.0, 4, 1.0, 1, "same")


def test_ranking_groups_what_cannot_be_told_apart() -> None:
    rng = np.random.default_rng(5)
    base = rng.normal(1.0, 0.3, 40)
    noise = rng.normal(0.0, 0.05, 40)

    def by_seed(values: np.ndarray) -> dict[int, float]:
        return dict(enumerate(values.tolist()))

    errors = {
        "first": by_seed(base),
        "close": by_seed(base + noise - noise.mean() + 0.001),
        "third": by_seed(base + 0.2 + noise),
        "lost": by_seed(np.full(40, np.inf)),
    }
    assert ranking(["first", "close", "third", "lost"], compare(errors)) == [
        ["first", "close"],
        ["third"],
        ["lost"],
    ]


def test_a_group_is_tied_to_its_first_member() -> None:
    """b is like a, c is like b, but c is not like a: c begins a group of its own."""
    rng = np.random.default_rng(6)
    base, *noise = rng.normal(size=(3, 40))
    scaled = [(n - n.mean()) / n.std(ddof=1) for n in noise]
    half = float(scipy.stats.t.ppf(1.0 - 0.025 / 3, 39) / np.sqrt(40))  # of three comparisons
    values = {"a": base, "b": base + scaled[0] + 0.75 * half, "c": base + scaled[1] + 1.5 * half}
    errors = {name: dict(enumerate(x.tolist())) for name, x in values.items()}
    pairs = compare(errors)
    assert pairs["c", "b"].verdict == "same"
    assert ranking(["a", "b", "c"], pairs) == [["a", "b"], ["c"]]


def test_means_without_spread() -> None:
    assert mean_of(np.array([2.0])) == (2.0, None, 1, 0)
    assert mean_of(np.array([2.0, np.inf, 1.0])) == (np.inf, None, 3, 1)


def fixed_point_error(p: Problem, eta: float) -> float:
    """By definition, lam = 0: (Phi' D ((1 + eta) I - gamma P_pi) Phi) w = Phi' D r_pi."""
    S = p.n_states
    chain, reward = np.zeros((S, S)), np.zeros(S)
    gamma = np.broadcast_to(p.gamma, p.P.shape)  # a number, [t] or [s, a, t]
    r = np.broadcast_to(p.r if p.r.ndim == 3 else p.r[:, :, None], p.P.shape)
    for s, a, t in np.ndindex(*p.P.shape):
        weight = p.pi[s, a] * p.P[s, a, t]
        chain[s, t] += weight * gamma[s, a, t]
        reward[s] += weight * r[s, a, t]
    D = np.diag(p.d_mu)
    A = p.Phi.T @ D @ ((1.0 + eta) * np.eye(S) - chain) @ p.Phi
    w = np.linalg.lstsq(A, p.Phi.T @ D @ reward, rcond=None)[0]
    return float(p.error(w))


def test_predictions_are_fixed_points_over_the_seeds_instances(reading: Reading) -> None:
    crash = chapter(reading, "crash")
    best = crash.of("perturbed_td")
    assert best is not None
    eta = float(best.params["eta"])
    expected = np.mean([
        fixed_point_error(make_problem("collision", seed=1_000_000 + k), eta) for k in range(5)
    ])  # fmt: skip
    seen = crash.theory["perturbed_td"]
    assert seen is not None
    assert seen.stable == 1.0
    assert seen.asymptote == pytest.approx(expected, rel=1e-8)


def test_an_unstable_learner_is_called_so(reading: Reading) -> None:
    small = chapter(reading, "three_state")
    best, seen = small.of("td"), small.theory["td"]
    assert best is not None
    assert best.params["lam"] == 0.0
    assert seen is not None
    assert (seen.stable, seen.asymptote) == (0.0, None)
    stable = small.theory["perturbed_td"]
    assert stable is not None
    assert stable.asymptote == pytest.approx(
        fixed_point_error(make_problem("three_state"), 0.5), rel=1e-8
    )


def test_a_learner_that_always_diverged_is_named(reading: Reading, written: Path) -> None:
    for own in reading.chapters:
        assert own.failed == ["gtd2"]
        assert sensitivity_chart(own, "gtd2", "error") is not None
    assert "every configuration overflowed in some run" in written.read_text()
    document = json.loads((written.parent / "summary.json").read_text())
    assert all(
        "so did every configuration of gtd2" in str(p["summary"]) for p in document["problems"]
    )


def only_penalty(own: Chapter) -> Penalty:
    (found,) = penalties(own)
    return found


def test_the_penalty_table_counts_configurations(reading: Reading) -> None:
    own = chapter(reading, "three_state")
    found = only_penalty(own)
    assert (found.plain, found.penalised) == ("td", "perturbed_td")
    assert [row.eta for row in found.rows] == [None, 0.1, 0.5]
    assert [row.configurations for row in found.rows] == [8, 3, 3]
    table = own.configurations
    for row in found.rows:
        chosen = table.filter(pl.col("algorithm") == ("td" if row.eta is None else "perturbed_td"))
        if row.eta is not None:
            chosen = chosen.filter(pl.col("eta") == row.eta)
        errors = chosen["error"].to_numpy()
        assert row.error == errors.min()
        assert row.useful == int((errors < own.start).sum())
        assert row.never_diverged == int(np.isfinite(errors).sum())
    shared = {0.0078125, 0.03125, 0.125}
    assert found.step_sizes == 3
    seen: dict[str, list[int]] = {"steady": [], "useful": []}
    for name in ("td", "perturbed_td"):
        rows = table.filter(pl.col("algorithm") == name).select("alpha", "error").rows()
        seen["steady"].append(len({a for a, e in rows if a in shared and np.isfinite(e)}))
        seen["useful"].append(len({a for a, e in rows if a in shared and e < own.start}))
    assert [found.plain_steady, found.penalised_steady] == seen["steady"]
    assert [found.plain_useful, found.penalised_useful] == seen["useful"]
    assert found.plain_useful < found.penalised_useful


def test_least_errors_by_lam(reading: Reading) -> None:
    own = chapter(reading, "crash")
    lams, rows = by_lam(own)
    assert lams == [0.0, 0.9]
    assert [name for name, _ in rows] == ["td"]
    td = own.configurations.filter(pl.col("algorithm") == "td")
    expected = [td.filter(pl.col("lam") == lam)["error"].min() for lam in lams]
    assert rows[0][1] == expected


def test_sensitivity_takes_the_best_of_the_other_parameters(reading: Reading) -> None:
    own = chapter(reading, "crash").configurations.filter(pl.col("algorithm") == "td")
    points = envelope(own, "alpha", "lam")
    assert len(points) == 8
    alone = envelope(own, "alpha", None)
    for alpha, error in alone.select("alpha", "error").iter_rows():
        assert error == min(own.filter(pl.col("alpha") == alpha)["error"])
    assert grid_axes(chapter(reading, "crash"), "td") == ("alpha", ["lam"])
    assert grid_axes(chapter(reading, "crash"), "lstd") == (None, [])
    assert sensitivity_chart(chapter(reading, "crash"), "lstd", "error") is None


def test_page_stands_alone_and_escapes_texts(written: Path) -> None:
    html = written.read_text()
    page = read_page(html)
    assert "<b>open</b>" not in html
    assert "Half &lt;b&gt;open&lt;/b&gt; &amp; {{ title }}" in html
    assert "<script>alert" not in html
    assert len(page.figures) == 3 * 2 + 3 * 2 + 1
    files = {link for link in page.links if not link.startswith("#")}
    assert {f"{name}.{kind}" for name in page.figures for kind in ("svg", "png", "pdf")} < files
    assert files <= {path.name for path in written.parent.iterdir()}


def test_the_page_leads_with_a_sentence_and_a_picture(written: Path, reading: Reading) -> None:
    html = written.read_text()
    start = html[html.index("<h1") : html.index("<h2")]
    text = leaders_text(reading.chapters, "mean value error over the run")
    assert text in start and start.count("<figure") == 1 and 'id="leaders"' in start
    firsts = {own.label: own.groups[0] for own in reading.chapters}
    for label, group in firsts.items():
        assert f"{listed(group)} on" in text and label in text
    rows = [row for row in read_page(html).rows("leaders") if row.get("share")]
    for own in reading.chapters:
        shares = {r["learner"]: r["share"] for r in rows if r["problem"] == own.label}
        assert shares == pytest.approx(
            {b.algorithm: b.measured.value / own.start for b in own.best}, rel=1e-4
        )
    best = re.findall(r'<tr class="best"><td[^>]*>1</td><td>(\w+) <span class="badge">', html)
    assert best == [name for group in firsts.values() for name in group]


def test_the_command_of_the_page_goes_on_with_the_study(written: Path) -> None:
    """From where the report was asked for: both words name files that are there."""
    html = written.read_text(encoding="utf-8")
    found = re.search(r'class="command"><code>([^<]*)</code>', html)
    assert found is not None
    study, report = unescape(found[1]).split(" && ")
    name, verb, file, flag, out = shlex.split(study)
    assert (name, verb, flag) == ("steadytd", "study", "--out")
    assert Path(file).is_file() and Path(file).parent == Path(out) == written.parent.parent
    assert shlex.split(report) == ["steadytd", "report", out]


def test_who_leads_where(reading: Reading) -> None:
    apart = synthetic(reading, {"a": [1.0, 1.1, 0.9], "b": [1.9, 2.1, 2.0]})
    tied = synthetic(reading, {n: [1.0 + 0.01 * i, 1.1, 0.9] for i, n in enumerate("pqrst")})
    lost = synthetic(reading, {"b": [np.inf, 1.0, 1.0]})
    labels = {"one": apart, "two": apart, "three": tied, "four": lost}
    named = [
        dataclasses.replace(own, task=dataclasses.replace(own.task, label=label))
        for label, own in labels.items()
    ]
    assert leaders_text(named, "error") == (
        "Least error: a on one and two; p, q, r and others on three; no learner on four."
    )


def test_files_are_whole(written: Path) -> None:
    folder = written.parent
    names = {p.name for p in folder.iterdir()}
    stems = {n.rpartition(".")[0] for n in names if n.endswith(".svg")}
    assert len(stems) == 13
    assert {f"{s}.{kind}" for s in stems for kind in ("svg", "png", "pdf")} < names
    assert {"crash_curves", "crash_best", "crash_overview", "crash_sensitivity_td"} < stems
    rest = {n for n in names if n.rpartition(".")[0] not in stems}
    assert rest == {"report.html", "summary.json", "summary.parquet", "configurations.parquet"}
    assert (folder / "crash_curves.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "crash_curves.pdf").read_bytes().startswith(b"%PDF")


def test_tables_on_disk_hold_the_documents_numbers(written: Path, reading: Reading) -> None:
    document = json.loads((written.parent / "summary.json").read_text())
    fresh = study_document(reading)
    assert document["problems"][1]["best"] == plain(fresh["problems"][1]["best"])
    table = pl.read_parquet(written.parent / "summary.parquet")
    assert table.equals(summary_table(fresh))
    assert table["measured_value"].to_list() == [
        b["measured"]["value"] for p in document["problems"] for b in p["best"]
    ]
    for p in document["problems"]:
        order = [name for group in p["ranking"] for name in group]
        assert [b["algorithm"] for b in p["best"]] == order
        for group in p["ranking"]:
            ranks = {b["rank"] for b in p["best"] if b["algorithm"] in group}
            assert ranks == {order.index(group[0]) + 1}
    every = pl.read_parquet(written.parent / "configurations.parquet")
    assert len(every) == 2 * (8 + 6 + 1 + 2)
    assert set(every.filter(pl.col("algorithm") == "gtd2")["error"]) == {np.inf}


@pytest.mark.slow  # as with the page of an evaluation, in test_evaluation_report.py
def test_a_failed_report_leaves_the_old_page(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (copied / "report").mkdir()
    (copied / "report" / "report.html").write_text("old")

    def broken(*args: object, **more: object) -> str:
        raise RuntimeError("full stop")

    monkeypatch.setattr(study_report, "page", broken)
    monkeypatch.setattr(study_report, "save_figures", lambda charts, directory: None)
    with pytest.raises(RuntimeError, match="full stop"):
        write_study_report(copied)
    assert (copied / "report" / "report.html").read_text() == "old"


def test_overview_has_a_dot_for_every_configuration(written: Path, reading: Reading) -> None:
    rows = read_page(written.read_text()).rows("crash_overview")
    dots = {(row["x"], row["y"]) for row in rows if row.get("settings")}
    assert len(dots) == len(chapter(reading, "crash").configurations) == 17


@pytest.mark.slow
def test_overview_of_ten_thousand_configurations_fits_a_page(reading: Reading) -> None:
    from altair.utils.schemapi import debug_mode

    rng = np.random.default_rng(1)
    n, own = 12_000, chapter(reading, "crash")
    lost = rng.random(n) < 0.2
    many = pl.DataFrame(
        {
            "problem": "crash",
            "run": [f"td:alpha=0.0078125,eta=0.0625,lam={i}" for i in range(n)],
            "algorithm": rng.choice(["td", "perturbed_td", "lstd", "gtd2"], n),
            "error": np.where(lost, np.inf, rng.lognormal(-1.0, 1.0, n)),
            "diverged_share": np.where(lost, rng.random(n), 0.0),
        }
    )
    large = dataclasses.replace(own, configurations=many)
    with debug_mode(False):
        figure = live("x", overview_chart(large, "error"))
    assert len(figure.data) < 1_300_000
    (view,) = json.loads(figure.data)["views"]
    rows = max((t["rows"] for t in view["tables"].values()), key=len)
    assert (len(rows), view["renderer"]) == (n, "canvas")


def test_errors_below_the_least_one_stay_in_the_picture_and_are_told(reading: Reading) -> None:
    """A configuration whose error is exactly zero; its logarithm would lie nowhere."""
    own = chapter(reading, "three_state")
    first = (pl.col("algorithm") == "td") & (pl.col("alpha") == 0.0078125)
    table = own.configurations.with_columns(error=pl.when(first).then(0.0).otherwise("error"))
    tiny = dataclasses.replace(own, configurations=table)
    note = "errors below 1e-12 are drawn as 1e-12"
    for drawn in (overview_chart(tiny, "error"), sensitivity_chart(tiny, "td", "error")):
        chart = described(drawn)
        rows = [row for some in chart["datasets"].values() for row in some]
        assert min(row["y"] for row in rows if row.get("y") is not None) == 1e-12
        assert note in str(chart["title"]["subtitle"])
    for drawn in (overview_chart(own, "error"), sensitivity_chart(own, "td", "error")):
        assert note not in str(described(drawn)["title"]["subtitle"])


def test_an_incomplete_study_is_said_to_be_incomplete(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_report, "save_figures", lambda charts, directory: None)
    gone = sorted((copied / "grid").glob("crash-perturbed_td-*.parquet"))
    assert gone
    for path in gone:
        path.unlink()
    page, document = write_study_report(copied)
    assert not document["complete"]
    assert 0.0 < document["share"] < 1.0
    assert document["share"] == pytest.approx(1.0 - 6 * 1_500 / (17 * 3_500))
    assert "The study is incomplete" in document["size"]
    crash = document["problems"][1]
    assert not crash["fresh_seeds"]
    assert any("none of perturbed_td" in text for text in crash["caveats"])
    assert any("no complete rerun on fresh seeds" in text for text in crash["caveats"])
    assert all(b["fresh_minus_grid"] is None for b in crash["best"])
    assert "The study is incomplete" in page.read_text()


def test_a_rerun_that_was_stopped_makes_no_learner_fail(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without some file of the rerun, "every configuration overflowed" is said where it is true."""
    monkeypatch.setattr(study_report, "save_figures", lambda charts, directory: None)
    files = sorted((copied / "confirm").glob("*.parquet"))
    assert len(files) > 2
    for path in (files[0], files[-1]):
        kept = path.read_bytes()
        path.unlink()
        chapters = read_study(copied).chapters
        for own in chapters:
            least = own.configurations.group_by("algorithm").agg(pl.col("error").min())
            assert set(own.failed) == set(least.filter(pl.col("error").is_infinite())["algorithm"])
        assert {own.fresh for own in chapters} == {False, True}
        path.write_bytes(kept)
    for path in files:
        path.unlink()
    text = write_study_report(copied)[0].read_text()
    assert "measured on these, so the choice makes its error look better than it is" in text


def test_files_of_another_version_are_left_out_and_counted(copied: Path) -> None:
    paths = sorted((copied / "grid").glob("*-td-*.parquet"))
    for path in paths:
        path.rename(path.with_name(f"old-{path.name}"))
    (copied / "grid" / ".half-1.parquet").write_text("left behind by a kill")
    assert len(paths) > 1
    text = words.size(read_study(copied))
    assert f" {len(paths)} result files of another version" in text


def test_learners_that_are_not_drawn_are_named(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more than a few the best are drawn, and those with a penalty, unless a run overflowed."""
    monkeypatch.setattr(study_figures, "LINES", 2)
    named: list[str] = []
    for own in reading.chapters:
        chart = curves_chart(own, "error")
        text = "" if chart is None else json.dumps(chart.to_dict(validate=False))
        left_out = study_report.left_out(own)
        assert set(left_out) == {
            b.algorithm for b in own.best if f'"learner": "{b.algorithm}"' not in text
        }
        named += left_out
    assert named


def test_curves_tell_their_intervals_also_beyond_the_axis(reading: Reading) -> None:
    """By Student's t, of the mean or of its logarithm; with few seeds they are wide."""
    told = 0
    for own in reading.chapters:
        some = {name: curves[:3] for name, curves in own.curves.items()}
        few = dataclasses.replace(own, curves=some)
        chart = curves_chart(few, "error")
        assert chart is not None
        found = chart.to_dict(validate=False)
        rows = [r for table in found["datasets"].values() for r in table if "mean" in r]
        for r in rows:
            errors = some[r["learner"]][:, list(own.points).index(r["step"])]
            half = scipy.stats.t.ppf(0.975, 2) * scipy.stats.sem(errors)
            mean = max(float(errors.mean()), 1e-300)
            ends = {mean + half, mean * np.exp(half / mean)}
            assert any(r["high"] == pytest.approx(max(end, 1e-12), rel=1e-3) for end in ends)
            told += 1
    assert told > 100


def test_partial_seeds_are_a_caveat(reading: Reading) -> None:
    own = chapter(reading, "crash")
    assert not any("seeds" in text for text in words.caveats(reading, own))
    some = own.configurations.with_columns(
        pl.when(pl.col("algorithm") == "td").then(3).otherwise(pl.col("seeds")).alias("seeds")
    )
    found = words.caveats(reading, dataclasses.replace(own, configurations=some))
    assert "Only some of the 6 seeds: 8 configurations." in found


def test_a_whole_problem_may_be_missing(copied: Path) -> None:
    for path in (copied / "grid").glob("three_state-*.parquet"):
        path.unlink()
    assert [c.label for c in read_study(copied).chapters] == ["crash"]


@pytest.mark.slow
def test_other_measures_and_one_seed(tmp_path: Path) -> None:
    text = """
    problem = "three_state"
    steps = 500
    seeds = 1
    errors = ["value", "projected_bellman"]
    confirm = { by = "final", measure = "projected_bellman", seeds = 0 }
    [[learners]]
    name = "td"
    alpha = [0.001, 0.003]
    [[learners]]
    name = "etd"
    alpha = 0.001
    """
    (tmp_path / "one.toml").write_text(text)
    study(tmp_path / "one.toml").run(out=tmp_path / "out")
    page, document = write_study_report(tmp_path / "out")
    (found,) = document["problems"]
    assert document["criterion"] == "projected Bellman error at the last step"
    assert not found["fresh_seeds"]
    assert {p["verdict"] for p in found["paired"]} == {"unknown"}
    assert all(b["predicted_asymptote"] is None for b in found["best"])
    assert all(b["measured"]["stderr"] is None for b in found["best"])
    rows = raw(tmp_path / "out", "grid", "three_state")
    least = min(b["measured"]["value"] for b in found["best"])
    assert least == min(rows["final_projected_bellman"])
    assert "What the certificate predicts" not in page.read_text()


def test_nothing_but_divergence(tmp_path: Path) -> None:
    text = """
    problem = "baird"
    steps = 2_000
    seeds = 2
    [[learners]]
    name = "td"
    alpha = [64, 128]
    [[learners]]
    name = "perturbed_td"
    alpha = [64, 128]
    eta = 1
    """
    (tmp_path / "lost.toml").write_text(text)
    study(tmp_path / "lost.toml").run(out=tmp_path / "out")
    page, document = write_study_report(tmp_path / "out")
    (found,) = document["problems"]
    assert (found["best"], found["ranking"]) == ([], [])
    assert found["failed"] == ["td", "perturbed_td"]
    (only,) = found["summary"]
    assert only["text"].startswith("Every configuration of every learner on baird")
    assert not found["fresh_seeds"]
    assert set(read_page(page.read_text()).figures) > {"baird_overview"}
    assert pl.read_parquet(tmp_path / "out" / "report" / "summary.parquet").is_empty()


def synthetic(reading: Reading, errors: dict[str, list[float]]) -> Chapter:
    """A chapter with these errors by learner and seed, and nothing else changed."""
    own = chapter(reading, "crash")
    best = [
        dataclasses.replace(
            own.best[0], algorithm=name, measured=mean_of(np.array(x)), final=mean_of(np.array(x))
        )
        for name, x in errors.items()
    ]
    by_seed = {name: dict(enumerate(x)) for name, x in errors.items()}
    curves = {name: np.array(x)[:, None] + 0.0 * own.points for name, x in errors.items()}
    return dataclasses.replace(own, best=best, errors=by_seed, curves=curves)


def test_edges_of_the_grid() -> None:
    axes: dict[str, list[float] | list[str]] = {
        "alpha": [0.1, 0.2, 0.4],
        "eta": [0.5, 1.0],
        "lam": [0.0, 0.5, 0.9],
        "mode": ["a", "b"],
    }
    inside = {"alpha": 0.2, "eta": 0.5, "lam": 0.0, "mode": "a"}
    assert at_the_edge(axes, inside) == ()
    edge = {"alpha": 0.1, "eta": 1.0, "lam": 0.9, "mode": "a"}
    assert at_the_edge(axes, edge) == (("alpha", "smallest"), ("lam", "largest"))


def test_axes_have_readable_ticks_and_a_shelf() -> None:
    frame = shelf([0.1, 3.0, np.inf], 1.0, 2.0, 100.0, 20.0)
    assert (frame.axis.log, frame.clip) == (True, 2.0)
    assert frame.axis.at(1.2) == pytest.approx(frame.place(20.0))
    room = np.log(frame.place(20.0) / frame.axis.low)
    assert room / np.log(frame.clip / frame.axis.low) == pytest.approx(1.2)
    assert ticks(True, 1e-9, 1e3) == [1e-8, 1e-6, 1e-4, 1e-2, 1.0, 100.0]
    for low, high in ((0.1, 0.37), (5.0, 1234.0), (0.0, 1e-5)):
        assert 2 <= len(ticks(False, low, high)) <= 8
    nothing = shelf([np.inf], 0.0, 2.0, 100.0, 20.0)
    assert nothing.axis.low < nothing.clip


def run_cli(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["report", *map(str, arguments)])
    if isinstance(result.exception, InputError):
        return 2, str(result.exception)
    return result.exit_code, result.stdout


def test_command_prints_tables_or_json(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr(study_report, "save_figures", lambda charts, directory: None)
    code, text = run_cli(copied, "--open")
    assert code == 0
    assert opened == [(copied / "report" / "report.html").resolve().as_uri()]
    assert text.startswith("Least mean value error over the run: perturbed_td on three_state;")
    assert "perturbed_td" in text
    code, text = run_cli(copied, "--json")
    assert code == 0
    document = json.loads(text)
    assert [p["problem"] for p in document["problems"]] == ["three_state", "crash"]
    assert len(opened) == 1


def test_bad_directories_are_explained(copied: Path, tmp_path: Path) -> None:
    assert run_cli(tmp_path / "none") == (
        2,
        f"there is no directory '{tmp_path / 'none'}'; name the one that `steadytd study` wrote.",
    )
    (tmp_path / "empty").mkdir()
    code, text = run_cli(tmp_path / "empty")
    assert code == 2
    assert "holds no study" in text
    for path in (copied / "grid").glob("crash-td-*.parquet"):
        path.write_bytes(path.read_bytes()[:-100])
    code, text = run_cli(copied)
    assert code == 2
    assert "crash-td-" in text
    assert "damaged" in text
    for path in (copied / "grid").glob("*.parquet"):
        path.rename(path.with_name(f"other-{path.name}"))
    code, text = run_cli(copied)
    assert code == 2
    assert "has changed since" in text
    shutil.rmtree(copied / "grid")
    code, text = run_cli(copied)
    assert code == 2
    assert "no finished block yet" in text
