"""How often trusted answers are right, on logs of worlds whose values are known exactly.

The worlds of `benchmarks/worlds`: some were used to make the rule of trust, the others were set
aside before it was written (`fresh`, `later`, `last`, `unended`, `unseen`, `sealed` and
`reserved`: before its seven changes); they are counted apart. An answer is right if its interval
holds the true value; a decision (better or worse than the policy that made the log) if it is true.
Of `drawn` and `drawn-kept` every log has another world; they are counted by family and by features.

    python benchmarks/trust.py [--logs 60] [--first 5000] [--part set-aside] [--quick] [--json]

`--quick` takes one log of one world of each part, to see that everything runs.

`--range` tells `st.evaluate` the range of rewards of each world, and `--horizon N` how long what is
not in the log can last.

`--learner drl_q` counts how often the interval of another learner holds the truth. None is trusted.

`--prototype` grades the slow reference (`benchmarks/worlds/rule.py`) instead of `st.evaluate`.

`--estimate usual` (that of `behavior="estimate"`) or `--estimate logistic` takes the probabilities
from the logs, and the targets know no more than the logs show. It is stated that nothing is hidden,
which is false in worlds where the behaviour knows more.

`--blur` moves all observations a little by chance, so that none comes again, as with measured ones;
worlds whose features count observations (`onehot`) are left out.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a script sees its own folder only

from benchmarks.worlds import (
    DEVELOPMENT,
    DRAWN,
    DRAWN_KEPT,
    FRESH,
    LAST,
    LATER,
    RESERVED,
    SEALED,
    SET_ASIDE,
    UNENDED,
    UNSEEN,
    World,
)  # fmt: skip

DRAWN_PARTS = {"drawn": DRAWN, "drawn-kept": DRAWN_KEPT}
PARTS: dict[str, Mapping[str, Callable[..., World]]] = {
    "development": DEVELOPMENT, "set-aside": SET_ASIDE, "fresh": FRESH, "later": LATER,
    "last": LAST, "unended": UNENDED, "unseen": UNSEEN, "sealed": SEALED,
    "reserved": RESERVED, **DRAWN_PARTS,
}  # fmt: skip
CHUNK = 10  # logs of one task


class Said(NamedTuple):
    """What was said about one log."""

    lo: float
    hi: float
    trusted: bool
    better: bool
    worse: bool


class Task(NamedTuple):
    """Some logs of one world."""

    part: str
    world: str
    seeds: range
    prototype: bool
    ranged: bool = False
    horizon: int | None = None
    estimate: str | None = None
    learner: str | None = None
    blur: bool = False


@lru_cache(maxsize=8)
def world_of(part: str, name: str, estimate: str | None = None, seed: int = 0) -> World:
    """A world; of those that are drawn, that of a seed."""
    world = PARTS[part][name](*([seed] if part in DRAWN_PARTS else []))
    if estimate is None:
        return world
    obs = world.dynamics.obs
    same = (obs[:, None] == obs).all(axis=2)
    return replace(world, estimated=True, pi=same @ world.pi / same.sum(axis=1, keepdims=True))


def hides(world: World) -> bool:
    """Whether the behaviour looks at more than observations."""
    obs, mu = world.dynamics.obs, world.mu
    same = (obs[:, None] == obs).all(axis=2)
    return not np.allclose(same @ mu / same.sum(axis=1, keepdims=True), mu, atol=1e-9)


def _logistic() -> Any:
    linear, pipeline, scaling = (
        import_module(f"sklearn.{name}") for name in ("linear_model", "pipeline", "preprocessing")
    )
    regression = linear.LogisticRegression(max_iter=1000, random_state=0)
    return pipeline.make_pipeline(scaling.StandardScaler(), regression)


def by_product(world: World, seed: int, task: Task) -> Said:
    """What `st.evaluate` says."""
    import steadytd as st

    log = world.log(seed, whole=task.learner is not None, blur=task.blur)
    e: Any = st.evaluate(
        log, discount=world.discount, features=world.features,
        behavior=_logistic() if task.estimate == "logistic" else world.behavior, threads=1,
        nothing_hidden=task.estimate is not None,
        learners=[task.learner or "drl"], reward_range=world.reward_range if task.ranged else None,
        horizon=task.horizon,
    )  # fmt: skip
    if task.learner:
        (row,) = e.values.filter(learner=task.learner).to_dicts()
        return Said(row["lo"], row["hi"], trusted=False, better=False, worse=False)
    r = e.recommended["pi"]
    decision = e.compare("pi").decision
    return Said(r.lo, r.hi, r.trusted, decision == "better", decision == "worse")


def by_prototype(world: World, seed: int) -> Said:
    """What the slow reference says."""
    from benchmarks.worlds.checks import alarms, scores
    from benchmarks.worlds.drl import estimate, unit_of
    from benchmarks.worlds.rows import read
    from benchmarks.worlds.rule import answer, facts_of

    rows, stated = read(world, seed)
    target, own = estimate(rows)
    found = alarms(scores(rows, stated, unit_of(rows)))
    found += ["estimated"] * world.estimated
    a = answer(target, own, facts_of(rows, world.discount, tuple(found)))
    return Said(a.lo, a.hi, a.trusted, a.decision == "better", a.decision == "worse")


def groups(task: Task, world: World) -> list[str]:
    """Which sums a log of a world belongs to, besides that of its name."""
    kind = "endless" if world.endless else "episodic"
    more = f"probabilities {world.probabilities}"
    if task.estimate is not None:
        more = "more is looked at" if hides(world) else "nothing hidden"
    found = [kind, f"{kind}, {more}"]
    if task.part in DRAWN_PARTS:
        family, features = task.world.split()
        found += [f"{family}, {more}", f"{kind} {features}, {more}"]
    return [f"all {text}" for text in found]


def grade(task: Task) -> tuple[Task, dict[str, Counter[str]]]:
    """Count what is right among some logs of a world, by group."""
    told = partial(by_product, task=task)
    ask: Callable[[World, int], Said] = by_prototype if task.prototype else told
    counts: dict[str, Counter[str]] = {}
    for seed in task.seeds:
        world = world_of(task.part, task.world, task.estimate, _drawn_of(task, seed))
        truth, apart = world.truth, world.truth - world.behavior_truth
        said = ask(world, seed)
        found: Counter[str] = Counter()
        holds = said.lo <= truth <= said.hi
        decided = said.trusted and (said.better or said.worse)
        found["logs"] += 1
        found["covered"] += holds
        found["trusted"] += said.trusted
        found["right"] += said.trusted and holds
        found["decided"] += decided
        found["decided_right"] += decided and (apart > 0.0 if said.better else apart < 0.0)
        for group in (task.world, *groups(task, world)):
            counts.setdefault(group, Counter()).update(found)
    return task, counts


def _drawn_of(task: Task, seed: int) -> int:
    """The seed of the world: worlds that are not drawn are built once."""
    return seed if task.part in DRAWN_PARTS else 0


def tasks(asked: argparse.Namespace) -> list[Task]:
    """All logs, in parts that take about as long as each other."""
    parts = list(PARTS) if asked.part == "all" else [asked.part]
    last = asked.first + asked.logs
    how = asked.prototype, asked.range, asked.horizon, asked.estimate, asked.learner, asked.blur
    return [
        Task(part, name, range(first, min(first + CHUNK, last)), *how)
        for part in parts
        for name in names(part, asked)
        for first in range(asked.first, last, CHUNK)
    ]


def names(part: str, asked: argparse.Namespace) -> Iterator[str]:
    """The worlds of a part that are asked for."""
    found = (
        name
        for name in PARTS[part]
        if not asked.worlds or any(text in name for text in asked.worlds)
        if not (asked.blur and counts_observations(part, name))
    )
    return islice(found, 1 if asked.quick else None)


def counts_observations(part: str, name: str) -> bool:
    """Whether the features of a world need observations that come again."""
    return str(world_of(part, name).features).startswith("onehot")


def gathered(results: Iterable[tuple[Task, dict[str, Counter[str]]]]) -> list[dict[str, Any]]:
    """One row per world, then one per kind of world and part."""
    sums: dict[tuple[str, str], Counter[str]] = {}
    for task, counts in results:
        for group, found in counts.items():
            sums.setdefault((task.part, group), Counter()).update(found)
    order = [(part, name) for part in PARTS for name in PARTS[part] if (part, name) in sums]
    order += sorted(key for key in sums if key not in set(order))
    return [{"part": part, "world": name, **sums[part, name]} for part, name in order]


def main() -> None:
    """Evaluate all logs and print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--logs", type=int, default=60, help="logs of each world")
    parser.add_argument("--first", type=int, default=5000, help="the first log's seed")
    parser.add_argument("--part", choices=[*PARTS, "all"], default="all")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--prototype", action="store_true", help="grade the slow reference")
    parser.add_argument("--range", action="store_true", help="state the range of rewards")
    parser.add_argument("--horizon", type=int, help="with --range: the most steps of an episode")
    parser.add_argument("--estimate", choices=["usual", "logistic"], help="no logged probabilities")
    parser.add_argument("--learner", help="count how often the interval of this one is right")
    parser.add_argument("--blur", action="store_true", help="no observation comes again")
    parser.add_argument("--quick", action="store_true", help="one log of one world of each part")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("worlds", nargs="*", help="only worlds whose names contain one of these")
    asked = parser.parse_args()
    if asked.blur and asked.prototype:
        parser.error("--blur is for st.evaluate: leave --prototype out")
    if asked.quick:
        asked.logs, asked.processes = 1, 1
    console = Console(stderr=asked.json)
    todo = tasks(asked)
    if not todo:
        parser.error("no world is left: --part, --blur and the names given leave none")
    rows = gathered(
        track(graded(todo, asked.processes), "logs", len(todo), console=Console(stderr=True))
    )
    if asked.json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return
    for part in PARTS:
        mine = [row for row in rows if row["part"] == part]
        if mine:
            console.print(_table(part, mine))


def graded(todo: list[Task], processes: int) -> Iterator[tuple[Task, dict[str, Counter[str]]]]:
    """What was found, as it comes; one process is this one."""
    if processes == 1:
        yield from map(grade, todo)
        return
    with multiprocessing.get_context("spawn").Pool(processes, _one_thread) as pool:
        yield from pool.imap_unordered(grade, todo)


def _one_thread() -> None:
    """Processes share the cores, not threads."""
    threadpool_limits(1, "blas")


def _table(part: str, rows: list[dict[str, Any]]) -> Table:
    numbers = ("logs", "covered", "trusted", "right", "share", "decided", "right")
    table = Table("world", *numbers, title=f"{part} worlds")
    for row in rows:
        c = Counter(row)
        share = f"{c['right'] / c['trusted']:.1%}" if c["trusted"] else "-"
        before = (str(c[key]) for key in ("logs", "covered", "trusted", "right"))
        table.add_row(row["world"], *before, share, str(c["decided"]), str(c["decided_right"]))
    return table


if __name__ == "__main__":
    main()
