"""A run in words and rows: what the terminal, `print` and the page share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from steadytd.base.wording import count, figures
from steadytd.engine.law import AUTO
from steadytd.engine.learner import Learner, parse_params
from steadytd.runs.outcome import GROWING, OVERFLOWED, SETTLED, UNSETTLED, ended
from steadytd.runs.result import Result

COLUMNS = ("learner", ">mean", ">final", "=ended")


def title(r: Result) -> str:
    """What was run, and how much of it."""
    size = f"{int(r.steps[-1]):,} steps, {count(len(r.seeds), 'run')}"
    return f"{r.problem.name}: error over {size} (mean ± standard error)"


def label(learner: Learner, asked: str) -> str:
    """The learner's text; a number that was chosen stands behind its "auto", with few digits.

    >>> import steadytd as st
    >>> r = st.run("three_state", "perturbed_td:alpha=0.01,eta=auto", steps=10)
    >>> label(r.learners[0], r.asked[0])
    'perturbed_td:alpha=0.01,eta=auto (0.5143)'
    """
    name, _, rest = asked.partition(":")
    chosen = {k: v for k, v in parse_params(name, rest).items() if v == AUTO}
    if not chosen:
        return str(learner)
    parts = [
        f"{key}={AUTO} ({learner[key]:.4g})" if key in chosen else f"{key}={value}"
        for key, value in parse_params(name, rest).items()
    ]
    return f"{name}:{','.join(parts)}"


def labels(r: Result) -> list[str]:
    """Every learner's label; no two are the same."""
    found = [label(one, asked) for one, asked in zip(r.learners, r.asked, strict=True)]
    twice = {text for text, times in Counter(found).items() if times > 1}
    return [str(one) if text in twice else text
            for one, text in zip(r.learners, found, strict=True)]  # fmt: skip


def rows(r: Result) -> list[dict[str, Any]]:
    """One row per learner: its label, errors for reading, and how its runs ended."""
    return [
        {
            "learner": text,
            "mean": figures(row["auc"], row["auc_stderr"]),
            "final": figures(row["final"], row["final_stderr"]),
            "ended": ended(words),
        }
        for text, words, row in zip(labels(r), r.outcomes, r.summary.to_dicts(), strict=True)
    ]


def headline(r: Result) -> str:
    """Who settled and who did not, each learner by its name where no other has it.

    >>> import steadytd as st
    >>> headline(st.run("three_state", ["td:alpha=0.1", "lstd"], steps=20_000, seeds=2))
    'Settled: lstd. Growing: td.'
    """
    laws = Counter(learner.name for learner in r.learners)
    groups: dict[str, list[str]] = {}
    for learner, text, words in zip(r.learners, labels(r), r.outcomes, strict=True):
        name = learner.name if laws[learner.name] == 1 else text
        groups.setdefault(ended(words), []).append(name)
    ordered = sorted(groups.items(), key=lambda group: group[0] != SETTLED)
    return " ".join(f"{word[0].upper()}{word[1:]}: {', '.join(names)}." for word, names in ordered)


def sentences(r: Result) -> list[str]:
    """What is to be said of every learner that has not settled with every seed."""
    found = []
    table = zip(labels(r), r.outcomes, r.summary.to_dicts(), r.errors, strict=True)
    for place, (text, words, row, errors) in enumerate(table):
        lost, growing = words.count(OVERFLOWED), words.count(GROWING)
        if lost:
            when = f", first at step {row['first_divergence']:,}" if row["diverged"] else ""
            found.append(f"{text}: overflowed in {of(lost, words)}{when}.")
        if growing:
            last = [float(e[-1]) for e, word in zip(errors, words, strict=True) if word == GROWING]
            found.append(
                f"{text}: growing in {of(growing, words)}: the error ends at up to "
                f"{figures(max(last))}, {figures(float(errors[:, 0].mean()))} at the start."
            )
        if moving := words.count(UNSETTLED):
            found.append(f"{text}: not settled in {of(moving, words)}: {r.unsettled(place)}.")
    return found


def of(some: int, runs: Sequence[str]) -> str:
    """A part of the runs.

    >>> of(1, ["growing"]), of(2, ["growing"] * 2), of(3, ["growing"] * 3), of(2, ["settled"] * 9)
    ('its run', 'both runs', 'all 3 runs', '2 of 9 runs')
    """
    if some == len(runs):
        return {1: "its run", 2: "both runs"}.get(some, f"all {some} runs")
    return f"{some} of {len(runs)} runs"
