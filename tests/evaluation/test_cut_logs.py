"""Logs of cut-off episodes: every online learner against a slow loop, however the log is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import steadytd as st
from steadytd.engine.learner import Learner
from steadytd.evaluation.evaluate import evaluate
from steadytd.evaluation.follow import engines, online
from steadytd.evaluation.result import Evaluation
from steadytd.logs.log import open_log
from steadytd.logs.write import write_log
from tests.support.cases import STEPS_OF_A_LAW, cases_of, is_quick
from tests.support.evaluate_helpers import Identity, Step, episodes_of
from tests.support.log_helpers import fixed_lists
from tests.support.slow_law import followed, remembering

FEATURES = 3
READ: list[dict[str, Any]] = [
    {"batch_rows": 1, "threads": 1}, {"batch_rows": 5}, {"parts": 10, "batch_rows": 64},
    {"parts": 10, "engine": "dask"},
]  # fmt: skip


def online_learners() -> list[Learner]:
    """Every law that is followed over a log, a schedule and an average of some, and the issue's."""
    own = filter(is_quick, cases_of(remembering))
    cases = [x for x in [*STEPS_OF_A_LAW, *own] if x.law.of_discounted_states]
    last = {case.name: case for case in cases}.values()
    texts = ["tdrc:alpha=0.02,lam=0.5", "tdrc:alpha=0.02,lam=0.5,ratio=4", "etd:alpha=0.02,lam=0.5"]
    texts += ["td:alpha=0.05,lam=0.5,power=0.5", "td:alpha=0.05,lam=0.5,average=1"]
    texts += ["cop_td:alpha=0.02", "abtd:alpha=0.02,zeta=0.7", "td:alpha=0.05,lam=0.5"]
    made = [*cases, *(x.replace(power=0.5, delay=30.0) for x in last)]
    made += [x.replace(average=1, alpha=0.02) for x in last]
    return list(dict.fromkeys([*made, *map(st.learner, texts)]))


LEARNERS = online_learners()
# Averages and schedules are a piece of the loop for all laws: one law shows them, the others in
# `make test-all`.
QUICK = [x for x in LEARNERS if x.name == "td" or not (x.averaged or x.values.get("power"))]


def log_file(path: Path, ending: float) -> Path:
    """60 episodes of 5 rows, or of 1 to 8 rows where a share `ending` of them terminates."""
    rng = np.random.default_rng(5)
    lengths = np.full(60, 5) if ending == 0.0 else rng.integers(1, 9, 60)
    episode, n = np.repeat(np.arange(60), lengths), int(lengths.sum())
    t = np.arange(n) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    last = np.append(episode[1:] != episode[:-1], True)
    ends = last & (rng.random(n) < ending)
    obs, after = rng.normal(size=(2, n, FEATURES))
    table = pa.table(
        {
            "episode_id": episode, "t": t, "obs": fixed_lists(obs), "reward": rng.normal(size=n),
            "next_obs": fixed_lists(after, ~last), "terminated": ends, "truncated": last & ~ends,
            "behavior_prob": rng.uniform(0.3, 0.9, n), "target_prob_a": rng.uniform(0.3, 0.7, n),
            "target_prob_b": rng.uniform(0.0, 0.9, n) * (rng.random(n) < 0.8),
        }
    )  # fmt: skip
    return write_log(path, table, row_group_rows=25)


def read(path: Path, learners: list[Any], **how: Any) -> Evaluation:
    return evaluate(path, discount=0.9, features=Identity(), learners=learners, **how)


def peaks(episodes: list[list[Step]], target: int) -> tuple[float, float]:
    """The extremes of max(pi, mu) over all rows."""
    found = [max(float(p.pi[target]), p.mu) for episode in episodes for p in episode]
    return min(found), max(found)


@pytest.mark.parametrize(
    ("ending", "learners"),
    [(0.0, QUICK), pytest.param(0.4, LEARNERS, marks=pytest.mark.slow)],
    ids=["cut", "mixed, averages too"],
)
def test_every_law_follows_the_slow_loop(
    tmp_path: Path, ending: float, learners: list[Learner]
) -> None:
    path = log_file(tmp_path / "log.parquet", ending)
    episodes = episodes_of(open_log(path, discount=0.9))
    assert len(open_log(path, discount=0.9).parts(10)) > 5
    slow = {
        (name, str(x)): followed(episodes, x, t, peaks(episodes, t))[-1]
        for t, name in enumerate("ab")
        for x in learners
    }
    for how in [{}, *READ] if learners == LEARNERS else READ[2:3]:
        e = read(path, learners, **how)
        for (target, learner), expected in slow.items():
            found = e.value_function(target, learner).weights
            message = f"{learner} for {target}, {how}"
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12, err_msg=message)


@pytest.mark.slow
def test_automatic_numbers_do_not_depend_on_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They come from the first rows of the log: here 100 of 300, over several parts."""
    monkeypatch.setattr(engines, "PILOT_ROWS", 100)
    path = log_file(tmp_path / "log.parquet", 0.0)
    asked = ["td", "perturbed_td", "tdc", "etd:lam=0.5", "tdrc", "abtd:zeta=0.7"]
    expected = read(path, asked)
    for how in READ:
        found = read(path, asked, **how)
        for one, other in zip(expected.values.to_dicts(), found.values.to_dicts(), strict=True):
            for name in ("alpha", "eta", "ratio", "diverged"):
                assert one[name] == other[name], (name, how)
            np.testing.assert_allclose(other["value"], one["value"], rtol=1e-10, err_msg=str(how))


def test_divergence_is_the_same_step_in_any_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(online, "SNAPSHOTS", 5)  # looked for every 30 rows
    path = log_file(tmp_path / "log.parquet", 0.0)
    steps = [
        read(path, ["td:alpha=1e30", "td:alpha=1e30,lam=0.5"], **how).values["diverged"].to_list()
        for how in [{}, {"batch_rows": 7}, {"parts": 10}]
    ]
    assert steps[0] == steps[1] == steps[2]
    assert min(steps[0][:2]) > 0
