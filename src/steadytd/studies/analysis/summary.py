"""A study's findings in plain words, each sentence made from its numbers."""

from __future__ import annotations

import numpy as np

from steadytd.base.wording import count, figures, large, listed, ordinal, percent
from steadytd.studies.analysis.penalty import PENALISED, PLAIN, Penalty
from steadytd.studies.analysis.reading import Chapter, Reading
from steadytd.studies.analysis.tables import Best, paired, short
from steadytd.studies.spec import Confirm

MEASURES = {"value": "value error", "projected_bellman": "projected Bellman error"}
ZERO = 1e-6  # errors below this share of the error at w0 count as zero
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
        f"each: {large(spec.updates)} learner-updates."
    )
    if not reading.results.complete:
        text += (
            f" The study is not complete: {percent(reading.share)} of it is there "
            f"({len(reading.results.finished)} of {len(reading.results.blocks)} blocks), and all "
            "that follows is about that part."
        )
    if reading.foreign:
        text += (
            f" {count(reading.foreign, 'result file')} of another version of the study, a problem, "
            "a learner or the engine were left out; run the study again to renew them."
        )
    return text


def headline(chapter: Chapter, what: str) -> str:
    """Who wins, by how much."""
    if not chapter.best:
        return f"Every configuration of every learner on {chapter.label} diverged in some run."
    groups, first = chapter.groups, chapter.best[0]
    value = figures(first.measured.value, first.measured.stderr)
    seeds = f"{first.measured.seeds} {'fresh ' if chapter.fresh else ''}seeds"
    if len(groups[0]) == 1:
        text = f"{first.algorithm} has the least {what}: {value} ({seeds})"
    else:
        text = (
            f"{listed(groups[0])} cannot be told apart at the top; the least {what} is "
            f"{value} ({first.algorithm}, {seeds})"
        )
    if len(groups) > 1:
        second = chapter.of(groups[1][0])
        assert second is not None
        text += ", " + _lead(chapter, first, second)
    return text + "."


def _lead(chapter: Chapter, first: Best, second: Best) -> str:
    found = paired(second.algorithm, first.algorithm, chapter.errors)
    if found.difference is None or found.low is None or found.high is None:
        return f"while {second.algorithm} diverged on some of the seeds"
    less = percent(found.difference / second.measured.value)
    return (
        f"{less} less than {second.algorithm} (paired difference "
        f"{figures(found.difference)}, 95 % interval {figures(found.low)} to "
        f"{figures(found.high)})"
    )


def order(chapter: Chapter) -> str:
    """The ranking with ties."""
    parts, place = [], 1
    for group in chapter.groups:
        parts.append(f"{place}. {' = '.join(group)}")
        place += len(group)
    ties = any(len(group) > 1 for group in chapter.groups)
    note = " (= means: not distinguishable from the first of its group)" if ties else ""
    return f"{'; '.join(parts)}{note}."


def divergence(chapter: Chapter) -> str:
    """Who diverges where."""
    import polars as pl

    lost = chapter.configurations.filter(pl.col("diverged_share") > 0.0)
    if not len(lost):
        return "No run diverged."
    total = len(chapter.configurations)
    text = f"{len(lost):,} of {count(total, 'configuration')} diverged in at least one run"
    shares = {b.algorithm: 1.0 - b.never_diverged / b.configurations for b in chapter.best}
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
        text += f" {listed(never)} never diverged."
    return text


def diverges_from(chapter: Chapter, algorithm: str) -> str:
    """The smallest step size at which some configuration of a learner diverged, for reading."""
    import polars as pl

    own = chapter.configurations.filter(pl.col("algorithm") == algorithm)
    lost = own.filter(pl.col("diverged_share") > 0.0)
    if not len(lost):
        return "never"
    smallest = lost["alpha"].min() if "alpha" in lost.columns else None
    return "yes" if smallest is None else f"alpha {short(float(str(smallest)))}"


def sentences(chapter: Chapter, what: str, found: Penalty | None) -> list[tuple[str, str]]:
    """The findings on one problem, most important first: topic and text."""
    texts = [("Least error", headline(chapter, what))]
    if not chapter.best:
        return texts
    if len(chapter.best) > 1:
        texts.append(("Order", order(chapter)))
    if found is not None:
        texts.append(("Perturbed TD", " ".join(penalty_words(chapter, found))))
    texts.append(("Divergence", divergence(chapter)))
    more = {"Theory": theory_words(chapter), "Fresh seeds": bias_words(chapter)}
    return texts + [(topic, text) for topic, text in more.items() if text]


def penalty_words(chapter: Chapter, found: Penalty) -> list[str]:
    """What perturbed TD adds, and what it costs."""
    texts = []
    td, penalised = chapter.of(PLAIN), chapter.of(PENALISED)
    if found.difference is not None and td is not None and penalised is not None:
        texts.append(_versus_td(chapter, found, td, penalised))
    elif penalised is not None:
        texts.append(f"Every configuration of {PLAIN} diverged; {PENALISED} has some that do not.")
    if found.step_sizes:
        texts.append(
            f"Of the {found.step_sizes} step sizes that both have, {PLAIN} improves on w0 at "
            f"{found.td_useful} and {PENALISED}, with the best of its penalties, at "
            f"{found.perturbed_useful}; free of divergence are {found.td_steady} and "
            f"{found.perturbed_steady}."
        )
    fixed = _fixed_points(chapter)
    return [*texts, fixed] if fixed else texts


def _fixed_points(chapter: Chapter) -> str | None:
    """What theory says of both at their best settings: the price of the penalty is a bias."""
    td, penalised = (chapter.theory.get(name) for name in (PLAIN, PENALISED))
    if td is None or penalised is None:
        return None
    if penalised.asymptote is None:
        said = f"{PENALISED} is unstable at its best setting"
    else:
        said = f"the fixed point of {PENALISED} has error {figures(penalised.asymptote)}"
    if td.asymptote is None:
        return f"Theory: {PLAIN} is unstable at its best setting; {said}."
    part = "" if td.stable == 1.0 else f" (stable in {percent(td.stable)} of the instances)"
    return (
        f"Theory, at the best settings: the fixed point of {PLAIN} has error "
        f"{figures(td.asymptote)}{part}; {said}."
    )


def _versus_td(chapter: Chapter, found: Penalty, td: Best, penalised: Best) -> str:
    place = [b.algorithm for b in chapter.best].index(PENALISED) + 1
    text = f"{PENALISED} comes {ordinal(place)} of {len(chapter.best)} with {penalised.shown}: "
    pair = found.difference
    assert pair is not None
    if pair.difference is None or pair.low is None or pair.high is None:
        return text + f"beside {PLAIN} it is {pair.verdict}, where runs diverged."
    if pair.verdict == "same":
        return text + f"it cannot be told apart from {PLAIN} at its best."
    share = percent(abs(pair.difference) / td.measured.value)
    side = "below" if pair.difference < 0.0 else "above"
    return text + (
        f"its error is {share} {side} that of {PLAIN} at its best (difference "
        f"{figures(pair.difference)}, 95 % interval {figures(pair.low)} to {figures(pair.high)})."
    )


def theory_words(chapter: Chapter) -> str | None:
    """How well the fixed point's error predicts the error at the end."""
    near: list[str] = []
    above: list[str] = []
    below: list[str] = []
    for b in chapter.best:
        seen = chapter.theory.get(b.algorithm)
        if seen is not None and seen.asymptote is not None and seen.stable == 1.0:
            noise = min(b.final.stderr or 0.0, CLOSE * seen.asymptote)  # no excuse for wild runs
            off = b.final.value - seen.asymptote
            close = abs(off) <= max(CLOSE * seen.asymptote, 2.0 * noise, ZERO * chapter.start)
            (near if close else above if off > 0.0 else below).append(b.algorithm)
    total = len(near) + len(above) + len(below)
    if not total:
        return None
    text = (
        f"The error of the fixed point predicts the measured final error, to {percent(CLOSE)} or "
        f"two standard errors, for {len(near)} of the {total} learners that are stable at their "
        "best settings"
    )
    if above:
        text += f"; {listed(above)} end{'s' if len(above) == 1 else ''} above it"
    if below:
        text += f"; {listed(below)} end{'s' if len(below) == 1 else ''} below it"
    if above or below:
        text += " (a constant step size adds noise and moves the mean, or the run is too short)"
    return text + "."


def bias_words(chapter: Chapter) -> str | None:
    """What the rerun on fresh seeds changed."""
    if not chapter.fresh or not chapter.best:
        return None
    moved = []
    for b in chapter.best:
        if b.bias is not None and b.bias_stderr:
            moved.append(b.bias / b.bias_stderr)
    if not moved:
        return None
    mean = float(np.mean([b.bias / b.grid.value for b in chapter.best if b.bias is not None]))
    side = "above" if mean > 0.0 else "below"
    instances = " and instances" if chapter.task.family else ""
    return (
        f"On fresh seeds the errors are on average {percent(abs(mean))} {side} those of "
        f"the grid, at most {max(map(abs, moved)):.2g} standard errors: selection on the grid "
        f"makes its values too good, other streams{instances} move them either way."
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
            "No rerun on fresh seeds: the errors at the best configurations are those they were "
            "chosen by, and so too good."
        )
    wanted = reading.results.spec.file.seeds
    partial = int((chapter.configurations["seeds"] < wanted).sum())
    if partial:
        texts.append(f"{count(partial, 'configuration')} have only some of their {wanted} seeds.")
    present = len(chapter.configurations)
    if present < len(chapter.task.learners):
        gone = sorted(
            {x.name for x in chapter.task.learners} - set(chapter.configurations["algorithm"])
        )
        note = f"; none of {listed(gone)}" if gone else ""
        texts.append(
            f"{present:,} of {len(chapter.task.learners):,} configurations are there{note}."
        )
    return texts
