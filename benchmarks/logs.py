"""How fast and how large the evaluation of a log is, next to PyArrow reading the same columns.

Four logs are written to a temporary directory: 10 million rows of 16 float32 numbers with four
targets (`raw` features), 100,000 rows like CartPole's with two targets (`rbf:300`), 28,700 rows
of a walk over 713 states with five targets (`onehot`), and 400,000 rows with five rewards and eight
segments (`poly:2`), which is evaluated with one and with all of these. Reading and
evaluating take turns in one process of its own, and the best of each counts; for PyArrow the best
of two ways to read (row groups, batches), neither of which holds the whole file in memory. Its
`read_table`, which does, is measured beside them.

    python benchmarks/logs.py [--rows 10000000] [--repeats 2] [--quick] [--json]

`--quick` takes the smallest sizes, to see that everything runs.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a script sees its own folder only

from benchmarks.figures import Figure, Group, Target, verdict
from benchmarks.timing import ROUGH, seconds

ROWS, EPISODE, CHUNK, ROW_GROUP, BATCH = 10_000_000, 100, 500_000, 131_072, 65_536
COLUMNS = [
    "episode_id", "t", "obs", "action", "reward", "terminated", "truncated", "behavior_prob",
]  # fmt: skip

AGAINST_ARROW, MEGABYTES, SECONDS = Target(6.0), Target(1000.0), Target(10.0)
STATES, STATE_ROWS, STATE_EPISODE, STATE_SECONDS = 713, 28_700, 41, Target(5.0)
SMALL_ROWS, SEVERAL_ROWS, REWARDS, SEGMENTS = 100_000, 400_000, 5, 8


def main() -> None:
    """Write the logs, measure, and print what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of the large log")
    parser.add_argument("--repeats", type=int, default=2, help="how often each is timed")
    parser.add_argument("--quick", action="store_true", help="the smallest sizes")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)  # the measuring process
    asked = parser.parse_args()
    if asked.measure:
        kind, path = asked.measure
        sys.stdout.write(json.dumps(measure(kind, Path(path), asked.repeats)))
        return
    small_rows, state_rows, several_rows = SMALL_ROWS, STATE_ROWS, SEVERAL_ROWS
    if asked.quick:
        asked.rows, asked.repeats, small_rows, state_rows = 2_000, 1, 2_000, 820
        several_rows = 2_000
    console = Console(stderr=asked.json)
    with tempfile.TemporaryDirectory() as folder, console.status("writing logs") as status:
        large, small = Path(folder) / "large.parquet", Path(folder) / "small.parquet"
        write_log(large, asked.rows, numbers=16, targets=4)
        write_log(small, small_rows, numbers=4, targets=2, walk=True)
        states = Path(folder) / "states.parquet"
        write_states(states, state_rows)
        several = Path(folder) / "several.parquet"
        write_log(several, several_rows, numbers=8, targets=2, several=True)
        status.update("measuring")
        logs = {"raw": large, "rbf:300": small, "onehot": states, "poly:2": several}
        found = {kind: _child(kind, path, asked) for kind, path in logs.items()}
    group = tables((asked.rows, small_rows, state_rows, several_rows), found)
    said = ROUGH if asked.quick else verdict([group])
    if asked.json:
        document = {
            "groups": [group.document()],
            "verdict": said,
            "measured": found,
        }
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        console.print(group.table(judged=not asked.quick), said)


def tables(rows: tuple[int, int, int, int], found: dict[str, dict[str, float]]) -> Group:
    group = Group("Evaluating a log", ("ours", "PyArrow reads", "value"))
    raw, rbf, onehot = found["raw"], found["rbf:300"], found["onehot"]
    ratio = raw["evaluate"] / raw["read"]
    sums = raw["sums"] / raw["read"]
    add = group.figures.append
    add(Figure(f"{rows[0]:,} rows x 16, 4 targets (s)", raw["evaluate"], raw["read"], ratio,
               AGAINST_ARROW))  # fmt: skip
    add(Figure("  the same, next to read_table (s)", raw["evaluate"], raw["table"],
               raw["evaluate"] / raw["table"]))  # fmt: skip
    add(Figure("  of that without online learners (s)", raw["sums"], raw["read"], sums))
    add(Figure("  our reader alone (s)", raw["log"], raw["read"], raw["log"] / raw["read"]))
    add(Figure("  peak memory (MB)", raw["peak"], None, raw["peak"], MEGABYTES))
    add(Figure(f"{rows[1]:,} rows, rbf:300, 2 targets (s)", rbf["evaluate"], rbf["read"],
               rbf["evaluate"], SECONDS))  # fmt: skip
    add(Figure("  peak memory (MB)", rbf["peak"], None, rbf["peak"]))
    add(Figure(f"{rows[2]:,} rows, {STATES} states, 5 targets (s)", onehot["evaluate"],
               onehot["read"], onehot["evaluate"], STATE_SECONDS))  # fmt: skip
    add(Figure("  peak memory (MB)", onehot["peak"], None, onehot["peak"]))
    several = found["poly:2"]
    one = several["1 reward"]
    add(Figure(f"{rows[3]:,} rows, poly:2, 2 targets, 1 reward (s)", one, None, one))
    for name in (f"{REWARDS} rewards", "1 segment", f"{SEGMENTS} segments"):
        add(Figure(f"  {name} (s; value: ratio to 1 reward)", several[name], None,
                   several[name] / one))  # fmt: skip
    group.notes.append("Values: ratio to PyArrow's time for the first four, else as they are.")
    return group


def _child(kind: str, path: Path, asked: argparse.Namespace) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", kind, str(path)]
    command += ["--repeats", str(asked.repeats)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def measure(kind: str, path: Path, repeats: int) -> dict[str, float]:
    """Seconds of reading, of our reader, of the sums and of the whole; memory in MB."""
    import steadytd as st
    from steadytd.logs.log import open_log

    if kind == "poly:2":
        return measure_several(path, repeats)
    names = [n for n in pq.ParquetFile(path).schema_arrow.names if n.startswith("target_prob")]

    def read() -> None:
        # without pre-buffering, which holds the whole file and makes a large one twice as slow
        file = pq.ParquetFile(path, pre_buffer=False, memory_map=True)
        for i in range(file.num_row_groups):
            file.read_row_group(i, columns=[*COLUMNS, *names])

    def read_batches() -> None:
        file = pq.ParquetFile(path, pre_buffer=False)
        for _ in file.iter_batches(BATCH, columns=[*COLUMNS, *names]):
            pass

    def table() -> None:
        pq.read_table(path, columns=[*COLUMNS, *names])

    def log() -> None:
        for _ in open_log(path, discount=0.99).batches(columns=("behavior_prob", "target_prob")):
            pass

    def evaluate(**options: Any) -> None:
        st.evaluate(path, discount=0.99, features=kind, **options)

    warm = pq.ParquetFile(path).read_row_group(0).slice(0, 20_000)
    st.evaluate(warm, discount=0.99, features="rbf:20" if kind == "rbf:300" else kind)
    evaluate()  # first and alone, so that the peak is ours
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    solved = ["perturbed_lstd", "lstd", "drl", "snpdis", "pdis"]
    works = {"read": read, "evaluate": evaluate, "log": log, "table": table}
    best = dict.fromkeys([*works, "sums"], float("inf"))
    for _ in range(repeats):
        for name, work in works.items():
            best[name] = min(best[name], seconds(work))
        best["read"] = min(best["read"], seconds(read_batches))
        best["sums"] = min(best["sums"], seconds(lambda: evaluate(learners=solved)))
    return {**best, "peak": peak / (1e6 if sys.platform == "darwin" else 1e3)}


def measure_several(path: Path, repeats: int) -> dict[str, float]:
    """Seconds with one reward, with several, and by one segment and several."""
    import steadytd as st

    def evaluate(rewards: int, by: str | None) -> float:
        signs = {f"reward_{i}": "+" for i in range(rewards)}
        options: Any = {"rewards": signs, "by": by, "learners": ["drl", "lstd"]}
        return seconds(lambda: st.evaluate(path, discount=0.99, features="poly:2", **options))

    works = {"1 reward": (1, None), f"{REWARDS} rewards": (REWARDS, None),
             "1 segment": (1, "all"), f"{SEGMENTS} segments": (1, "segment")}  # fmt: skip
    evaluate(1, None)
    return {name: min(evaluate(*of) for _ in range(repeats)) for name, of in works.items()}


def write_log(
    path: Path, rows: int, numbers: int, targets: int, walk: bool = False, several: bool = False
) -> None:
    """Episodes of 100 steps of a random walk (or of noise), ratios between 0.8 and 1.25.

    With `several` there are five rewards, and columns of one and of eight segments, in turn.
    """
    rng = np.random.default_rng(0)
    writer: pq.ParquetWriter | None = None
    for begin in range(0, rows, CHUNK):
        n = min(CHUNK, rows - begin)
        at = np.arange(begin, begin + n)
        obs = rng.standard_normal((n, numbers), dtype=np.float32)
        if walk:
            steps = np.float32(0.2) * obs.reshape(-1, EPISODE, numbers)
            obs = steps.cumsum(axis=1, dtype=np.float32).reshape(n, numbers)
        flat = pa.array(obs.reshape(-1))
        mu = rng.uniform(0.3, 0.7, n).astype(np.float32)
        columns: dict[str, Any] = {
            "episode_id": at // EPISODE,
            "t": (at % EPISODE).astype(np.int32),
            "obs": pa.FixedSizeListArray.from_arrays(flat, numbers),
            "action": rng.integers(0, 2, n).astype(np.int32),
            "reward": (1.0 + 0.1 * obs[:, 0]).astype(np.float32),
            "terminated": at % EPISODE == EPISODE - 1,
            "truncated": np.zeros(n, dtype=bool),
            "behavior_prob": mu,
        }
        for i in range(targets):
            columns[f"target_prob_{i}"] = mu * rng.uniform(0.8, 1.25, n).astype(np.float32)
        if several:
            columns |= {f"reward_{i}": 1.0 + 0.1 * obs[:, i] for i in range(REWARDS)}
            columns |= {"all": np.zeros(n, int), "segment": at // EPISODE % SEGMENTS}
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=ROW_GROUP)
    assert writer is not None
    writer.close()


def write_states(path: Path, rows: int) -> None:
    """Episodes of a walk along a row of states with two actions, for five targets."""
    rng = np.random.default_rng(0)
    shape = rows // STATE_EPISODE, STATE_EPISODE
    up, state = rng.random(shape) < 0.5, np.empty(shape)
    state[:, 0] = rng.integers(STATES, size=shape[0])
    for t in range(1, STATE_EPISODE):
        step = np.where(up[:, t - 1], 1, -1) + rng.integers(-1, 2, shape[0])
        state[:, t] = np.clip(state[:, t - 1] + step, 0, STATES - 1)
    at = np.arange(rows)
    columns: dict[str, Any] = {
        "episode_id": at // STATE_EPISODE,
        "t": (at % STATE_EPISODE).astype(np.int32),
        "obs": pa.FixedSizeListArray.from_arrays(pa.array(state.reshape(-1)), 1),
        "action": up.reshape(-1).astype(np.int32),
        "reward": np.sin(state.reshape(-1) / 50.0) + rng.normal(0.0, 0.1, rows),
        "terminated": at % STATE_EPISODE == STATE_EPISODE - 1,
        "truncated": np.zeros(rows, dtype=bool),
        "behavior_prob": np.full(rows, 0.5),
    }
    for i, chance in enumerate(np.linspace(0.3, 0.7, 5)):
        columns[f"target_prob_{i}"] = np.where(up.reshape(-1), chance, 1.0 - chance)
    pq.write_table(pa.table(columns), path)


if __name__ == "__main__":
    main()
