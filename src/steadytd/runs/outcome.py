"""How a run ended, in words that mean the same for every learner.

    overflowed    a weight, or the error itself, left the finite range
    growing       not overflowed, but the last error is more than 10 times the reference error, or
                  the mean update is unstable and the error rises: its mean over the last tenth of
                  the recording points is above that over the tenth before
    settled       neither, and close to the fixed point: the mean update is stable and has at most
                  a twentieth of the distance from w0 to its fixed point left, and the mean error
                  over the last tenth of the recording points is at most twice the reference error

Where none of them is true, a run is "not settled", and `why` says what is missing. The reference
error is the largest of three: at the start, of predicting zero everywhere, and of the fixed point
of the mean update, where the law has a closed form and is stable. So neither a good start nor a
fixed point with a large error counts against a learner.
Stability is that of the certificate (`theory.dynamics`), asked of the law. Without a closed form,
for a solver, or with more than 512 equations, only the errors count: a run has settled if the error
changes by at most a twentieth of its whole change between the last two tenths of the recording
points. On a stream without a model such a run is "flat; no model to compare with", never "settled".
Only the errors count, too, where the mean of all weights is reported (`average`) and step sizes
decay, and where the closed form holds for small steps only (`first_order`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError
from steadytd.base.numbers import number
from steadytd.engine.learner import Learner
from steadytd.engine.schedule import step_factors
from steadytd.mdp.action_values import ActionValues, Task
from steadytd.mdp.problem import Problem
from steadytd.theory.dynamics import fixed_point, grows, is_stable, reduced

OVERFLOWED, GROWING, UNSETTLED, FLAT, SETTLED = WORDS = (
    "overflowed", "growing", "not settled", "flat; no model to compare with", "settled",
)  # fmt: skip
FAR = 10.0  # times the reference error
SWINGS = 2.0  # times the reference error: a run that is close but worse has not settled
LAST = 10  # a tenth of the recording points
ARRIVED = 0.05  # of the distance may be left
LARGE = 512  # equations beyond which theory is not asked: eigenvalues take too long
MEANING = (
    "Overflowed: a weight or the error left the finite range. "
    f"Growing: the last error exceeds {FAR:g} times the reference error, or the mean update is "
    "unstable and the error rises. "
    "Settled: neither, at most a twentieth of the distance to the fixed point remains, and the "
    f"error is at most {SWINGS:g} times the reference error. "
    "Where theory does not give that distance, a settled error no longer changes. "
    f"{FLAT.capitalize()}: on a stream, the error no longer changes. "
    "The reference error is the largest of three: at the start, of predicting zero, and of the "
    "fixed point."
)


class Forecast(NamedTuple):
    """What theory predicts for a learner on a problem after some steps."""

    stable: bool | None  # None: no closed form
    error: float = 0.0  # of the fixed point, if stable
    left: float | None = None  # share of the distance from w0 to the fixed point; None: not known
    grows: bool = False  # unstable, and the mean weights grow without bound
    model: bool = True  # False: a stream without a model


@lru_cache(maxsize=1024)
def forecast(problem: Task, learner: Learner, steps: int) -> Forecast:
    """Stability for all target policies, the mean error of their fixed points, distance left."""
    if problem.n_features * len(learner.law.vectors) * problem.n_policies > LARGE:
        return Forecast(None)
    try:
        policies = range(problem.n_policies)
        if not all(is_stable(problem, learner, k) for k in policies):
            return Forecast(False, grows=any(_leaves(problem, learner, k) for k in policies))
        points = np.stack([fixed_point(problem, learner, k) for k in policies])
        error = float(problem.error(points if len(points) > 1 else points[0]))
        return Forecast(True, error, _left(problem, learner, steps))
    except (InputError, np.linalg.LinAlgError):
        return Forecast(None)


def _leaves(problem: Task, learner: Learner, policy: int) -> bool:
    """Whether a mode of the mean update grows, and the step sizes add up to infinity."""
    return learner.schedule[0] <= 1.0 and grows(problem, learner, policy)


def _left(problem: Task, learner: Learner, steps: int) -> float | None:
    """The distance of the mean weights from the fixed point, over that of w0.

    Distances are those of the values, weighted as in the error, and summed over the target
    policies. y_n - y* = prod_t (I - alpha_t M) (y_0 - y*); for decaying step sizes the product is
    taken as exp(-M sum_t alpha_t). The steps that traces need to fill are not counted.
    """
    decays = learner.schedule[0] != 0.0
    if learner.law.block is not None or learner.law.first_order or (learner.averaged and decays):
        return None
    steps = max(0, steps - max(_filling(problem, learner, k) for k in range(problem.n_policies)))
    alpha, (power, delay) = float(learner.values.get("alpha", 1.0)), learner.schedule
    start = learner.first_y(problem.w0)
    way = np.zeros(2)
    for k in range(problem.n_policies):
        e, span = reduced(problem, learner, k), problem.moments(k).row_space
        first = learner.law.basis(span).T @ start - np.linalg.solve(e.M, e.g)
        with np.errstate(over="ignore", invalid="ignore"):
            if not decays:
                one = np.eye(len(e.g)) - alpha * e.M
                move = np.linalg.matrix_power(one, steps)
                if learner.averaged and steps > 0:  # the mean of the powers from 1 to steps
                    move = np.linalg.solve(alpha * e.M, one - one @ move) / steps
            else:
                total = alpha * float(step_factors(0, steps, power, delay).sum())
                from scipy.linalg import expm

                move = expm(-total * e.M)
            seen = problem.moments(k).compared @ span
            both = np.stack([first, move @ first])[:, : span.shape[1]] @ seen.T
            way += np.sqrt((both**2) @ problem.error_weights(k))
    return float(way[1] / way[0]) if way[0] > 0.0 else 0.0


def _filling(problem: Task, learner: Learner, policy: int) -> int:
    """How many steps are lost while traces and memory grow to their mean.

    They approach it like 1 - r^t after t steps, with r the spectral radius of P_gamma (times lam in
    a trace). The differences add up to r / (1 - r) steps lost.
    """
    if learner.windows:
        return max(learner.windows) - 1
    if not (learner.traced or learner.law.remembered):
        return 0
    r = problem.moments(policy).radius
    r *= 1.0 if learner.law.remembered else float(learner.values.get(learner.law.trace_param, 1.0))
    return int(np.ceil(r / (1.0 - r))) if r < 1.0 else 0


def zero_error(problem: object) -> float:
    """The error of predicting zero; 0 without a model, where learners begin at zero."""
    if not isinstance(problem, Problem | ActionValues):
        return 0.0
    zeros = np.zeros((problem.n_policies, problem.n_features))
    return float(problem.error(zeros if len(zeros) > 1 else zeros[0]))


def outcome(errors: Floats, overflowed: bool, zero: float, theory: Callable[[], Forecast]) -> str:
    """The word for one run from its errors at the recording points; see above.

    `zero` is the error of predicting zero.

    >>> falls, rises = np.linspace(2.0, 1.0, 101), np.linspace(1.0, 2.0, 101)
    >>> [outcome(e, False, 1.0, lambda: Forecast(False)) for e in (falls, rises, 20.0 * rises**4)]
    ['not settled', 'growing', 'growing']
    >>> [outcome(rises, False, 1.0, lambda: Forecast(True, 1.0, left)) for left in (0.04, 0.06)]
    ['settled', 'not settled']
    >>> outcome(rises, True, 1.0, lambda: Forecast(None))
    'overflowed'
    >>> flat = np.append(2.0, np.ones(100))
    >>> [outcome(flat, False, 1.0, lambda: Forecast(None, model=m)) for m in (True, False)]
    ['settled', 'flat; no model to compare with']
    """
    last = float(errors[-1])
    if overflowed or not np.isfinite(last):
        return OVERFLOWED
    predicted = theory()
    reference = max(float(errors[0]), zero, predicted.error)
    before, after = _tenths(errors)
    if last > FAR * reference or (predicted.stable is False and after > before):
        return GROWING
    if after > SWINGS * reference or not _arrived(errors, predicted):
        return UNSETTLED
    return SETTLED if predicted.model else FLAT


def _arrived(errors: Floats, predicted: Forecast) -> bool:
    if predicted.stable is False:
        return False
    if predicted.left is not None:
        return predicted.left <= ARRIVED
    before, after = _tenths(errors)
    return abs(after - before) <= ARRIVED * abs(after - float(errors[0]))


def why(errors: Floats, predicted: Forecast) -> str:
    """Why a run has not settled.

    >>> why(np.linspace(2.0, 1.0, 101), Forecast(True, 0.5, 0.4))
    'by the mean update, 40 % of the initial distance to the fixed point remains'
    >>> why(np.linspace(2.0, 1.0, 101), Forecast(None))
    'the error is still changing: 1.145 in the next-to-last tenth, 1.045 in the last'
    >>> why(np.linspace(2.0, 8.0, 101), Forecast(True, 0.5, 0.01))
    'it fluctuates around its fixed point (error 0.5): mean error 7.73 over the last tenth'
    """
    if predicted.stable is False:
        more = "its mean update grows" if predicted.grows else "one of its modes does not decay"
        return f"unstable by the certificate: {more}"
    if _arrived(errors, predicted):
        swings = number(_tenths(errors)[1])
        if not predicted.model:
            return f"the error is flat at {swings}, more than {SWINGS:g} times that of the start"
        fixed = "" if predicted.stable is None else f" (error {number(predicted.error)})"
        return (
            f"it fluctuates around its fixed point{fixed}: mean error {swings} over the last tenth"
        )
    if predicted.left is None:
        before, after = _tenths(errors)
        first, last = number(before), number(after)
        if first == last:  # a small change of an error that has hardly changed before
            first, last = f"{before:.10g}", f"{after:.10g}"
        return f"the error is still changing: {first} in the next-to-last tenth, {last} in the last"
    if not predicted.left <= FAR:
        return "by the mean update it diverges: the step size is too large"
    share = f"{100 * predicted.left:.2g} %"
    return f"by the mean update, {share} of the initial distance to the fixed point remains"


def _tenths(errors: Floats) -> tuple[float, float]:
    """The mean errors over each of the last two tenths of the recording points."""
    few = max(len(errors) // LAST, 1)
    with np.errstate(over="ignore"):
        return float(errors[-2 * few : -few].mean()), float(errors[-few:].mean())


def worst(words: Sequence[str]) -> str:
    """The word for several runs: the first of `WORDS` that is true of one of them.

    >>> worst(["settled", "growing", "settled"])
    'growing'
    """
    return min(words, key=WORDS.index)


def ended(words: Sequence[str]) -> str:
    """How several runs ended, in words.

    >>> ended(["settled"] * 3), ended(["growing", "settled", "overflowed", "growing"])
    ('settled', 'overflowed 1, growing 2 of 4')
    """
    counts = Counter(words)
    if len(counts) == 1:
        return words[0]
    rest = (FLAT, SETTLED)
    parts = ", ".join(f"{w} {counts[w]}" for w in WORDS if counts[w] and w not in rest)
    return f"{parts} of {len(words)}"
