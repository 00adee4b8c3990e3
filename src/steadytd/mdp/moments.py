"""The exact matrices of one problem and one target policy, and what a learner does on average."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Bools, Floats, Longs, frozen
from steadytd.base.errors import InputError
from steadytd.mdp import chains
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

    `P` may be one sparse matrix [s, s'] per action. Then `r` and `gamma` are views [s, a, s'] of
    smaller arrays, what follows from P is found by iteration, and `accuracy` says how exactly.
    """

    P: Any  # [s, a, s'], an array or one sparse matrix per action
    mu: Floats
    pi: Floats
    r: Floats
    gamma: Floats
    features: Any  # [s, k], an array or sparse
    d: Floats
    interest: Floats
    active: Bools | None = None  # None: everywhere
    average_reward: bool = False
    accuracy: dict[str, float] = field(default_factory=dict)

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

    @property
    def sparse(self) -> bool:
        """Whether P is one sparse matrix per action."""
        return not isinstance(self.P, np.ndarray)

    def require_array(self, what: str) -> None:
        """Complain where P is sparse."""
        if self.sparse:
            raise InputError(
                f"{what} needs a matrix of all pairs of {len(self.d):,} states; give P as one "
                "array [s, a, s'], or leave this out."
            )

    def transitions(self, states: Floats) -> tuple[Longs, Longs, Longs, Floats]:
        """s, a, s' and p(s'|s, a) of what mu can do in the states of positive weight."""
        if self.sparse:
            return chains.listed(self.P, states[:, None] * self.mu)
        s, a, t = np.nonzero(states[:, None, None] * self.mu[:, :, None] * self.P)
        return s, a, t, self.P[s, a, t]

    @cached_property
    def onwards(self) -> Any:
        """sum_a pi(a|s) p(s'|s, a) gamma(s, a, s'), an array or sparse."""
        return self.flow(self.pi)

    @property
    def P_gamma(self) -> Floats:
        """`onwards` as an array."""
        self.require_array("P_gamma")
        return np.asarray(self.onwards)

    def flow(self, weight: Floats, gamma: Any = None) -> Any:
        """sum_a weight(s, a) p(s'|s, a) gamma(s, a, s'): `onwards` for another weight than pi.

        `gamma` may be another function of the transition.
        """
        gamma = self.gamma if gamma is None else gamma
        if self.sparse:
            return chains.flow(self.P, weight, gamma[0, 0])
        return np.asarray(np.einsum("sa,sat,sat->st", weight, self.P, gamma))

    @cached_property
    def P_pi(self) -> Floats:
        """sum_a pi(a|s) p(s'|s, a), without discounts."""
        self.require_array("P_pi")
        return np.asarray(np.einsum("sa,sat->st", self.pi, self.P))

    def settled(self, Q: Any, x: Floats, name: str) -> Floats:
        """(I - Q)^-1 x; of a sparse Q with the largest bound of its error as `accuracy[name]`."""
        if isinstance(Q, np.ndarray):
            return np.asarray(np.linalg.solve(np.eye(len(Q)) - Q, x))
        found = chains.settled(Q, x)
        self.accuracy[name] = max(found.error, self.accuracy.get(name, 0.0))
        return np.asarray(found.value)

    @cached_property
    def r_pi(self) -> Floats:
        """The expected reward of a step under the target policy."""
        if self.sparse:
            return np.asarray((self.pi * self.r[:, :, 0]).sum(axis=1))
        return np.asarray(np.einsum("sa,sat,sat->s", self.pi, self.P, self.r))

    @cached_property
    def reward_size(self) -> float:
        """The largest mean reward of a state, or what rounding leaves of rewards that cancel."""
        rewards = self.r[:, :, 0] if self.sparse else self.r
        return max(float(np.abs(self.r_pi).max()), CANCELLED * float(np.abs(rewards).max()))

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
        why = (
            ": with these discounts an episode under pi need not end; use gamma < 1, or discount 0 "
            "where an episode ends."
        )
        self._require_ends(self.onwards, "the target policy's values are", why)
        return self.settled(self.onwards, self.r_pi, "v_pi")

    def _require_ends(self, Q: Any, what: str, why: str) -> None:
        """Complain unless the powers of Q go to 0."""
        if not (chains.ends(Q) if self.sparse else _ends(Q)):
            raise InputError(f"{what} not finite{why}")

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
    def T(self) -> Any:
        """D^1/2 P_gamma D^-1/2 on the visited states."""
        root = np.sqrt(self.d[self.visited])
        inner = self.onwards
        if not self.visited.all():
            inner = inner[np.ix_(self.visited, self.visited)]
        if self.sparse:
            from scipy.sparse import diags_array

            return diags_array(root) @ inner @ diags_array(1.0 / root)
        return np.asarray(root[:, None] * inner / root)

    @cached_property
    def operator_norm(self) -> float:
        """||P_gamma||_D = ||T||: by how much a step under pi can stretch a value function."""
        if self.sparse:
            return float(np.sqrt(self._largest(self.T.T @ self.T, "operator_norm")))
        return float(np.linalg.norm(self.T, 2))

    @cached_property
    def numerical_range(self) -> float:
        """The largest v'D P_gamma v of a value function v with v'D v = 1."""
        symmetric = (self.T + self.T.T) / 2.0
        if self.sparse:
            return self._largest(symmetric, "numerical_range")
        return float(np.linalg.eigvalsh(symmetric)[-1])

    def _largest(self, symmetric: Any, name: str) -> float:
        found = chains.largest_eigenvalue(symmetric, np.sqrt(self.d[self.visited]))
        self.accuracy[name] = found.error
        return float(found.value)

    @property
    def radius(self) -> float:
        """The spectral radius of P_gamma."""
        if self.sparse:
            return chains.spectral_radius(self.onwards)
        return float(np.abs(np.linalg.eigvals(self.onwards)).max())

    @property
    def gamma_max(self) -> float:
        """The largest discount of a transition that mu can make."""
        s, a, t, _ = self.transitions(self.d)
        return float(self.gamma[s, a, t].max())

    def collected(self, x: Floats, lam: float, scale: float = 1.0) -> Floats:
        """(I - lam scale P_gamma)^-1 x: what a trace with decay lam collects along the way."""
        if lam == 0.0:
            return x
        if self.average_reward and lam * scale >= 1.0 - 1e-12:
            raise InputError(
                f"the mean of a trace is not finite at lam = {lam:g} without discount; use lam < 1."
            )
        return self.settled(lam * scale * self.onwards, x, f"collected({lam:g})")

    @cached_property
    def G(self) -> Floats:
        """Phi' D Phi."""
        return np.asarray((self.Phi * self.d[:, None]).T @ self.Phi)

    def weighted(self, inner: Floats) -> Floats:
        """Phi' D inner Phi."""
        return np.asarray(self.Phi.T @ (self.d[:, None] * inner) @ self.Phi)

    @cached_property
    def ahead(self) -> Floats:
        """P_gamma Phi."""
        return np.asarray(self.onwards @ self.Phi)

    @cached(4)
    def A(self, lam: float = 0.0) -> Floats:
        """Phi' D (I - lam P_gamma)^-1 (I - P_gamma) Phi, read-only."""
        step = self.collected(self.Phi - self.ahead, lam)
        return frozen((self.Phi * self.d[:, None]).T @ step)

    def b(self, lam: float = 0.0) -> Floats:
        """Phi' D (I - lam P_gamma)^-1 r_pi."""
        return np.asarray(self.Phi.T @ (self.d * self.collected(self.r_pi, lam)))

    def B(self, lam: float = 0.0) -> Floats:
        """(1 - lam) E[z x_next' gamma_next] transposed: the matrix of the gradient correction.

        (1 - lam) gamma_next (h.z) x_next has mean B(lam) h with
        B(lam) = (1 - lam) Phi' P_gamma' (I - lam P_gamma')^-1 D Phi = G - A(lam)'.
        """
        return np.asarray(self.G - self.A(lam).T)

    @cached_property
    def follow_on(self) -> Floats:
        """f = (I - P_gamma')^-1 (d i): the mean of ETD's follow-on trace times d."""
        return self.settled(self.onwards.T, self.d * self.interest, "follow_on")

    def follow_on_at(self, beta: float) -> Floats:
        """f = (I - beta P')^-1 (d i), where transitions that end an episode are left out of P."""
        ends = self.gamma[:1, :1] if self.sparse else self.gamma
        decay = beta * self.flow(self.pi, ends > 0.0)
        where = f" at beta = {beta:g}: under pi episodes do not end; use beta < 1."
        self._require_ends(decay, "the mean of the follow-on trace is", where)
        return self.settled(decay.T, self.d * self.interest, f"follow_on({beta:g})")

    def emphatic(self, emphasis: Floats, lam: float, scale: float = 1.0) -> Expectation:
        """TD(lam)'s mean update with another weight of the states in place of d.

        M = Phi' diag(e) (I - lam s P_gamma)^-1 (I - s P_gamma) Phi / s, with s = `scale`.
        """
        weighted = np.ascontiguousarray((self.Phi * emphasis[:, None]).T)
        M = weighted @ self.collected(self.Phi / scale - self.ahead, lam, scale)
        return Expectation(M=M, g=weighted @ self.collected(self.r_pi, lam, scale))

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
        Q, weighted = self.flow(weight), (self.Phi * self.d[:, None]).T
        M = weighted @ self.settled(Q, self.Phi - self.ahead, "cut")
        return Expectation(M=M, g=weighted @ self.settled(Q, self.r_pi, "cut"))


def _ends(Q: Floats) -> bool:
    """Whether the powers of Q go to 0: its largest row sum bounds the radius, and is cheaper."""
    largest = 1.0 - chains.ENDS
    return bool(Q.sum(axis=1).max() < largest or np.abs(np.linalg.eigvals(Q)).max() < largest)
