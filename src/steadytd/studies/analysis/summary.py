"""A study's findings in plain words, each sentence made from its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from steadytd.base.errors import listed
from steadytd.base.numbers import count, interval, number, ordinal, percent, rounded, with_error
from steadytd.runs.outcome import FAR, GROWING, UNSETTLED
from steadytd.studies.analysis.penalty import Penalty, penalties
from steadytd.studies.analysis.reading import Chapter, Prediction, Reading
from steadytd.studies.analysis.tables import LEVELS, Paired, resolution, short
from steadytd.studies.spec import Confirm

MEASURES = {"value": "value error", "projected_bellman": "projected Bellman error"}
ZERO = 1e-6  # errors below this share of the error at w0 count as zero
LISTED = 3  # learners that the sentence on speed names
CLOSE = 0.1  # a measured error within this share of theory's is called close


def criterion(confirm: Confirm) -> str:
    """What "best" means in this study."""
    measure = MEASURES[confirm.measure]
    return f"mean {measure} over the run" if confirm.by == "auc" else f"{measure} at the last step"


def size(reading: Reading) -> str:
    """How large the study is, and how much of it is there."""
    spec, results = reading.results.spec, reading.results
    names = {learner.name for task in spec.tasks for learner in task.learners}
    low, high = (f(task.steps for task in spec.tasks) for f in (min, max))
    length = count(high, "step") if low == high else f"{count(low)} to {count(high, 'step')}"
    text = (
        f"{count(len(names), 'learner')} in {count(spec.runs, 'configuration')} on "
        f"{count(len(spec.tasks), 'problem')}, with {count(spec.file.seeds, 'seed')} of {length} "
        f"each: {count(spec.updates, 'learner-update')}."
    )
    if not results.complete:
        text += (
            f" The study is incomplete: {percent(reading.share)} of it has run "
            f"({len(results.finished)} of {count(len(results.blocks), 'block')}). Everything below "
            "refers to that part."
        )
    if reading.foreign:
        text += (
            f" Left out: {count(reading.foreign, 'result file')} of another version of the study, "
            "a problem, a learner or the engine; run the study again."
        )
    return text


def sentences(chapter: Chapter, what: str) -> list[tuple[str, str]]:
    """The findings on one problem, most important first: topic and text."""
    texts = [("Least error", headline(chapter, what))]
    if not chapter.best:
        return texts
    if len(chapter.best) > 1:
        texts.append(("Order", order(chapter)))
    texts.append(("Speed", speed(chapter)))
    texts += [(f"Penalty of {p.penalised}", penalty_text(chapter, p)) for p in penalties(chapter)]
    texts.append(("Overflow", overflow(chapter)))
    texts += [("Theory", theory(chapter)), ("Fresh seeds", selection_bias(chapter))]
    return [(topic, text) for topic, text in texts if text]


def headline(chapter: Chapter, what: str) -> str:
    """Which learner has the least error, and by how much."""
    if not chapter.best:
        return f"Every configuration of every learner on {chapter.label} overflowed in some run."
    groups, first = chapter.groups, chapter.best[0]
    name, mean = first.algorithm, first.measured
    seeds = count(mean.seeds, "fresh seed" if chapter.fresh else "seed")
    if mean.diverged:
        return (
            f"Every learner at its best overflowed on some of the seeds, {name} on the fewest: "
            f"{mean.diverged} of {seeds}."
        )
    value = with_error(mean.value, mean.stderr)
    tried = f"{seeds}, best of {count(first.configurations, 'configuration')}"
    merged = _merged(chapter, groups[0])
    if len(groups[0]) == 1:
        text = f"{name} has the least {what}: {value} ({tried})"
    elif len(merged) == 1:
        same = f"{listed(groups[0])} are the same update here"
        text = f"{same} and have the least {what}: {value} ({tried})"
    else:
        text = (
            f"{listed(merged)} cannot be told apart at the top; the least {what} is {value} "
            f"({name}, {tried})"
        )
    if len(groups) == 1:
        return f"{text}."
    second = next(b for b in chapter.best if b.algorithm == groups[1][0])
    pair, lost = chapter.pairs[second.algorithm, name], second.measured
    if pair.difference is None:
        overflowed = f"{lost.diverged} of {count(lost.seeds, 'seed')}"
        return f"{text}, while {second.algorithm} overflowed on {overflowed}."
    less = percent(pair.difference / lost.value)
    return f"{text}, {less} less than {second.algorithm} ({_difference(pair)})."


def _merged(chapter: Chapter, names: list[str]) -> list[str]:
    """The names of a group; learners that are the same update are one entry."""
    entries: list[list[str]] = []
    for name in names:
        twins = (e for e in entries if frozenset((name, e[0])) in chapter.same)
        entry = next(twins, None)
        if entry is None:
            entries.append([name])
        else:
            entry.append(name)
    return [e[0] if len(e) == 1 else f"{listed(e)} (the same update here)" for e in entries]


def _difference(pair: Paired) -> str:
    """A paired difference with its interval and its adjusted p-value."""
    if pair.difference is None or pair.low is None or pair.high is None or pair.p is None:
        return "one seed"
    return (
        f"paired difference {rounded(pair.difference, (pair.high - pair.low) / 2.0)}, 95 % "
        f"interval {interval(pair.low, pair.high)}, {p_value(pair.p)} after Holm's correction for "
        f"{count(pair.comparisons, 'comparison')}"
    )


def p_value(p: float) -> str:
    """A p-value for reading.

    >>> p_value(0.0312), p_value(1e-9)
    ('p = 0.031', 'p < 0.0001')
    """
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"


def order(chapter: Chapter) -> str:
    """The ranking with ties."""
    parts, place = [], 1
    for group in chapter.groups:
        parts.append(f"{place}. {' = '.join(_merged(chapter, group))}")
        place += len(group)
    text = "; ".join(parts)
    note = " (=: cannot be told apart from the first of its group)" if " = " in text else ""
    return f"{text}{note}."


def speed(chapter: Chapter) -> str:
    """How soon the error is below a tenth, a hundredth, a millionth of that at w0."""
    task, parts = chapter.task, []
    length = count(task.steps, "step")
    for i, level in enumerate(LEVELS):
        found = {b.algorithm: chapter.reach[b.algorithm][i].step for b in chapter.best}
        reached = sorted((step, name) for name, step in found.items() if step is not None)
        where = f"Below {level}{'' if i else ' of the error at w0'}"
        if not reached:
            parts.append(f"{where}: no learner in {length}.")
            break  # below a smaller share neither
        text = listed([f"{name} by step {step:,}" for step, name in reached[:LISTED]])
        if len(reached) > LISTED:
            text += f", {len(reached) - LISTED} more by step {reached[-1][0]:,}"
        if missed := len(found) - len(reached):
            text += f"; {missed} of {count(len(found), 'learner')} not in {length}"
        parts.append(f"{where}: {text}.")
    return (
        f"{' '.join(parts)} (Median over the seeds, each learner at its best setting; the error is "
        f"recorded {resolution(task.every, task.per_decade)}.)"
    )


def overflow(chapter: Chapter) -> str:
    """Which learners overflow, grow, or have not settled: `runs.outcome` defines the words."""
    import polars as pl

    lost = chapter.configurations.filter(pl.col("diverged_share") > 0.0)
    parts = [_overflow(chapter, len(lost)) if len(lost) else "No run of the grid overflowed."]
    if chapter.far:
        others = f"{count(chapter.far, 'configuration')} without overflow"
        parts.append(f"{others} ended some run with more than {FAR:g} times the error at w0.")
    for word in (GROWING, UNSETTLED):
        ends = {b.algorithm: b.outcomes for b in chapter.best if word in b.outcomes}
        if ends:
            runs = [f"{x} in {e.count(word)} of {count(len(e), 'run')}" for x, e in ends.items()]
            parts.append(f"{word.capitalize()} at its best setting: {listed(runs)}.")
    return " ".join(parts)


def _overflow(chapter: Chapter, lost: int) -> str:
    shares = {b.algorithm: 1.0 - b.never_diverged / b.configurations for b in chapter.best}
    shares |= dict.fromkeys(chapter.failed, 1.0)
    total = count(len(chapter.configurations), "configuration")
    text = f"{lost:,} of {total} of the grid overflowed in some run"
    most, least = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
    if shares[most] > shares[least]:
        text += (
            f", from {percent(shares[least])} of {least}'s to {percent(shares[most])} of {most}'s"
        )
    if chapter.failed:
        text += f"; so did every configuration of {listed(chapter.failed)}"
    if never := [name for name, share in shares.items() if share == 0.0]:
        text += f"; no run of {listed(never)} did"
    return f"{text}."


def diverges_from(chapter: Chapter, algorithm: str) -> str:
    """The smallest step size at which some configuration of a learner overflowed, for reading."""
    import polars as pl

    lost = chapter.configurations.filter(
        (pl.col("algorithm") == algorithm) & (pl.col("diverged_share") > 0.0)
    )
    if not len(lost):
        return "never"
    smallest: Any = lost["alpha"].min() if "alpha" in lost.columns else None
    return "yes" if smallest is None else f"alpha {short(smallest)}"


def penalty_text(chapter: Chapter, found: Penalty) -> str:
    """What a penalty adds, and what it costs."""
    plain, penalised = found.plain, found.penalised
    texts = []
    if chapter.of(penalised) is not None:
        overflowed = f"Every configuration of {plain} overflowed; {penalised} has some that do not."
        texts.append(overflowed if chapter.of(plain) is None else _with_and_without(chapter, found))
    texts.append(_by_eta(found))
    if found.step_sizes:
        texts.append(
            f"Both share {count(found.step_sizes, 'step size')}. {plain} improves on w0 at "
            f"{found.plain_useful} of them, {penalised} (with its best penalty) at "
            f"{found.penalised_useful}; {found.plain_steady} and {found.penalised_steady} of them "
            "never overflow."
        )
    seen = {name: chapter.theory.get(name) for name in (plain, penalised)}
    known = [_fixed_point(name, x) for name, x in seen.items() if x is not None]
    if len(known) == 2:
        texts.append(f"Theory, at the best settings: {'; '.join(known)}.")
    return " ".join(texts)


def _with_and_without(chapter: Chapter, found: Penalty) -> str:
    """The learner with the penalty at its best beside the one without."""
    best = {b.algorithm: b for b in chapter.best}
    name, plain, own = found.plain, best[found.plain], best[found.penalised]
    place = list(best).index(found.penalised) + 1
    text = (
        f"{found.penalised} comes {ordinal(place)} of {len(best)} with {own.settings} (best of "
        f"{count(own.configurations, 'configuration')}): "
    )
    pair = chapter.pairs[found.penalised, name]
    if pair.verdict == "identical":
        return f"{text}it is the same update as {name} at its best here."
    if pair.difference is None:
        lost = f"{own.measured.diverged} and {plain.measured.diverged}"
        return f"{text}on {count(pair.seeds, 'seed')} it and {name} overflowed {lost} times."
    if pair.verdict in ("same", "unknown"):
        return f"{text}it cannot be told apart from {name} at its best ({_difference(pair)})."
    share = percent(abs(pair.difference) / plain.measured.value)
    side = "below" if pair.difference < 0.0 else "above"
    tried = count(plain.configurations, "configuration")
    return (
        f"{text}its error is {share} {side} that of {name} at its best, of {tried} "
        f"({_difference(pair)})."
    )


def _by_eta(found: Penalty) -> str:
    """How many of the penalties did better on the grid than none, and the best of them."""
    without, *tried = found.rows
    better = sum(row.error < without.error for row in tried)
    best = min(tried, key=lambda row: row.error)
    least = "overflowed" if np.isinf(best.error) else number(best.error)
    none = f"without ({found.plain}: {number(without.error)})"
    first, last, eta = (short(row.eta or 0.0) for row in (tried[0], tried[-1], best))
    if len(tried) == 1:
        side = "below" if better else "not below"
        return f"On the grid the least error with eta {eta} is {least}, {side} that {none}."
    return (
        f"On the grid, {better} of {len(tried)} values of eta (from {first} to {last}) have a "
        f"smaller least error than {none}. The least of all is {least}, at eta {eta}."
    )


def _fixed_point(name: str, seen: Prediction) -> str:
    if seen.asymptote is None:
        return f"the mean update of {name} is unstable"
    partly = "" if seen.stable == 1.0 else f" (stable in {percent(seen.stable)} of the instances)"
    return f"the fixed point of {name} has error {number(seen.asymptote)}{partly}"


def theory(chapter: Chapter) -> str:
    """How well the fixed point's error predicts the error at the end; empty: no such learner."""
    sides: dict[str, list[str]] = {"close": [], "above": [], "below": []}
    for b in chapter.best:
        seen = chapter.theory.get(b.algorithm)
        if seen is None or seen.asymptote is None or seen.stable < 1.0:
            continue
        noise = min(b.final.stderr or 0.0, CLOSE * seen.asymptote)  # no excuse for wild runs
        off = b.final.value - seen.asymptote
        close = abs(off) <= max(CLOSE * seen.asymptote, 2.0 * noise, ZERO * chapter.start)
        sides["close" if close else "above" if off > 0.0 else "below"].append(b.algorithm)
    total = sum(map(len, sides.values()))
    if not total:
        return ""
    text = (
        f"For {len(sides['close'])} of the {count(total, 'learner')} that are stable at their best "
        f"settings, the final error is within {percent(CLOSE)} of the error of the fixed point. "
        f"Two standard errors (at most {percent(2.0 * CLOSE)}) or a millionth of the error at w0 "
        "also count as agreement."
    )
    ends = [f"{listed(names)} end{'s' if len(names) == 1 else ''} {side} it"
            for side, names in sides.items() if names and side != "close"]  # fmt: skip
    if ends:
        text += (
            f" {'; '.join(ends)} (the fixed point leaves out the noise of a constant step size "
            "and the length of the run)."
        )
    return text


def selection_bias(chapter: Chapter) -> str:
    """What the rerun on fresh seeds changed; empty: nothing to compare."""
    changes = [(b.bias / b.grid.value, abs(b.bias / b.bias_stderr))
               for b in chapter.best
               if b.bias is not None and b.bias_stderr and b.grid.value > 0.0]  # fmt: skip
    if not chapter.fresh or not changes:
        return ""
    shares, sizes = np.array(changes).T
    middle = float(np.median(shares))
    whole = len(changes) == len(chapter.best)
    some = "" if whole else f" of the {len(changes)} that can be compared"
    instances = " and instances" if chapter.task.family else ""
    return (
        f"On fresh seeds the error of the median learner{some} is {percent(abs(middle))} "
        f"{'above' if middle > 0.0 else 'below'} its error on the grid, and none moved by more "
        f"than {sizes.max():.2g} standard errors. Selection on the grid makes its values too good; "
        f"other streams{instances} move them either way."
    )


def caveats(reading: Reading, chapter: Chapter) -> list[str]:
    """What a reader should not conclude."""
    texts, table = [], chapter.configurations
    edges: dict[str, list[str]] = {}
    for b in chapter.best:
        for name, side in b.edges:
            edges.setdefault(f"{side} {name}", []).append(b.algorithm)
    if edges:
        ordered = sorted(edges, key=lambda where: (not where.endswith("alpha"), where))
        found = "; ".join(f"{where} for {listed(edges[where])}" for where in ordered)
        texts.append(
            f"Some best values lie at the edge of the grid, a wider one may do better: {found}."
        )
    if not chapter.fresh and chapter.best:
        texts.append(
            "There is no complete rerun on fresh seeds. The errors shown are those by which the "
            "configurations were chosen, so they are too good."
        )
    planned = reading.results.spec.file.seeds
    if partial := int((table["seeds"] < planned).sum()):
        texts.append(f"Only some of the {planned} seeds: {count(partial, 'configuration')}.")
    every = chapter.task.learners
    if len(table) < len(every):
        absent = sorted({x.name for x in every} - set(table["algorithm"]))
        note = f"; none of {listed(absent)}" if absent else ""
        total = count(len(every), "configuration")
        texts.append(f"{len(table):,} of {total} are there{note}.")
    return texts
