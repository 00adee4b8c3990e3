"""`steadytd evaluate` and `steadytd certify LOG`: page, JSON, exit codes, nothing half-done."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import steadytd as st
from steadytd.cli.evaluate import _sample
from steadytd.evaluation import evaluate as run
from steadytd.evaluation.follow.engines import LocalPasses
from steadytd.logs.write import write_log
from steadytd.report.evaluation import page as evaluation_page
from steadytd.report.evaluation.text import policy_rows, selection_text, telling, value_rows
from tests.support.commands import Command, call
from tests.support.log_helpers import log_table, write_problem_log
from tests.support.logged_worlds import episodic, tabular
from tests.support.made import unstable

ROW = {"target", "learner", "value", "lo", "hi", "stable", "eta"}  # INTERFACE.md


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log that can be trusted: a feature per state, a target near the behaviour policy."""
    return write_log(tmp_path_factory.mktemp("good") / "good.parquet", tabular(0.3).log(0))


@pytest.fixture(scope="module")
def poor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log that says little about its target."""
    return write_log(
        tmp_path_factory.mktemp("poor") / "poor.parquet", tabular(8.0, episodes=12).log(0)
    )


def test_json_is_what_the_library_returns(steadytd: Command, good: Path) -> None:
    shown = steadytd.json("evaluate", str(good), "--seed", "3")
    expected = st.evaluate(good, seed=3).to_dict()
    assert shown == json.loads(json.dumps(expected))
    assert {"values", "overlap", "stability", "warnings"} <= set(shown)
    assert len(shown["values"]) == 7
    assert all(set(row) >= ROW for row in shown["values"])
    assert [row["target"] for row in shown["overlap"]] == ["pi"]
    assert [row["target"] for row in shown["stability"]] == ["pi"]


def test_options_reach_the_library(steadytd: Command, good: Path) -> None:
    options = ["--features", "poly:2", "--learner", "lstd", "--learner", "td:alpha=0.01"]
    shown = steadytd.json("evaluate", str(good), *options, "--threads", "1")
    learners = [row["learner"] for row in shown["values"]]
    assert learners == ["lstd", "td:alpha=0.01", "drl"]  # drl decides
    assert shown["settings"]["features"] == "poly:2"
    expected = st.evaluate(good, features="poly:2", learners=["lstd", "td:alpha=0.01"]).to_dict()
    assert shown["values"] == json.loads(json.dumps(expected["values"]))


def test_a_good_log_gets_its_decision_first(steadytd: Command, good: Path) -> None:
    text = steadytd("evaluate", str(good))
    e = st.evaluate(good)
    r, d = e.recommended["pi"], e.compare("pi")
    assert r.trusted and r.lo <= tabular(0.3).truth <= r.hi
    assert " ".join(text.split()).startswith(d.headline)
    assert len(text.splitlines()) <= 15 and "Overlap" not in text
    full = steadytd("evaluate", str(good), "--full")
    assert full.startswith(text.rstrip())
    words = ("To log next", "Values", "Overlap", "Wrong ratios", "Stability", "What the numbers")
    order = [full.index(word) for word in words]
    assert order == sorted(order)
    for learner in ("perturbed_lstd", "lstd", "tdc", "pdis", "snpdis"):
        assert learner in full


def test_a_poor_log_gets_a_plain_no(steadytd: Command, poor: Path) -> None:
    text = " ".join(steadytd("evaluate", str(poor), "--full").split())
    assert text.startswith("No decision about pi. The log has only 12 episodes;")
    assert "Warnings few_episodes: " in text and "low_overlap pi: " in text
    assert "cover sampling error alone" in text


def test_eighty_columns_are_enough(
    steadytd: Command, good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No line is longer, and no number of the tables is cut or wrapped."""
    monkeypatch.setenv("COLUMNS", "80")
    text = steadytd("evaluate", str(good), "--full")
    assert max(map(len, text.splitlines())) <= 80
    assert "\u2026" not in text
    e = st.evaluate(good)
    for row in (*policy_rows(e), *value_rows(e)):
        lines = [x for x in text.splitlines() if row["interval"] in x]
        assert any(row["value"] in line for line in lines)


@pytest.mark.slow  # which thirty: report/test_evaluation_report.py, with the same words
def test_of_very_many_targets_thirty_have_lines(
    steadytd: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    problem = episodic(6, 0.3, np.eye(6))
    mixed = {f"policy{i}": (1 - i / 60) * problem.pi + i / 60 * problem.mu for i in range(10, 45)}
    path = write_problem_log(
        tmp_path / "log.parquet", problem, episodes=60, length=30, targets=mixed
    )
    monkeypatch.setenv("COLUMNS", "400")
    learners = ["--learner", "lstd", "--learner", "drl"]
    text = steadytd("evaluate", str(path), *learners, "--full")
    e = st.evaluate(path, learners=["lstd", "drl"])
    assert selection_text(e, 30, "Lines") in " ".join(text.split())
    tables = text[text.index(" policy ") : text.index("Notes")]
    shown = {word for word in tables.split() if word.startswith("policy") and word in mixed}
    assert set(telling(e)) <= shown
    overlap = text[text.index("Overlap:") :].split("\n\n")[0]
    assert {word for word in overlap.split() if word in mixed} == set(telling(e))


def test_many_targets_are_shown_by_their_recommended_learner(
    steadytd: Command, tmp_path: Path
) -> None:
    problem = episodic(6, 0.3, np.eye(6))
    mixed = {f"p{i}": (1 - i / 9) * problem.pi + i / 9 * problem.mu for i in range(8)}
    path = write_problem_log(
        tmp_path / "log.parquet", problem, episodes=200, length=200, targets=mixed
    )
    learners = ["--learner", "lstd", "--learner", "snpdis", "--learner", "drl"]
    text = steadytd("evaluate", str(path), *learners, "--full")
    assert "Values of the recommended learners" in text
    values = text[text.index("Values") : text.index("Overlap")]
    assert all(values.count(f"p{i} ") == 1 for i in range(8))
    assert values.count(" *") == 8
    assert "snpdis" not in values
    some = ["--target", "p3", "--target", "p1"]
    assert [
        o["target"] for o in steadytd.json("evaluate", str(path), *learners, *some)["overlap"]
    ] == ["p3", "p1"]


def test_several_files_csv_and_a_column_map(steadytd: Command, good: Path, tmp_path: Path) -> None:
    """The same rows in two files, or as CSV under other names, give the same values."""
    table = pq.read_table(good)
    first = table.column("episode_id").to_numpy()
    cut = int(np.flatnonzero(first >= 200)[0])
    halves = [
        write_log(tmp_path / f"part-{i}.parquet", part)
        for i, part in enumerate((table.slice(0, cut), table.slice(cut)))
    ]
    obs = np.array(table.column("obs").to_pylist())
    flat = table.drop(["obs", "next_obs", "reward", "behavior_prob"])
    for k in range(obs.shape[1]):
        flat = flat.append_column(f"s{k}", [obs[:, k]])
    flat = flat.append_column("r", table.column("reward"))
    flat = flat.append_column("mu", table.column("behavior_prob"))
    pyarrow.csv.write_csv(flat, tmp_path / "log.csv")
    found = []
    columns = "obs=" + "+".join(f"s{k}" for k in range(obs.shape[1])) + ",reward=r"
    for arguments in (
        [str(good)],
        [str(path) for path in halves],
        [str(tmp_path / "part-*.parquet")],
        [str(tmp_path / "log.csv"), "--map", columns, "--map", "behavior_prob=mu"],
    ):
        found.append(
            steadytd.json("evaluate", *arguments, "--learner", "lstd")["values"][0]["value"]
        )
    assert found[1:] == pytest.approx([found[0]] * 3, rel=1e-9)


@pytest.mark.slow
def test_dask_gives_the_same_and_resumes(steadytd: Command, good: Path, tmp_path: Path) -> None:
    learners = ["--learner", "lstd", "--learner", "drl"]
    local = steadytd.json("evaluate", str(good), *learners)
    parts = tmp_path / "parts"
    dask = ["--engine", "dask", "--checkpoint", str(parts)]
    for _ in range(2):
        shown = steadytd.json("evaluate", str(good), *learners, *dask)
        assert shown["values"] == local["values"]
        assert len(list(parts.iterdir())) == 2  # of either pass


@pytest.mark.filterwarnings("default:.*results saved")
def test_a_checkpoint_of_other_rows_is_said_in_one_line(
    good: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    table = pq.read_table(good)
    i = table.column_names.index("reward")
    file, asked = tmp_path / "log.parquet", ["--learner", "lstd", "--engine", "dask"]
    said = []
    for factor in (1.0, 2.0):
        reward = pa.array(factor * table["reward"].to_numpy())
        write_log(file, table.set_column(i, "reward", reward))
        kept = ["--checkpoint", str(tmp_path / "parts")]
        assert call(monkeypatch, "evaluate", str(file), *asked, *kept, "--json") == 0
        said.append(capsys.readouterr().err)
    assert "computed again" not in said[0] and said[1].count("computed again") == 1
    assert "UserWarning" not in said[1]


def test_a_scheduler_that_does_not_answer(
    steadytd: Command, good: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import distributed

    def silent(*_: Any, **__: Any) -> None:
        raise OSError("timed out")

    monkeypatch.setattr(distributed, "Client", silent)
    asked = ["--engine", "dask", "--address", "tcp://nowhere:1", "--out", str(tmp_path / "out")]
    assert "cannot reach a Dask scheduler at 'tcp://nowhere:1'" in steadytd.error(
        "evaluate", str(good), "--learner", "lstd", *asked
    )
    assert list(tmp_path.iterdir()) == []


def changed(column: str, row: int, value: float) -> Callable[[Any], Any]:
    """A table with another number in one place."""

    def change(table: Any) -> Any:
        values = table.column(column).to_numpy().copy()
        values[row] = value
        return table.set_column(table.schema.get_field_index(column), column, [values])

    return change


def renamed(old: str, new: str) -> Callable[[Any], Any]:
    """A table with another name for a column."""
    return lambda table: table.rename_columns([new if n == old else n for n in table.schema.names])


BAD_LOGS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "misspelt column": (renamed("reward", "rewrad"), "did you mean 'rewrad'"),
    "no behaviour": (renamed("behavior_prob", "behaviour_prob"), "behavior_prob=behaviour_prob"),
    "no target": (lambda t: t.drop(["target_prob_pi"]), "there is no target policy"),
    "probability above 1": (changed("behavior_prob", 7, 1.5), "'behavior_prob', row 7"),
    "log-probability": (changed("behavior_prob", 9, -0.7), "'behavior_prob', row 9"),
    "bad target": (changed("target_prob_pi", 3, -0.1), "'target_prob_pi', row 3"),
    "no number": (changed("reward", 5, float("nan")), "'reward', row 5"),
    "infinite": (changed("reward", 6, float("inf")), "'reward', row 6"),
    "twice the same row": (lambda t: pa.concat_tables([t.slice(0, 3), t.slice(2)]), "row 3"),
    "interleaved": (
        lambda t: t.take(np.argsort(t.column("t").to_numpy(), kind="stable")),
        "column 'episode_id', row 400",
    ),
    "empty": (lambda t: t.slice(0, 0), "no rows"),
}


@pytest.mark.parametrize("name", BAD_LOGS)
def test_bad_logs(name: str, good: Path, steadytd: Command, tmp_path: Path) -> None:
    change, message = BAD_LOGS[name]
    path = write_log(tmp_path / "bad.parquet", change(pq.read_table(good)))
    out = tmp_path / "results" / "here"
    printed = steadytd.error("evaluate", str(path), "--out", str(out), "--json")
    assert "bad.parquet" in printed and message in printed
    assert [p.name for p in tmp_path.iterdir()] == ["bad.parquet"]


def test_a_file_that_was_cut_short(steadytd: Command, good: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.parquet"
    path.write_bytes(good.read_bytes()[:-500])
    parts = tmp_path / "parts"
    asked = ["--engine", "dask", "--checkpoint", str(parts), "--out", str(tmp_path / "out")]
    assert "cut.parquet' cannot be read" in steadytd.error("evaluate", str(path), *asked)
    assert [p.name for p in tmp_path.iterdir()] == ["cut.parquet"]


def test_no_empty_checkpoint_is_left(steadytd: Command, good: Path, tmp_path: Path) -> None:
    table = changed("reward", 50, float("nan"))(pq.read_table(good))
    path = write_log(tmp_path / "bad.parquet", table)
    parts = tmp_path / "parts"
    asked = ["--engine", "dask", "--checkpoint", str(parts)]
    assert "'reward', row 50" in steadytd.error("evaluate", str(path), *asked)
    assert not parts.exists()


BAD_OPTIONS = {
    "discount": (["--discount", "1.5"], "discount must lie in [0, 1], got 1.5"),
    "discount that is no number": (["--discount", "nan"], "discount must lie in [0, 1]"),
    "target": (["--target", "po"], "there is no column 'target_prob_po'"),
    "target twice": (["--target", "pi", "--target", "pi"], "the target 'pi' is given twice"),
    "learner": (["--learner", "lstdd"], "unknown learner 'lstdd'; did you mean 'lstd'"),
    "learner twice": (["--learner", "lstd", "--learner", "lstd"], "'lstd' is given twice"),
    "features": (["--features", "rfb:10"], "unknown features 'rfb'; did you mean 'rbf'"),
    "number of features": (["--features", "rbf:0"], "features 'rbf' are written rbf:N"),
    "map": (["--map", "obs"], "--map must be name=column,name=column, got 'obs'"),
    "map twice": (["--map", "t=t", "--map", "t=b"], "--map gives 't' twice"),
    "map to nowhere": (["--map", "reward=gain"], "the column map says reward=gain"),
    "map of nothing": (["--map", "rewrd=reward"], "unknown name in the column map 'rewrd'; did"),
    "engine": (["--engine", "dsk"], "unknown engine 'dsk'; did you mean 'dask'"),
    "address": (["--address", "tcp://x:1"], "--address needs the engine dask"),
    "checkpoint": (["--checkpoint", "parts"], "--checkpoint needs the engine dask"),
    "threads": (["--threads", "0"], "threads must be a whole number >= 1, got 0"),
    "seed": (["--seed", "-1"], "seed must be a whole number >= 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_OPTIONS)
def test_bad_options(
    name: str, good: Path, steadytd: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options, message = BAD_OPTIONS[name]
    monkeypatch.chdir(tmp_path)
    assert message in steadytd.error("evaluate", str(good), *options, "--out", "results")
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_cannot_be_written_is_noticed_before_the_work(
    steadytd: Command, good: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("the log was read")

    monkeypatch.setattr(run, "evaluate", never)
    assert "cannot write to the output directory" in steadytd.error(
        "evaluate", str(good), "--out", str(blocked / "deep" / "out")
    )


@pytest.mark.parametrize(
    ("where", "what"),
    [(LocalPasses, "run"), (evaluation_page, "save_figures")],
    ids=["read", "draw"],
)
def test_interrupt_leaves_nothing(
    where: Any,
    what: str,
    good: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    calls = []

    def interrupted(*_: Any, **__: Any) -> None:
        calls.append(1)
        raise KeyboardInterrupt

    monkeypatch.setattr(where, what, interrupted)
    out = tmp_path / "deep" / "out"
    assert call(monkeypatch, "evaluate", str(good), "--learner", "lstd", "--out", str(out)) == 130
    shown = capsys.readouterr()
    assert calls == [1]
    assert shown.out == ""
    assert "interrupted" in shown.err
    assert list(tmp_path.iterdir()) == []


def test_certify_a_log_of_a_known_problem(steadytd: Command, tmp_path: Path) -> None:
    """The log's threshold is the certificate's, but for chance: the interval is three times wider
    than its own half on either side, so that a fixed seed fails only by a real difference."""
    problem = unstable()
    exact = st.certify(problem)
    path = write_problem_log(tmp_path / "log.parquet", problem, episodes=200, length=50, seed=3)
    etas = ["--eta", "0.05", "--eta", "1"]
    shown = steadytd.json("certify", str(path), *etas)
    (s,) = shown["stability"]
    assert s["td_stable"] is exact.td_stable is False
    width = s["eta_pd_hi"] - s["eta_pd_lo"]
    assert 0.0 < width < 0.1
    assert s["eta_pd_lo"] - width < exact.eta_pd < s["eta_pd_hi"] + width
    assert [row["stable"] for row in shown["penalties"]] == [False, True]
    assert exact.eta_hurwitz > 0.05  # so says theory
    assert {"path", "warnings", "overlap", "settings", "log"} <= set(shown)
    text = " ".join(steadytd("certify", str(path), *etas).split())
    assert text.startswith("pi: plain TD is unstable on this log; every penalty above 0.13")
    assert "unstable" in text
    assert "Penalties asked about" in text


def test_certify_a_calm_log(steadytd: Command, good: Path) -> None:
    text = " ".join(steadytd("certify", str(good)).split())
    assert text.startswith("pi: plain TD is stable on this log, without any penalty.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["LOG", "--policy", "0"], "--policy works with problems only"),
        (["LOG", "--out", "here"], "--out works with problems only"),
        (["LOG", "--eta", "-1"], "eta must be a finite number >= 0, got -1"),
        (["LOG", "--discount", "2"], "discount must lie in [0, 1]"),
        (["baird", "--discount", "0.9"], "--discount works with logs only"),
        (["baird", "--target", "pi"], "--target works with logs only"),
        (["baird", "--features", "raw"], "--features works with logs only"),
        (["baird", "--estimate-behavior"], "--estimate-behavior works with logs only"),
    ],
)
def test_certify_options_of_the_other_kind(
    steadytd: Command, arguments: list[str], message: str, good: Path
) -> None:
    given = [str(good) if word == "LOG" else word for word in arguments]
    assert message in steadytd.error("certify", *given)


def test_a_discount_that_the_log_knows_better(
    good: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["evaluate", str(good), "--discount", "0.5", "--learner", "lstd", "--json"]
    assert call(monkeypatch, *arguments) == 0
    shown = capsys.readouterr()
    assert "column 'discount' is used" in shown.err
    assert (
        json.loads(shown.out)["values"] == st.evaluate(good, learners=["lstd"]).to_dict()["values"]
    )


def test_an_unknown_behaviour_policy(steadytd: Command, tmp_path: Path) -> None:
    """Estimated only when asked for, then said in the verdict, with its calibration."""
    table = log_table(episodic(6, 0.3, np.eye(6)), episodes=300, length=200)
    path = write_log(tmp_path / "log.parquet", table.drop(["behavior_prob"]))
    learners = ["--learner", "lstd", "--learner", "drl"]
    shown = steadytd.error("evaluate", str(path), *learners)
    assert "--estimate-behavior" in shown
    with pytest.raises(st.InputError) as caught:
        st.evaluate(path, learners=["lstd", "drl"])
    assert shown.strip() == f"error: {caught.value}"  # one rule, one message
    assert steadytd.error("certify", str(path)) == shown
    text = " ".join(
        steadytd("evaluate", str(path), *learners, "--estimate-behavior", "--full").split()
    )
    assert text.startswith("No decision about pi. The behaviour policy's probabilities are")
    assert "Calibration of the estimated behaviour policy" in text
    assert "behavior_estimated: " in text
    stated = ["--estimate-behavior", "--nothing-hidden"]
    text = " ".join(steadytd("evaluate", str(path), *learners, *stated).split())
    assert "No decision" not in text and "nothing but the logged observations, as stated" in text
    steadytd.error("evaluate", str(path), "--nothing-hidden")


def test_a_range_of_rewards_reaches_the_library(steadytd: Command, good: Path) -> None:
    """And what the log or its form contradicts is bad input: one sentence, exit code 2."""
    asked = "evaluate", str(good), "--reward-range"
    shown = steadytd.json(*asked, "-30,40.5", "--horizon", "500")
    assert shown["unseen"][0]["stated"] is True
    assert shown["settings"]["reward_range"] == [-30, 40.5] and shown["settings"]["horizon"] == 500
    expected = st.evaluate(good, reward_range=(-30, 40.5), horizon=500).to_dict()
    assert shown == json.loads(json.dumps(expected))
    for text, said in (
        ("5", "two numbers LO,HI"), ("a,b", "two numbers LO,HI"), ("1,2,3", "two numbers LO,HI"),
        ("2,1", "lo <= hi"), ("0,inf", "two finite numbers"), ("50,60", "lies outside"),
    ):  # fmt: skip
        assert said in steadytd.error(*asked, text)


def test_the_sample_stays_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEADYTD_CACHE_DIR", str(tmp_path / "cache"))
    mine = tmp_path / "sample_log.parquet"
    mine.write_text("mine")
    (made,), *_ = _sample(None, None)
    assert mine.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "sample_log.parquet"]
    assert Path(made) == tmp_path / "cache" / "sample" / "log.parquet"
    assert (tmp_path / "cache").stat().st_mode & 0o077 == 0  # machine code may stand there, too


def test_a_list_of_faults_has_a_line_for_each(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    table = pa.table({"user": ["a", "b"], "did": ["x", "y"], "gain": [1.0, 2.0]})
    pyarrow.csv.write_csv(table, tmp_path / "shop.csv")
    assert call(monkeypatch, "evaluate", str(tmp_path / "shop.csv"), "--discount", "1") == 2
    message = capsys.readouterr().err
    assert "\\n" not in message and "\n  1. " in message and "\n  2. " in message
