"""The same log from Parquet, CSV, frames and Minari gives the same transitions."""

from __future__ import annotations

import gzip
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steadytd import InputError, sample_log
from steadytd.logs.log import open_log
from tests.support.draws import examples, thinned
from tests.support.helpers import random_problem
from tests.support.log_helpers import identity_of, log_table
from tests.support.log_reference import (
    Row,
    Transition,
    as_table,
    reference,
    transitions,
    valid_rows,
)


def small_table(layout: str = "columns") -> Any:
    """A problem's log with observations in columns, as a CSV file needs them."""
    table = log_table(random_problem(4), episodes=30, length=12)
    if layout != "columns":
        return table
    for name in ("obs", "next_obs"):
        lists = table[name].to_pylist()
        table = table.drop_columns([name])
        for i in range(3):
            table = table.append_column(f"{name}_{i}", pa.array([x and x[i] for x in lists]))
    return table


def test_csv_equals_parquet(tmp_path: Path) -> None:
    table = small_table()
    expected = transitions(open_log(table, discount=None).batches())
    path = tmp_path / "log.csv"
    pc.write_csv(table, path)
    log = open_log(path, discount=None, batch_rows=50)
    assert log.rows is None
    assert transitions(log.batches()) == expected
    assert [len(part.files) for part in log.parts(5)] == [1]
    packed = tmp_path / "log.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert transitions(open_log(packed, discount=None).batches()) == expected
    tabs = tmp_path / "log.tsv"
    tabs.write_text(path.read_text().replace(",", "\t"))
    assert transitions(open_log(tabs, discount=None).batches()) == expected
    assert log.sample(10, seed=2).shape == (10, 3)


def test_many_csv_files_and_their_parts(tmp_path: Path) -> None:
    table = small_table()
    expected = transitions(open_log(table, discount=None).batches())
    edges = [0, len(table) // 3, len(table) // 3 + 1, len(table) * 2 // 3, len(table)]
    for i in range(4):  # part2 comes before part10
        name = ["part1.csv", "part2.csv", "part10.csv", "part11.csv"][i]
        pc.write_csv(table.slice(edges[i], edges[i + 1] - edges[i]), tmp_path / name)
    log = open_log(tmp_path, discount=None, batch_rows=30)
    assert [Path(file).name for file in log.files][1:3] == ["part2.csv", "part10.csv"]
    assert transitions(log.batches()) == expected
    parts = log.parts(3)
    assert len(parts) == 3
    assert [t for part in parts for t in transitions(part.batches())] == expected


def test_csv_numbers_that_stop_being_whole(tmp_path: Path) -> None:
    """Types come from what a column means, not from how its first rows look."""
    lines = ["episode_id,t,obs_0,obs_1,reward,terminated,behavior_prob,target_prob_pi"]
    lines += [f"{i},0,1,0,1,1,1,1" for i in range(50)] + ["50,0,0.5,0.25,-0.5,True,5e-1,0.125"]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines))
    [batch] = open_log(path, discount=0.9).batches()
    assert batch.obs[50].tolist() == [0.5, 0.25]
    assert batch.reward[50] == -0.5
    assert batch.behavior_prob is not None and batch.behavior_prob[50] == 0.5
    assert batch.target_prob[0, 50] == 0.125


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("3,0,1,0,x,true,1,1", r"column 'reward', row 3 .*must be a number, got 'x'"),
        ("3,0.5,1,0,1,true,1,1", r"column 't', row 3 .*a whole number, got '0.5'"),
        ("3,0,1,0,1,yes,1,1", r"column 'terminated', row 3 .*true or false, got 'yes'"),
        ("3,0,1,0,nan,true,1,1", r"column 'reward', row 3 .*must be finite, got nan"),
        ("3,0,,0,1,true,1,1", r"column 'obs_0', row 3 .*a value is needed, got null"),
        ("3,0,1,0,1,true,-1,1", r"column 'behavior_prob', row 3 .*log-probability"),
        ("3,0,1,0,1,true,1", r"cannot be read: .*Expected 8 columns, got 7"),
    ],
)
def test_csv_faults(line: str, words: str, tmp_path: Path) -> None:
    header = "episode_id,t,obs_0,obs_1,reward,terminated,behavior_prob,target_prob_pi"
    lines = [header, *(f"{i},0,1,0,1,true,1,1" for i in range(3)), line, "4,0,1,0,1,true,1,1"]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=words):
        list(open_log(path, discount=0.9).batches())


def test_csv_files_that_are_no_logs(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("")
    with pytest.raises(InputError, match="is an empty file"):
        open_log(path, discount=0.9)
    path.write_text("episode_id,t,obs,reward,terminated,target_prob_pi\n")
    with pytest.raises(InputError, match="holds no rows"):
        list(open_log(path, discount=0.9).batches())
    path.write_text("a,b\n1,2\n")
    with pytest.raises(
        InputError, match=r"log.csv: 3 things are missing.*\n.*no target.*\n.*'reward'.*\n.*'obs'"
    ):
        open_log(path, discount=0.9)
    other = tmp_path / "log.parquet"
    other.write_bytes(b"PAR1")
    with pytest.raises(InputError, match="either Parquet or CSV, got both"):
        open_log([path, other], discount=0.9)


class Frame:
    """Something with the Arrow protocol and nothing else."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


@settings(max_examples=examples(15, 40), deadline=None)
@given(
    rows=valid_rows(), batch_rows=st.integers(1, 9), layout=st.sampled_from(["fixed", "columns"])
)
def test_frames_equal_the_reference(rows: list[Row], batch_rows: int, layout: str) -> None:
    names = [key[12:] for key in rows[0] if key.startswith("target_prob_")]
    expected = reference(rows, 0.9, names)
    if not expected:
        return
    table = as_table(rows, layout)
    polars = pl.from_arrow(table)
    for frame in (table, polars, table.to_pandas(), Frame(table), table.to_batches()[0]):
        log = open_log(frame, discount=0.9, targets=names, batch_rows=batch_rows)
        assert transitions(log.batches()) == expected


def test_a_pandas_frame_whose_rows_were_chosen() -> None:
    """The index is no column; lists are objects there, and none given is a column of nothing."""
    problem = random_problem(3, states=5, actions=3, features=3)
    table = log_table(problem, episodes=20, length=12, seed=1).drop_columns(["next_obs"])
    frame = table.to_pandas()
    frame["next_obs"] = None
    late = frame[frame["episode_id"] >= 7]
    assert late.index[0] > 0
    first = int(np.flatnonzero(np.asarray(table["episode_id"]) >= 7)[0])
    assert transitions(open_log(late, discount=None).batches()) == transitions(
        open_log(table.slice(first), discount=None).batches()
    )


def test_frames_have_parts_and_an_identity() -> None:
    n = 200_000
    table = pa.table(
        {
            "episode_id": np.arange(n) // 7, "t": np.arange(n) % 7, "obs": np.arange(n) * 1.0,
            "reward": np.ones(n), "terminated": np.arange(n) % 7 == 6,
        }
    )  # fmt: skip
    log = open_log(table, discount=0.9, targets=[])
    parts = log.parts(3)
    assert len(parts) == 3
    whole = np.concatenate([batch.rows for batch in log.batches()])
    again = [batch for part in parts for batch in part.batches()]
    np.testing.assert_array_equal(np.concatenate([batch.rows for batch in again]), whole)
    episodes = np.concatenate([batch.episode for batch in again])
    np.testing.assert_array_equal(episodes, whole // 7)
    changed = table.set_column(3, "reward", pa.array(np.r_[np.ones(n - 1), 2.0]))
    same = open_log(pl.from_arrow(table), discount=0.9, targets=[])
    assert identity_of(log) != identity_of(open_log(changed, discount=0.9, targets=[]))
    assert identity_of(log) == identity_of(open_log(table, discount=0.9, targets=[]))
    assert same.rows == n


@pytest.fixture(scope="module", params=["arrow", "hdf5"])
def walks(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A Minari data set of ten walks that end at +-3 or after 5 steps, written and read back.

    Infos are those of a recorded environment: the first entry comes from the reset, the next ones
    hold the probability of the action that led there.
    """
    import minari
    from minari.data_collector import EpisodeBuffer

    rng = np.random.default_rng(0)
    buffers = []
    for _ in range(10):
        x, chances = [0], [1.0]
        steps: list[int] = []
        while abs(x[-1]) < 3 and len(steps) < 5:
            steps.append(int(rng.random() < 0.75))
            chances.append(0.25 + 0.5 * steps[-1])
            x.append(x[-1] + 2 * steps[-1] - 1)
        n = len(steps)
        buffers.append(
            EpisodeBuffer(
                observations=[np.array([x[t], t], dtype=np.float32) for t in range(n + 1)],
                actions=steps,
                rewards=[float(place) for place in x[1:]],
                terminations=[abs(place) == 3 for place in x[1:]],
                truncations=[t == 5 for t in range(1, n + 1)],
                infos={
                    "pscore": [np.array([chance]) for chance in chances],
                    "target_probs_new": [
                        np.array([0.125 * t, 1 - 0.125 * t]) for t in range(n + 1)
                    ],
                },
            )
        )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINARI_DATASETS_PATH", str(tmp_path_factory.mktemp("minari")))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Minari misses author, environment and the like
            minari.create_dataset_from_buffers(
                "walk/test-v0",
                buffers,
                observation_space=gym.spaces.Box(-9, 9, (2,), dtype=np.float32),
                action_space=gym.spaces.Discrete(2),
                data_format=request.param,
            )
        yield minari.load_dataset("walk/test-v0")


def half(obs: Any, action: Any) -> Any:
    return np.full(len(obs), 0.5)


def expected_walks(data: Any) -> list[Transition]:
    found: list[Transition] = []
    for number, episode in enumerate(data.iterate_episodes()):
        for t, action in enumerate(episode.actions):
            stop = bool(episode.terminations[t])
            found.append(
                Transition(
                    len(found), number, t == 0, tuple(episode.observations[t].tolist()),
                    None if stop else tuple(episode.observations[t + 1].tolist()),
                    float(episode.rewards[t]), 0.0 if stop else 0.9, 0.25 + 0.5 * int(action),
                    (0.5,), int(action),
                )
            )  # fmt: skip
    return found


@pytest.mark.parametrize("batch_rows", thinned([3, 1000], 2))
def test_minari(walks: Any, batch_rows: int) -> None:
    expected = expected_walks(walks)
    assert {t.next_obs is None for t in expected} == {True, False}
    given: Any
    for given in (walks, "minari:walk/test-v0", f"minari:{Path(walks.storage.data_path).parent}"):
        log = open_log(given, discount=0.9, targets={"half": half}, batch_rows=batch_rows)
        assert log.rows == len(expected) and log.n_obs == 2
        assert transitions(log.batches()) == expected
        assert log.left_out == 0
    parts = log.parts(3)
    assert len(parts) == 3
    assert [t for part in parts for t in transitions(part.batches())] == expected
    assert log.sample(4).shape == (4, 2)
    some = walks.filter_episodes(lambda episode: episode.id % 2 == 0)
    assert sum(map(len, open_log(some, discount=0.9, targets=[]).batches())) == some.total_steps
    assert identity_of(open_log(some, discount=0.9, targets=[])) != identity_of(log)


def test_minari_with_a_policy_function(walks: Any) -> None:
    log = open_log(walks, discount=0.9, targets={"half": half}, behavior=half)
    for batch in log.batches():
        assert batch.behavior_prob is not None and (batch.behavior_prob == 0.5).all()


def test_minari_with_probabilities_of_all_actions(walks: Any) -> None:
    """From the infos, whose first entry is of the reset; or from a function, also past a cut."""
    log = open_log(walks, discount=0.9, columns={"behavior_prob": "pscore"})
    assert (log.whole, log.n_actions) == (["new"], 2)
    batches = list(log.batches())
    for b in batches:
        assert b.probs is not None and b.action is not None
        first = 0.125 * (b.obs[: len(b), 1] + 1.0)  # an entry belongs to the step that led to it
        np.testing.assert_allclose(b.probs[: len(b), 0, 0], first)
        np.testing.assert_allclose(b.target_prob[0], np.where(b.action == 0, first, 1.0 - first))

    def careful(obs: Any) -> Any:
        right = 0.5 + 0.1 * obs[:, 0]
        return np.stack([1.0 - right, right], axis=1)

    for b in open_log(walks, discount=0.9, targets={"careful": careful}).batches():
        assert b.probs is not None
        np.testing.assert_array_equal(b.probs[:, 0], careful(b.obs))


def test_minari_that_is_not_there(walks: Any) -> None:
    with pytest.raises(InputError, match=r"'no/such-v0' cannot be opened .*minari list local"):
        open_log("minari:no/such-v0", discount=0.9)


def test_a_log_is_read_without_pandas_and_minari(tmp_path: Path) -> None:
    """The one takes a second where it is installed; that the other is missing is said plainly."""
    log = sample_log(tmp_path / "log.parquet")
    code = (
        "import sys; sys.modules['minari'] = None\n"
        "from steadytd.logs.log import open_log\n"
        f"rows = sum(map(len, open_log({str(log)!r}, discount=0.9).batches()))\n"
        "print(rows > 0, 'pandas' in sys.modules)\n"
        "try: open_log('minari:a/b-v0', discount=0.9)\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(
        "True False\nInputError Minari data sets need the package minari: pip install"
    )
