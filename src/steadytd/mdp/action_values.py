"""Action values: the same problem and stream, learned per pair of a state and an action.

A pair (s, a) has the features x = Psi[s, a]. What follows it is not one pair but all actions of the
next state, weighted by the target policy: x_bar' = sum_a' pi(a'|s') Psi[s', a']. So the feature
table has a row per pair, then a row per target policy and state, and the engine's loops need not
know that the values are those of actions.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from steadytd.base.arrays import Bools, Floats, Longs, frozen
from steadytd.base.errors import InputError, visible
from steadytd.base.numbers import require_room
from steadytd.engine.learner import Learner
from steadytd.mdp import checks
from steadytd.mdp.moments import Moments
from steadytd.mdp.problem import Problem, value_error

CONVERGED = 1e-13  # relative change at which value iteration stops
MOST_SWEEPS = 1_000_000


class ActionValues:
    """Evaluate q_pi of a problem from its stream, with features `Psi[s, a, k]`.

    `Psi` is one-hot by default, one weight per pair; `ActionValues.per_action(problem)` gives every
    action its own copy of the state features. `w0` are the start weights (default: zero). Errors
    weigh a pair by d_mu(s) mu(a|s), times the interest in s.

    >>> import steadytd as st
    >>> q = ActionValues(st.problem("three_state"))
    >>> q.n_features == q.problem.n_states * q.problem.n_actions
    True
    """

    def __init__(
        self, problem: Problem, Psi: ArrayLike | None = None, w0: ArrayLike | None = None
    ) -> None:
        problem.moments().require_array("ActionValues")
        S, A = problem.n_states, problem.n_actions
        if problem.average_reward:
            raise InputError(
                f"{problem.name} asks for the average reward, of which action values are not "
                "learned; use the problem itself, or one with a discount."
            )
        given = checks.array("Psi", np.eye(S * A).reshape(S, A, -1) if Psi is None else Psi, 3)
        checks.shape("Psi", given, (S, A, given.shape[2]), "[s, a, k]")
        checks.usable_sizes("Psi", given.reshape(S * A, -1))
        self.problem = problem
        self.Psi: Floats = frozen(given)
        self.w0 = checks.start_weights(w0, given.shape[2])

    @classmethod
    def per_action(cls, problem: Problem, w0: ArrayLike | None = None) -> ActionValues:
        """Psi[s, a] holds the state features phi(s) in the block of action a, zero elsewhere."""
        S, A, d = problem.n_states, problem.n_actions, problem.n_features
        require_room(
            f"the features of {S * A:,} pairs of a state and an action", 8.0 * S * A * A * d,
            "use fewer features: those of actions are stored as a dense array",
        )  # fmt: skip
        problem.moments().require_array("ActionValues")
        Psi = np.einsum("sk,ab->sabk", problem.moments().Phi, np.eye(A)).reshape(S, A, A * d)
        return cls(problem, Psi, w0)

    def __repr__(self) -> str:
        size = f"{self.problem.n_states} states, {self.problem.n_actions} actions"
        of = f"<action values of {self.problem.name}: {size}, {self.n_features} features>"
        return visible(of)

    @property
    def name(self) -> str:
        """The name of the problem."""
        return self.problem.name

    @property
    def base(self) -> Problem:
        """The problem whose stream is walked."""
        return self.problem

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return int(self.Psi.shape[2])

    @property
    def n_policies(self) -> int:
        """Number of target policies on the stream."""
        return self.problem.n_policies

    @property
    def Phi(self) -> Floats:
        """The features as [pair, k], pair s A + a."""
        return self.Psi.reshape(-1, self.n_features)

    @cached_property
    def table(self) -> Floats:
        """The rows of all pairs, then for every target policy the rows x_bar of all states."""
        pi = self.problem.pi.reshape(-1, *self.Psi.shape[:2])
        expected = np.einsum("psa,sak->psk", pi, self.Psi).reshape(-1, self.n_features)
        return frozen(np.concatenate([self.Phi, expected]))

    def rows(self, s: Longs, a: Longs, s_next: Longs, policy: int) -> tuple[Longs, Longs]:
        """The rows of x and x_bar' of the transitions (s, a, s') in the table."""
        S, A = self.Psi.shape[:2]
        return s * A + a, S * A + policy * S + s_next

    @cached_property
    def q_pi(self) -> Floats:
        """The exact values, [s, a], or [policy, s, a] with several target policies."""
        found = []
        for k in range(self.n_policies):
            m = self.problem.moments(k)
            found.append(np.einsum("sat,sat->sa", m.P, m.r + m.gamma * m.v_pi))
        return frozen(found if self.problem.pi.ndim == 3 else found[0])

    @property
    def targets(self) -> Floats:
        """The exact values, [policy, pair]."""
        return self.q_pi.reshape(self.n_policies, -1)

    def error_weights(self, policy: int = 0) -> Floats:
        """The weight of each pair in the error: d_mu(s) interest(s) mu(a|s), scaled to sum 1."""
        weights = self.problem.error_weights(policy)[:, None] * self.problem.mu
        return np.asarray(weights.reshape(-1))

    def error(self, w: ArrayLike) -> float | Floats:
        """sqrt(sum_sa d_mu(s) mu(a|s) (Psi[s, a].w - q_pi(s, a))^2): a number, or one per row of w.

        With several target policies w is [..., policy, k] and the error their mean.
        """
        d = np.stack([self.error_weights(k) for k in range(self.n_policies)])
        return value_error(w, self.Phi, self.targets, d, several=self.problem.pi.ndim == 3)

    def moments(self, policy: int = 0) -> Moments:
        """The exact matrices over pairs: those of a chain that follows pi as its only action.

        P_gamma[(s, a), (s', a')] = p(s'|s, a) gamma(s, a, s') pi(a'|s'), and d of a pair is
        d_mu(s) mu(a|s). So A(lam), b(lam), G and B(lam) are those of GQ(lam).
        """
        m = self.problem.moments(policy)
        S, A = m.pi.shape
        n = S * A

        def pairs(values: Floats) -> Floats:
            """[s, a, s'] as [(s, a), 0, (s', a')]."""
            return np.repeat(values.reshape(n, 1, S), A, axis=2)

        return Moments(
            P=pairs(m.P) * m.pi.reshape(1, 1, n),
            mu=np.ones((n, 1)),
            pi=np.ones((n, 1)),
            r=pairs(m.r),
            gamma=pairs(m.gamma),
            features=self.Phi,
            d=(m.d[:, None] * m.mu).reshape(n),
            interest=np.repeat(m.interest, A),
        )

    @cached_property
    def q_star(self) -> Floats:
        """The values of the best policy, [s, a], by value iteration (for one target policy)."""
        require_one_policy(self, "q_star")
        m = self.problem.moments()
        q = np.zeros(m.pi.shape)
        for _ in range(MOST_SWEEPS):
            after = np.einsum("sat,sat->sa", m.P, m.r + m.gamma * q.max(axis=1))
            if np.abs(after - q).max() <= CONVERGED * np.abs(after).max():
                return frozen(after)
            q = after
        raise InputError(
            f"the best values of {self.name} are not finite: under some policy an episode need not "
            "end; use gamma < 1, or discount 0 where an episode ends."
        )

    def greedy(self, w: ArrayLike) -> Longs:
        """The best action of every state at the weights w; of equals, the first."""
        return np.asarray((self.Psi @ np.asarray(w, dtype=np.float64)).argmax(axis=1))


Task = Problem | ActionValues


def require_one_policy(task: Task, what: str) -> None:
    """Complain about several target policies, which may have rewards of their own."""
    if task.n_policies > 1:
        raise InputError(
            f"{what} is defined by one reward and one discount, but {task.name} has "
            f"{task.n_policies} target policies; make a problem with one."
        )


def require_match(task: Task, learner: Learner, policy: int = 0) -> None:
    """Complain if the learner's values are not those of the task.

    A state-value law multiplies x by rho because the action of x is not given. Where it is given,
    that is right only if rho = 1; and a law that asks for the action's probabilities would take
    them from the wrong action. So on action values such a law may run on-policy only.
    """
    if learner.law.average_reward and not task.base.average_reward:
        raise InputError(
            f"{learner.name} learns the average reward, and {task.name} has a discount: make the "
            "problem with average_reward=True, or use td or another learner of discounted values."
        )
    if task.base.average_reward and not learner.law.average_reward:
        raise InputError(
            f"{learner.name} learns discounted values, and {task.name} asks for the average "
            "reward: use differential_td or another learner of it, or a problem with a discount."
        )
    if isinstance(task, Problem):
        if learner.law.action_values:
            raise InputError(
                f"{learner.name} learns action values: wrap the problem in st.ActionValues(...)."
            )
    elif not learner.law.action_values:
        m = task.problem.moments(policy)
        differs: Bools = m.pi != m.mu
        if learner.law.needs_policies or differs.any():
            raise InputError(
                f"{learner.name} learns state values: on the action values of {task.name} it may "
                "run only where pi = mu and if it uses nothing but rho; use gq."
            )
