"""What the rule of trust takes for one target, beside the values of all learners."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from steadytd.evaluation.estimators.drl import GRID, on_curve
from steadytd.evaluation.evidence import Evidence
from steadytd.evaluation.intervals import NONE, Estimate, nothing
from steadytd.evaluation.judge.row_weights import RowWeights
from steadytd.evaluation.judge.rule import Data, Ruled, ruled
from steadytd.evaluation.judge.stated import Stated
from steadytd.evaluation.judge.unseen import Fewer, Larger, Resting, Tries, larger, resting, tries
from steadytd.evaluation.overlap import Overlap
from steadytd.evaluation.stability import Stability
from steadytd.evaluation.values import Difference, Line, TargetValues, Value, table

__all__ = ["Difference", "Judged", "Value", "judge"]


@dataclass
class Judged(TargetValues):
    """What is known of one target.

    `curve` has DRL(lam) for every lam of the grid; `behavior` is the policy that made the log;
    `rule` what the rule of trust takes. Units of `curve` and `rule` are not joined where they are
    stretches of episodes. `resting` says how many tries it rests on; None where that is not known,
    or does not matter. `larger` are rare rewards that grow where it goes; None where there are
    none, or all is seen. `negative` is the share of the marginal ratio over the log's rows that is
    below 0, beyond noise.
    """

    curve: dict[float, Estimate] = field(default_factory=dict)
    behavior: Estimate = field(default_factory=lambda: nothing(0))
    resting: Resting | None = None
    larger: Larger | None = None
    negative: float = 0.0
    rule: Ruled = field(kw_only=True)


class Given(NamedTuple):
    """What the judgement of every target rests on; `whole` has units that are not joined."""

    log: Evidence
    whole: Evidence
    behavior: Estimate
    own: Estimate  # the behaviour's own scores, with what `behavior` has of w left out
    rows: RowWeights
    stated: Stated | None


def judge(
    given: Given, target: int, some: list[Line], overlap: Overlap, stability: Stability
) -> Judged:
    """The values of all learners for one target."""
    found = {lam: on_curve(given.whole, target, lam) for lam in GRID}
    known = {lam: one for lam, one in found.items() if np.isfinite(one.influence).all()}
    rule, tried, grown = _ruled(given, target, overlap.rho_max, known or found)
    lo, hi = rule.interval if rule.known else NONE
    selected = {"value": rule.value, "lo": lo, "hi": hi, "lam": rule.lam}
    made = table(given.log, target, some, (overlap, stability), selected)
    return Judged(
        **vars(made), curve=found, behavior=given.behavior, resting=tried, larger=grown,
        negative=given.whole.curves[target].negative, rule=rule,
    )  # fmt: skip


def _ruled(
    given: Given, target: int, largest: float, found: dict[float, Estimate]
) -> tuple[Ruled, Resting | None, Larger | None]:
    """What the rule takes of a curve, and what it may miss, where it matters."""
    whole, rows, stated = given.whole, given.rows, given.stated
    least, most = whole.first.ratios.extent[:2].tolist()
    divided = whole.stretches
    data = Data(whole.starts, divided, (least, most))
    if not divided:
        data = data._replace(past=partial(_past, whole, target), own_past=whole.own_at_cuts)
    if stated is not None:
        data = data._replace(tries=partial(tries_of, given, target, largest))
    rule = ruled(found, given.own, data)
    if stated is not None or divided:
        return rule, None, None
    grown = larger(rows, target, rule.lam, rule.rare)
    if rule.rare:
        return rule, None, grown
    episodes = rule.weighing.weights * float(whole.starts.sum()) / whole.n_units
    return rule, resting(rows, target, rule.lam, episodes), grown


def _past(log: Evidence, target: int, lam: float) -> float:
    """The mean per start of U rho gamma' V(s') where episodes are cut off."""
    curve = log.curves[target]
    return float(curve.value_at_cuts[curve.lams.index(lam)])


def tries_of(given: Given, target: int, largest: float, one: Estimate) -> Tries | None:
    """The rows that say what was not seen of a target, whose largest ratio is `largest`.

    Without sampled rows their weights are taken to be at most that times the largest mean weight of
    a unit.
    """
    e, extent = given.whole, given.whole.first.ratios.extent
    share = e.starts / e.starts.sum()
    means = np.nan if one.masses is None else one.masses[share > 0.0] / share[share > 0.0]
    every = e.equations.where == "states"
    steps = 1.0 / max(1.0 - float(extent[2]), 1e-300) if every else 1.0
    starts = float(e.starts.sum())
    fewer = Fewer(steps * largest * float(np.max(means)), float(e.rows.sum()), starts)
    return tries(given.rows, target, one.lam or 0.0, given.stated, fewer)
