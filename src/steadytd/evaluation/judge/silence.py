"""In words: what a trusted answer rests on that no log can show, and how much would turn it.

Of the k rows with the largest weights an outcome that comes with chance p = 1 - 20^(-1/k) in each
(about 3 / k) is missing in one of twenty logs. If it changes the return by d each time, the value
is off by p d sum of weights / starts: so d follows from how far the value is from turning. Of all k
from 10 on the one is named for which d is smallest.

Where nothing rare is in the log, and it is too small to show it, the answer is not trusted: then a
finding says how many tries it rests on. Nor is it where rare rewards grow with how much the target
does what brings them, nor where it goes beyond the log.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.finding import Finding
from steadytd.base.wording import count
from steadytd.evaluation.judge.decide import Decision
from steadytd.evaluation.judge.log_findings import FEW_EPISODES, LogFacts
from steadytd.evaluation.judge.rule import FEW_SCORES, Ruled
from steadytd.evaluation.judge.stated import Stated
from steadytd.evaluation.judge.unseen import KINDS, LEVEL, NEGATIVE, Resting, Tries, once_in
from steadytd.evaluation.judge.values import Judged

FEWEST = 10.0  # rows that an outcome is said of: "once in 1.5 times" would say nothing
NEAR = 10.0  # times the range of logged rewards: an outcome that is no larger is not far-fetched


COUNTED = {
    "rows": "{:.3g} of {} rows",
    "more": "{:.3g} rows that count more for it than for the policy that made the log",
    "episodes": "{:.3g} of {} episodes",
    "there": "at most {:.3g} rows of equal features and ratio, for a tenth of what it does",
}


def about_rows(j: Judged, f: LogFacts) -> Finding | None:
    """The log shows nothing rare, nor how far rewards can go, and is too small to show it."""
    few = {} if j.resting is None or not j.rule.carried else j.resting.too_few
    if j.resting is None or not few:
        return None
    of = {"rows": f.rows, "episodes": f.episodes}
    said = [
        f"{COUNTED[name].format(number, of.get(name))} (at least {wanted:g} are wanted)"
        for name, (number, wanted) in few.items()
    ]
    worst, (tries, _) = next(iter(few.items()))
    what = "episodes" if worst == "episodes" else "rows"
    return Finding(
        "few_rows", j.name, "warning",
        f"{j.name} rests on few tries, weighted as it would act: on {', and on '.join(said)}. "
        f"Something that comes once in {_two(once_in(tries))} of such {what} is missing in one of "
        "twenty such logs. This one shows nothing rare that counts for much, and "
        f"{_why(j.resting, f.rows)}: if that changes the return by much, the answer is wrong.",
        "State the range of rewards (reward_range, --reward-range), and horizon where something "
        "can last: what is rare is then within the interval. Or collect more data.",
        {**j.resting._asdict(), "once_in": once_in(tries)},
    )  # fmt: skip


def _why(r: Resting, rows: int) -> str:
    """Why logged rewards do not say how far others can go."""
    if r.kinds <= KINDS:
        seen = "its rewards" if r.sampled >= rows else f"rewards of {r.sampled:,} rows, a sample,"
        tells = "does" if r.kinds == 1 else "do"
        return (
            f"{seen} have only {count(r.kinds, 'value')}, which {tells} not tell how far another "
            "can go"
        )
    return (
        f"a twentieth of its episodes have {r.furthest:.2g} of all distances of returns from their "
        "median, so that the others do not tell how far such can go"
    )


def larger_unseen(j: Judged, f: LogFacts) -> Finding | None:
    """Rare rewards are the larger the more the target does what brings them: there may be more."""
    x = j.larger
    if x is None or not j.rule.carried:
        return None
    return Finding(
        "larger_unseen", j.name, "warning",
        f"the larger a rare reward is, the more {j.name} does what brings it. Beyond the usual "
        f"rewards there are {x.sizes} sizes; the weight of a row grows by "
        f"{100.0 * math.log(2.0) * x.growth:.2g} % of its mean with each doubling of the size, and "
        f"the largest, about {x.largest:.3g}, was seen {_times(x.seen)}. A still larger one may "
        "well be missing in the log, and would count even more.",
        "State the range of rewards (reward_range, --reward-range): what is rare is then within "
        "the interval. Or collect more data with a policy closer to the target.",
        x._asdict(),
    )  # fmt: skip


def _times(seen: float) -> str:
    """How often.

    >>> _times(1.0), _times(7.4)
    ('once', '7 times')
    """
    return "once" if round(seen) == 1 else f"{seen:.0f} times"


def without_end(j: Judged) -> bool:
    """Whether no discount of the log is below 1: then visits and rewards go on for ever."""
    return j.rule.own.moment == 0.0


def beyond_log(j: Judged, f: LogFacts) -> Finding | None:
    """No policy visits a state a negative number of times: what is negative is extrapolated."""
    if not j.rule.known or j.negative <= NEGATIVE or without_end(j):
        return None
    return Finding(
        "beyond_log", j.name, "warning",
        "the target goes to where the log hardly was: of the ratio of visits that the features "
        f"give to the log's rows, {100.0 * j.negative:.3g} % is negative by more than noise (two "
        f"standard errors), which no ratio of visits can be (up to {100.0 * NEGATIVE:g} % is "
        "allowed). So what comes there is extrapolated, and drl's interval may be too short.",
        "Use richer features (poly, rbf:300, tiles), evaluate a target closer to the behaviour "
        "policy, or collect data with a policy closer to the target.",
        {"negative": j.negative},
    )  # fmt: skip


def few_decide(j: Judged, f: LogFacts) -> Finding | None:
    """Something rare is in the log, so that its interval is wide.

    Of fewer units few decide in any case: `few_episodes` says that.
    """
    r, units = j.rule, len(j.rule.estimate.influence)
    if not (r.carried and r.rare) or units < FEW_EPISODES:
        return None
    what, rows = ("stretches", "rows") if f.divided else ("episodes", "episodes")
    return Finding(
        "few_decide", j.name, "note",
        f"the error of drl rests on {r.noise.number:.3g} of {units} units of the log (at lam = "
        f"{r.lam:g}; below {FEW_SCORES:g} is few): a few {what} are unlike all others, or have far "
        "larger weights. So its interval is wide. Logged rewards go from "
        f"{f.rewards[0]:.4g} to {f.rewards[1]:.4g}.",
        f"Look at the {rows} with the largest and least rewards and ratios. If they are right, "
        "collect more data: what they show is rare.",
        {"scores": r.noise.number, "units": units, "lam": r.lam},
    )  # fmt: skip


@dataclass(frozen=True)
class Unseen:
    """Of the `rows` where the target goes most, an outcome that comes `once_in` times may miss.

    If it changed the return by `change` each time, it would turn the `decision`, or move the
    `value` out of its interval; None where no rows were sampled. `stated` outcomes are within the
    intervals. `text` says it for a target that is trusted, else it is empty.
    """

    target: str
    turns: Literal["decision", "value"]
    rows: float
    once_in: float
    change: float | None
    stated: Stated | None
    text: str

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        known = None if self.stated is None else self.stated._asdict()
        return {**asdict(self), "stated": known}


class Rarest(NamedTuple):
    """The rows that an outcome is said of, how often it may come there, and p times weights."""

    rows: float
    once_in: float
    weight: float


def rarest(weights: Floats, each: float) -> Rarest | None:
    """Among the rows with the largest weights; each stands for `each` rows.

    >>> rarest(np.ones(300), 1.0).rows
    300.0
    """
    a = np.sort(weights[weights > 0.0])[::-1]
    rows = each * np.arange(1, len(a) + 1)
    if not len(a) or rows[-1] < FEWEST or not np.isfinite(a[0]):
        return None
    p = -np.expm1(math.log(1.0 - LEVEL) / rows)
    moved = np.where(rows >= FEWEST, p * each * np.cumsum(a), 0.0)
    k = int(moved.argmax())
    return Rarest(float(rows[k]), float(1.0 / p[k]), float(moved[k]))


def silence(rule: Ruled, d: Decision, found: Tries | None, stated: Stated | None) -> Unseen:
    """What may be missing, and what of it would turn the decision about a target."""
    decided = d.decision != "undecided"
    turns: Literal["decision", "value"] = "decision" if decided else "value"
    nothing = Unseen(d.target, turns, 0.0, math.nan, None, stated, "")
    if found is None or not rule.known or not found.sampled:
        return _said(nothing, d)
    known = rarest(found.weight - found.own if decided else found.weight, found.each)
    if known is None or not known.weight > 0.0:
        return _said(nothing, d)
    off = abs(d.difference) if decided else max(rule.reach)
    change = off * found.starts / known.weight
    near = change <= NEAR * rule.rewards
    return _said(Unseen(d.target, turns, known.rows, known.once_in, change, stated, ""), d, near)


def _said(u: Unseen, d: Decision, near: bool = False) -> Unseen:
    """With its sentence, if the decision can be trusted; where it is `near`, with what helps."""
    text = "" if not d.trusted else _stated(u) if u.stated is not None else _text(u, d)
    if text and near and u.stated is None:
        text += " A stated range of rewards (reward_range) would count that in."
    return Unseen(u.target, u.turns, u.rows, u.once_in, u.change, u.stated, text)


def _text(u: Unseen, d: Decision) -> str:
    if u.change is None:
        return (
            f"{u.target} rests on what was logged: rewards unlike any in the log, if they are rare "
            "enough not to be there, could change it."
        )
    where = (
        "goes most beyond the policy that made the log" if u.turns == "decision" else "goes most"
    )
    moved = {"better": "cost", "worse": "brought"}.get(d.decision, "cost or brought")
    turned = (
        f"{u.target} would not be {d.decision}"
        if u.turns == "decision"
        else "the value could lie outside its interval"
    )
    return (
        f"{u.target} rests on what was logged: where it {where} ({_rows(u.rows)}), something that "
        f"comes once in {_two(u.once_in)} times is missing in one of twenty such logs; if that "
        f"{moved} {_two(u.change)} each time, {turned}."
    )


def _stated(u: Unseen) -> str:
    assert u.stated is not None
    lo, hi, horizon = u.stated
    lasting = (
        "what follows them is like what the log shows"
        if horizon is None
        else f"last at most {horizon:,} steps"
    )
    return (
        f"All this rests on rewards between {lo:g} and {hi:g}, as you state them: outcomes too "
        f"rare to be in the log are within the intervals if they stay there and {lasting}."
    )


def _two(number: float) -> str:
    """Two digits: no more is known.

    >>> _two(33.9), _two(1234.0), _two(0.0123), _two(5.04e10)
    ('34', '1,200', '0.012', '5e+10')
    """
    found = float(f"{number:.2g}")
    return f"{found:,.0f}" if 100.0 <= found < 1e9 else f"{found:g}"


def _rows(rows: float) -> str:
    """Of many rows three digits, as the sample has no more.

    >>> _rows(41.0), _rows(123456.0)
    ('41 rows', 'about 123,000 rows')
    """
    if rows < 1000.0:
        return f"{rows:.0f} rows"
    digits = len(str(int(rows))) - 3
    return f"about {round(rows, -digits):,.0f} rows"
