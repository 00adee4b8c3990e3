"""Fixed points and mean dynamics of the learners, exactly, from the problem's matrices.

Every linear learner changes its vectors y = (w, h, ...) on average by alpha (g - M y) once its
traces are in their steady state. `closed_form` has M and g, from the learner's file or its law, and
this module draws the conclusions: where the mean update stops, whether it leads there, and where
the mean weights are after n steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError
from steadytd.engine.law import Law
from steadytd.engine.learner import Learner
from steadytd.engine.schedule import step_factors
from steadytd.mdp.action_values import Task, require_match
from steadytd.mdp.cached import cached
from steadytd.mdp.moments import Expectation, Moments
from steadytd.mdp.scales import (
    EPS,
    Complexes,
    Rates,
    graded_rates,
    rates_of,
    same,
    scaled_solution,
    tall_triangle,
)
from steadytd.theory.closed_form import closed_form, numbers_of

TINY = 1e-150  # below it a number's square underflows
HIDDEN = 1e-10  # a direction in which everything is so small beside the rest counts as not moving
SINGULAR = 1e12  # condition number from which on a matrix counts as singular


def expectation(problem: Task, learner: Learner, policy: int = 0) -> Expectation:
    """The mean update of a learner on a problem: E[change of y] = alpha (g - M y)."""
    require_match(problem, learner, policy)
    return closed_form(learner.law, problem.moments(policy), numbers_of(learner))


def reduced(problem: Task, learner: Learner, policy: int = 0) -> Expectation:
    """The mean update on the row space of Phi; weights outside it never change the values."""
    require_match(problem, learner, policy)
    return reduced_form(learner.law, problem.moments(policy), numbers_of(learner))


def reduced_form(law: Law, m: Moments, numbers: Mapping[str, float]) -> Expectation:
    """The mean update of a law on the row space.

    Where features differ much in size, the law is asked for its mean update with the features
    Phi Q (`Moments.compact`), unless its steps depend on more than inner products of features.
    """
    full = closed_form(law, m, numbers)
    blocks = law.basis(m.row_space)
    e = Expectation(M=blocks.T @ full.M @ blocks, g=blocks.T @ full.g)
    if m.compact is not None:
        own = closed_form(law, m.compact, numbers)
        e = own if same(own.M, e.M) else e
    return _up_to_constants(law, m, e) if m.average_reward else e


def _up_to_constants(law: Law, m: Moments, e: Expectation) -> Expectation:
    """With average reward: modes that never move, and neither the rate nor differences of values.

    Where the features span constants, differential TD leaves a constant in the values as it is.
    That is no fault: they are known up to one. Such modes get the mean rate of the others, so that
    they are neither the slowest nor the fastest, and decay if the others do.
    """
    rank, n = m.row_space.shape[1], len(e.g)
    size = np.diag(law.basis(np.diag(m.span.sizes)))  # of features, which may differ much
    M = e.M / np.outer(size, size)
    seen = np.zeros((len(m.d) + len(law.scalars[:1]), n))
    seen[: len(m.d), :rank] = m.compared @ m.row_space / size[:rank]
    seen[len(m.d) :, len(law.vectors) * rank] = 1.0
    parts = [part / (np.abs(part).max(initial=0.0) or 1.0) for part in (seen, M)]
    _, sizes, directions = np.linalg.svd(np.vstack(parts))
    hidden = directions[np.append(sizes, np.zeros(n - len(sizes))) <= HIDDEN] / size
    N = np.linalg.qr(hidden.T)[0].T
    if not len(N) or len(N) == n:
        return e
    return Expectation(M=e.M + np.trace(e.M) / (n - len(N)) * (N.T @ N), g=e.g)


def fixed_point(problem: Task, learner: Learner, policy: int = 0) -> Floats:
    """The weights w at which the mean update is zero, stable or not (of least norm if many)."""
    return _fixed(problem, learner, policy)[: problem.n_features]


def fixed_rate(problem: Task, learner: Learner, policy: int = 0) -> float:
    """The first scalar there: with average reward the reward rate."""
    return float(_fixed(problem, learner, policy)[problem.n_features])


def _fixed(problem: Task, learner: Learner, policy: int) -> Floats:
    """w and then the scalars at which the mean update is zero."""
    m, numbers = problem.moments(policy), len(learner.law.scalars)
    if m.compact is None:
        e = expectation(problem, learner, policy)
        solution, *_ = np.linalg.lstsq(e.M, e.g, rcond=1e-12)
        apart = float(np.abs(e.M @ solution - e.g).max())
        size = max(float(np.abs(e.g).max()), m.reward_size * float(np.abs(m.Phi).max()))
        rounding = EPS * float(np.abs(e.M).max() * np.abs(solution).sum())
        left = apart / size if apart > rounding else 0.0
        w = solution[: problem.n_features]
    else:
        e = reduced(problem, learner, policy)
        singular = bool(np.linalg.cond(_equal(problem, learner, policy).M) > SINGULAR)
        solution, left = scaled_solution(e.M, e.g, singular=singular)
        w = m.row_space @ solution[: m.row_space.shape[1]]
    if left > 1e-8:
        raise InputError(
            f"{learner} has no fixed point on {problem.name}: its matrix is singular and b is not "
            "in its range; change the hyper-parameters (for perturbed_td: eta)."
        )
    return np.append(w, solution[len(solution) - numbers :])


def decay_rates(problem: Task, learner: Learner, policy: int = 0) -> Complexes:
    """The eigenvalues of M on the row space: the mean update is stable if all have Re > 0."""
    rates = _rates(problem, learner, policy).values
    rates.flags.writeable = False
    return rates


@cached(256)
def _rates(problem: Task, learner: Learner, policy: int) -> Rates:
    M, m = reduced(problem, learner, policy).M, problem.moments(policy)
    if m.compact is not None:
        return graded_rates(M, np.diag(learner.law.basis(np.diag(m.span.sizes))))
    return rates_of(M, size=float(np.abs(m.G).max()))


def is_stable(problem: Task, learner: Learner, policy: int = 0) -> bool:
    """Whether the mean update leads to the fixed point for small enough step sizes.

    Features of very different sizes can make a mode so slow that rounding hides its sign. Then the
    verdict is that for features of equal size.
    """
    rates = _rates(problem, learner, policy).real
    if problem.moments(policy).compact is not None and not rates.all():
        rates = rates_of(_equal(problem, learner, policy).M).real
    return bool((rates > 0.0).all())


def _equal(problem: Task, learner: Learner, policy: int) -> Expectation:
    """The mean update on the row space if all features had about the same size."""
    return closed_form(learner.law, problem.moments(policy).equal, numbers_of(learner))


def grows(problem: Task, learner: Learner, policy: int = 0) -> bool:
    """Whether a mode of the mean update grows, by more than rounding."""
    return bool((_rates(problem, learner, policy).real < 0.0).any())


def mean_weights(problem: Task, learner: Learner, steps: int, policy: int = 0) -> Floats:
    """The weights after `steps` mean updates from w0: y <- y + alpha_t (g - M y).

    For a constant step size this is one power of a matrix; for a decaying one the steps are taken
    one by one. Where the learner moves in the last of every k steps only, so does the mean.
    """
    e = expectation(problem, learner, policy)
    n, every = len(e.g), learner.every
    # a direct solver is there in one mean step
    alpha = every * float(learner.values.get("alpha", 1.0))
    power, delay = learner.schedule
    start = learner.first_y(problem.w0)
    with np.errstate(over="ignore", invalid="ignore"):
        if power == 0.0:
            step = np.eye(n + 1)
            step[:n, :n] -= alpha * e.M
            step[:n, n] = alpha * e.g
            y = (np.linalg.matrix_power(step, steps // every) @ np.append(start, 1.0))[:n]
        else:
            y = start
            for factor in step_factors(0, steps, power, delay)[every - 1 :: every]:
                y = y + alpha * factor * (e.g - e.M @ y)
    return np.asarray(y[: problem.n_features])


def best_error(problem: Task, policy: int = 0) -> float:
    """The least error of any weights: the distance of v_pi from the span of the features."""
    root = np.sqrt(problem.error_weights(policy))
    target = root * problem.moments(policy).v_pi
    m = problem.moments(policy)
    system = root[:, None] * (
        m.compared if m.compact is None else m.compact.compared / m.span.sizes
    )
    small = tall_triangle(np.hstack([system, target[:, None]]))
    w, *_ = np.linalg.lstsq(small[:, :-1], small[:, -1], rcond=None)
    return float(np.linalg.norm(small[:, :-1] @ w - small[:, -1]))


def largest_alpha(problem: Task, learner: Learner, policy: int = 0) -> float:
    """Below this constant step size the mean update contracts: min 2 Re(l)/|l|^2; 0 if unstable.

    The mean is that over the steps in which the learner updates: skipped steps do not help. 0, too,
    where rounding hides how fast every mode decays.
    """
    if not is_stable(problem, learner, policy):
        return 0.0
    share = problem.moments(policy).share / learner.every
    rates = decay_rates(problem, learner, policy) / share
    known = rates[rates.real > TINY]  # all but modes so slow that rounding hides them
    if not rates.size:  # all features are zero: nothing moves
        return math.inf
    return float((2.0 * known.real / np.abs(known) ** 2).min()) if known.size else 0.0
