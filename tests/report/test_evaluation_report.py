"""The evaluation's page: self-contained, complete, honest about odd logs, and whole or absent."""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import steadytd as st
from steadytd.base.files import file_name
from steadytd.evaluation.calibration import ByBin, LogCalibration
from steadytd.evaluation.quantiles import ReturnLevel
from steadytd.evaluation.result import Evaluation
from steadytd.report import figures
from steadytd.report.evaluation.figures import (
    KINDS,
    _lam_range,
    agreement_chart,
    calibration_chart,
    calibration_words,
    decisions_chart,
    lam_chart,
    overlap_chart,
    path_chart,
    values_chart,
    values_words,
    visits_chart,
    visits_words,
)
from steadytd.report.evaluation.page import evaluation_page, write_evaluation
from steadytd.report.evaluation.text import (
    calibration_table,
    closing_lines,
    decision_line,
    decision_lines,
    estimate_text,
    interval_text,
    policy_rows,
    ranked,
    recommended_first,
    selection_text,
    sensitivity_table,
    spread_table,
    stability_lines,
    telling,
    turns,
    value_rows,
)
from steadytd.report.live import as_json
from steadytd.report.palette import PALE, SOFT, look
from tests.support.html import read_page
from tests.support.log_helpers import log_table
from tests.support.logged_worlds import episodic, tabular

NASTY = "<b>[red]a</b>&\"'"
BY_TARGET = {"visits", "lam", "values", "overlap", "path", "agreement"}


def two_targets(**options: Any) -> Evaluation:
    """A small log with two targets, one with a name that is markup."""
    problem = episodic(6, 0.3, np.eye(6))
    table = log_table(
        problem, episodes=150, length=200, targets={NASTY: problem.pi, "calm": problem.mu}
    )
    return st.evaluate(table, **options)


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    return two_targets()


@pytest.fixture(scope="module")
def written(evaluation: Evaluation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "out"
    files = [f"part-{i}.parquet" for i in range(7)]
    made = write_evaluation(evaluation, out, files=files, command="steadytd evaluate '<i>'")
    assert made == out / "evaluation.html"
    return out


def test_everything_is_there(written: Path, evaluation: Evaluation) -> None:
    names = {"decisions", "calibration"}
    names |= {f"{name}_{stem}" for name in BY_TARGET for stem in (file_name(NASTY), "calm")}
    pictures = {f"{name}.{kind}" for name in names for kind in ("svg", "png", "pdf")}
    models = {f"value_{file_name(NASTY)}.npz", "value_calm.npz"}
    found = {path.name for path in written.iterdir()}
    assert found == pictures | models | {"evaluation.html", "evaluation.json"}
    document = json.loads((written / "evaluation.json").read_text(encoding="utf-8"))
    assert document == json.loads(json.dumps(evaluation.to_dict()))


def test_the_value_functions_predict(written: Path, evaluation: Evaluation) -> None:
    obs = np.eye(6)
    for file, target in ((f"value_{file_name(NASTY)}.npz", NASTY), ("value_calm.npz", "calm")):
        loaded = st.load_value_function(written / file)
        assert loaded.target == target
        expected = evaluation.value_function(target).predict(obs)
        assert loaded.predict(obs).tolist() == expected.tolist()
        assert np.ptp(expected) > 0.1


def test_the_page_stands_alone_and_names_are_text(written: Path) -> None:
    html = (written / "evaluation.html").read_text(encoding="utf-8")
    shown = read_page(html)
    assert len(shown.figures) == 14
    assert {link for link in shown.links if not link.startswith("#")} == {
        *(f"{name}.{kind}" for name in shown.figures for kind in ("svg", "png", "pdf")),
        *(f"value_{name}.npz" for name in (file_name(NASTY), "calm")),
        "evaluation.json",
    }
    assert "<b>[" not in html
    assert "<i>" not in html
    assert "&lt;b&gt;[red]a&lt;/b&gt;&amp;" in html
    assert NASTY in json.dumps(shown.rows("decisions")).replace('\\"', '"')  # in data, as it is
    assert "steadytd evaluate &#39;&lt;i&gt;&#39;" in html
    assert "part-4.parquet and 2 more" in html


def test_the_page_alone(evaluation: Evaluation) -> None:
    shown = read_page(evaluation_page(evaluation))
    assert len(shown.figures) == 14
    assert all(link.startswith("#") for link in shown.links)


def test_without_pictures_the_page_is_whole(evaluation: Evaluation, tmp_path: Path) -> None:
    path = write_evaluation(evaluation, tmp_path, pictures=False)
    assert {p.suffix for p in tmp_path.iterdir()} == {".html", ".json", ".npz"}
    assert len(read_page(path.read_text(encoding="utf-8")).figures) == 14


def test_the_page_says_what_matters(written: Path, evaluation: Evaluation) -> None:
    html = (written / "evaluation.html").read_text(encoding="utf-8")
    text = read_page(html).text
    for line in decision_lines(evaluation):
        assert line.text in text
    for policy in policy_rows(evaluation):
        assert policy["target"] in text
        assert policy["difference_interval"] in text
    assert evaluation.best.text in text
    for row in value_rows(evaluation):
        assert row["interval"] in text
    headings = ("What it rests on", "All learners", "Overlap and stability", "Settings")
    for heading in (*headings, "Are the logged probabilities right?", "Beyond the mean"):
        assert heading in text
    for note in (*evaluation.notes, *(line.text for line in closing_lines(evaluation))):
        assert note in text
    assert html.count('<tr class="best">') == 2
    assert html.index("<h1") < html.index('<p class="verdict') < html.index("<figure")
    learners = re.findall(r'<tr class="best"><td>[^<]*</td><td>(\w+) <span class="badge">', html)
    assert learners == [evaluation.recommended[name].learner for name in evaluation.targets]


@pytest.mark.slow
def test_odd_logs_have_a_page(tmp_path: Path) -> None:
    """One endless episode; importance sampling alone; a learner that diverged; one episode."""
    problem = episodic(6, 0.3, np.eye(6))
    endless = log_table(st.problem("three_state"), episodes=1, length=3000)
    cases: dict[str, Evaluation] = {
        "endless": st.evaluate(endless),
        "sampling": two_targets(learners=["pdis"]),
        "diverged": two_targets(learners=["lstd", "td:alpha=50"]),
        "short": st.evaluate(log_table(problem, episodes=1, length=200, seed=2)),
    }
    for name, e in cases.items():
        html = write_evaluation(e, tmp_path / name, pictures=False).read_text(encoding="utf-8")
        shown = read_page(html).text
        assert "nan" not in shown.replace("finance", "")
        assert ">None<" not in html
        assert len(decision_lines(e)) == len(e.targets)
    assert ">overflowed<" in (tmp_path / "diverged/evaluation.html").read_text(encoding="utf-8")
    sampling = (tmp_path / "sampling/evaluation.html").read_text(encoding="utf-8")
    assert re.search("none: (pdis|drl) gives a value, not a value function", sampling)
    assert not list((tmp_path / "sampling").glob("*.npz"))
    assert "continuing_log" in (tmp_path / "endless/evaluation.html").read_text(encoding="utf-8")


def test_a_failure_while_drawing_changes_nothing(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = tmp_path / "old"
    old.mkdir()
    (old / "evaluation.html").write_text("earlier")
    calls = 0

    def fails_the_second_time(text: str) -> dict[str, bytes]:
        nonlocal calls
        calls += 1
        if calls % 2 == 0:
            raise RuntimeError("no space left")
        return {"svg": b""}

    monkeypatch.setattr(figures, "drawn", fails_the_second_time)
    for out in (old, tmp_path / "new"):
        with pytest.raises(RuntimeError, match="no space"):
            write_evaluation(evaluation, out)
    assert calls == 4
    assert [p.name for p in tmp_path.iterdir()] == ["old"]
    assert [p.name for p in old.iterdir()] == ["evaluation.html"]
    assert (old / "evaluation.html").read_text() == "earlier"


def test_the_table_has_the_fixed_point_and_what_was_reached(evaluation: Evaluation) -> None:
    raw = evaluation.values.to_dicts()
    for row, v in zip(value_rows(evaluation), raw, strict=True):
        ends = v["lo"], v["hi"]
        assert row["value"] == estimate_text(v["fixed_point"], *ends)
        assert v["lo"] <= v["fixed_point"] <= v["hi"]  # what the interval is about
        assert row["reached"] == (estimate_text(v["value"], *ends) if v["kind"] == "online" else "")
    assert any(row["reached"] not in ("", row["value"]) for row in value_rows(evaluation))


def test_the_policies_are_in_one_table(evaluation: Evaluation) -> None:
    own, *rows = policy_rows(evaluation)
    assert own["value"] == estimate_text(*evaluation.behavior)
    for row, d in zip(rows, ranked(evaluation), strict=True):
        assert row["target"] == d.target
        assert row["difference_interval"] == ("" if d.same else interval_text(d.lo, d.hi))
        assert (row["trust"] == "yes") == evaluation.recommended[d.target].trusted


def test_decisions_are_graded(evaluation: Evaluation) -> None:
    for line, d in zip(decision_lines(evaluation), ranked(evaluation), strict=True):
        assert line.text[slice(*line.name)] == d.target
        words = {"better": "good", "worse": "worse", "undecided": "care"}
        assert line.grade == (words[d.decision] if d.trusted else "bad")
        assert line.text.startswith(d.headline if d.trusted else f"No decision about {d.target}. ")


def test_sensitivity_and_spread_have_a_row_per_target(evaluation: Evaluation) -> None:
    table = sensitivity_table(evaluation)
    for (target, factor, at, *_), name in zip(table.rows, evaluation.targets, strict=True):
        s = evaluation.sensitivity(name)
        assert (target, factor) == (name, turns(s))
        assert s.alike or turns(s) == f"at least {s.Lambda:.3g}"
        bound = next(b for b in s.curve if b.Lambda == 1.1)
        assert at == interval_text(bound.lo, bound.hi)
    s = evaluation.sensitivity("calm")
    assert turns(replace(s, behavior=s.value)) == "no difference"
    for (_, *levels), name in zip(spread_table(evaluation).rows, evaluation.targets, strict=True):
        known = evaluation.quantiles(name)
        assert len(levels) == len(known)
        for level, r in zip(levels, known.iter_rows(named=True), strict=True):
            value, _, interval = str(level).partition("\n")
            width = r["hi"] - r["lo"]
            if np.isnan(r["value"]):
                assert (value, interval) == ("not known", "")
            elif np.isfinite(width):
                assert (value, interval) == (
                    estimate_text(r["value"], r["lo"], r["hi"]),
                    interval_text(r["lo"], r["hi"]),
                )
            else:
                assert interval.startswith(("from ", "up to "))


def test_an_end_that_the_log_does_not_show(evaluation: Evaluation) -> None:
    """A quantile near the end of the distribution has an interval that is open there."""
    nan = float("nan")
    rows = tuple(
        ReturnLevel("quantile", 0.05, 1.25, lo, hi) for lo, hi in ((nan, 1.5), (1.0, nan), (1, 1.5))
    )
    spreads = [s._replace(rows=rows) for s in evaluation.spreads]
    changed = dataclasses.replace(evaluation, spreads=spreads)
    shown = [str(level).split("\n") for level in spread_table(changed).rows[0][1:]]
    assert [interval for _, interval in shown] == ["up to 1.50", "from 1.00", "1.00 to 1.50"]
    assert {value for value, _ in shown} == {"1.25"}


def test_the_picture_of_visits_by_state(evaluation: Evaluation) -> None:
    rows = [r for r in data_of(visits_chart(evaluation, "calm")) if "whose" in r]
    assert len({r["state"] for r in rows}) == 6
    for whose in ("the log", "the target"):
        assert sum(r["share"] for r in rows if r["whose"] == whose) == pytest.approx(1.0)
    assert "cannot be shown" in visits_words(evaluation, "calm")


def test_the_picture_of_visits_in_a_plane() -> None:
    rng = np.random.default_rng(3)
    Phi = rng.normal(size=(60, 4))
    problem = episodic(60, 1.0, Phi)
    table = log_table(problem, episodes=200, length=50, obs="phi")
    e = st.evaluate(table, learners=["lstd"], features="raw")
    assert e.places is not None and not e.places.names
    rows = [r for r in data_of(visits_chart(e, "pi")) if "ratio" in r]
    frame = e.visits
    assert len(rows) == len(frame)
    shares = np.maximum(frame["log"], frame["visits"])
    assert sorted(r["share"] for r in rows) == pytest.approx(sorted(shares))
    assert all(-3.0 <= r["ratio"] <= 3.0 for r in rows)


def test_no_episode_is_small_enough_for_a_picture_of_visits(
    evaluation: Evaluation, tmp_path: Path
) -> None:
    e = replace(evaluation, places=None)
    assert visits_chart(e, "calm") is None
    html = write_evaluation(e, tmp_path, pictures=False).read_text(encoding="utf-8")
    assert "No picture of visits" in html
    assert len(e.visits) == 0


def test_the_curve_over_lam_marks_the_chosen_one(evaluation: Evaluation) -> None:
    one = evaluation.results[0]
    s, known = one.selection, dict(zip(one.curve.lams, one.curve.values, strict=True))
    rows = [r for r in data_of(lam_chart(evaluation, one.name)) if "lam" in r]
    marked = {r["lam"] for r in rows if (r["lo"], r["hi"]) == pytest.approx((s.lo, s.hi))}
    assert marked == {f"{s.lam:g}"}
    assert {r["lam"] for r in rows} == {f"{c.lam:g}" for c in s.candidates}
    for r in rows:
        assert r["value"] == pytest.approx(known[float(r["lam"])])


@pytest.mark.parametrize(("hi", "shown"), [(2.0, True), (9.0, True), (1000.0, False)])
def test_the_interval_that_is_used_is_seen_whole(hi: float, shown: bool) -> None:
    """Also where it is much wider than those by chance alone, unless these could not be seen."""
    rows = [{"value": 1.0, "lo": 0.5, "hi": 1.5} for _ in range(5)]
    low, high = _lam_range(rows, [{"value": 1.0, "lo": 0.2, "hi": hi}], 1.2)
    assert low < 0.5 and (low < 0.2 and high > hi) == shown


@pytest.mark.parametrize(("strength", "seed"), [(0.3, 0), (2.0, 0), (6.0, 0), (6.0, 1), (10.0, 1)])
def test_the_interval_that_is_used_is_shown_whole(strength: float, seed: int) -> None:
    p = episodic(6, strength, np.eye(6), seed=seed)
    e = st.evaluate(log_table(p, episodes=25, length=200, seed=seed), learners=["lstd"])
    made = lam_chart(e, "pi")
    assert made is not None
    axes = [layer["encoding"]["y"].get("scale", {}) for layer in made.to_dict()["layer"]]
    (low, high) = next(axis["domain"] for axis in axes if "domain" in axis)
    assert low < e.recommended["pi"].lo < e.recommended["pi"].hi < high


def test_the_calibration_picture(evaluation: Evaluation) -> None:
    c = evaluation.calibration
    rows = [r for r in data_of(calibration_chart(c)) if "state" in r]
    assert {r["action"] for r in rows} == {"action 0", "action 1", "action 2", "all actions"}
    assert {r["state"] for r in rows} == {"as said"}
    assert all(r["lo"] <= r["mean"] <= r["hi"] and r["lo"] < 1.0 < r["hi"] for r in rows)
    assert "give 1" in calibration_words(c)
    whole = ByBin(0.2, 0.3, 900, 0.25, 0.4, 0.35, 0.45, "above")
    drawn = data_of(calibration_chart(replace(c, bins=(whole,))))
    assert {r["state"] for r in drawn if "state" in r} == {"off"}
    low = replace(c.actions[0], mean=0.6, lo=0.5, hi=0.7, state="below")
    for known, said in ((True, "off"), (False, "below 1, which may be right")):
        drawn = data_of(calibration_chart(replace(c, bins=(), actions=(low,), whole=known)))
        assert {r["state"] for r in drawn if "state" in r} == {said}
    for chart in (calibration_chart(c), calibration_chart(replace(c, bins=(whole,)))):
        assert chart is not None
        told = json.dumps(chart.to_dict(validate=False))
        assert "99.9 % for all, from" in told and "95 % from" not in told
    nothing = LogCalibration(0, False, reason="no actions")
    assert calibration_chart(nothing) is None
    assert calibration_words(nothing).endswith("could not be checked: no actions.")


def data_of(chart: Any) -> list[dict[str, Any]]:
    """All rows inside a picture's description."""
    return [row for rows in chart.to_dict(validate=False)["datasets"].values() for row in rows]


def test_the_values_picture_marks_the_recommended(evaluation: Evaluation) -> None:
    for target in evaluation.targets:
        rows = [r for r in data_of(values_chart(evaluation, target)) if "recommended" in r]
        assert {r["target"] for r in rows} == {target}
        best = {r["learner"] for r in rows if r["recommended"]}
        assert best == {evaluation.recommended[target].learner}
    kinds = {r["learner"]: r["kind"] for r in rows}
    assert kinds["pdis"] == kinds["snpdis"] == kinds["drl"] == "importance sampling"
    assert kinds["lstd"] == "solved"
    assert kinds["tdc"] == "online, step by step"


def test_the_overlap_picture_has_every_row_once(evaluation: Evaluation) -> None:
    for target in evaluation.targets:
        rows = [r for r in data_of(overlap_chart(evaluation, target)) if "share" in r]
        assert sum(r["share"] for r in rows) == pytest.approx(1.0)
        assert all(r["kind"] == "ratio" for r in rows)
        bars = sorted((r["x"], r["x2"]) for r in rows)
        assert all(a[1] <= b[0] for a, b in pairwise(bars))  # side by side
    problem = episodic(6, 0.3, np.eye(6))
    never = np.tile([0.0, 0.5, 0.5], (6, 1))
    table = log_table(problem, episodes=150, length=200, targets={"never": never})
    e = st.evaluate(table, learners=["lstd"])
    zeros = [r["share"] for r in data_of(overlap_chart(e, "never")) if r.get("kind") == "ratio 0"]
    assert zeros == pytest.approx([np.mean(table.column("action").to_numpy() == 0)])
    assert e.overlap["zero_share"][0] == pytest.approx(zeros[0])


def test_ticks_of_the_overlap_picture_are_ratios() -> None:
    """As the page keeps them, with five digits: the first is 0 where some ratio is, else none."""
    p = episodic(6, 2.0, np.eye(6))
    never = np.tile([0.0, 0.5, 0.5], (6, 1))
    table = log_table(p, episodes=150, length=200, targets={"pi": p.pi, "never": never})
    e = st.evaluate(table, learners=["lstd"])
    for name, zero in (("pi", False), ("never", True)):
        text = as_json(overlap_chart(e, name).to_dict()).replace("\\u003c", "<")
        limit = float(re.findall(r"datum\.value < (-?[\d.]+) \?", text)[0])
        ticks = json.loads(re.findall(r'"values":(\[-?\d[^]{]*\])', text)[0])
        assert [tick < limit for tick in ticks] == [zero] + [False] * (len(ticks) - 1)
        assert all(tick == round(tick) for tick in ticks[zero:]) and len(ticks) > 3


def test_the_path_picture_shades_what_is_unstable() -> None:
    from tests.support.made import unstable

    problem = unstable()
    table = log_table(problem, episodes=100, length=50)
    e = st.evaluate(table, learners=["lstd"], features="raw")
    spans = [r for r in data_of(path_chart(e, "pi")) if set(r) == {"lo", "hi"}]
    hurwitz = st.certify(problem).eta_hurwitz
    assert spans[0]["lo"] == 0.0
    assert spans[0]["hi"] == pytest.approx(hurwitz, rel=0.5)
    assert [v.grade for v in stability_lines(e)] == ["bad"]


def test_the_disagreement_picture_is_a_triangle(evaluation: Evaluation) -> None:
    cells = [r for r in data_of(agreement_chart(evaluation, NASTY)) if "ink" in r]
    order = [*dict.fromkeys(evaluation.values["learner"]), "drl:lam=1"]  # compared, not asked for
    assert cells
    assert all(order.index(c["learner"]) > order.index(c["other"]) for c in cells)
    lstd = evaluation.values.filter(evaluation.values["target"] == NASTY)
    known = dict(zip(lstd["learner"], lstd["fixed_point"], strict=True))
    shown = {(c["learner"], c["other"]): float(c["text"]) for c in cells}
    expected = known["snpdis"] - known["lstd"]
    assert shown["snpdis", "lstd"] == pytest.approx(expected, rel=0.06, abs=1e-9)


def test_calibration_is_shown_where_behaviour_is_estimated(
    evaluation: Evaluation, tmp_path: Path
) -> None:
    assert calibration_table(evaluation).rows == []
    table = tabular(0.3).log(1).drop(["behavior_prob"])
    e = st.evaluate(table, learners=["lstd", "drl"], behavior="estimate")
    pairs = [str(row[3]) for row in calibration_table(e).rows]
    assert sum(int(text.replace(",", "")) for text in pairs) == 3 * e.log.rows
    html = write_evaluation(e, tmp_path, pictures=False).read_text(encoding="utf-8")
    assert "estimated chance of an action" in html
    assert "see behavior_estimated" in html
    assert "estimated from the log" in html


def test_a_learner_has_its_colour_in_an_evaluation(evaluation: Evaluation) -> None:
    chart = values_chart(evaluation, "calm").to_dict(validate=False)
    scales = [layer["encoding"].get("color", {}).get("scale") for layer in chart["layer"]]
    named = [scale for scale in scales if scale]
    assert named
    for scale in named:
        for name, colour in zip(scale["domain"], scale["range"], strict=True):
            law = name.partition(":")[0]
            assert colour == (look(law).colour if law in st.learners() else SOFT)


def test_the_words_below_the_values_name_the_kinds_that_are_there(evaluation: Evaluation) -> None:
    said = values_words(evaluation)
    for kind, (label, _) in KINDS.items():
        assert (label in said) == (kind in set(evaluation.values["kind"]))


def test_the_recommended_learner_is_the_first_of_its_target(evaluation: Evaluation) -> None:
    rows = recommended_first(value_rows(evaluation))
    assert sorted(map(str, rows)) == sorted(map(str, value_rows(evaluation)))
    firsts = {row["target"]: row for row in reversed(rows)}
    assert list(dict.fromkeys(row["target"] for row in rows)) == list(evaluation.targets)
    assert all(row["recommended"] for row in firsts.values())


def test_the_chosen_penalty_is_a_whole_dot() -> None:
    """At eta 0 it lies on the frame."""
    e = two_targets()
    (dot,) = [
        layer for layer in path_chart(e, e.targets[0]).to_dict(validate=False)["layer"]
        if layer["mark"]["type"] == "point"
    ]  # fmt: skip
    assert dot["mark"]["clip"] is False


def test_of_many_targets_the_best_and_the_most_doubtful_are_shown(tmp_path: Path) -> None:
    """Forty targets: pictures of six, lines of thirty, tables of all, as the page says."""
    problem = episodic(6, 0.3, np.eye(6))
    mixed = {f"p{i:02}": (1 - i / 60) * problem.pi + i / 60 * problem.mu for i in range(40)}
    table = log_table(problem, episodes=60, length=30, seed=2, targets=mixed)
    e = st.evaluate(table, learners=["lstd", "drl"])
    by = {d.target: d for d in e.decisions}
    for most in (6, 30):
        shown = telling(e, most)
        assert len(set(shown)) == len(shown) == most
        best, doubtful = shown[: most // 2], shown[most // 2 :]
        rest = set(by) - set(best)
        if any(by[name].trusted for name in rest):
            assert all(by[name].trusted for name in best)
        for name in rest:
            if by[name].trusted == by[best[-1]].trusted:
                assert by[name].difference <= by[best[-1]].difference
        left, last = rest - set(doubtful), by[doubtful[-1]]
        for name in left:
            assert by[name].trusted or not last.trusted
            if by[name].trusted == last.trusted:
                assert by[name].hi - by[name].lo <= last.hi - last.lo
    assert telling(e, 40) == e.targets and selection_text(e, 40, "Pictures") == ""
    path = write_evaluation(e, tmp_path / "out", pictures=False)
    text = path.read_text(encoding="utf-8")
    assert selection_text(e, 6, "Pictures") in text
    assert selection_text(e, 30, "Decisions") in text
    assert "<code>--target NAME</code>" in text
    named = set(telling(e))
    for line in decision_lines(e):
        lead, name, after = line.text[: line.name[0]], line.text[slice(*line.name)], line.name[1]
        sentence = f"{lead}<code>{name}</code>{line.text[after:]}"
        assert (f'<p class="verdict {line.grade}">{sentence}</p>' in text) == (name in named)
        assert text.count(f"<td>{name}</td>") >= 5  # in all tables, shown or not
    drawn = [name for name in e.targets if f"{name}: all learners" in text]
    assert drawn == sorted(telling(e, 6))


def test_decisions_are_differences_on_one_axis(evaluation: Evaluation) -> None:
    """The best first; an untrusted one is grey, and cut where the axis of the others ends."""
    spec = decisions_chart(evaluation).to_dict(validate=False)
    first = next(layer for layer in spec["layer"] if layer["mark"]["type"] == "point")
    assert first["encoding"]["y"]["sort"] == [d.target for d in ranked(evaluation)]
    low, high = first["encoding"]["x"]["scale"]["domain"]
    for d in evaluation.decisions:
        assert low <= d.lo <= d.difference <= d.hi <= high and low < 0.0 < high
    worst = dataclasses.replace(
        evaluation.decisions[0], lo=-1e4, hi=1e4, reasons=("few_episodes",), trusted=False
    )
    moved = dataclasses.replace(evaluation)
    vars(moved)["decisions"] = [worst, *evaluation.decisions[1:]]
    layers = decisions_chart(moved).to_dict(validate=False)
    rows = {r["target"]: r["decision"] for r in data_of(decisions_chart(moved)) if "target" in r}
    assert rows[worst.target] == "not trusted" and ranked(moved)[-1] is worst
    arrows = [
        x["mark"]["shape"]
        for x in layers["layer"]
        if x["mark"].get("shape", "").startswith("triangle")
    ]
    assert arrows == ["triangle-left", "triangle-right"]
    colours = layers["layer"][1]["encoding"]["color"]["scale"]
    assert colours["range"][colours["domain"].index("not trusted")] == PALE
    low, high = layers["layer"][1]["encoding"]["x"]["scale"]["domain"]
    assert low > -1e4 and high < 1e4


def test_a_policy_is_set_apart_from_the_sentence_around_it(evaluation: Evaluation) -> None:
    """Also where its name is a word of the sentence."""
    d = dataclasses.replace(evaluation.decisions[1], target="the", same=False, trusted=True)
    d = dataclasses.replace(d, decision="undecided")
    line = decision_line(evaluation, d)
    assert line.text.startswith("The log does not show whether the is better than the policy")
    assert line.name == (30, 33)
