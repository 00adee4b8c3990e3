"""A study's findings in plain words, each sentence made from its numbers."""

from __future__ import annotations

import numpy as np

from steadytd.base.errors import listed
from steadytd.base.numbers import count, interval, number, ordinal, percent, with_error
from steadytd.runs.outcome import FAR, GROWING, UNSETTLED
from steadytd.studies.analysis.penalty import Penalty, penalties
from steadytd.studies.analysis.reading import Chapter, Reading
from steadytd.studies.analysis.speed import LEVELS, fastest, resolution
from steadytd.studies.analysis.tables import Best, Paired, short
from steadytd.studies.analysis.theory import Prediction
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
    spec = reading.results.spec
    names = {learner.name for task in spec.tasks for learner in task.learners}
    steps = sorted({task.steps for task in spec.tasks})
    length = f"{steps[0]:,} steps" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,} steps"
    text = (
        f"{count(len(names), 'learner')} in {count(spec.runs, 'configuration')} on "
        f"{count(len(spec.tasks), 'problem')}, with {count(spec.file.seeds, 'seed')} of {length} "
        f"each: {count(spec.updates, 'learner-update')}."
    )
    if not reading.results.complete:
        text += (
            f" The study is not complete: {percent(reading.share)} of it is there "
            f"({len(reading.results.finished)} of {len(reading.results.blocks)} blocks), and all "
            "that follows is about that part."
        )
    if reading.foreign:
        text += (
            f" Left out: {count(reading.foreign, 'result file')} of another version of the study, "
            "a problem, a learner or the engine; run the study again."
        )
    return text


def headline(chapter: Chapter, what: str) -> str:
    """Who wins, by how much."""
    if not chapter.best:
        return f"Every configuration of every learner on {chapter.label} overflowed in some run."
    groups, first = chapter.groups, chapter.best[0]
    fresh = "fresh " if chapter.fresh else ""
    if first.measured.diverged:
        return (
            f"Every learner at its best overflowed on some of the {fresh}seeds, {first.algorithm} "
            f"on the fewest: {first.measured.diverged} of {first.measured.seeds}."
        )
    value = with_error(first.measured.value, first.measured.stderr)
    tried = count(first.configurations, "configuration")
    seeds = f"{count(first.measured.seeds, f'{fresh}seed')}, best of {tried}"
    names = _merged(chapter, groups[0])
    if len(groups[0]) == 1:
        text = f"{first.algorithm} has the least {what}: {value} ({seeds})"
    elif len(names) == 1:
        text = (
            f"{listed(groups[0])} are the same update here and have the least {what}: "
            f"{value} ({seeds})"
        )
    else:
        text = (
            f"{listed(names)} cannot be told apart at the top; the least {what} is "
            f"{value} ({first.algorithm}, {seeds})"
        )
    if len(groups) > 1:
        second = chapter.of(groups[1][0])
        assert second is not None
        text += ", " + _lead(chapter.pairs[second.algorithm, first.algorithm], second)
    return text + "."


def _merged(chapter: Chapter, names: list[str]) -> list[str]:
    """The names of a group; learners that are the same update are one entry."""
    entries: list[list[str]] = []
    for name in names:
        for entry in entries:
            if frozenset((name, entry[0])) in chapter.same:
                entry.append(name)
                break
        else:
            entries.append([name])
    return [e[0] if len(e) == 1 else f"{listed(e)} (the same update here)" for e in entries]


def _lead(found: Paired, second: Best) -> str:
    if found.difference is None:
        lost = second.measured
        return f"while {second.algorithm} overflowed on {lost.diverged} of {lost.seeds} seeds"
    less = percent(found.difference / second.measured.value)
    return f"{less} less than {second.algorithm} ({_interval(found)})"


def _interval(found: Paired) -> str:
    """A paired difference with its interval and its adjusted p-value."""
    if found.difference is None or found.low is None or found.high is None or found.p is None:
        return "one seed"
    return (
        f"paired difference {number(found.difference)}, 95 % interval "
        f"{interval(found.low, found.high)}, {p_words(found.p)} after Holm's correction for "
        f"{count(found.comparisons, 'comparison')}"
    )


def p_words(p: float) -> str:
    """A p-value for reading.

    >>> p_words(0.0312), p_words(1e-9)
    ('p = 0.031', 'p < 0.0001')
    """
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"


def order(chapter: Chapter) -> str:
    """The ranking with ties."""
    parts, place, ties = [], 1, False
    for group in chapter.groups:
        names = _merged(chapter, group)
        parts.append(f"{place}. {' = '.join(names)}")
        place += len(group)
        ties = ties or len(names) > 1
    note = " (= means: cannot be told apart from the first of its group)" if ties else ""
    return f"{'; '.join(parts)}{note}."


def speed(chapter: Chapter) -> str:
    """How soon the error is below a tenth, a hundredth, a millionth of that at w0."""
    task, parts = chapter.task, []
    for i, name in enumerate(LEVELS):
        levels = [(b.algorithm, chapter.reach[b.algorithm][i]) for b in chapter.best]
        reached = fastest(levels)
        if not reached:
            start = "" if i else " of the error at w0"
            parts.append(f"Below {name}{start}: no learner in {task.steps:,} steps.")
            break  # below a smaller share neither
        text = listed([f"{learner} by step {x.step:,}" for learner, x in reached[:LISTED]])
        if len(reached) > LISTED:
            text += f", {len(reached) - LISTED} more by step {reached[-1][1].step:,}"
        if len(reached) < len(levels):
            rest = len(levels) - len(reached)
            text += f"; {rest} of {count(len(levels), 'learner')} not in {task.steps:,} steps"
        parts.append(f"Below {name}{'' if i else ' of the error at w0'}: {text}.")
    where = resolution(task.steps, task.every, task.per_decade)
    parts.append(
        f"(Median over the seeds, each learner at its best setting; the error is recorded {where}.)"
    )
    return " ".join(parts)


def overflow(chapter: Chapter) -> str:
    """Who overflows where, who is growing, who has not settled: `runs.outcome` has the words."""
    ends = [_at_best(chapter, word) for word in (GROWING, UNSETTLED)]
    return " ".join(text for text in (_overflow(chapter), _far(chapter), *ends) if text)


def _far(chapter: Chapter) -> str:
    """How many other configurations ended far above the error at w0."""
    if not chapter.far:
        return ""
    others = f"{count(chapter.far, 'configuration')} without overflow"
    return f"{others} ended some run with more than {FAR:g} times the error at w0."


def _at_best(chapter: Chapter, word: str) -> str:
    """Whose best configuration has runs that ended so."""
    found = [(b.algorithm, b.outcomes.count(word), len(b.outcomes)) for b in chapter.best]
    parts = [f"{name} in {some} of {count(runs, 'run')}" for name, some, runs in found if some]
    return f"{word.capitalize()} at its best setting: {listed(parts)}." if parts else ""


def _overflow(chapter: Chapter) -> str:
    import polars as pl

    overflowed = chapter.configurations.filter(pl.col("diverged_share") > 0.0)
    if not len(overflowed):
        return "No run of the grid overflowed."
    total = len(chapter.configurations)
    text = (
        f"{len(overflowed):,} of {count(total, 'configuration')} of the grid overflowed in some run"
    )
    shares = {b.algorithm: 1.0 - b.never_diverged / b.configurations for b in chapter.best}
    shares |= dict.fromkeys(chapter.failed, 1.0)
    never = [name for name, share in shares.items() if share == 0.0]
    most, least = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
    if shares[most] > shares[least]:
        text += (
            f", from {percent(shares[least])} of {least}'s to {percent(shares[most])} of {most}'s"
        )
    text += "."
    if chapter.failed:
        text += f" Of {listed(chapter.failed)} every configuration did."
    if never and shares[most] > 0.0:
        text += f" On the grid no run of {listed(never)} did."
    return text


def diverges_from(chapter: Chapter, algorithm: str) -> str:
    """The smallest step size at which some configuration of a learner overflowed, for reading."""
    import polars as pl

    own = chapter.configurations.filter(pl.col("algorithm") == algorithm)
    overflowed = own.filter(pl.col("diverged_share") > 0.0)
    if not len(overflowed):
        return "never"
    smallest = overflowed["alpha"].min() if "alpha" in overflowed.columns else None
    return "yes" if smallest is None else f"alpha {short(float(str(smallest)))}"


def sentences(chapter: Chapter, what: str) -> list[tuple[str, str]]:
    """The findings on one problem, most important first: topic and text."""
    texts = [("Least error", headline(chapter, what))]
    if not chapter.best:
        return texts
    if len(chapter.best) > 1:
        texts.append(("Order", order(chapter)))
    texts.append(("Speed", speed(chapter)))
    for found in penalties(chapter):
        texts.append((f"Penalty of {found.penalised}", " ".join(penalty_words(chapter, found))))
    texts.append(("Overflow", overflow(chapter)))
    more = {"Theory": theory_words(chapter), "Fresh seeds": bias_words(chapter)}
    return texts + [(topic, text) for topic, text in more.items() if text]


def penalty_words(chapter: Chapter, found: Penalty) -> list[str]:
    """What a penalty adds, and what it costs."""
    texts = []
    plain, penalised = chapter.of(found.plain), chapter.of(found.penalised)
    if plain is not None and penalised is not None:
        texts.append(_versus_plain(chapter, found, plain, penalised))
    elif penalised is not None:
        texts.append(
            f"Every configuration of {found.plain} overflowed; {found.penalised} has some that do "
            "not."
        )
    texts.append(_by_eta(found))
    if found.step_sizes:
        sizes = count(found.step_sizes, "step size")
        texts.append(
            f"Of the {sizes} that both have, {found.plain} improves on w0 at "
            f"{found.plain_useful} and {found.penalised}, with the best of its penalties, at "
            f"{found.penalised_useful}; free of overflow are {found.plain_steady} and "
            f"{found.penalised_steady}."
        )
    fixed = _fixed_points(chapter, found)
    return [*texts, fixed] if fixed else texts


def _by_eta(found: Penalty) -> str:
    """How many of the penalties did better on the grid than none, and the best of them."""
    tried, without = found.rows[1:], found.without
    best = min(tried, key=lambda row: row.error)
    least = "overflowed" if np.isinf(best.error) else number(best.error)
    none = f"without ({found.plain}: {number(without.error)})"
    if len(tried) == 1:
        side = "below" if found.helpful else "not below"
        return (
            f"On the grid the least error with eta {short(best.eta or 0.0)} is {least}, {side} "
            f"that {none}."
        )
    return (
        f"On the grid {len(found.helpful)} of {len(tried)} values of eta, from "
        f"{short(tried[0].eta or 0.0)} to {short(tried[-1].eta or 0.0)}, have a smaller least "
        f"error than {none}; the least of all is {least} at eta {short(best.eta or 0.0)}."
    )


def _fixed_points(chapter: Chapter, found: Penalty) -> str | None:
    """What theory says of both at their best settings."""
    plain, penalised = (chapter.theory.get(name) for name in (found.plain, found.penalised))
    if plain is None or penalised is None:
        return None
    texts = [
        _fixed_point(name, prediction)
        for name, prediction in ((found.plain, plain), (found.penalised, penalised))
    ]
    return f"Theory, at the best settings: {texts[0]}; {texts[1]}."


def _fixed_point(name: str, prediction: Prediction) -> str:
    if prediction.asymptote is None:
        return f"the mean update of {name} is unstable"
    part = (
        ""
        if prediction.stable == 1.0
        else f" (stable in {percent(prediction.stable)} of the instances)"
    )
    return f"the fixed point of {name} has error {number(prediction.asymptote)}{part}"


def _versus_plain(chapter: Chapter, found: Penalty, plain: Best, penalised: Best) -> str:
    place = [b.algorithm for b in chapter.best].index(found.penalised) + 1
    text = (
        f"{found.penalised} comes {ordinal(place)} of {len(chapter.best)} with {penalised.shown} "
        f"(best of {count(penalised.configurations, 'configuration')}): "
    )
    pair = chapter.pairs[found.penalised, found.plain]
    if pair.verdict == "identical":
        return text + f"it is the same update as {found.plain} at its best here."
    if pair.difference is None:
        lost = f"{penalised.measured.diverged} and {plain.measured.diverged}"
        return text + f"on {pair.seeds} seeds it and {found.plain} overflowed {lost} times."
    if pair.verdict in ("same", "unknown"):
        return text + f"it cannot be told apart from {found.plain} at its best ({_interval(pair)})."
    share = percent(abs(pair.difference) / plain.measured.value)
    side = "below" if pair.difference < 0.0 else "above"
    return text + (
        f"its error is {share} {side} that of {found.plain} at its best, of "
        f"{count(plain.configurations, 'configuration')} ({_interval(pair)})."
    )


def theory_words(chapter: Chapter) -> str | None:
    """How well the fixed point's error predicts the error at the end."""
    near: list[str] = []
    above: list[str] = []
    below: list[str] = []
    for b in chapter.best:
        prediction = chapter.theory.get(b.algorithm)
        if prediction is not None and prediction.asymptote is not None and prediction.stable == 1.0:
            noise = min(
                b.final.stderr or 0.0, CLOSE * prediction.asymptote
            )  # no excuse for wild runs
            off = b.final.value - prediction.asymptote
            close = abs(off) <= max(CLOSE * prediction.asymptote, 2.0 * noise, ZERO * chapter.start)
            (near if close else above if off > 0.0 else below).append(b.algorithm)
    total = len(near) + len(above) + len(below)
    if not total:
        return None
    text = (
        f"The measured final error is within {percent(CLOSE)} of the error of the fixed point (or "
        f"two standard errors, at most {percent(2.0 * CLOSE)}, or a millionth of the error at w0) "
        f"for {len(near)} of the {total} learners that are stable at their best settings"
    )
    if above:
        text += f"; {listed(above)} end{'s' if len(above) == 1 else ''} above it"
    if below:
        text += f"; {listed(below)} end{'s' if len(below) == 1 else ''} below it"
    if above or below:
        text += " (it leaves out the noise of a constant step size and the length of the run)"
    return text + "."


def bias_words(chapter: Chapter) -> str | None:
    """What the rerun on fresh seeds changed."""
    if not chapter.fresh or not chapter.best:
        return None
    changes = [(b.bias / b.grid.value, b.bias / b.bias_stderr)
               for b in chapter.best
               if b.bias is not None and b.bias_stderr and b.grid.value > 0.0]  # fmt: skip
    if not changes:
        return None
    middle = float(np.median([share for share, _ in changes]))
    most = max(abs(z) for _, z in changes)
    side = "above" if middle > 0.0 else "below"
    whole = len(changes) == len(chapter.best)
    some = "" if whole else f" of the {len(changes)} that can be compared"
    instances = " and instances" if chapter.task.family else ""
    return (
        f"On fresh seeds the error of the median learner{some} is {percent(abs(middle))} {side} "
        f"its error on the grid, and none moved by more than {most:.2g} standard errors: selection "
        f"on the grid makes its values too good, other streams{instances} move them either way."
    )


def caveats(reading: Reading, chapter: Chapter) -> list[str]:
    """What a reader should not conclude."""
    texts = []
    edges: dict[str, list[str]] = {}
    for b in chapter.best:
        for name, side in b.edges:
            edges.setdefault(f"{side} {name}", []).append(b.algorithm)
    if edges:
        ordered = sorted(edges, key=lambda where: (not where.endswith("alpha"), where))
        found = "; ".join(f"{where} for {listed(edges[where])}" for where in ordered)
        texts.append(f"Best values at the edge of their grid, a wider one may do better: {found}.")
    if not chapter.fresh and chapter.best:
        texts.append(
            "No rerun on fresh seeds, or not a whole one: the errors at the best configurations "
            "are those they were chosen by, and so too good."
        )
    planned = reading.results.spec.file.seeds
    partial = int((chapter.configurations["seeds"] < planned).sum())
    if partial:
        texts.append(f"Only some of the {planned} seeds: {count(partial, 'configuration')}.")
    present = len(chapter.configurations)
    if present < len(chapter.task.learners):
        absent = sorted(
            {x.name for x in chapter.task.learners} - set(chapter.configurations["algorithm"])
        )
        note = f"; none of {listed(absent)}" if absent else ""
        texts.append(
            f"{present:,} of {len(chapter.task.learners):,} configurations are there{note}."
        )
    return texts
