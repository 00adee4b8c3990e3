"""The closed form of a law: M and g of its mean update E[change of y] = alpha (g - M y).

It is what the law's author gives with `expectation=`, or is read off the law where that can be
done. Either is a claim about the law, and `check` holds it against the law itself: on drawn
problems, with drawn hyper-parameters and vectors y, g - M y must be the exact mean of one step
over all transitions (`mean_step`). So it finds a wrong formula, and a law that is not affine in its
vectors. Whatever uses the closed form of a user's law has it checked first, once in a process; the
library's own laws are checked by the tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError, users_own
from steadytd.base.wording import count
from steadytd.engine.law import GENERAL, Law, Value
from steadytd.engine.learner import Learner, variant_names
from steadytd.learners import algorithm
from steadytd.mdp.action_values import ActionValues, Task
from steadytd.mdp.moments import Expectation, Moments
from steadytd.mdp.problem import Problem
from steadytd.theory.exact import can_be_read, derived
from steadytd.theory.mean_step import ALPHA, MeanStep

PROBLEMS, STATES, ACTIONS, FEATURES = 3, 4, 2, 3
SAME = 1e-9  # of the sizes that are added up: both are exact but for rounding
STEP_SIZES = (
    ALPHA,
    2.0**-6,
)  # a closed form holds at each, unless it is of the first order in alpha
SIZES = (1.0, 1e6)  # of y: a law that clips large numbers is not affine


@dataclass(frozen=True)
class LawCheck:
    """What `check` found; prints as a sentence."""

    law: str
    problems: int  # drawn ones on which the closed form was compared with the law
    difference: float  # the largest, relative to the sizes of what is added up
    passed: bool
    text: str

    def __str__(self) -> str:
        return self.text


class Compared(NamedTuple):
    """Where the law and its closed form differ the most, and what each says of the mean change."""

    difference: float
    alpha: float
    vector: str
    by_law: Floats
    by_form: Floats


def closed_form(law: Law, m: Moments, numbers: Mapping[str, float]) -> Expectation:
    """The mean update of a law, given or read off; a user's law is checked first."""
    found = None if law.in_library else _verdict(law)
    if found is not None and not found.passed:
        raise InputError(found.text)
    return stated(law, m, numbers)


def has_closed_form(law: Law) -> bool:
    """Whether a law has a closed form, at least without traces, that is not known to be wrong."""
    given = law.expectation is not None or (can_be_read(law, {}) and not law.action_values)
    if not given or law.in_library:
        return given
    found = _verdict(law)
    return found is None or found.passed


def require_right(law: Law) -> None:
    """Complain if the `expectation=` of a user's law is not its mean update."""
    if law.expectation is not None and not has_closed_form(law):
        raise InputError(check(law).text)


def check(law: Law | Learner | str) -> LawCheck:
    """Compare the closed form of a law, given or derived, with the law itself on drawn problems.

    >>> import steadytd as st
    >>> print(st.check("perturbed_td"))
    the closed form of perturbed_td is right on 6 drawn problems (largest difference 2e-15).
    """
    found = algorithm(law.partition(":")[0]) if isinstance(law, str) else law
    found = found.algorithm if isinstance(found, Learner) else found
    if found.block is not None:
        raise InputError(
            f"{found.name} cannot be checked: it solves a system and has no mean step; compare its "
            "weights after a long run with c.fixed_point(...)."
        )
    done: list[tuple[Compared, str]] = []
    declined: InputError | None = None
    for word in variant_names(found) or ("",):
        for seed in range(PROBLEMS):
            learner = _drawn_learner(found, word, seed)
            try:
                sizes = SIZES[:1] if learner.law.maps else SIZES  # a box has an inside
                compared = compare(learner, drawn_task(found, seed), seed, sizes)
            except InputError as error:  # not for these hyper-parameters
                declined = error
            else:
                _, _, settings = str(learner).partition("alpha=1")
                done.append((compared, f"drawn problem {seed}{settings.replace(',', ' with ', 1)}"))
    if not done:
        raise declined or InputError(f"{found.name} cannot be checked.")
    worst, where = max(done, key=lambda one: one[0].difference)
    passed = worst.difference <= SAME
    problems = count(len(done), "drawn problem")
    text = (
        f"the closed form of {found.name} is right on {problems} (largest difference "
        f"{worst.difference:.0e})."
    )
    return LawCheck(found.name, len(done), worst.difference, passed,
                    text if passed else _fault(found, worst, where))  # fmt: skip


def compare(learner: Learner, task: Task, seed: int, sizes: tuple[float, ...] = (1.0,)) -> Compared:
    """The law and its closed form at vectors drawn by `seed`: where they differ the most."""
    law, rng = learner.law, np.random.default_rng(seed)
    M, g = stated(law, task.moments(), numbers_of(learner))
    found = []
    for alpha in STEP_SIZES[:1] if law.first_order else STEP_SIZES:
        step = MeanStep(learner, task, alpha)
        for size in sizes:
            y = size * rng.normal(size=len(g))
            for name in law.settled:
                first = law.vectors.index(name) * task.n_features
                part = slice(first, first + task.n_features)
                y[part] = np.linalg.lstsq(M, g)[0][part]
            with users_own(f"law {law.name}"), np.errstate(all="ignore"):
                by_law, by_form = step(y), g - M @ y
            scale = max(1.0, float((np.abs(M) @ np.abs(y) + np.abs(g)).max()))
            apart = np.nan_to_num(np.abs(by_law - by_form), nan=np.inf) / scale
            place = int(apart.argmax()) // task.n_features
            own = slice(place * task.n_features, (place + 1) * task.n_features)
            vector = law.vectors[place]
            found.append(Compared(float(apart.max()), alpha, vector, by_law[own], by_form[own]))
        worst = max(found, key=lambda one: one.difference)
        if worst.difference > SAME:  # at small steps already: larger ones need not be tried
            break
    return worst


def stated(law: Law, m: Moments, numbers: Mapping[str, float]) -> Expectation:
    """What a law says of its mean update, or what is read off it, right or wrong."""
    if law.expectation is None:
        if law.action_values or not can_be_read(law, numbers):
            raise InputError(
                f"{law.name} has no closed-form expectation; give its law one with "
                "expectation=... (a function of Moments and the hyper-parameters). It is read off "
                "a law of state values without traces, memory and maps."
            )
        with users_own(f"law {law.name}"):
            return derived(law, m, numbers)
    with users_own(f"the closed form of {law.name}"):
        M, g = (
            np.asarray(part).astype(np.float64, casting="same_kind", copy=False)
            for part in law.expectation(m, numbers)
        )
    size = m.Phi.shape[1] * len(law.vectors)
    if M.shape != (size, size) or g.shape != (size,):
        raise InputError(
            f"the closed form of {law.name} must give M [{size}, {size}] and g [{size}] for "
            f"{m.Phi.shape[1]} features, got the shapes {M.shape} and {g.shape}."
        )
    if not (np.isfinite(M).all() and np.isfinite(g).all()):
        raise InputError(f"the closed form of {law.name} must give finite numbers.")
    return Expectation(M, g)


def numbers_of(learner: Learner) -> dict[str, float]:
    """The hyper-parameters that are numbers."""
    return {k: v for k, v in learner.values.items() if not isinstance(v, str)}


@lru_cache(maxsize=1024)
def _verdict(law: Law) -> LawCheck | None:
    """What `check` finds; None where it cannot tell."""
    try:
        return check(law)
    except InputError:
        return None


def _fault(law: Law, worst: Compared, where: str) -> str:
    """What is wrong, where, and what to do."""
    vectors = [np.array2string(v, precision=6) for v in (worst.by_law, worst.by_form)]
    seen = f"On {where}, the mean change of {worst.vector} over alpha is {vectors[0]} by the law"
    if worst.alpha != ALPHA:
        why = "its steps are not proportional to alpha"
        remedy = "Give the law first_order=True: its certificate is then one for small steps."
    elif law.expectation is None:
        why = "it is not affine in its vectors"
        remedy = "So there is no certificate for it; runs are not touched by that."
    else:
        why = ""
        remedy = "Correct expectation=, or leave it out if the law has no trace and no memory."
    if law.expectation is None:
        return (
            f"{law.name} has no closed-form expectation: {why}. {seen}, and {vectors[1]} by the "
            f"closed form that was read off it. {remedy}"
        )
    because = f": {why}" if why else ""
    return (
        f"the closed form of {law.name} is wrong{because}. {seen} and {vectors[1]} by "
        f"expectation=. {remedy}"
    )


def _drawn_learner(law: Law, word: str, seed: int) -> Learner:
    """A learner of the law: its defaults with seed 0 (lam = 0), else all numbers drawn."""
    rng = np.random.default_rng(seed)
    values: dict[str, Value] = {"alpha": 1.0, **({law.variant_param: word} if word else {})}
    for name, param in law.all_params.items():
        if name != "alpha" and name not in GENERAL and (seed or param.default is None):
            values[name] = param.inside(round(float(rng.uniform(0.1, 0.9)), 2))
    return Learner(law, values)


def drawn_task(law: Law, seed: int) -> Task:
    """A small problem in which everything differs, that the law can be run on.

    Rewards and discounts differ from transition to transition, interest from state to state; some
    steps end an episode, and mu takes an action that pi avoids.
    """
    rng = np.random.default_rng(seed)
    shape = (STATES, ACTIONS, STATES)
    pi, mu = rng.dirichlet(np.full(ACTIONS, 3.0), size=(2, STATES))
    pi[0] = np.eye(ACTIONS)[0]
    P = rng.uniform(0.2, 1.0, shape)  # to the next state, or to itself or the one after the next
    for s, a in np.ndindex(shape[:2]):
        P[s, a, (s + np.array([3, 2 * a])) % STATES] = 0.0
    problem = Problem(
        name=f"drawn {seed}",
        P=P / P.sum(axis=2, keepdims=True),
        r=rng.normal(size=shape),
        gamma=np.where(rng.random(shape) < 0.2, 0.0, rng.uniform(0.5, 0.95, shape)),
        mu=mu,
        pi=pi,
        Phi=rng.normal(size=(STATES, FEATURES)),
        interest=rng.uniform(0.5, 2.0, STATES),
    )
    if not law.action_values:
        return problem
    return ActionValues(problem, rng.normal(size=(STATES, ACTIONS, FEATURES)))
