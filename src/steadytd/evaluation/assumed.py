"""Assumptions that a log can contradict. Each test has the level 0.001; few units are not tested.

**Drift.** W is the product of an episode's ratios for a target, and G its return. If the behaviour
policy does not change (the ranks of W show nothing), then the ranks of G, and those of the effect
(W - 1) (G - mean G), do not change either. If it does change, W and W (G - J) still have the means
1 and 0 all along the log, provided that logged probabilities are right and the environment stays as
it is; that is tested if every fifth of the log has 20 effective episodes. With tau in (0, 1) the
place of an episode, c_j = cos(pi j tau), j = 1..4, and for such numbers y

    s_u = sum_{e in u} c(tau_e) (y_e - mean y),
    (sum s_u)' (sum s_u s_u')^-1 (sum s_u)  is about chi-squared with 4 degrees of freedom

over independent units u where nothing changes slowly: Neyman's smooth test, by cluster.

**Unfinished episodes left out.** The same with steps for y and c = 1 in the last twentieth: a log
of finished episodes alone has short ones at its end.

**One length.** Where all episodes terminate at one step T > 1, they may have been cut off there. No
log can show it: it is noted. Where they really end, the value depends on the steps that are left,
so features should tell the step: here by a linear fit with R^2 above 0.99. Else the note says so.

**A time limit.** Where no episode is truncated, and one of m + k episodes that reach the last step
but one has m that go on to the last step, which none passes: under a count that does not grow
there, m is at most binomial(m + k, 1/2). A time limit shows a larger one.

**Copies.** Two episodes with the same first observation are equal with a probability of at most the
product of mu over the first one's actions, if actions were drawn anew. Disjoint pairs of
neighbours among such episodes are counted.

**Missing numbers.** Where most numbers between the first and the last `episode_id` are there, the
others are missing. Why they are cannot be seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from steadytd.base.arrays import Bools, Floats
from steadytd.base.errors import visible
from steadytd.evaluation.intervals import effective_number
from steadytd.evaluation.rows import RowTable
from steadytd.evaluation.rule import EFFECTIVE_UNITS
from steadytd.evaluation.sample import LEFT, PRODUCTS, RETURN, ROW, STEPS, UNIT, WEIGHT
from steadytd.logs.log import Log
from steadytd.logs.sources.selected import SelectedSource
from steadytd.logs.sources.source import BATCH
from steadytd.logs.values import whole_numbers

LEVEL = 0.001
WAVES = 4  # slow changes: up to two periods along the log
STEADY = 0.05  # level at which a change of the behaviour policy is taken for one
FEWEST = 20.0  # effective episodes of a mean
LAST = 0.05  # of the log, where unfinished episodes would be
TOLD = 0.99  # R^2 from which on features tell the step
UNSEEN = " (observe t: no feature tells the step)"
FIFTH = 0.2  # of the log, for the means that are said


def contradictions(
    log: Log, outcomes: Floats, table: RowTable | None, featured: RowTable | None
) -> dict[str, Any]:
    """The facts of what contradicts an assumption; `outcomes` and the tables are of the sample."""
    outcomes = outcomes[np.argsort(outcomes[:, ROW], kind="stable")]
    unit = np.unique(outcomes[:, UNIT], return_inverse=True)[1]
    found = {} if table is None else _copies(table)
    if len(outcomes) and unit.max() + 1 >= EFFECTIVE_UNITS:
        found |= _drift(outcomes, unit, log.targets) | _unfinished(outcomes, unit)
    return found | _fixed_end(outcomes, featured)


def p_of_waves(values: Floats, waves: Floats, unit: Any) -> float:
    """Of the test that values [n] do not depend on waves [n, k], by independent units.

    >>> y, c = np.tile([1.0, -1.0], 50), np.linspace(-1, 1, 100)[:, None]
    >>> u = np.arange(100)
    >>> p_of_waves(y, c, u) > 0.5, p_of_waves(y + 2.0 * c[:, 0], c, u) < 1e-6
    (True, True)
    """
    from scipy.special import chdtrc

    each = waves * (values - values.mean())[:, None]
    s = np.stack([np.bincount(unit, one) for one in each.T], axis=1)
    total = s.sum(axis=0)
    return float(chdtrc(waves.shape[1], total @ np.linalg.pinv(s.T @ s) @ total))


def _drift(outcomes: Floats, unit: Any, targets: list[str]) -> dict[str, Any]:
    from scipy.stats import rankdata

    n, G = len(outcomes), outcomes[:, RETURN]
    tau = (np.arange(n) + 0.5) / n
    waves = np.cos(np.pi * np.arange(1, WAVES + 1) * tau[:, None])
    fifths = np.array_split(np.arange(n), round(1.0 / FIFTH))
    W = outcomes[:, PRODUCTS:] / outcomes[:, [WEIGHT]]
    by_target = list(zip(map(visible, targets), W.T, strict=True))
    steady = all(p_of_waves(rankdata(W), waves, unit) > STEADY for _, W in by_target)
    series = [("returns", G, rankdata(G))] if steady else []
    for name, W in by_target:
        effect = (W - 1.0) * (G - G.mean())
        if steady:
            series.append((f"effects of {name}", effect, rankdata(effect)))
        elif all(effective_number(W[some]) >= FEWEST for some in fifths):
            series.append((f"mean weights of {name}", W, W))
            series.append((f"values of {name}", W * G, W * (G - W @ G / W.sum())))
    if not series:
        return {}
    found = [p_of_waves(y, waves, unit) * len(series) for _, _, y in series]
    least = int(np.argmin(found))
    name, values, _ = series[least]
    ends = [float(values[some].mean()) for some in (fifths[0], fifths[-1])]
    return {"drift": float(found[least] < LEVEL), "drift_p": found[least], "drifting": name,
            "early": ends[0], "late": ends[1]}  # fmt: skip


def _unfinished(outcomes: Floats, unit: Any) -> dict[str, Any]:
    from scipy.stats import rankdata

    n, steps = len(outcomes), outcomes[:, STEPS]
    last: Bools = np.arange(n) >= (1.0 - LAST) * n
    if last.all() or not last.any():
        return {}
    p = p_of_waves(rankdata(steps), (last - last.mean())[:, None], unit)
    ends = float(steps[last].mean()), float(steps[~last].mean())
    short = ends[0] < ends[1] and p / 2.0 < LEVEL
    return {"unfinished": float(short), "last_steps": ends[0], "other_steps": ends[1]}


def _fixed_end(outcomes: Floats, table: RowTable | None) -> dict[str, Any]:
    from scipy.special import bdtrc

    steps = outcomes[:, STEPS]
    longest = steps.max(initial=1.0)
    m, k = (int((steps == longest - i).sum()) for i in (0, 1))
    if longest < 2 or (outcomes[:, LEFT] > 0.0).any():
        return {}
    every = m == len(steps)
    limit = not every and bdtrc(m - 1, m + k, 0.5) < LEVEL
    unseen = every and table is not None and not _tells_step(table)
    return {"fixed_end": float(every), "step_unseen": UNSEEN * unseen, "time_limit": float(limit),
            "limit_steps": int(longest), "limit_episodes": m}  # fmt: skip


def _tells_step(table: RowTable) -> bool:
    """Whether a linear function of observations and features is the step in the episode."""
    n, step = len(table), table.step - table.step.mean()
    X = np.column_stack([np.ones(n), table.obs[:n], table.X[:n]])
    left = step - X @ np.linalg.lstsq(X, step, rcond=None)[0]
    return bool(left @ left < (1.0 - TOLD) * (step @ step))


def _copies(table: RowTable) -> dict[str, Any]:
    from scipy.special import bdtrc

    if table.action is None:
        return {}
    n, begins = len(table), np.flatnonzero(table.first)
    action = table.action.reshape(n, -1)
    rows = np.ascontiguousarray(np.column_stack([table.obs[:n], action, table.reward]))
    places: dict[bytes, tuple[int, bytes]] = {}
    chance = np.minimum(np.multiply.reduceat(table.behavior_prob, begins), 1.0)
    expected, pairs, copies = 0.0, 0, 0
    for i, (low, high) in enumerate(zip(begins, np.append(begins[1:], n), strict=True)):
        start, content = table.obs[low].tobytes(), rows[low:high].tobytes()
        if start in places:
            other, before = places.pop(start)
            pairs, copies = pairs + 1, copies + (content == before)
            expected += float(chance[other])
        else:
            places[start] = i, content
    many = pairs > 0 and bdtrc(copies - 1, pairs, min(expected / pairs, 1.0)) < LEVEL
    return {"copied": float(many), "copies": copies, "pairs": pairs, "copies_expected": expected}


def missing_episodes(log: Log) -> dict[str, Any]:
    """How many numbers between the first and the last episode are missing."""
    column = log.schema.columns["episode_id"]
    if "keep_prob" in log.schema.columns or isinstance(log.source, SelectedSource):
        return {}
    episodes, first, last = 0, None, 0
    for chunk in log.source.read(column.parts, log.begin, log.end, BATCH):
        ids = whole_numbers(chunk, column)
        first = int(ids[0]) if first is None else first
        episodes += int((np.diff(ids, prepend=last if episodes else ids[0] - 1) != 0).sum())
        last = int(ids[-1])
    span = last - (first or 0) + 1
    missing = span - episodes
    return {"ids_missing": float(0 < missing < episodes), "missing": missing, "ids": span}
