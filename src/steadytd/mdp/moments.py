"""The exact matrices of one problem and one target policy, and what a learner does on average."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Bools, Floats, frozen
from steadytd.base.errors import InputError
from steadytd.mdp.cached import cached
from steadytd.mdp.scales import RowSpace, column_lengths, power_of_two
from steadytd.mdp.sparse import dense
from steadytd.mdp.stationary import stationary_distribution

CANCELLED = 1e-6  # of the largest reward: a mean far below it may be rounding
NEVER = 1e-15  # of all steps: how often a state may be visited that counts as not visited


class Expectation(NamedTuple):
    """The mean update of a learner in its steady state: E[change of y] = alpha (g - M y).

    y stacks the learner's vectors: w first, then h and so on, each of length d.
    """

    M: Floats
    g: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class Moments:
    """P_gamma, r_pi, v_pi and, with D = diag(d), the learners' matrices A, b and G.

    `P_gamma[s, s'] = sum_a pi(a|s) p(s'|s, a) gamma(s, a, s')` stands for gamma P_pi throughout, so
    that termination and per-transition discounts need no special case.

    `d` is d_mu on the states that are active for the policy and 0 elsewhere: means are per step of
    the stream, whether or not the learner updates in it. So d sums to 1 only if all are active.
    No discounted step leaves the active states, so products that begin with D, such as
    D (I - lam P_gamma)^-1, never reach the others.

    With `average_reward` all discounts are 1, and values are differential: rewards are counted less
    `rate`, and the mean of v_pi under d is 0.
    """

    P: Floats
    mu: Floats
    pi: Floats
    r: Floats
    gamma: Floats
    features: Any  # [s, k], an array or sparse
    d: Floats
    interest: Floats
    active: Bools | None = None  # None: everywhere
    average_reward: bool = False

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.features.shape[1])

    @cached_property
    def Phi(self) -> Floats:
        """The features [s, k] as an array; sparse ones are made dense here, if there is room."""
        return dense(self.features)

    @property
    def everywhere(self) -> bool:
        """Whether every state is active."""
        return self.active is None or bool(self.active.all())

    @property
    def share(self) -> float:
        """The share of steps in which the learner updates: the mean of 1 in its equations."""
        return 1.0 if self.everywhere else float(self.d.sum())

    def require_everywhere(self, learner: str) -> None:
        """Complain about inactive states, for a closed form that also uses x_next at the ends."""
        if not self.everywhere:
            raise InputError(
                f"{learner} has no closed form where some states are not active: it also learns at "
                "the states that follow the end of an episode."
            )

    @property
    def _taken(self) -> Bools:
        """The pairs [s, a] of an active state and an action that mu takes there."""
        taken = self.mu > 0.0
        return np.asarray(taken if self.active is None else taken & self.active[:, None])

    @property
    def max_ratio(self) -> float:
        """The largest importance ratio pi/mu in an active state."""
        return float((self.pi[self._taken] / self.mu[self._taken]).max())

    @property
    def peaks(self) -> tuple[float, float]:
        """The least and the largest max(pi, mu) over active states and actions that mu takes."""
        peaks = np.maximum(self.pi, self.mu)[self._taken]
        return float(peaks.min()), float(peaks.max())

    @cached_property
    def P_gamma(self) -> Floats:
        """sum_a pi(a|s) p(s'|s, a) gamma(s, a, s')."""
        return self.flow(self.pi)

    def flow(self, weight: Floats) -> Floats:
        """sum_a weight(s, a) p(s'|s, a) gamma(s, a, s'): P_gamma for another weight than pi."""
        return np.asarray(np.einsum("sa,sat,sat->st", weight, self.P, self.gamma))

    @cached_property
    def P_pi(self) -> Floats:
        """sum_a pi(a|s) p(s'|s, a), without discounts."""
        return np.asarray(np.einsum("sa,sat->st", self.pi, self.P))

    @cached_property
    def r_pi(self) -> Floats:
        """The expected reward of a step under the target policy."""
        return np.asarray(np.einsum("sa,sat,sat->s", self.pi, self.P, self.r))

    @cached_property
    def reward_size(self) -> float:
        """The largest mean reward of a state, or what rounding leaves of rewards that cancel."""
        largest = float(np.abs(self.r_pi).max())
        return max(largest, CANCELLED * float(np.abs(self.r).max()))

    @cached_property
    def d_pi(self) -> Floats:
        """The stationary distribution of the target policy's chain."""
        return stationary_distribution(self.P_pi, "target")

    @property
    def rate(self) -> float:
        """The target policy's mean reward per step, in the long run."""
        return float(self.d_pi @ self.r_pi)

    @cached_property
    def v_pi(self) -> Floats:
        """The solution of v = r_pi + P_gamma v; with average reward of v = r_pi - rate + P v.

        Differential values are known up to a constant: their mean under d is 0. The system has the
        mean added to it, which is then 0, since d_pi (I - P) = 0.
        """
        if self.average_reward:
            system = np.eye(len(self.d)) - self.P_pi + self.d
            return np.asarray(np.linalg.solve(system, self.r_pi - self.rate))
        system = np.eye(len(self.r_pi)) - self.P_gamma
        largest = 1.0 - 1e-12
        # the largest row sum bounds the spectral radius, and is much cheaper
        if self.P_gamma.sum(axis=1).max() >= largest and _spectral_radius(self.P_gamma) >= largest:
            raise InputError(
                "the target policy's values are not finite: with these discounts an episode under "
                "pi need not end; use gamma < 1, or discount 0 where an episode ends."
            )
        return np.asarray(np.linalg.solve(system, self.r_pi))

    @cached_property
    def compared(self) -> Floats:
        """The features [s, k] whose values are compared with v_pi, to measure an error.

        With average reward values are known up to a constant, so these are the features less their
        mean under d: the error is that of the best constant added.
        """
        return self.Phi - self.d @ self.Phi if self.average_reward else self.Phi

    @property
    def visited(self) -> Bools:
        """Which states the behaviour policy visits in the long run, while they are active.

        One that it comes to less than once in 10^15 steps is not: no run sees it, and numbers
        that weigh it beside the others cannot hold it.
        """
        return np.asarray(self.d > NEVER)

    @cached_property
    def row_space(self) -> Floats:
        """An orthonormal basis, [d, rank], of the weights that visited states can tell apart.

        With inactive states: that visited active ones can tell apart.
        """
        return self.span.Q

    @cached_property
    def span(self) -> RowSpace:
        """The row space with the sizes of the features in it."""
        return RowSpace.of(self.Phi[self.visited])

    @cached_property
    def compact(self) -> Moments | None:
        """The same problem with the features Phi Q; None where products with Q are as good.

        A learner's mean update on the row space is that with these features, since Q is
        orthonormal. Features of very different sizes, or nearly dependent ones, lose their small
        parts when Phi' X Phi is rounded; these do not.
        """
        if self.span.values is None:
            return None
        Phi = self.Phi @ self.span.Q
        Phi[self.visited] = self.span.values
        return replace(self, features=Phi)

    @cached_property
    def equal(self) -> Moments:
        """`compact` with features of about the same size (itself where that is None)."""
        own = self.compact
        return self if own is None else replace(own, features=own.Phi / self.span.sizes)

    def least_squares(self, M: Floats, g: Floats) -> Floats:
        """The least-squares solution of M w = g, for a matrix M like Phi' X Phi.

        Features of very different sizes are scaled to about 1 before: otherwise the small ones
        would count as dependent on the others.
        """
        if self.compact is None:
            return np.asarray(np.linalg.lstsq(M, g)[0])
        s = power_of_two(column_lengths(self.Phi[self.visited]))
        return np.asarray(np.linalg.lstsq(M / np.outer(s, s), g / s)[0] / s)

    @cached_property
    def T(self) -> Floats:
        """D^1/2 P_gamma D^-1/2 on the visited states."""
        root = np.sqrt(self.d[self.visited])
        inner = self.P_gamma[np.ix_(self.visited, self.visited)]
        return np.asarray(root[:, None] * inner / root)

    @cached_property
    def operator_norm(self) -> float:
        """||P_gamma||_D = ||T||: by how much a step under pi can stretch a value function."""
        return float(np.linalg.norm(self.T, 2))

    @property
    def gamma_max(self) -> float:
        """The largest discount of a transition that mu can make."""
        possible = (self.d[:, None] * self.mu)[:, :, None] * self.P > 0.0
        return float(self.gamma[possible].max())

    def resolvent(self, lam: float, scale: float = 1.0) -> Floats:
        """(I - lam scale P_gamma)^-1: what a trace with decay lam collects along the way."""
        identity = np.eye(len(self.d))
        if lam == 0.0:
            return identity
        if self.average_reward and lam * scale >= 1.0 - 1e-12:
            raise InputError(
                f"the mean of a trace is not finite at lam = {lam:g} without discount; use lam < 1."
            )
        return np.asarray(np.linalg.inv(identity - lam * scale * self.P_gamma))

    @cached_property
    def G(self) -> Floats:
        """Phi' D Phi."""
        return np.asarray((self.Phi * self.d[:, None]).T @ self.Phi)

    def weighted(self, inner: Floats) -> Floats:
        """Phi' D inner Phi."""
        return np.asarray(self.Phi.T @ (self.d[:, None] * inner) @ self.Phi)

    @cached(4)
    def A(self, lam: float = 0.0) -> Floats:
        """Phi' D (I - lam P_gamma)^-1 (I - P_gamma) Phi, read-only."""
        step = np.eye(len(self.d)) - self.P_gamma
        return frozen(self.weighted(step if lam == 0.0 else self.resolvent(lam) @ step))

    def b(self, lam: float = 0.0) -> Floats:
        """Phi' D (I - lam P_gamma)^-1 r_pi."""
        collected = self.r_pi if lam == 0.0 else self.resolvent(lam) @ self.r_pi
        return np.asarray(self.Phi.T @ (self.d * collected))

    def B(self, lam: float = 0.0) -> Floats:
        """(1 - lam) E[z x_next' gamma_next] transposed: the matrix of the gradient correction.

        (1 - lam) gamma_next (h.z) x_next has mean B(lam) h with
        B(lam) = (1 - lam) Phi' P_gamma' (I - lam P_gamma')^-1 D Phi = G - A(lam)'.
        """
        return np.asarray(self.G - self.A(lam).T)

    @cached_property
    def follow_on(self) -> Floats:
        """f = (I - P_gamma')^-1 (d i): the mean of ETD's follow-on trace times d."""
        return self._follow_on(self.P_gamma)

    def follow_on_at(self, beta: float) -> Floats:
        """f = (I - beta P')^-1 (d i), where transitions that end an episode are left out of P."""
        decay = beta * np.einsum("sa,sat,sat->st", self.pi, self.P, self.gamma > 0.0)
        largest = 1.0 - 1e-12
        if decay.sum(axis=1).max() >= largest and _spectral_radius(decay) >= largest:
            raise InputError(
                f"the mean of the follow-on trace is not finite at beta = {beta:g}: under pi "
                "episodes do not end; use beta < 1."
            )
        return self._follow_on(decay)

    def _follow_on(self, decay: Floats) -> Floats:
        system = np.eye(len(self.d)) - decay.T
        return np.asarray(np.linalg.solve(system, self.d * self.interest))

    def emphatic(self, emphasis: Floats, lam: float, scale: float = 1.0) -> Expectation:
        """TD(lam)'s mean update with another weight of the states in place of d.

        M = Phi' diag(e) (I - lam s P_gamma)^-1 (I - s P_gamma) Phi / s, with s = `scale`.
        """
        weighted = np.ascontiguousarray((self.Phi * emphasis[:, None]).T)
        if lam > 0.0:
            weighted = weighted @ self.resolvent(lam, scale)
        M = weighted @ (self.Phi / scale - self.P_gamma @ self.Phi)
        return Expectation(M=M, g=weighted @ self.r_pi)

    def direct(self, mean: Expectation) -> Expectation:
        """The mean update of a solver that goes to the end of `mean` at once: P (w* - w).

        P projects onto the row space; outside it nothing is ever learned. Where `mean.M` is
        singular there, w* is the solution (or least-squares solution) of least norm.
        """
        Q, s = self.row_space, self.span.sizes
        M, g = Q.T @ mean.M @ Q / np.outer(s, s), Q.T @ mean.g / s
        end = np.linalg.lstsq(M, g, rcond=1e-12)[0] / s
        return Expectation(M=Q @ Q.T, g=Q @ end)

    def cut(self, weight: Floats) -> Expectation:
        """The mean of rho delta z for a trace z <- c gamma z + x, `weight` = mu c of every action.

        M = Phi' D (I - Q)^-1 (I - P_gamma) Phi with Q = flow(weight).
        """
        identity = np.eye(len(self.d))
        collected = (self.Phi * self.d[:, None]).T @ np.linalg.inv(identity - self.flow(weight))
        return Expectation(
            M=collected @ (self.Phi - self.P_gamma @ self.Phi), g=collected @ self.r_pi
        )


def _spectral_radius(matrix: Floats) -> float:
    return float(np.abs(np.linalg.eigvals(matrix)).max())
