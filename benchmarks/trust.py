"""How often trusted answers are right, on logs of worlds whose values are known.

The worlds of `benchmarks/worlds` are in two parts: "development", on which the rule of trust was
made, and "set aside", on which no number of it was chosen. Each part has worlds of several kinds:
finite, continuous, one-step, endless and drawn (every log has another world).

    python benchmarks/trust.py [--part "set aside"] [--kind continuous] [--logs 20] [--quick]

An answer is right if its interval holds the true value; a decision (better or worse than the policy
that made the log) if it is true. Shares of right answers and decisions are of trusted ones. The
width is the median width of trusted intervals, in units of 2 x 1.96 standard deviations of the
estimate over the logs of a world: 1 is the width of an ideal interval.

`--json FILE` writes one row per answer, and `--against FILE` compares with such rows of another
version on the same logs. `--features` replaces the features that worlds name. `--range` states the
range of rewards where a world knows it. `--average` grades rewards per step, of endless worlds, in
one stream or in as many as `--streams` says. `--estimate` takes probabilities from the logs.
`--learner drl_q` grades the intervals of another learner; none is trusted. `--quick` takes one log
per kind.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a script sees its own folder only

from benchmarks.worlds import KINDS, PARTS, get

Row = dict[str, Any]
CHUNK = 5  # logs of one task
FEWEST = 5  # logs that show a spread of estimates
IDEAL = 2 * 1.96
WIDE = 110  # characters of a line of a table, at least
COLUMNS = "answers, covered, trusted, right, decided right / wrong / un-, width"
COMPARED = "answers, trusted before, now, right before, now, decided (wrong), ratio, width"


class Task(NamedTuple):
    """Some logs of one world, and how they are evaluated."""

    part: str
    kind: str
    world: str
    seeds: range
    how: argparse.Namespace


def answers(task: Task, seed: int) -> Iterator[Row]:
    """What `st.evaluate` answers about one log."""
    import steadytd as st

    how = task.how
    world = get(task.part, task.kind, task.world, seed)
    if how.estimate:
        world = world.without_probabilities()
    more: dict[str, Any] = {"features": how.features} if how.features else {}
    if how.range and world.reward_range is not None:
        more["reward_range"] = world.reward_range
    known: dict[str, Any] = {"learners": [how.learner or "drl"]}
    truths, behavior = world.truths, world.behavior_truth
    if how.average:
        known, truths = {"average_reward": True, "discount": None}, dict(world.rates)
        behavior = truths.pop("behavior")
    streams = {"streams": how.streams} if how.streams > 1 else {}
    log = world.log(seed, whole=True) if how.learner else world.log(seed, **streams)
    e: Any = st.evaluate(
        log, **(world.arguments | more | known), threads=1, nothing_hidden=how.estimate,
    )  # fmt: skip
    for target, truth in truths.items():
        row: Row = {
            "part": task.part, "kind": task.kind, "world": task.world, "seed": seed,
            "features": more.get("features", world.arguments["features"]), "target": target,
            "truth": truth, "difference_truth": truth - behavior,
        }  # fmt: skip
        if how.learner:
            (found,) = e.values.filter(learner=how.learner, target=target).to_dicts()
            yield row | {k: found[k] for k in ("value", "lo", "hi")} | {
                "trusted": False, "decision": "undecided", "difference": None, "reasons": [],
            }  # fmt: skip
            continue
        r, d = e.recommended[target], e.compare(target)
        yield row | {
            "value": r.value, "lo": r.lo, "hi": r.hi, "trusted": r.trusted,
            "decision": d.decision, "difference": d.difference, "difference_lo": d.lo,
            "difference_hi": d.hi, "reasons": list(r.warnings),
        }  # fmt: skip


class Grades:
    """What rows show together; `spread` has the deviation of estimates by world and target."""

    def __init__(self, rows: list[Row], spread: dict[Any, float]) -> None:
        self.number = len(rows)
        self.trusted = [row for row in rows if row["trusted"]]
        self.right = sum(holds(row) for row in self.trusted)
        self.covered = sum(holds(row) for row in rows)
        decided = [row for row in self.trusted if row["decision"] != "undecided"]
        self.decided = len(decided)
        sign = {"better": 1.0, "worse": -1.0}
        self.decided_right = sum(
            sign[row["decision"]] * row["difference_truth"] > 0.0 for row in decided
        )
        self.decisions = f"{self.decided} ({self.decided - self.decided_right})"
        ideal = [(width(row), IDEAL * spread.get(group(row), 0.0)) for row in self.trusted]
        self.width = median(w / unit for w, unit in ideal if unit > 0.0)

    def cells(self) -> list[str]:
        """The columns of a table."""
        undecided = len(self.trusted) - self.decided
        decisions = f"{self.decided_right} / {self.decided - self.decided_right} / {undecided}"
        return [
            str(self.number), share(self.covered, self.number),
            share(len(self.trusted), self.number), share(self.right, len(self.trusted)),
            decisions, f"{self.width:.2f}",
        ]  # fmt: skip


def holds(row: Row) -> bool:
    """Whether the interval holds the true value."""
    return bool(row["lo"] <= row["truth"] <= row["hi"])


def width(row: Row) -> float:
    """The width of an interval."""
    return float(row["hi"] - row["lo"])


def group(row: Row) -> tuple[str, ...]:
    """What the logs of one world have in common."""
    return row["part"], row["kind"], row["world"], row["features"], row["target"]


def median(values: Iterable[float]) -> float:
    """NaN where there is none."""
    found = list(values)
    return float(np.median(found)) if found else float("nan")


def share(part: int, whole: int) -> str:
    """A percentage."""
    return f"{100.0 * part / whole:.1f} %" if whole else "-"


def spreads(rows: list[Row]) -> dict[Any, float]:
    """The standard deviation of estimates over logs; drawn worlds have one log each, hence none."""
    found = {}
    for key, same in groupby(sorted(rows, key=group), group):
        values = [row["value"] for row in same]
        if key[1] != "drawn" and len(values) >= FEWEST:
            found[key] = float(np.std(values, ddof=1))
    return found


def ratios(now: list[Row], before: dict[Any, Row]) -> list[str]:
    """Trust, decisions and widths next to those of another version on the same logs."""
    pairs = [(row, before[log_of(row)]) for row in now if log_of(row) in before]
    both = [(a, b) for a, b in pairs if a["trusted"] and b["trusted"]]
    one, other = Grades([a for a, _ in pairs], {}), Grades([b for _, b in pairs], {})
    ratio = median(width(a) / width(b) for a, b in both if width(b) > 0.0)
    change = f"{one.decided / other.decided:.2f}" if other.decided else "-"
    return [
        str(len(pairs)), share(len(other.trusted), other.number),
        share(len(one.trusted), one.number), share(other.right, len(other.trusted)),
        share(one.right, len(one.trusted)), f"{other.decisions} > {one.decisions}", change,
        f"{ratio:.2f}",
    ]  # fmt: skip


def log_of(row: Row) -> tuple[Any, ...]:
    """What makes two answers answers about the same log; features may differ."""
    return row["part"], row["kind"], row["world"], row["seed"], row["target"]


def tables(rows: list[Row], before: dict[Any, Row] | None) -> Iterator[Table]:
    """One table per part and kind, a row per world; then the sums."""
    numbers = (COLUMNS if before is None else COMPARED).split(", ")
    spread = spreads(rows)

    def cells(some: list[Row]) -> list[str]:
        return Grades(some, spread).cells() if before is None else ratios(some, before)

    sums = Table("all worlds", *numbers)
    for (part, kind), same in groupby(rows, lambda row: (row["part"], row["kind"])):
        of_kind = list(same)
        table = Table("world", *numbers, title=f"{part}: {kind}")
        for world, some in groupby(of_kind, lambda row: row["world"]):
            table.add_row(world, *cells(list(some)))
        sums.add_row(f"{part}: {kind}", *cells(of_kind))
        yield table
    for part in PARTS:
        whole = [row for row in rows if row["part"] == part]
        if whole:
            sums.add_row(part, *cells(whole), end_section=True)
    yield sums


def tasks(asked: argparse.Namespace) -> list[Task]:
    """All logs, in portions that take about as long as each other."""
    last = asked.first + asked.logs
    return [
        Task(part, kind, name, range(first, min(first + CHUNK, last)), asked)
        for part in PARTS
        if asked.part in (part, "all")
        for kind in PARTS[part]
        if asked.kind in (kind, "all")
        for name in names(part, kind, asked)
        for first in range(asked.first, last, CHUNK)
    ]


def names(part: str, kind: str, asked: argparse.Namespace) -> Iterator[str]:
    """The worlds that are asked for."""
    found = (
        name
        for name in PARTS[part][kind]
        if not asked.worlds or any(text in name for text in asked.worlds)
        if not (asked.estimate or asked.learner) or kind in ("finite", "endless", "drawn")
        if not asked.average or "endless" in name
    )
    return islice(found, 1 if asked.quick else None)


def rows_of(task: Task) -> list[Row]:
    """One row per log and target."""
    return [row for seed in task.seeds for row in answers(task, seed)]


def evaluated(todo: list[Task], processes: int) -> Iterator[list[Row]]:
    """Rows as they come; one process is this one."""
    if processes == 1:
        yield from map(rows_of, todo)
        return
    with multiprocessing.get_context("spawn").Pool(processes, _one_thread) as pool:
        yield from pool.imap(rows_of, todo)


def _one_thread() -> None:
    """Processes share the cores, not threads."""
    threadpool_limits(1, "blas")


def main() -> None:
    """Evaluate all logs and print the grades."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--logs", type=int, default=20, help="logs of each world")
    parser.add_argument("--first", type=int, default=5000, help="the first log's seed")
    parser.add_argument("--part", choices=[*PARTS, "all"], default="all")
    parser.add_argument("--kind", choices=[*KINDS, "all"], default="all")
    parser.add_argument("--features", help="instead of those that the worlds name")
    parser.add_argument("--range", action="store_true", help="state the range of rewards")
    parser.add_argument("--estimate", action="store_true", help="no logged probabilities")
    parser.add_argument("--learner", help="grade the intervals of this learner")
    parser.add_argument("--average", action="store_true", help="rewards per step")
    parser.add_argument("--streams", type=int, default=1, help="of endless worlds, with --average")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write one row per answer")
    parser.add_argument("--against", type=Path, metavar="FILE", help="rows to compare with")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--quick", action="store_true", help="one log of one world of each kind")
    parser.add_argument("worlds", nargs="*", help="only worlds whose names contain one of these")
    asked = parser.parse_args()
    if asked.quick:
        asked.logs, asked.processes = 1, 1
    todo = tasks(asked)
    if not todo:
        parser.error("no world is left: the part, the kind and the names given leave none")
    found = track(evaluated(todo, asked.processes), "logs", len(todo), console=Console(stderr=True))
    rows = [row for some in found for row in some]
    if asked.json:
        asked.json.write_text(json.dumps(rows), encoding="utf-8")
    before = None
    if asked.against:
        before = {log_of(row): row for row in json.loads(asked.against.read_text("utf-8"))}
    console = Console(width=max(Console().width, WIDE))
    for table in tables(rows, before):
        console.print(table)


if __name__ == "__main__":
    main()
