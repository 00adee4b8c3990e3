"""The exact numbers of one problem and target policy: matrices, thresholds, fixed points, errors.

Everything here is exact for a known model, except crossings above rank 40 (`Pencil.exact`). What
the numbers mean is said in `advice`; `Certificate` has both. `docs/theory.md` derives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError
from steadytd.engine.law import Law
from steadytd.engine.learner import Learner
from steadytd.learners import algorithm, law_of, names
from steadytd.learners import learner as make_learner
from steadytd.mdp.moments import Expectation, Moments
from steadytd.mdp.problem import Problem
from steadytd.mdp.scales import tall_triangle
from steadytd.theory import dynamics
from steadytd.theory.almost_sure import AlmostSure, almost_sure
from steadytd.theory.assumptions import Assumption, check_assumptions
from steadytd.theory.cure import Cure, Setting
from steadytd.theory.cures import penalty, resolve
from steadytd.theory.exact import MeanSquare, mean_square
from steadytd.theory.learning_curve import LearningCurve, best_alpha, learning_curve
from steadytd.theory.thresholds import Interval, Pencil, bounds, solution
from steadytd.theory.variance import Variance, variance

if TYPE_CHECKING:
    import polars as pl


def compared(average_reward: bool = False) -> list[Law]:
    """The registered laws that the certificate compares and may recommend, in their order."""
    known = (law for law in map(algorithm, names()) if law.average_reward == average_reward)
    laws = [law for law in known if law.role.place]
    return sorted(laws, key=lambda law: law.role.place)


@dataclass(frozen=True, eq=False)
class LearnersOn:
    """What can be computed about any learner on one problem and target policy."""

    problem: Problem
    policy: int = 0

    @cached_property
    def moments(self) -> Moments:
        """The problem's exact matrices."""
        return self.problem.moments(self.policy)

    @property
    def rank(self) -> int:
        """The dimension of the features' row space."""
        return int(self.moments.row_space.shape[1])

    def norm(self, values: ArrayLike) -> float:
        """The root of the mean square over the active states that mu visits."""
        d = self.moments.d
        return float(np.sqrt(d @ np.asarray(values) ** 2 / d.sum()))

    @property
    def scale(self) -> float:
        """The size of the values and of the rewards, next to which errors may be rounding."""
        return Setting.of(self.problem, self.policy).scale

    @cached_property
    def best_error(self) -> float:
        """The least error of any weights: the distance of v_pi from the span of the features."""
        return dynamics.best_error(self.problem, self.policy)

    def error(self, w: Floats) -> float:
        """The error of weights for this target policy."""
        return Setting.of(self.problem, self.policy).error(w)

    @cached_property
    def best_eta(self) -> float:
        """What eta=auto takes: the least error that is clear of poles, crossings, knife edges."""
        return self.penalties.automatic()

    @property
    def penalties(self) -> Cure:
        """The paper's penalty as a cure: w(eta), its errors, and which penalties are clear."""
        laws = compared(self.problem.average_reward)
        law = next(law for law in laws if "eta" in law.params)
        return penalty(self.problem, make_learner(law, alpha=1.0, eta=1.0), self.policy)

    def resolved(self, learner: Learner | Law | str, **params: object) -> Learner:
        """A learner from a name, text or law, with "auto" replaced by the number chosen here."""
        given = dict(params)
        if not isinstance(learner, Learner) and "alpha=" not in str(learner):
            law = learner if isinstance(learner, Law) else law_of(learner)
            if "alpha" in law.all_params:
                given.setdefault("alpha", 1.0)
        return resolve(self.problem, make_learner(learner, **given), self.policy)

    def expectation(self, learner: Learner | str, **params: object) -> Expectation:
        """M and g of the mean update E[change of y] = alpha (g - M y)."""
        return dynamics.expectation(self.problem, self.resolved(learner, **params), self.policy)

    def fixed_point(self, learner: Learner | str, **params: object) -> Floats:
        """The weights at which a learner's mean update is zero, stable or not."""
        return dynamics.fixed_point(self.problem, self.resolved(learner, **params), self.policy)

    def is_stable(self, learner: Learner | str, **params: object) -> bool:
        """Whether a learner's mean update leads to its fixed point, for small enough steps.

        It says nothing about the spread of single runs: see `variance`.
        """
        return dynamics.is_stable(self.problem, self.resolved(learner, **params), self.policy)

    def variance(self, learner: Learner | str, **params: object) -> Variance:
        """Whether a learner's traces and memory have finite variance, and how fast it grows."""
        return variance(self.problem, self.resolved(learner, **params), self.policy)

    def mean_square(self, learner: Learner | str, **params: object) -> MeanSquare | None:
        """Up to which constant step size second moments stay bounded, and how far values spread.

        None with traces or a memory, and where the linear system would be too large.

        >>> import steadytd as st
        >>> found = st.certify("three_state").mean_square("perturbed_td", eta=0.5)
        >>> round(found.largest_alpha, 2), round(found.spread(0.001), 2)
        (0.27, 0.18)
        """
        return mean_square(self.problem, self.resolved(learner, **params), self.policy)

    def almost_sure(
        self, learner: Learner | Law | str, *, alpha: float, **params: object
    ) -> AlmostSure | None:
        """Whether every single run forgets its first weights, at this constant step size.

        By the sign of the `exponent` of the product of the steps, which has an interval from `low`
        to `high` unless it is exact. None where no such product is known.

        >>> import steadytd as st
        >>> c = st.certify("theta2theta")
        >>> c.variance("etd").finite, c.almost_sure("etd", alpha=0.01).stable
        (False, True)
        >>> st.certify("baird").almost_sure("etd", alpha=0.01).stable
        False
        """
        found = self.resolved(learner, alpha=alpha, **params)
        return almost_sure(self.problem, found, self.policy)

    def learning_curve(
        self, learner: Learner | Law | str, *, steps: int, **params: object
    ) -> LearningCurve:
        """Expected error, spread and bias at every step from w0 on, before any run.

        They are exact where what a learner remembers takes few values, on small problems; else they
        are estimated from 200 runs, and the curve's `runs`, `stderr` and `text` say so.
        Without alpha, or with `alpha="best"`, the step size is the one with the least expected
        error at the end, for the learner's decay of step sizes.

        >>> import steadytd as st
        >>> c = st.certify("three_state")
        >>> curve = c.learning_curve("perturbed_td", eta=0.6, alpha=0.02, steps=3000)
        >>> round(float(curve.error[-1]), 3), round(float(curve.bias[-1]), 3)
        (5.465, 5.45)
        """
        given = isinstance(learner, Learner) or "alpha=" in str(learner)
        if params.get("alpha", None if given else "best") == "best":
            found = self.resolved(learner, **{k: v for k, v in params.items() if k != "alpha"})
            if "alpha" in found.values:
                params["alpha"] = best_alpha(self.problem, found, steps, self.policy)
        return learning_curve(self.problem, self.resolved(learner, **params), steps, self.policy)

    def mean_weights(self, learner: Learner | str, steps: int, **params: object) -> Floats:
        """The predicted mean weights after n steps from w0."""
        found = self.resolved(learner, **params)
        return dynamics.mean_weights(self.problem, found, steps, self.policy)

    def largest_alpha(self, learner: Learner | str, **params: object) -> float:
        """Below this constant step size the mean update contracts; 0 if it never does.

        Of a law whose closed form holds to first order in alpha only, that of this first order.
        """
        found = self.resolved(learner, **params)
        return dynamics.largest_alpha(self.problem, found, self.policy)


@dataclass(frozen=True, eq=False)
class Analysis(LearnersOn):
    """What can be computed about learning with a discount, without a word on what it means."""

    def __post_init__(self) -> None:
        if self.problem.average_reward:
            raise InputError(
                f"{self.problem.name} asks for the average reward, and this is about discounted "
                "values; use steadytd.certify."
            )

    @cached_property
    def pencil(self) -> Pencil:
        """A_0, G and b on the row space."""
        return Pencil.of(self.moments)

    # The paper's own objects

    def A(self, eta: float = 0.0) -> Floats:
        """The key matrix Phi' D ((1 + eta) I - gamma P_pi) Phi."""
        return np.asarray(self.moments.A() + eta * self.moments.G)

    @property
    def b(self) -> Floats:
        """Phi' D r_pi."""
        return self.moments.b()

    @cached_property
    def projection(self) -> Floats:
        """Pi = Phi (Phi' D Phi)^+ Phi' D: onto the span of Phi in the d_mu norm."""
        m, Q = self.moments, self.pencil.Q
        m.require_array("the projection")
        weighted = Q.T @ (m.Phi * m.d[:, None]).T
        return np.asarray(m.Phi @ Q @ solution(self.pencil.G, weighted))

    @cached_property
    def best_fit(self) -> Floats:
        """y of the projection Phi Q y of v_pi."""
        m, root = self.moments, np.sqrt(self.moments.d)[:, None]
        known = tall_triangle(root * np.hstack([m.Phi @ self.pencil.Q, m.v_pi[:, None]]))
        return np.asarray(np.linalg.lstsq(known[:, :-1], known[:, -1], rcond=None)[0])

    def bellman(self, values: ArrayLike, eta: float = 0.0) -> Floats:
        """The perturbed Bellman operator T_eta v = (r_pi + gamma P_pi v) / (1 + eta)."""
        v = np.asarray(values, dtype=np.float64)
        return np.asarray((self.moments.r_pi + self.moments.onwards @ v) / (1.0 + eta))

    def contraction(self, eta: float = 0.0) -> dict[str, float]:
        """Moduli of T_eta: in the maximum norm, and in the d_mu norm (there also of Pi T_eta).

        Below 1 in the d_mu norm, the projected operator contracts and perturbed TD's fixed point
        is unique and has an error bound.
        """
        m = self.moments
        active = self.problem.active_in(self.policy)
        return {
            "maximum": float(m.onwards[active].sum(axis=1).max()) / (1.0 + eta),
            "d_mu": m.operator_norm / (1.0 + eta),
        }

    def assumptions(self, learner: Learner | str) -> list[Assumption]:
        """Each assumption of the paper's convergence theorem, holding or not, and why."""
        return check_assumptions(self.problem, self.resolved(learner), self.policy)

    # Thresholds

    @property
    def td_stable(self) -> bool:
        """Whether plain off-policy TD(0) converges in the mean."""
        return self.pencil.is_stable(0.0)

    @property
    def eta_pd(self) -> float:
        """From here on A(eta) is positive definite, exactly; negative if TD's own A is."""
        return self.pencil.eta_pd

    @property
    def eta_hurwitz(self) -> float:
        """From here on the mean update is stable for every larger eta; at most eta_pd."""
        return self.pencil.eta_hurwitz

    @property
    def unstable_etas(self) -> list[Interval]:
        """The penalties in [0, eta_pd] with an unstable mean update: a set, not one number."""
        return self.pencil.unstable_from(0.0)

    @cached_property
    def bounds(self) -> dict[str, float]:
        """Six penalties that suffice, from the tightest to the paper's and one without a model."""
        return bounds(self.moments)

    # The path of fixed points

    @property
    def poles(self) -> list[float]:
        """The penalties eta >= 0 at which A(eta) is singular and w(eta) has a pole."""
        return [p for p in self.pencil.poles if p >= 0.0]

    def error_bound(self, eta: float) -> float:
        """A bound on the error of w(eta) without its solution; infinite where none exists.

        With c the contraction modulus in the d_mu norm, p = ||Pi V - V|| and
        k = eta ||Pi V|| / (1 + eta): [c k + sqrt(k^2 + (1 - c^2) p^2)] / (1 - c^2). Where states
        are of different interest, times the largest ratio of the error's norm to the d_mu norm.
        """
        c = self.contraction(eta)["d_mu"]
        if c >= 1.0:
            return float("inf")
        m = self.moments
        projected = m.Phi @ (self.pencil.Q @ self.best_fit)
        p = float(np.sqrt(m.d @ (projected - m.v_pi) ** 2))
        k = eta / (1.0 + eta) * float(np.sqrt(m.d @ projected**2))
        weights = self.problem.error_weights(self.policy)[m.visited] / m.d[m.visited]
        bound = (c * k + np.sqrt(k**2 + (1.0 - c**2) * p**2)) / (1.0 - c**2)
        return float(np.sqrt(weights.max()) * bound)

    def sensitivity(self, eta: float) -> float:
        """How far the values move, in the d_mu norm, per unit of eta; infinite at a pole."""
        return self.pencil.sensitivity(eta) / float(np.sqrt(self.moments.d.sum()))

    def path(self, etas: Sequence[float] | Floats) -> pl.DataFrame:
        """One row per penalty: eta, stable, error, error_bound, sensitivity, value of each state.

        Where P is sparse there are no values of states.
        At a pole the error and the values are null; an error bound that does not exist is null.
        """
        import polars as pl

        for eta in etas:
            if not (isinstance(eta, Real) and 0.0 <= float(eta) < np.inf):
                raise InputError(f"eta must be a finite number >= 0, got {eta!s:.60}.")
        rows = [self._path_row(float(eta)) for eta in etas]
        return pl.DataFrame(rows, infer_schema_length=None)

    def _path_row(self, eta: float) -> dict[str, Any]:
        bound, pole = self.error_bound(eta), self.pencil.at_pole(eta)
        w = np.zeros(self.problem.n_features) if pole else self.pencil.fixed_point(eta)
        row = {
            "eta": eta,
            "stable": self.pencil.is_stable(eta),
            "error": None if pole else self.error(w),
            "error_bound": bound if np.isfinite(bound) else None,
            "sensitivity": None if pole else self.sensitivity(eta),
        }
        if self.moments.sparse:  # as many columns as there are states
            return row
        values = enumerate(self.moments.Phi @ w)
        return row | {f"value_{s}": None if pole else float(v) for s, v in values}
