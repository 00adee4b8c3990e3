"""What to log next: the exploration that would decide soonest, and with about how many episodes.

The policy mu that made the log explores: in a share f of the decisions of a region it draws an
action from q, and acts as before in all others,

    mu' = mu + f (q - mu)    in the region.

From a log of mu', with the target pi and with mu as its targets, row i adds to their difference

    e_i = U_i rho_i delta_i - Gamma_i delta'_i,    rho = pi/mu,

(delta has the target's V, delta' that of mu, Gamma is the product of the discounts so far, U as in
`scores`) divided by mu'/mu, since both of its ratios are. A row of mu' is worth mu'/mu rows of this
log, so that the variance of the difference, with n the number of starts, is

    se'^2 = se^2 - sum e_i^2 (1 - mu_i/mu'_i) / n^2.

For one step this is exact. In several, U at lam = 1 is the product of the ratios so far, so that
row t has the product of mu/mu' so far in the place of mu_t/mu'_t. For lam < 1 it has

    K_t = mu_t/mu'_t (1 - lam + lam K_{t-1}),

which leaves out that exploring changes which states come later. Rare outcomes (`rule`) go with the
weights. Where the log does not cover the target, its rows cannot tell how much a change helps: then
the target decides in a share f, so that in logs of one step rho <= 1/f, and n episodes are worth at
least f n of its own.

All explorations that are compared change the same share of decisions, `SHARE`. q is uniform over
all actions, or one action, or the target; the region is one value of an observed number, or one
side of a quantile, or everywhere. A simpler one is preferred unless another saves a tenth.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Bools, Floats
from steadytd.base.errors import visible
from steadytd.base.numbers import about, percent
from steadytd.evaluation.decide import Decision, Side, compared, difference
from steadytd.evaluation.evidence import Evidence
from steadytd.evaluation.intervals import standard_error
from steadytd.evaluation.rows import RowTable, recursion
from steadytd.evaluation.rule import EFFECTIVE_UNITS, FEW_VALUES, LoggedReturns, Selection
from steadytd.evaluation.scores import Steps, drl_weights
from steadytd.logs.schema import LogSchema

SHARE = 0.1  # of all decisions explore
QUANTILES = (0.25, 0.5, 0.75)  # at which regions end
FEW_LEVELS = 6  # of an observed number: each is a region
MOST_NUMBERS, MOST_ACTIONS = 30, 12  # that regions and single actions are made of
SAVES = 0.9  # of the episodes: what a more special exploration has to come down to
COVERAGE = {"low_overlap", "weights_off", "beyond_log"}  # findings that exploration cures


@dataclass(frozen=True)
class LogNext:
    """What to log next to decide about a target.

    In a share `explore` of the decisions of the `region` (empty: everywhere) one of `actions` is
    drawn, each alike (none: the target decides), so that each has at least the probability `floor`.
    `episodes` so logged give an even chance of a decision, `together` with this log or by
    themselves; `now_needed` more like these would. None: no number is known.
    """

    target: str
    text: str
    region: str = ""
    actions: tuple[str | float, ...] = ()
    explore: float = 0.0
    episodes: int | None = None
    now_needed: int | None = None
    together: bool = True

    @property
    def floor(self) -> float:
        """The least probability of each of `actions` in the region."""
        return self.explore / len(self.actions) if self.actions else 0.0

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "actions": list(self.actions), "floor": self.floor}


class Region(NamedTuple):
    """Where to explore: in words, and which rows."""

    text: str
    inside: Bools


class Exploration(NamedTuple):
    """An exploration, and how many episodes it needs, `together` with this log or alone."""

    region: Region
    actions: tuple[float, ...]
    explore: float
    episodes: float
    together: bool
    exact: bool = True


@dataclass(frozen=True)
class Needs:
    """How many episodes decide, by what every sampled row adds.

    `se2` is the share of the squared standard error that is a row's e^2, so that their sum may be
    below or above 1. The numbers of episodes are those for logs like this one: for the standard
    error, and for rare outcomes.
    """

    lam: float
    first: Bools
    se2: Floats
    weight: Floats  # |U rho - Gamma|, for rare outcomes
    largest: bool  # rare outcomes have the largest weight, not the mean square
    starts: float
    chance: float
    rare: float

    def episodes(self, keep: Floats) -> tuple[float, bool]:
        """How many, and whether together with this log; `keep` is mu/mu' of every row."""
        if not self.first.all():
            lam = self.lam
            decay, added = keep * lam * ~self.first, keep * (1.0 - lam + lam * self.first)
            keep = recursion(decay, added, np.zeros(1))
        less = max(1.0 - float(self.se2 @ (1.0 - keep)), float(self.se2 @ keep))
        if self.largest:
            rarer = float((self.weight * keep).max()) / float(self.weight.max())
        else:
            rarer = float(self.weight**2 @ keep) / float(self.weight @ self.weight)
        alone = max(self.chance * less, self.rare * rarer)
        n, half = self.starts, self.starts - self.chance * less / 2.0
        more = math.sqrt(max(half**2 + n * (self.chance - n), 0.0)) - half
        more = max(more, self.rare - n)
        return (alone, False) if alone < more else (more, True)


def log_next(
    evidence: Evidence,
    target: int,
    side: Side,
    log: LoggedReturns,
    schema: LogSchema,
) -> LogNext:
    """The advice for a target, in the words of the log's columns."""
    decision, name = compared(side, None, log), side.name
    what, now = decision.counted, decision.episodes_needed
    if decision.same:
        text = f"{name} acts as the log does: there is nothing to decide."
        return LogNext(name, text, episodes=0, now_needed=0)
    if not decision.trusted:
        return _uncovered(evidence, target, decision, schema)
    if decision.decision != "undecided":
        text = f"nothing more is needed to decide about {name}."
        return LogNext(name, text, episodes=0, now_needed=0)
    if now is None:
        text = f"more {what} alone may not decide {name}: use richer features, or log a policy "
        return LogNext(name, f"{text}closer to it.")
    needs = _needs(evidence, target, side.selection, log, decision.difference)
    best = _best(evidence.sampled, needs, target, schema)
    episodes = now if best is None else math.ceil(best.episodes)
    if best is None or episodes > SAVES * now:
        text = f"{about(now)} more {what} like these would give an even chance to decide about "
        return LogNext(name, f"{text}{name}.", now_needed=now)
    text = _text(evidence, target, best, decision, episodes, schema)
    actions = tuple(_label(schema, a) for a in best.actions)
    return LogNext(name, text, best.region.text, actions, best.explore, episodes, now,
                   best.together)  # fmt: skip


def _uncovered(evidence: Evidence, target: int, decision: Decision, schema: LogSchema) -> LogNext:
    """Where the log does not cover the target; nothing where another warning has its remedy."""
    rows = evidence.sampled
    covering = COVERAGE.issuperset(decision.reasons) and evidence.equations.where == "start"
    if rows is None or not covering:
        return LogNext(decision.target, "")
    everywhere = Region("", np.ones(len(rows), dtype=bool))
    episodes = None if rows.step.any() else math.ceil(EFFECTIVE_UNITS / SHARE)
    best = Exploration(everywhere, (), SHARE, math.inf, False)
    text = _text(evidence, target, best, decision, episodes, schema)
    return LogNext(decision.target, text, explore=SHARE, episodes=episodes, together=False)


def _needs(
    evidence: Evidence, target: int, selection: Selection, log: LoggedReturns, value: float
) -> Needs | None:
    """The terms of the rows; None where values are not known or are those of all rows.

    Of the supported lam it is the one that needs the fewest episodes of the same kind to show that
    a difference of this `value` is there.
    """
    rows, e = evidence.sampled, evidence.equations
    pair, own = e.solution(target), e.solution(e.behavior)
    if rows is None or pair is None or own is None or e.where != "start" or log.stretches:
        return None
    wanted = {
        one.lam: difference(one, None, log)._replace(value=value).wanted()
        for one in selection.usable
    }
    one = min(selection.usable, key=lambda one: max(wanted[one.lam]))
    chance, rare = wanted[one.lam]
    n, rho = len(rows), rows.rho[target]
    X, lam = rows.X, np.array([one.lam])
    V, W = X @ pair.w, X @ own.w
    steps = Steps(rows.unit, rows.first, 1, rows.weight)
    [weight] = drl_weights(rows, steps, rho, X @ pair.beta, lam, np.zeros(1))
    delta = rows.reward + rows.discount * V[rows.row_next] - V[:n]
    other = rows.reward + rows.discount * W[rows.row_next] - W[:n]
    e2 = (rows.weight * (weight * delta - rows.discounted * other)) ** 2
    stderr, starts = standard_error(one.influence - log.influence), float(log.starts.sum())
    if not (stderr > 0.0 and weight.any() and math.isfinite(chance)):
        return None
    return Needs(
        lam=one.lam,
        first=rows.first,
        se2=e2 / (stderr**2 * starts * float(rows.weight @ rows.first)),
        weight=np.abs(weight - rows.discounted) + np.finfo(float).tiny,
        largest=log.stated is not None or log.reward_values <= FEW_VALUES,
        starts=starts,
        chance=starts * chance,
        rare=starts * rare,
    )


def _best(
    rows: RowTable | None, needs: Needs | None, target: int, schema: LogSchema
) -> Exploration | None:
    """The exploration that needs the fewest episodes; a simpler one unless a tenth is saved.

    Where the allowed actions differ by row only the target explores: it takes allowed ones.
    """
    if rows is None or needs is None:
        return None
    n, mu, actions = len(rows), rows.behavior_prob, _actions(rows)
    drawn: list[tuple[tuple[float, ...], Floats]] = []
    if actions and "allowed_actions" not in schema.columns:
        drawn = [(actions, np.full(n, 1.0 / len(actions)))]
        drawn += [((a,), (np.asarray(rows.action) == a).astype(np.float64)) for a in actions]
    drawn.append(((), rows.target_prob[target]))
    best: Exploration | None = None
    for region in _regions(rows.obs[:n], rows.weight, _names(schema)):
        explore = SHARE / float(np.average(region.inside, weights=rows.weight))
        for chosen, q in drawn:
            more = explore * (q / mu - 1.0)
            keep = np.where(region.inside, 1.0 / (1.0 + more), 1.0)
            found, together = needs.episodes(keep)
            if best is None or found < SAVES * best.episodes:
                exact = needs.lam == 1.0
                best = Exploration(region, chosen, explore, found, together, exact)
    return best


def _regions(obs: NDArray[Any], weight: Floats, names: Sequence[str]) -> Iterator[Region]:
    """Everywhere, then values of a number, or both sides of its quantiles; none too small."""
    yield Region("", np.ones(len(obs), dtype=bool))
    for name, x in zip(names, obs.T[:MOST_NUMBERS], strict=False):
        values = np.unique(x)
        if len(values) <= FEW_LEVELS:
            level = "=" in name  # one number for each level of a column: 1 where it has it
            found = [
                Region(name.replace("=", " = ", 1) if level else f"{name} = {v:g}", x == v)
                for v in values.tolist() if v or not level
            ]  # fmt: skip
        else:
            cuts = dict.fromkeys(float(f"{c:.3g}") for c in np.quantile(x, QUANTILES))
            found = [Region(f"{name} < {c:g}", x < c) for c in cuts]
            found += [Region(f"{name} >= {c:g}", x >= c) for c in cuts]
        for region in found:
            if 2.0 * SHARE <= float(np.average(region.inside, weights=weight)) < 1.0:
                yield region


def _names(schema: LogSchema) -> Sequence[str]:
    """The names of the numbers of an observation."""
    parts, width = schema.columns["obs"].parts, schema.width
    own = parts if len(parts) == width else [f"{parts[0]}[{i}]" for i in range(width)]
    return schema.obs_names or (parts if width == 1 else own)


def _label(schema: LogSchema, action: float) -> str | float:
    """An action as the log has it."""
    return schema.actions[int(action)] if schema.actions else action


def _text(
    evidence: Evidence,
    target: int,
    best: Exploration,
    decision: Decision,
    episodes: int | None,
    schema: LogSchema,
) -> str:
    """One paragraph."""
    rows, name, region = evidence.sampled, visible(decision.target), best.region
    assert rows is not None
    there = f" where {visible(region.text)}" if region.text else ""
    part = f"{percent(best.explore)} of {'the' if there else 'all'} decisions{there}"
    how = f"let {name} decide"
    if best.actions:
        how = f"take action {_said(schema, best.actions[0])}"
        how = "draw any action, each alike," if len(best.actions) > 1 else how
    found = [
        *_differ(evidence, rows, target, best, schema, name, there),
        f"To decide soonest, {how} in {part}, and act as before in all others.",
    ]
    if decision.trusted:
        log = "together with this log" if best.together else "by themselves"
        such = f"{about(episodes or 0)} such {decision.counted}, evaluated {log},"
        now = about(decision.episodes_needed or 0)
        found.append(
            f"{such} would give an even chance of a decision; {now} like these would, too."
        )
    elif episodes is not None:
        worth = f"are worth {EFFECTIVE_UNITS:g} of {name}'s own, which an answer needs at least"
        found.append(f"{about(episodes)} such {decision.counted} {worth}.")
    found.append("Log the probabilities with which it acts then, and those of both policies.")
    if not best.exact:
        found.append("The number leaves out that exploring changes which states come later.")
    return " ".join(sentence[0].upper() + sentence[1:] for sentence in found)


def _differ(
    evidence: Evidence,
    rows: RowTable,
    target: int,
    best: Exploration,
    schema: LogSchema,
    name: str,
    there: str,
) -> Iterator[str]:
    """Where the target goes and the log does not: the region, and the action that differs most."""
    pair, inside = evidence.equations.solution(target), best.region.inside
    visits = np.ones(len(rows))
    if pair is not None and rows.step.any():
        visits = np.maximum(rows.X[: len(rows)] @ pair.beta, 0.0)
    own, logged = rows.weight * rows.rho[target] * visits, rows.weight * rows.discounted
    if rows.step.any() and best.region.text:
        shares = percent(own[inside].sum() / own.sum()), logged[inside].sum() / logged.sum()
        yield f"{name} makes {shares[0]} of its decisions{there}, the log {percent(shares[1])}."
    if best.actions or _actions(rows):
        mine, theirs = own[inside] / own[inside].sum(), logged[inside] / logged[inside].sum()
        taken = np.asarray(rows.action)[inside]
        chosen = [taken == a for a in best.actions or _actions(rows)]
        apart = [float(mine[one].sum() - theirs[one].sum()) for one in chosen]
        one = chosen[int(np.argmax(apart))]
        often = f"{name} takes action {_said(schema, taken[one][0])} in {percent(mine[one].sum())}"
        yield f"{often} of its decisions{there}, the log in {percent(theirs[one].sum())}."


def _said(schema: LogSchema, action: float) -> str:
    """An action in a sentence."""
    label = _label(schema, action)
    return visible(label) if isinstance(label, str) else f"{label:g}"


def _actions(rows: RowTable) -> tuple[float, ...]:
    """The actions of the sampled rows, where they are a few single numbers."""
    if rows.action is None or rows.action.ndim > 1:
        return ()
    found = np.unique(rows.action)
    return tuple(found.tolist()) if 1 < len(found) <= MOST_ACTIONS else ()
