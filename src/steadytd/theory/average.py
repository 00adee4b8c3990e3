"""The certificate where there is no discount: stable or not, and which rate and values result.

Differential TD learns w and the reward rate r' together. With c = Phi'd and the penalty eta,

    M = [[A + eta G, c], [ratio d'(I - P) Phi, ratio]],      A = Phi'D (I - P) Phi.

The fixed point depends on eta, not on ratio; whether M is stable depends on both. Two penalties are
exact where the theorem's condition, a positive definite matrix, is asked for:

- with a rate that is learned infinitely fast, r' = d'r - d'(I - P) Phi w. Then w follows
  A - c d'(I - P) Phi + eta G, and `eta_fast` is -lambda_min of its symmetric part against G;
- M is positive definite in the norm |w|^2 + r'^2/ratio, for *every* ratio, above `eta_every`. This
  is -lambda_min of sym A - q q'/4 against G, q = c + Phi'(I - P)'d.

`docs/average_reward.md` derives all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from steadytd.base.errors import InputError, visible
from steadytd.base.finding import Finding
from steadytd.base.numbers import number
from steadytd.engine.learner import Learner
from steadytd.learners import learner as make_learner
from steadytd.mdp.scales import zeroed
from steadytd.theory.advice import nearly_dependent, no_coverage, rank_deficient, threshold
from steadytd.theory.analysis import compared
from steadytd.theory.cure import Cure
from steadytd.theory.cures import law_cure
from steadytd.theory.dynamics import decay_rates, fixed_rate
from steadytd.theory.recommend import recommended
from steadytd.theory.thresholds import Interval
from steadytd.theory.verdicts import Verdicts

if TYPE_CHECKING:
    import polars as pl

SPANNED = 1e-9  # how far from 1 the features' values may be where they span constants


class AverageCertificate(Verdicts):
    """What is certain about learning the average reward of this problem. Made by `certify`.

    >>> import steadytd as st
    >>> c = st.certify("average_baird")
    >>> [[round(end, 4) for end in interval] for interval in c.ratios.unstable]
    [[0.0, 0.2857]]
    """

    def __repr__(self) -> str:
        verdict = "stable" if self.td_stable else "unstable"
        return visible(
            f"<certificate of {self.problem.name}: rate {number(self.rate)}, differential TD's "
            f"mean update is {verdict}>"
        )

    @property
    def rate(self) -> float:
        """The target policy's mean reward per step."""
        return self.moments.rate

    @property
    def differential(self) -> Learner:
        """Differential TD, the first of the learners that are compared, with its default ratio."""
        return make_learner(compared(average_reward=True)[0], alpha=1.0)

    @property
    def ratio(self) -> float:
        """That ratio, at which verdicts are given."""
        return float(self.differential["ratio"])

    @property
    def td_stable(self) -> bool:
        """Whether differential TD's mean update is stable with its default ratio."""
        return self.is_stable(self.differential)

    @cached_property
    def ratios(self) -> Cure:
        """The ratio of differential TD's step sizes as a cure: for which is it stable?"""
        return law_cure(self.problem, self.differential, "ratio", self.policy)

    @cached_property
    def _definite_from(self) -> tuple[float, float]:
        """`eta_fast` and `eta_every`, on the row space with features of about the same size."""
        from scipy.linalg import eigh

        m = self.moments
        Phi = m.equal.Phi if m.compact is not None else m.Phi @ m.row_space
        weighted, steps = Phi.T * m.d, Phi - m.P_gamma @ Phi
        c, flow, G = weighted.sum(axis=1), m.d @ steps, weighted @ Phi
        fast = weighted @ steps - np.outer(c, flow)
        every = weighted @ steps - np.outer(c + flow, c + flow) / 4.0
        least = [eigh((A + A.T) / 2.0, G, eigvals_only=True)[0] for A in (fast, every)]
        return -float(least[0]), -float(least[1])

    @property
    def eta_fast(self) -> float:
        """From here on perturbed differential TD is stable with a ratio that is large enough."""
        return self._definite_from[0]

    @property
    def eta_every(self) -> float:
        """From here on perturbed differential TD is stable with every ratio."""
        return self._definite_from[1]

    @cached_property
    def bounds(self) -> dict[str, float]:
        """Penalties that suffice whatever the features are, with k = max_j (d'P)_j / d_j.

        `fast`: sqrt(k) - 1, for a fast rate. `every`: max(1/2, k/2 + sqrt(k) - 1), for every ratio.
        """
        m = self.moments
        k = float(((m.d @ m.P_pi)[m.visited] / m.d[m.visited]).max())
        fast = float(np.sqrt(k)) - 1.0
        return {"fast": fast, "every": max(0.5, k / 2.0 + fast)}

    @property
    def spans_constants(self) -> bool:
        """Whether some weights give all states that mu visits the same value, not 0."""
        m = self.moments
        X = m.Phi[m.visited] / np.maximum(np.abs(m.Phi[m.visited]).max(axis=0), 1e-300)
        ones = np.ones(len(X))
        return bool(np.abs(X @ np.linalg.lstsq(X, ones)[0] - ones).max() < SPANNED)

    def fixed_rate(self, learner: Learner | str, **params: object) -> float:
        """The reward rate at which a learner's mean update is zero."""
        return fixed_rate(self.problem, self.resolved(learner, **params), self.policy)

    def path(self, etas: Sequence[float]) -> pl.DataFrame:
        """One row per penalty at the default ratio: eta, stable, error, rate; null at a pole."""
        import polars as pl

        rows = []
        for eta in etas:
            if not 0.0 <= eta < np.inf:
                raise InputError(f"eta must be a finite number >= 0, got {eta!s:.60}.")
            pole = self.penalties.weights(float(eta)) is None
            at = {} if pole else {
                "error": self.penalties.error(float(eta)), "rate": self._rate_at(float(eta))
            }  # fmt: skip
            rows.append({"eta": float(eta), "stable": self.penalties.stable(float(eta))} | at)
        columns = {"eta": pl.Float64, "stable": pl.Boolean, "error": pl.Float64, "rate": pl.Float64}
        return pl.DataFrame(rows, schema=columns)

    def _rate_at(self, eta: float) -> float:
        return float(np.linalg.solve(*self.penalties.at(eta))[-1])

    @cached_property
    def advice(self) -> list[Finding]:
        """Findings in plain words; the last one, `recommended`, is the one learner to use."""
        found = [
            self._differential(), self._penalty(), self._bias(), self._constants(),
            rank_deficient(self), nearly_dependent(self), no_coverage(self), recommended(self),
        ]  # fmt: skip
        return [finding for finding in found if finding is not None]

    def about(self, eta: float) -> list[Finding]:
        """What to know about one penalty."""
        if self.penalties.stable(eta):
            return []
        return [
            Finding(
                "eta_unstable",
                text=f"eta = {number(eta, 6)} does not stabilise the mean update: one of its modes "
                f"does not decay. With ratio = {number(self.ratio)}: "
                f"{_stable_words(self.penalties, 'eta')}.",
                numbers={"eta": eta, "stable_from": self.penalties.stable_from},
            )
        ]

    def _differential(self) -> Finding:
        """The verdict on differential TD without a penalty."""
        words = f"over all ratios: {_stable_words(self.ratios, 'ratio')}"
        slowest = float(decay_rates(self.problem, self.differential, self.policy).real.min())
        numbers = {"unstable_ratios": [list(i) for i in self.ratios.unstable], "slowest": slowest}
        if not self.td_stable:
            how = f"grows at rate {number(-slowest)} per unit of alpha"
            return Finding(
                "td_unstable",
                text=f"differential TD is unstable with ratio = {number(self.ratio)}: its mean "
                f"update has a mode that {how if slowest else 'does not decay'}. "
                f"{words.capitalize()}.",
                numbers=numbers,
            )
        w, rate = self.fixed_point(self.differential), self.fixed_rate(self.differential)
        error, best = (zeroed(x, self.scale) for x in (self.error(w), self.best_error))
        return Finding(
            "td_stable",
            text=f"the mean update of differential TD is stable with ratio = {number(self.ratio)}. "
            f"{words.capitalize()}. Its fixed point has the rate "
            f"{number(zeroed(rate, self.scale))}, and the true one is {number(self.rate)}. Its "
            f"values have the error {number(error)}, the best linear fit {number(best)}.",
            numbers=numbers | {"rate": rate, "true_rate": self.rate, "error": error},
        )

    def _penalty(self) -> Finding:
        """From where on the penalty makes it stable."""
        start = _stable_words(self.penalties, "eta")
        return Finding(
            "penalty",
            text=f"perturbed differential TD with ratio = {number(self.ratio)}: {start}. Where the "
            f"ratio is large enough, every eta above {threshold(max(self.eta_fast, 0.0))} is; with "
            f"any ratio, every eta above {threshold(max(self.eta_every, 0.0))}. Whatever the "
            f"features are, {number(self.bounds['fast'])} and {number(self.bounds['every'])} "
            "suffice for these.",
            numbers={"eta_fast": self.eta_fast, "eta_every": self.eta_every, **self.bounds,
                     "unstable_etas": [list(i) for i in self.penalties.unstable]},
        )  # fmt: skip

    def _bias(self) -> Finding | None:
        """What the penalty costs, in the rate and in the values."""
        if not self.moments.r_pi.any():
            return None
        eta = self.best_eta
        rate, error = self._rate_at(eta), zeroed(self.penalties.error(eta), self.scale)
        return Finding(
            "bias",
            text=f"with the penalty that eta=auto takes, {number(eta)}, the learned rate is "
            f"{number(zeroed(rate, self.scale))}, and the true one is {number(self.rate)}. The "
            f"values have the error {number(error)}; their size is "
            f"{number(self.error(np.zeros(self.problem.n_features)))}.",
            numbers={"eta": eta, "rate": rate, "true_rate": self.rate, "error": error},
        )

    def _constants(self) -> Finding | None:
        if not self.spans_constants:
            return None
        return Finding(
            "constants",
            text="the features span constants: differential TD leaves a constant in the values as "
            "it is in w0, and verdicts and errors do not count it. A penalty lets it decay.",
            numbers={},
        )

    def to_dict(self, etas: Sequence[float] = (), *, cures: bool = False) -> dict[str, Any]:
        """The whole certificate for JSON, with the path at the given penalties, and the cures."""
        found: dict[str, Any] = {
            "problem": self.problem.name,
            "policy": self.policy,
            "states": self.problem.n_states,
            "features": self.problem.n_features,
            "rank": self.rank,
            "average_reward": True,
            "rate": self.rate,
            "td_stable": self.td_stable,
            "unstable_ratios": [list(interval) for interval in self.ratios.unstable],
            "unstable_etas": [list(interval) for interval in self.penalties.unstable],
            "exact": self.ratios.exact and self.penalties.exact,
            "eta_fast": self.eta_fast,
            "eta_every": self.eta_every,
            "bounds": self.bounds,
            "best_eta": self.best_eta,
            "best_error": self.best_error,
            "error_of_zero": self.error(np.zeros(self.problem.n_features)),
            "learners": self.learners,
            "path": self.path(etas).to_dicts() if len(etas) else [],
            "advice": [finding.to_dict() for finding in self.findings(cures=cures)],
        }
        return found | ({"cures": [t.row for t in self.treatments]} if cures else {})


def _stable_words(cure: Cure, name: str) -> str:
    """For which amounts a cure is stable; "as far as a scan shows" where that is all one knows."""
    proviso = "" if cure.exact else ", as far as a scan shows"
    unstable: list[Interval] = cure.unstable
    if not unstable:
        return f"every {name} is stable{proviso}"
    if unstable == [(cure.low, np.inf)]:
        return f"no {name} is stable{proviso}"
    shown = ", ".join(
        f"above {number(lo)}" if hi == np.inf else f"from {threshold(lo)} to {number(hi)}"
        for lo, hi in unstable
    )
    return f"unstable {name} {shown}, all others are stable{proviso}"
