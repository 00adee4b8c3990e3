"""A run in words, as a table, as a picture and as a page: for terminal, `print` and browser."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

from steadytd.base.files import filling, write_whole
from steadytd.base.numbers import count, number, with_error
from steadytd.engine.law import AUTO
from steadytd.engine.learner import Learner
from steadytd.engine.settings import parse_params
from steadytd.report.figures import (
    LEAST,
    chosen_points,
    curves_chart,
    error_axis,
    heading,
    interval_ends,
    interval_note,
    least_note,
    save_figures,
    styled,
)
from steadytd.report.learning_curve import expected_layers
from steadytd.report.live import live, untitled
from steadytd.report.pages import page
from steadytd.report.palette import looks
from steadytd.report.text import Line, Table, table_of
from steadytd.runs.outcome import GROWING, MEANING, OVERFLOWED, SETTLED, UNSETTLED, ended
from steadytd.runs.result import Result, standard_errors

FIRST = 12  # learners, and
FEW = 3  # sentences, on the first screen of a terminal
FILES = (("curves.parquet", "every error"), ("summary.parquet", "the table below"))
REACH = 1e4  # times the error at the start: what grows further leaves the picture at its top


def title(r: Result) -> str:
    """What was run, and how much of it."""
    size = f"{count(int(r.steps[-1]), 'step')}, {count(len(r.seeds), 'run')}"
    return f"{r.problem.name}: error over {size} (mean ± standard error)"


def label(learner: Learner, asked: str) -> str:
    """The learner's text; a number that was chosen stands behind its "auto", with few digits.

    >>> import steadytd as st
    >>> r = st.run("three_state", "perturbed_td:alpha=0.01,eta=auto", steps=10)
    >>> label(r.learners[0], r.asked[0])
    'perturbed_td:alpha=0.01,eta=auto (0.5143)'
    """
    name, _, rest = asked.partition(":")
    params = parse_params(name, rest)
    if AUTO not in params.values():
        return str(learner)
    parts = [
        f"{key}={AUTO} ({number(float(learner[key]))})" if value == AUTO else f"{key}={value}"
        for key, value in params.items()
    ]
    return f"{name}:{','.join(parts)}"


def labels(r: Result) -> list[str]:
    """Every learner's label; no two are the same."""
    found = [label(one, asked) for one, asked in zip(r.learners, r.asked, strict=True)]
    times = Counter(found)
    return [str(one) if times[text] > 1 else text
            for one, text in zip(r.learners, found, strict=True)]  # fmt: skip


def rows(r: Result) -> list[dict[str, Any]]:
    """One row per learner: its label, errors for reading, and how its runs ended."""
    return [
        {
            "learner": text,
            "mean": error_text(row["auc"], row["auc_stderr"]),
            "final": error_text(row["final"], row["final_stderr"]),
            "ended": ended(outcomes),
        }
        for text, outcomes, row in zip(labels(r), r.outcomes, r.summary.to_dicts(), strict=True)
    ]


def answer(r: Result, *, full: bool = True) -> list[Line | Table]:
    """Who settled, every learner's errors, and why some have not settled."""
    found, notes = rows(r), [Line(text) for text in sentences(r)]
    heads = {"learner": "learner", "mean": ">mean", "final": ">final", "ended": "!ended"}
    size, some = (len(found), len(notes)) if full else (FIRST, FEW)
    left = [count(len(found) - size, "more learner")] * (len(found) > size)
    left += [count(len(notes) - some, "more sentence")] * (len(notes) > some)
    more = [Line(f"{' and '.join(left)}: --full.")] if left else []
    good = all(row["ended"] == SETTLED for row in found)
    first = Line(headline(r), "good" if good else "care")
    return [first, table_of(title(r), heads, found[:size]), *notes[:some], *more]


def error_text(value: float | None, stderr: float | None = None) -> str:
    """An error of runs; it is infinite where one of them overflowed."""
    return "overflowed" if value == float("inf") else with_error(value, stderr)


def headline(r: Result) -> str:
    """Who settled and who did not, each learner by its name where no other has it.

    >>> import steadytd as st
    >>> headline(st.run("three_state", ["td:alpha=0.1", "lstd"], steps=20_000, seeds=2))
    'Settled: lstd. Growing: td.'
    """
    laws = Counter(learner.name for learner in r.learners)
    groups: dict[str, list[str]] = {}
    for learner, text, outcomes in zip(r.learners, labels(r), r.outcomes, strict=True):
        name = learner.name if laws[learner.name] == 1 else text
        groups.setdefault(ended(outcomes), []).append(name)
    ordered = sorted(groups.items(), key=lambda group: group[0] != SETTLED)
    return " ".join(f"{word[0].upper()}{word[1:]}: {', '.join(names)}." for word, names in ordered)


def sentences(r: Result) -> list[str]:
    """A sentence for every way in which runs of a learner have not settled."""
    found = []
    table = zip(labels(r), r.outcomes, r.summary.to_dicts(), r.errors, strict=True)
    for place, (text, outcomes, row, errors) in enumerate(table):
        if lost := outcomes.count(OVERFLOWED):
            when = f", first at step {row['first_divergence']:,}" if row["diverged"] else ""
            found.append(f"{text}: overflowed in {part_of(lost, outcomes)}{when}.")
        last = [float(e[-1]) for e, one in zip(errors, outcomes, strict=True) if one == GROWING]
        if last:
            found.append(
                f"{text}: growing in {part_of(len(last), outcomes)}. The error is "
                f"{number(float(errors[:, 0].mean()))} at the start and up to {number(max(last))} "
                "at the end."
            )
        if moving := outcomes.count(UNSETTLED):
            found.append(
                f"{text}: not settled in {part_of(moving, outcomes)}: {r.unsettled(place)}."
            )
    return found


def part_of(some: int, runs: Sequence[str]) -> str:
    """A part of the runs.

    >>> part_of(1, ["growing"]), part_of(2, ["growing"] * 2), part_of(2, ["settled"] * 9)
    ('its run', 'both runs', '2 of 9 runs')
    """
    if some == len(runs):
        return {1: "its run", 2: "both runs"}.get(some, f"all {some} runs")
    return f"{some} of {len(runs)} runs"


def run_chart(r: Result, names: Sequence[str] = (), expected: bool = False) -> Any:
    """Error over steps; a line ends where a run of it overflows, with a sign at the top.

    The band is the 95 % interval of the mean (with one seed there is none). `names` are those of
    the learners in the picture. With `expected`, learning curves known before the run are thin.
    """
    names = list(names) or labels(r)
    points = _points(r, names)
    drawn = [{**p, "mean": max(p["mean"], LEAST)} for p in points if np.isfinite(p["mean"])]
    top = REACH * max(row["mean"] for row in drawn if row["step"] == 0)
    means = np.array([row["mean"] for row in drawn])
    axis = error_axis(means[means <= top])
    ends = interval_ends(means, np.array([row.pop("half") for row in drawn]), axis.log)
    for row, below, above in zip(drawn, *map(np.ndarray.tolist, ends), strict=True):
        inside = row["mean"] <= axis.high  # what is out of the picture has no band in it
        row["low"] = max(below, axis.low) if inside else row["mean"]
        row["high"] = min(above, axis.high) if inside else row["mean"]
    many = len(r.seeds) > 1
    note = f"mean of {len(r.seeds)} runs, {interval_note(axis.log)}" if many else "one run"
    note += least_note(p["mean"] for p in points)
    notes, layers = [note], []
    if expected and (curves := {names[i]: curve for i, curve in r.expected.items()}):
        notes.append(
            "thin: expected error, the root mean square; its shade reaches down to the bias"
        )
        layers = expected_layers(curves, axis)
    return curves_chart(
        drawn,
        looks(dict(zip(names, (learner.name for learner in r.learners), strict=True))),
        axis._replace(low=max(axis.low, LEAST)),
        heading(r.problem.name, notes if layers else note),
        band=("low", "high") if many else None,
        points=points,
        layers=layers,
    )


def _points(r: Result, names: list[str]) -> list[dict[str, Any]]:
    """The points of all lines: learner, step, mean, half the width of its interval.

    The last one of a line of which a run overflows is infinite.
    """
    chosen, seeds = chosen_points(r.steps), len(r.seeds)
    quantile = float(stdtrit(seeds - 1, 0.975)) if seeds > 1 else 0.0
    found: list[dict[str, Any]] = []
    for name, errors in zip(names, r.errors, strict=True):
        shown = np.ascontiguousarray(errors[:, chosen].T)  # [point, seed]
        finite = np.isfinite(shown).all(axis=1)
        last = len(finite) if finite.all() else int(np.argmin(finite))
        spread = standard_errors(shown[:last])
        for i, values, stderr in zip(chosen[:last], shown[:last], spread, strict=True):
            mean = float((values / seeds).sum())
            point = {"mean": mean, "half": quantile * (stderr or 0.0)}
            found.append({"learner": name, "step": int(r.steps[i]), **point})
        if last < len(finite):
            found.append({"learner": name, "step": int(r.steps[chosen[last]]), "mean": np.inf})
    return found


def write_run(r: Result, out: str | Path, *, command: str = "", pictures: bool = True) -> Path:
    """Write `run.html`, its picture (SVG, PNG, PDF) and what `Result.save` writes; the page's path.

    All of them appear together, or none does. Without `pictures` the picture is in the page only.
    """
    with filling(out) as made:
        chart = styled(run_chart(r, expected=True))
        save_figures({"curves": chart} if pictures else {}, made)
        r.write(made)
        html = page(
            "run.html",
            r=r,
            title=title(r),
            table=answer(r)[1],
            headline=headline(r),
            sentences=sentences(r),
            meaning=MEANING,
            curves=untitled(live("curves", chart, pictures)),
            command=command,
            files=FILES,
        )
        write_whole(made / "run.html", html)
    return Path(out) / "run.html"
