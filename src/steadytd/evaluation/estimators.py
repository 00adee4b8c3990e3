"""Estimators of a target's value: one class per method, with `rows`, `estimate` and `interval`.

The passes over a log go on for all estimators at once. So an estimator first says what it wants to
be added up along the rows, and with which weights (`rows`), then makes its value of the sums. Other
packages add theirs by an entry point of the group `steadytd.estimators` (docs/evaluate_methods.md).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from steadytd.base.errors import InputError
from steadytd.base.registry import plugins
from steadytd.engine.settings import parse_params
from steadytd.evaluation.action_equations import ActionEquations
from steadytd.evaluation.equations import LSTD, Form
from steadytd.evaluation.intervals import NONE, Estimate, Interval, mean_of, nothing
from steadytd.evaluation.rows import GROUPS
from steadytd.evaluation.scores import ActionSums, ActionValue, CurveSums, RowSums, SolvedSums

if TYPE_CHECKING:
    from steadytd.evaluation.evidence import Evidence

GRID = (0.0, 0.5, 0.8, 0.95, 1.0)  # among these the rule of the interval chooses lam
FEW = 200  # features times actions, up to which the usual ones are found without being asked for
LAM = 0.9
MOST = 10_000  # regressions of fqe
SETTLED = 1e-10  # relative change of the weights in one of them
GONE = 1e100


class Estimator(ABC):
    """An estimator of a target's value."""

    name: str
    summary: str

    @property
    def label(self) -> str:
        """The name with its numbers, as it is asked for."""
        return self.name

    def rows(self, log: Evidence, target: int) -> RowSums | None:
        """What is to be added up along the rows, with weights from `log.equations`."""
        return None

    @abstractmethod
    def estimate(self, log: Evidence, target: int) -> Estimate:
        """The value of a target with its influences; `log.sums[label, target]` are the sums."""

    def interval(self, found: Estimate, level: float = 0.95) -> Interval:
        """The interval of an estimate: the sandwich over units."""
        return found.interval(level)


class Solved(Estimator):
    """The fixed point of a form; `lstd` is that of TD.

    A learner's fixed point is (A + eta G + ridge I) w = b, J = phi0.w / n, phi0 the sum of x at
    the n starts. With M = A + eta G + ridge I and M' beta = phi0, unit u moves J by

        psi_u = (beta.(b_u - M_u w) + phi0_u.w - J n_u) / n,

    where n_u is the number of starts and M_u has its share of the ridge.
    """

    name = "lstd"
    summary = "the fixed point of TD, which rests on the features"

    def __init__(self, form: Form = LSTD) -> None:
        self.form = form

    @property
    def label(self) -> str:
        """The form: learners of the same form share their sums."""
        return str(tuple(self.form))

    def rows(self, log: Evidence, target: int) -> RowSums | None:
        """Sums with w and beta of the form."""
        pair = log.equations.solution(target, self.form)
        if pair is None:
            return None
        return SolvedSums(target, pair, log.units, log.plan.systems[self.form.system])

    def estimate(self, log: Evidence, target: int) -> Estimate:
        """The value with its influences."""
        pair, sums = log.equations.solution(target, self.form), log.sums.get((self.label, target))
        if pair is None or sums is None:
            return nothing(log.n_units)
        with np.errstate(over="ignore", invalid="ignore"):
            residual = sums.errors - self.form.eta * sums.squares
            residual = residual - self.form.ridge * (pair.w @ pair.beta) / log.n_units
            return mean_of(sums.start + residual, log.starts)


class Mis(Estimator):
    """Marginal importance sampling; its influences are lstd's, the same function of the sums.

    J = beta.b / n with A' beta = phi0: omega(s) = x(s).beta estimates how often, discounted, the
    target visits s, per row of the log at s.
    With the features of both sides the same, J is lstd's number, found from the ratios: the gain is
    omega itself.
    """

    name = "mis"
    summary = "marginal importance sampling with linear ratios"

    def estimate(self, log: Evidence, target: int) -> Estimate:
        """beta.b / n."""
        e, reference = log.equations, Solved()
        pair = e.solution(target)
        if pair is None:
            return nothing(log.n_units)
        n = float(log.starts.sum())
        value = float(pair.beta @ e.sums.b[:, e.sums.column(target)].sum(axis=0)) / n
        return replace(reference.estimate(log, target), value=value)


class Drl(Estimator):
    """DRL(lam); without a lam it is the selected estimate, which the rule of the interval makes.

    Along an episode, with V(s) = x(s).w and omega(s) = x(s).beta (`mis`) from the *other* folds,

        U_0 = (1 - lam) omega(s_0) + lam,
        U_t = (1 - lam) omega(s_t) + lam gamma_t rho_{t-1} U_{t-1},
        score = V(s_0) + sum_t U_t rho_t (r_t + gamma_{t+1} V(s_{t+1}) - V(s_t)).

    Without episodes every row is a start:

        U_t = (1 - lam) omega(s_t) + lam (gamma_t rho_{t-1} U_{t-1} + 1).

    J is the sum of the scores over the number of starts. lam = 0 is double reinforcement learning
    (Kallus and Uehara, 2020), lam = 1 corrects by products of ratios over whole episodes. Bias of
    poor features falls with lam, variance rises.

    Where episodes are cut off J rests on w too, since nothing corrects V there. So unit u moves J
    through w as well, by

        eta.(b_u - A_u w) / n,      A' eta = sum x_start - sum U rho (x - gamma' x').
    """

    name = "drl"
    summary = "LSTD's values, corrected by temporal differences with ratios"

    def __init__(self, lam: float | None = None) -> None:
        self.lam = lam

    @property
    def label(self) -> str:
        """The name, and lam where it is given."""
        return self.name if self.lam is None else f"{self.name}:lam={self.lam:g}"

    def estimate(self, log: Evidence, target: int) -> Estimate:
        """DRL(lam), with what each unit does to it through w where episodes are cut off."""
        if self.lam is None:
            return nothing(log.n_units)
        return log.through(on_curve(log, target, self.lam), target, self.label)


def on_curve(log: Evidence, target: int, lam: float) -> Estimate:
    """DRL(lam) as it stands on the curve of a target."""
    curve = log.curves[target]
    scores = curve.scores[curve.lams.index(lam)]
    return replace(mean_of(scores, curve.starts), lam=lam)


def grid(lams: Iterable[float] = ()) -> tuple[float, ...]:
    """All lam of a curve: those that are chosen among, and others that were asked for.

    >>> grid([0.9])
    (0.0, 0.5, 0.8, 0.9, 0.95, 1.0)
    """
    return tuple(sorted({*GRID, *lams}))


class Pdis(Estimator):
    """Per-decision importance sampling, which rests on no features.

    The mean over episodes of sum_t g_t c_t r_t, with g_t the product of the discounts before step t
    and c_t = rho_0 ... rho_t. Only what was logged is valued: where an episode is cut off, so is
    its return. Without episodes there is no value.
    """

    name = "pdis"
    summary = "per-decision importance sampling"

    def estimate(self, log: Evidence, target: int) -> Estimate:
        """The mean with its influences: a unit's sum less its share."""
        if log.equations.where == "states":
            return nothing(log.n_units)
        return mean_of(log.returns[target].pdis, log.starts)


class Snpdis(Estimator):
    """Self-normalised per-decision importance sampling: weights in place of episodes.

        J = sum_t N_t / D_t,    N_t = sum over episodes of g_t c_t r_t,    D_t = that of c_t;

    an episode that has ended keeps its last c, and from step 1,000 on all steps share one
    normaliser. Unit u moves J by sum_t (N_tu - D_tu N_t / D_t) / D_t.
    """

    name = "snpdis"
    summary = "self-normalised per-decision importance sampling"

    def estimate(self, log: Evidence, target: int) -> Estimate:
        """The sum of the steps' means, with its influences by the delta method."""
        if log.equations.where == "states":
            return nothing(log.n_units)
        means, _ = log.first.ratios.step_means(target)
        return Estimate(float(means.sum()), log.returns[target].snpdis)


class ActionEstimator(Estimator):
    """An estimator that values actions, q(s, a) = x(s).theta_a; it needs pi of all actions.

    None of them is recommended while another learner has an answer: how far their intervals can be
    trusted has not been measured yet.
    """

    usual = True  # is found without being asked for, where features are few

    def equations(self, log: Evidence, target: int) -> tuple[ActionEquations, int]:
        """The equations of action values, and the place of a target among them."""
        found = log.first.by_action
        assert found is not None
        return found, found.places.index(target)


class Lstdq(ActionEstimator):
    """LSTD for values of actions: A theta = b (`action_equations`).

    J is the mean of sum_a pi(a|s) x(s).theta_a over the starts. It rests on the features, not on
    the behaviour's probabilities. Unit u moves J by
    (beta.(b_u - A_u theta) + phi_u.theta - J n_u) / n, A' beta = phi.
    """

    name = "lstdq"
    summary = "LSTD for values of actions; it needs no ratios"

    def rows(self, log: Evidence, target: int) -> RowSums | None:
        """Sums with theta and beta of all units."""
        equations, place = self.equations(log, target)
        theta, beta = equations.solve(place, np.ones(GROUPS))
        return ActionSums(ActionValue(place, theta[None]), beta, log.units)

    def estimate(self, log: Evidence, target: int) -> Estimate:
        """The value with its influences."""
        sums = log.sums["lstdq", target]
        return mean_of(sums.start + sums.errors, log.starts)


class Fitted(NamedTuple):
    """Where the iteration of `fqe` ended; the value is NaN where it has diverged."""

    value: float
    radius: float  # the spectral radius of G^-1 C
    iterations: int
    settled: bool

    @property
    def stable(self) -> bool:
        """Whether the iteration settles from every start, by the certificate of the sums."""
        return self.radius < 1.0


class Fqe(ActionEstimator):
    """Fitted Q evaluation; its interval is that of `lstdq` where it settles.

    theta_{k+1} = G^-1 (b + C theta_k) with A = G - C, from theta_0 = 0. Where it settles, it is
    where `lstdq` is. It settles from every start if and only if the spectral radius of G^-1 C is
    below 1; with few features that is not so in general.
    """

    name = "fqe"
    summary = "fitted Q evaluation, iterated until it settles"
    usual = False

    def rows(self, log: Evidence, target: int) -> RowSums | None:
        """Those of lstdq."""
        return Lstdq().rows(log, target)

    def fitted(self, log: Evidence, target: int) -> Fitted:
        """Iterate until weights settle, grow beyond all bounds, or 10,000 regressions are done."""
        s, w = self.equations(log, target)
        kept = s.independent(w, np.ones(GROUPS))
        A, b = s.system(w, np.ones(GROUPS), kept)
        G = block_diag(*s.G[:, w].sum(axis=0))[np.ix_(kept, kept)]
        M, g = np.eye(len(kept)) - np.linalg.solve(G, A), np.linalg.solve(G, b)
        radius = float(np.abs(np.linalg.eigvals(M)).max(initial=0.0))
        start = s.start[:, w].sum(axis=0)[kept] / s.starts.sum()
        theta = np.zeros(len(kept))
        for k in range(1, MOST + 1):
            after = g + M @ theta
            change, size = np.linalg.norm(after - theta), np.linalg.norm(after)
            theta = after
            if not size < GONE:
                return Fitted(float("nan"), radius, k, False)
            if change <= SETTLED * size:
                return Fitted(float(start @ theta), radius, k, True)
        ended = float(start @ theta) if radius < 1.0 else float("nan")
        return Fitted(ended, radius, MOST, False)

    def lstdq_value(self, log: Evidence, target: int) -> float:
        """The value of the fixed point, which is lstdq's."""
        sums = log.sums[self.label, target]
        return float(sums.start.sum() / log.starts.sum())

    def estimate(self, log: Evidence, target: int) -> Estimate:
        """Where it ends, with the influences of lstdq; they mean something if it settles."""
        with np.errstate(all="ignore"):
            fitted, sums = self.fitted(log, target), log.sums[self.label, target]
            found = mean_of(sums.start + sums.errors, log.starts)
        known = fitted.stable and fitted.settled
        influence = found.influence if known else np.full(log.n_units, np.nan)
        return Estimate(fitted.value, influence)

    def interval(self, found: Estimate, level: float = 0.95) -> Interval:
        """That of lstdq, around the value; none where the iteration does not settle."""
        return found.interval(level) if np.isfinite(found.influence).all() else NONE


class DrlQ(ActionEstimator):
    """DRL(lam) with values of actions.

    Omega is that of `drl`, V(s) the mean of q(s, .), and r + gamma' V(s') - q(s, a) the temporal
    difference. Where q is right the errors have mean 0 given state and action, so wrong ratios do
    no harm; where ratios are right, a wrong q does none.
    """

    name = "drl_q"
    summary = "doubly robust: lstdq's values, corrected by ratios"

    def __init__(self, lam: float = LAM) -> None:
        self.lam, self._label = lam, f"{self.name}:lam={lam:g}"

    @property
    def label(self) -> str:
        """The name with lam."""
        return self._label

    def rows(self, log: Evidence, target: int) -> RowSums | None:
        """The recursion of `drl`, with omega and theta of the other folds."""
        equations, place = self.equations(log, target)
        pairs = log.equations.cross_fitted(target)
        thetas = [equations.solve(place, use).theta for use in log.equations.other_folds]
        known = [pair for pair in pairs if pair is not None]
        if len(known) < len(pairs) or log.units.number < 2:
            return None
        value = ActionValue(place, np.array(thetas))
        return CurveSums(target, known, (self.lam,), log.units, value)

    def estimate(self, log: Evidence, target: int) -> Estimate:
        """The mean score over starts."""
        sums = log.sums.get((self.label, target))
        if sums is None:
            return nothing(log.n_units)
        return log.through(mean_of(sums.scores[0], log.starts), target, self.label)


GROUP = "steadytd.estimators"
OWN: dict[str, type[Estimator]] = {
    one.name: one for one in (Drl, Snpdis, Pdis, Mis, Lstdq, Fqe, DrlQ)
}
DEFAULT = ("drl", "snpdis", "pdis")  # what an evaluation adds where no learner is named
RENAMED = {"dr": "drl:lam=1"}


@cache
def registered() -> dict[str, type[Estimator]]:
    """All estimators by name: the library's own, and those of other packages."""

    def check(name: str, found: object) -> type[Estimator]:
        if not (isinstance(found, type) and issubclass(found, Estimator)):
            raise ValueError("it must be a class derived from steadytd's Estimator")
        if getattr(found, "name", None) != name:
            raise ValueError(f"its name is '{getattr(found, 'name', None)}', not '{name}'")
        return found

    more = plugins(GROUP, {*OWN, *RENAMED, Solved.name}, check)
    return {**OWN, **{name: one for name, one in more.items() if isinstance(one, type)}}


def named(text: str) -> Estimator | None:
    """The estimator of a text such as `drl:lam=1`; None if the name is not one's.

    >>> named("drl_q:lam=0.5").label, named("lstdq").label, named("lstd")
    ('drl_q:lam=0.5', 'lstdq', None)
    """
    name, _, rest = (part.strip() for part in text.partition(":"))
    if name in RENAMED:
        raise InputError(
            f"{name} is now {RENAMED[name]}; plain drl chooses lam from the data. Ask for one of "
            "the two."
        )
    kind = registered().get(name)
    if kind is None:
        return None
    given = dict(parse_params(name, rest))
    if not given:
        return kind()
    wrong = [key for key in given if key != "lam" or kind not in (Drl, DrlQ)]
    if wrong:
        raise InputError(f"{name} has no parameter '{wrong[0]}'; only drl and drl_q have one, lam.")
    return Drl(_lam(name, given["lam"])) if kind is Drl else DrlQ(_lam(name, given["lam"]))


def _lam(name: str, given: object) -> float:
    try:
        lam = float(str(given))
    except ValueError:
        lam = math.nan
    if not 0.0 <= lam <= 1.0:
        raise InputError(f"{name}: lam must be a number from 0 to 1, got {given}; try lam={LAM}.")
    return lam
