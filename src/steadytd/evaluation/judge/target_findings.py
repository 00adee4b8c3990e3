"""What a user has to know before trusting the value of one target."""

from __future__ import annotations

import math

import numpy as np

from steadytd.base.finding import Finding
from steadytd.base.wording import count
from steadytd.evaluation.judge.action_findings import about_actions
from steadytd.evaluation.judge.log_findings import LogFacts
from steadytd.evaluation.judge.online_findings import about_online
from steadytd.evaluation.judge.probability_findings import no_support, ratios_off
from steadytd.evaluation.judge.rule import FEW_STRETCHES, MOST_CUT
from steadytd.evaluation.judge.silence import (
    about_rows,
    beyond_log,
    few_decide,
    larger_unseen,
    without_end,
)
from steadytd.evaluation.judge.unseen import BENDS
from steadytd.evaluation.judge.values import Difference, Judged, Value
from steadytd.evaluation.values import DOUBLY_ROBUST, REFERENCE, SELECTED

LOW_ROWS, LOW_EPISODES = 0.05, 30.0  # share of rows, number of episodes: below is low overlap
LOW_PRODUCT = 0.6  # mean product of an episode's ratios: below, the log misses what matters
PER_FEATURE = 10.0  # effective rows per feature that a solved system should have
MATTERS = 0.5  # of half an interval: differences below this do not matter
TINY = 1e-6  # of the values' size: nor do those
MANY = 3.5  # standard errors that two learners have to differ by
ENDS = "Give a discount below 1, or log episodes to their end."
RATIO_AS_MEAN = "with the ratio in the penalty taken as its mean, 1"
UNCHECKED = 2.0  # times half of lstd's interval: a bias that drl:lam=1 has to exclude


def about_target(j: Judged, f: LogFacts) -> list[Finding]:
    """Findings for one target, the gravest first: what forbids trust, then the rest."""
    parts = (
        no_support, ratios_off, _none_carried, _alike, about_rows, larger_unseen, _grows,
        beyond_log, _beyond_cuts, few_decide, _unlike, _features_poor, _unchecked, _disagree,
    )  # fmt: skip
    found = [finding for part in parts if (finding := part(j, f)) is not None]
    found += [finding for part in (_unstable, _bias) if (finding := part(j)) is not None]
    return found + _out_of_range(j, f) + about_online(j) + about_actions(j)


def _none_carried(j: Judged, f: LogFacts) -> Finding | None:
    """The log carries no lam of `drl`, or there is none."""
    r, w = j.rule, j.rule.weighing
    what = "row" if f.continuing else "episode"
    numbers = {**w._asdict(), "lam": r.lam, "units": len(r.estimate.influence)}
    if r.carried:
        return None
    if not r.known:
        return Finding(
            "low_overlap", j.name, "warning",
            "drl has no value with an interval: its equations cannot be solved without a fifth of "
            "the log, or the log has a single unit.",
            "Use fewer features, or collect more data.",
            numbers,
        )  # fmt: skip
    if without_end(j):
        return Finding(
            "no_end", j.name, "warning",
            "no row of the log ends an episode, and all discounts are 1: the sum of rewards goes "
            "on for ever, as far as the log shows.",
            ENDS, numbers,
        )  # fmt: skip
    if not w.differ:
        return Finding(
            "no_variation", j.name, "warning",
            f"every unit of the log has the same score, up to rounding (at lam = {r.lam:g}): what "
            "chance can do cannot be seen in it.",
            "Collect a log whose rewards and ratios differ.",
            numbers,
        )  # fmt: skip
    said = []
    if not w.enough_weights:
        said.append(
            f"its weights rest on {w.weights:.3g} of {numbers['units']} units (at least "
            f"{w.wanted:.3g} are wanted)"
        )
    if not w.fits:
        cut = f", and {w.cut:.3g} at cuts" if f.truncated else ""
        said.append(
            f"the weight of an average {what} is {w.moment:.3g}{cut}, it should be 1 (up to "
            f"{w.off:.2g})"
        )
    return Finding(
        "low_overlap", j.name, "warning",
        f"the log shows too little of what the target does: for no lam can drl be relied on. At "
        f"lam = {r.lam:g}, {'; '.join(said)}.",
        "Evaluate a target closer to the behaviour policy, or collect data with a policy closer "
        "to the target; fewer features may help, too.",
        numbers,
    )  # fmt: skip


def _alike(j: Judged, f: LogFacts) -> Finding | None:
    """Stretches of an endless log are not independent, however long they are."""
    r = j.rule
    if r.mixes or not r.known or not r.weighing.differ:  # what rounding leaves is always alike
        return None
    return Finding(
        "stretches_alike", j.name, "warning",
        f"stretches of the log are alike, even the longest that leave {r.stretches} of them: the "
        f"correlation of what neighbours say about the value is {r.noise.like:.2g}, and below "
        f"{1.0 / FEW_STRETCHES**0.5:g} is wanted. The interval may be too short.",
        "Collect a longer log.",
        {"correlation": r.noise.like, "stretches": r.stretches},
    )  # fmt: skip


def _grows(j: Judged, f: LogFacts) -> Finding | None:
    """No bound of the bias holds where it grows."""
    r = j.rule
    if not (r.carried and r.grows):
        return None
    near, far, _ = r.bend
    return Finding(
        "bias_grows", j.name, "warning",
        f"what the features miss seems to grow with time: drl moves by {abs(near):.3g} from "
        f"lam = 0 to 0.5, and by {abs(far):.3g} to 0.8, which is {far / near:.2g} times as far. If "
        f"all that is missed stayed for ever it would be {BENDS:g} times. The target may lead to "
        "where the log hardly was, and drl's interval may be too short.",
        "Use richer features (poly, rbf:300, tiles), evaluate a target closer to the behaviour "
        "policy, or collect data with a policy closer to the target.",
        r.bend._asdict(),
    )  # fmt: skip


def _unlike(j: Judged, f: LogFacts) -> Finding | None:
    o, rank = j.overlap, j.stability.rank
    numbers = {
        "ess_step": o.ess_step, "ess_step_share": o.ess_step_share,
        "ess_trajectory": o.ess_trajectory, "product_mean": o.product_mean,
        "rho_max": o.rho_max, "rho_max_row": o.rho_max_row,
    }  # fmt: skip
    if o.rho_max == 0.0:
        return Finding(
            "unlike_target", j.name, "note",
            "the target takes none of the actions that were logged: the log shows nothing of it.",
            "Collect data with a policy that takes the target's actions, too.", numbers,
        )  # fmt: skip
    counts = "row counts" if o.rows == 1 else "rows count"
    counted = f"{o.rows:,} {counts} for {o.ess_step:.3g} of the target policy's own"
    if LOW_ROWS * o.rows <= o.ess_step < PER_FEATURE * rank:
        return Finding(
            "unlike_target", j.name, "note",
            f"{counted}, which is {o.ess_step / rank:.2g} for each of the {rank} independent "
            f"features (at least {PER_FEATURE:.0f} are wanted). Intervals of the learners that "
            "solve for all of them at once may be too short.",
            "Use fewer features, or collect more rows.",
            {**numbers, "rank": rank},
        )  # fmt: skip
    if o.ess_step < LOW_ROWS * o.rows:
        return Finding(
            "unlike_target", j.name, "note",
            f"{counted}, below {LOW_ROWS:.0%}; the largest ratio is {o.rho_max:.3g} in row "
            f"{o.rho_max_row}. Few rows decide the values.",
            "Evaluate a target closer to the behaviour policy, or collect data with a policy "
            "closer to the target.",
            numbers,
        )  # fmt: skip
    if not f.continuing and not checkable(j, f) and not o.as_logged:
        return Finding(
            "unlike_target", j.name, "note",
            f"over whole episodes the ratios multiply: {count(o.episodes, 'episode')} count for "
            f"{o.ess_trajectory:.3g} of the target policy's own (at least {LOW_EPISODES:.0f} are "
            f"wanted), and the mean product is {o.product_mean:.2g} (it should be 1; at least "
            f"{LOW_PRODUCT:g} is wanted). pdis, snpdis and drl:lam=1 rest on those episodes.",
            "Do not use pdis, snpdis and drl:lam=1 here; plain drl needs no whole episodes.",
            numbers,
        )  # fmt: skip
    return None


def _apart(j: Judged, one: str, other: str) -> Difference | None:
    for d in j.differences:
        if {d.learner, d.other} == {one, other}:
            return d
    return None


def checkable(j: Judged, f: LogFacts) -> bool:
    """Whether enough episodes count for drl to check the learners that trust the features."""
    o = j.overlap
    enough = o.ess_trajectory >= LOW_EPISODES and o.product_mean >= LOW_PRODUCT
    return not f.continuing and enough


def features_poor(j: Judged, f: LogFacts) -> Difference | None:
    """The difference between lstd and drl where the features are the reason for it."""
    d = _apart(j, REFERENCE, DOUBLY_ROBUST)
    if d is None or d.agree is not False or not checkable(j, f):
        return None
    return d if _matters(j, d) else None


def _matters(j: Judged, d: Difference) -> bool:
    """Whether a difference is large enough, next to lstd's interval, to talk about."""
    value, limits = j.reference
    return abs(d.difference) > max(MATTERS * limits.width / 2.0, TINY * abs(value))


def _features_poor(j: Judged, f: LogFacts) -> Finding | None:
    d = features_poor(j, f)
    if d is None:
        return _do_not_carry_over(j, f)
    lstd, drl = j.reference[0], j.doubly_robust[0]
    return Finding(
        "features_poor", j.name, "note",
        f"lstd finds {lstd:.4g}. Corrected for the Bellman errors on episodes that it has not "
        f"seen, that becomes {drl:.4g}; the 99 % interval of the difference "
        f"{abs(d.difference):.3g} excludes 0. With features that can represent the "
        f"value{_all_rows(f)} it would be chance alone. Intervals of the learners that trust the "
        "features do not cover this bias.",
        "Use richer features (rbf:300, tiles, poly), or drl, whose interval allows for a bias.",
        {REFERENCE: lstd, DOUBLY_ROBUST: drl, "difference": d.difference, "lo": d.lo,
         "hi": d.hi},
    )  # fmt: skip


def _all_rows(f: LogFacts) -> str:
    """Rows are left out for how they end, so those that are kept are a biased sample."""
    return " and no rows left out" if f.left_out else ""


def _do_not_carry_over(j: Judged, f: LogFacts) -> Finding | None:
    """The weights of one half of the episodes are worse than none on the other half."""
    h = j.held_out
    if not h.share > 1.0 or not (f.continuing or checkable(j, f)):
        return None
    times = f"{h.share:.3g} times" if h.share < 1000.0 else "over a thousand times"
    return Finding(
        "features_poor", j.name, "note",
        "weights learnt on one half of the log do worse on the other half than no weights at all: "
        f"their projected Bellman error there is {times} that of the value 0. The features are "
        "too many or too much alike for this log, or the values are too small to be seen in it. "
        "The mean value may be right all the same; the value function cannot be relied on.",
        "Use fewer features, perturbed_lstd with a larger eta, or lstd with a ridge.",
        {"error": h.error, "error_of_zero": h.error_of_zero, "share": h.share},
    )  # fmt: skip


def _unchecked(j: Judged, f: LogFacts) -> Finding | None:
    """lstd's interval is short, and nothing in the log can tell whether its bias is."""
    width = j.reference[1].width
    if not f.continuing and not checkable(j, f):
        return None  # unlike_target says so already
    d = None if f.continuing else _apart(j, REFERENCE, DOUBLY_ROBUST)
    bound = float("nan") if d is None else max(abs(d.lo), abs(d.hi))
    if bound <= UNCHECKED * width / 2.0:
        return None
    known = "." if not np.isfinite(bound) else (
        f": a bias of {bound:.3g} cannot be excluded, where lstd's interval is {width:.3g} wide."
    )  # fmt: skip
    return Finding(
        "bias_unchecked", j.name, "note",
        "intervals of the learners that trust the features are right only if the features can "
        f"represent the value, and the log cannot check that well{known}",
        "Use drl, whose interval allows for a bias, or compare several sets of features.",
        {"width": width, "bound": bound},
    )  # fmt: skip


def _out_of_range(j: Judged, f: LogFacts) -> list[Finding]:
    """Values that no policy can have, whatever the features say."""
    low, high = f.allowed
    least, most = f.rewards if f.stated is None else f.stated[:2]
    how = "were logged" if f.stated is None else "are stated"
    room = TINY * max(abs(limit) for limit in (low, high, 0.0) if np.isfinite(limit))
    return [
        Finding(
            "value_range", j.name, "warning" if v.learner == SELECTED else "note",
            f"{v.learner} finds {v.value:.4g}, but rewards between {least:.4g} and "
            f"{most:.4g}, as they {how}, with discounts up to "
            f"{f.largest_discount:.4g}, allow values between {low:.4g} and {high:.4g} only.",
            _within(j, v, low - room, high + room),
            {"learner": v.learner, "value": v.value, "lo": low, "hi": high},
        )
        for v in j.values
        if np.isfinite(v.value) and not low - room <= v.value <= high + room
    ]  # fmt: skip


def _within(j: Judged, v: Value, low: float, high: float) -> str:
    """What may bring a value back into its range: why it is out depends on the learner."""
    fixed = v.fixed_point
    if v.kind == "online" and fixed is not None and low <= fixed <= high:
        return "It has not reached its fixed point, which is allowed: use the solved form."
    if v.learner == "pdis":
        return "Its weights do not add up to 1; those of snpdis do. Look at the ratios."
    without = j.without_penalty.get(v.learner, math.nan)
    if v.eta and low <= without <= high:
        return "Its penalty moves it there: use lstd, which has none."
    return "Use other features; look at the ratios."


def _beyond_cuts(j: Judged, f: LogFacts) -> Finding | None:
    """How much lies beyond the cuts, where nothing checks it: too much, or within the interval."""
    r, left = j.rule, f.discount_left * f.truncated / max(f.episodes, 1)
    early, doubt = left > MOST_CUT and not r.divided, r.past.doubt()
    if not r.known or not (early or doubt > MATTERS * r.half):
        return None
    part = r.past.value
    makes = f" and makes about {part:.3g} of the value" if math.isfinite(part) else ""
    text = f"{f.truncated} of {f.episodes} episodes are cut off. What would come after that was "
    text += f"not logged{makes}. It rests on features alone"
    numbers = {"beyond": part, "left": left, "doubt": doubt, "truncated": f.truncated}
    if not early:
        text += f"; drl's interval allows for an error of {doubt:.3g} in it."
        return Finding("cut_off", j.name, "note", text, "Longer episodes would show it.", numbers)
    text += f", and on average over all episodes a discount of {left:.3g} is left there (at most "
    return Finding(
        "cut_off", j.name, "warning", f"{text}{MOST_CUT:g} is wanted).",
        "Log longer episodes, or compare several sets of features before you trust the value.",
        numbers,
    )  # fmt: skip


def _disagree(j: Judged, f: LogFacts) -> Finding | None:
    """Two learners whose values both should be right, and cannot both be."""
    trusted = {v.learner for v in j.values if not _biased(j, v) and v.kind != "sampling"}
    trusted |= {REFERENCE}
    if checkable(j, f):
        whole = f.discount_left * f.truncated == 0.0
        trusted |= {"pdis", "snpdis", DOUBLY_ROBUST} if whole else {DOUBLY_ROBUST}
    worst: Difference | None = None
    for d in j.differences:
        both = {d.learner, d.other} <= trusted
        surely = abs(d.difference) > MANY * d.stderr  # many pairs are compared
        if both and d.agree is False and surely and _matters(j, d):
            worst = d if worst is None or abs(d.difference) > abs(worst.difference) else worst
    if worst is None:
        return None
    return Finding(
        "learners_disagree", j.name, "note",
        f"{worst.learner} and {worst.other} differ by {abs(worst.difference):.3g}, more than "
        f"{MANY:g} standard errors: with good features and ratios{_all_rows(f)} both would tend to "
        "the same value.",
        "Use drl, whose interval allows for a bias; richer features and right probabilities help.",
        {"learner": worst.learner, "other": worst.other, "difference": worst.difference,
         "lo": worst.lo, "hi": worst.hi},
    )  # fmt: skip


def _biased(j: Judged, v: Value) -> bool:
    """Whether a penalty or a ridge moves the fixed point, however good the features are."""
    form = j.forms.get(v.learner)
    return bool(v.eta) or (form is not None and form.ridge > 0.0)


def _unstable(j: Judged) -> Finding | None:
    s = j.stability
    if s.td_stable or j.overlap.rho_max == 0.0:  # without a ratio above 0 nothing moves
        return None
    known = bool(np.isfinite([s.eta_pd_lo, s.eta_pd_hi]).all())
    limits = f" (95 % interval {s.eta_pd_lo + 0.0:.3g} to {s.eta_pd_hi + 0.0:.3g})" if known else ""
    how = "not stable on this log: a mode of its mean update does not decay"
    remedy = "Nothing is learned along that mode: log more of what the target does."
    remedy = ENDS if without_end(j) else remedy
    if s.slowest < 0.0:
        how = "unstable on this log: its mean update leads away from its fixed point"
        remedy = "Do not train with plain TD; lstd and tdc need no penalty."
    return Finding(
        "td_unstable", j.name, "note",
        f"plain off-policy TD is {how}. Every penalty above {max(0.0, s.eta_pd):.3g}{limits} makes "
        f"it stable, {RATIO_AS_MEAN}.",
        remedy,
        {"eta_pd": s.eta_pd, "lo": s.eta_pd_lo, "hi": s.eta_pd_hi, "eta": s.eta},
    )  # fmt: skip


def moved(j: Judged, v: Value, share: float = 1.0) -> float:
    """How far a penalty moves a value; 0 up to a share of half lstd's interval."""
    value, limits = j.without_penalty.get(v.learner), j.reference[1]
    if not v.eta or value is None or v.fixed_point is None or not np.isfinite(v.fixed_point):
        return 0.0
    apart = abs(v.fixed_point - value)
    return apart if apart > max(share * limits.width / 2.0, TINY * abs(value)) else 0.0


def _bias(j: Judged) -> Finding | None:
    worst = max(j.values, key=lambda v: moved(j, v))
    if not moved(j, worst) or worst.fixed_point is None:
        return None
    value = j.without_penalty[worst.learner]
    return Finding(
        "bias_dominates", j.name, "note",
        f"the penalty eta = {worst.eta:.3g} moves the value from {value:.4g} to "
        f"{worst.fixed_point:.4g}, by more than half the width of lstd's interval: the perturbed "
        "learners' intervals do not cover that bias.",
        "Use lstd or tdc, which need no penalty.",
        {"eta": worst.eta, "value": worst.fixed_point, "without": value},
    )  # fmt: skip
