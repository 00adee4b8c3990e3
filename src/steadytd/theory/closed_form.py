"""The closed form of a law: M and g of its mean update E[change of y] = alpha (g - M y).

It is what the law's author gives with `expectation=`, or is read off the law where that can be
done. Either is a claim about the law, and `check` holds it against the law itself: on drawn
problems, with drawn hyper-parameters and vectors y, g - M y must be the exact mean of one step
over all transitions (`MeanStep`). So it finds a wrong formula, and a law that is not affine in its
vectors. Whatever uses the closed form of a user's law has it checked first, once in a process; the
library's own laws are checked by the tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError, users_own
from steadytd.base.numbers import count
from steadytd.engine.facts import CARRIED, named
from steadytd.engine.law import GENERAL, Law, Value, arguments, call
from steadytd.engine.learner import Learner
from steadytd.engine.settings import variant_names
from steadytd.learners import law_of
from steadytd.mdp.action_values import ActionValues, Task
from steadytd.mdp.moments import Expectation, Moments
from steadytd.mdp.problem import Problem
from steadytd.theory.reading import ALPHA, Steps, can_be_read, clocks_of, derived, multiples

PROBLEMS, STATES, ACTIONS, FEATURES = 3, 4, 2, 3
SAME = 1e-9  # of the sizes that are added up: both are exact but for rounding
STEP_SIZES = (
    ALPHA,
    2.0**-6,
)  # a closed form holds at each, unless it is of the first order in alpha
SIZES = (1.0, 1e6)  # of y: a law that clips large numbers is not affine
CONVERGED = 1e-14  # relative change at which a memory's or trace's mean has come to rest
REPETITIONS = 20_000
CYCLE = 100  # steps after which a clock must have begun again


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
    if wrong := _wrong(law):
        raise InputError(wrong)
    return stated(law, m, numbers)


def has_closed_form(law: Law) -> bool:
    """Whether a law has a closed form, at least without traces, that is not known to be wrong."""
    given = law.expectation is not None or (can_be_read(law, {}) and not law.action_values)
    return given and not _wrong(law)


def require_right(law: Law) -> None:
    """Complain if the `expectation=` of a user's law is not its mean update."""
    if law.expectation is not None and (wrong := _wrong(law)):
        raise InputError(wrong)


@lru_cache(maxsize=1024)
def _wrong(law: Law) -> str:
    """What is wrong with the closed form of a user's law; "" if nothing, or if none can tell."""
    try:
        found = None if law.in_library else check(law)
    except InputError:
        return ""
    return "" if found is None or found.passed else found.text


def check(law: Law | Learner | str) -> LawCheck:
    """Compare the closed form of a law, given or derived, with the law itself on drawn problems.

    >>> import steadytd as st
    >>> found = st.check("perturbed_td")
    >>> found.passed, found.problems
    (True, 6)
    """
    found = law_of(law) if isinstance(law, str) else law
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
    places = law.places(task.n_features)
    M, g = stated(law, task.moments(), numbers_of(learner))
    found = []
    for alpha in STEP_SIZES[:1] if law.first_order else STEP_SIZES:
        with users_own(f"law {law.name}"):
            step = MeanStep(learner, task, alpha)
        for size in sizes:
            y = size * rng.normal(size=len(g))
            for name in law.settled:
                part = places[name]
                y[part] = np.linalg.lstsq(M, g)[0][part]
            with users_own(f"law {law.name}"), np.errstate(all="ignore"):
                by_law, by_form = step(y), g - M @ y
            scale = max(1.0, float((np.abs(M) @ np.abs(y) + np.abs(g)).max()))
            apart = np.nan_to_num(np.abs(by_law - by_form), nan=np.inf) / scale
            worst_entry = int(apart.argmax())
            vector, own = next((v, part) for v, part in places.items() if worst_entry < part.stop)
            found.append(Compared(float(apart.max()), alpha, vector, by_law[own], by_form[own]))
        worst = max(found, key=lambda one: one.difference)
        if worst.difference > SAME:  # at small steps already: larger ones need not be tried
            break
    return worst


def stated(law: Law, m: Moments, numbers: Mapping[str, float]) -> Expectation:
    """What a law says of its mean update, or what is read off it, right or wrong."""
    if law.expectation is None:
        if law.adapts:
            raise InputError(f"{law.name} has no closed form. {frozen(law)}")
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
    size = m.Phi.shape[1] * len(law.vectors) + len(law.scalars)
    if M.shape != (size, size) or g.shape != (size,):
        raise InputError(
            f"the closed form of {law.name} must give M [{size}, {size}] and g [{size}] for "
            f"{m.Phi.shape[1]} features, got the shapes {M.shape} and {g.shape}."
        )
    if not (np.isfinite(M).all() and np.isfinite(g).all()):
        raise InputError(f"the closed form of {law.name} must give finite numbers.")
    return Expectation(M, g)


def frozen(law: Law) -> str:
    """What is certain of a law that learns step sizes."""
    return (
        f"It learns a step size for every feature. While these are small and constant, its mean "
        f"update is that of {law.adapts} with a step size per feature: the same fixed point."
    )


def numbers_of(learner: Learner) -> dict[str, float]:
    """The hyper-parameters that are numbers."""
    return {k: v for k, v in learner.values.items() if not isinstance(v, str)}


def _fault(law: Law, worst: Compared, where: str) -> str:
    """What is wrong, where, and what to do."""
    given = law.expectation is not None
    by_law, by_form = (np.array2string(v, precision=6) for v in (worst.by_law, worst.by_form))
    if worst.alpha != ALPHA:
        why = ": its steps are not proportional to alpha"
        remedy = "Give the law first_order=True: its certificate is then one for small steps."
    elif given:
        why, remedy = "", "Correct it, or leave it out if the law has no trace and no memory."
    else:
        why = ": it is not affine in its vectors"
        remedy = "So there is no certificate for it; runs need none."
    what = f"the closed form of {law.name} is wrong"
    return (
        f"{what if given else f'{law.name} has no closed-form expectation'}{why}. On {where}, the "
        f"mean change of {worst.vector} over alpha is {by_law} by the law, and {by_form} by "
        f"{'expectation=' if given else 'the closed form that is read off it'}. {remedy}"
    )


def _drawn_learner(law: Law, word: str, seed: int) -> Learner:
    """A learner of the law: its defaults and lam = 0 with seed 0, else all numbers drawn."""
    rng = np.random.default_rng(seed)
    values: dict[str, Value] = {"alpha": 1.0, **({law.variant_param: word} if word else {})}
    for name, param in law.all_params.items():
        if name != "alpha" and name not in GENERAL and (seed or param.default is None):
            values[name] = param.inside(round(float(rng.uniform(0.1, 0.9)), 2))
    trace = law.params.get(law.trace_param)
    if trace is not None and not seed and trace.low == 0.0:
        values[law.trace_param] = 0.0
    return Learner(law, values)


def drawn_task(law: Law, seed: int) -> Task:
    """A small problem in which everything differs, that the law can be run on.

    Rewards and discounts differ from transition to transition, interest from state to state; some
    steps end an episode, and mu takes an action that pi avoids.
    """
    rng = np.random.default_rng(seed)
    shape, average = (STATES, ACTIONS, STATES), law.average_reward
    pi, mu = rng.dirichlet(np.full(ACTIONS, 3.0), size=(2, STATES))
    pi[0] = np.eye(ACTIONS)[0]
    P = rng.uniform(0.2, 1.0, shape)  # to the next state, or to itself or the one after the next
    for s, a in np.ndindex(shape[:2]):
        P[s, a, (s + np.array([3, 2 * a])) % STATES] = 0.0
    problem = Problem(
        name=f"drawn {seed}",
        P=P / P.sum(axis=2, keepdims=True),
        r=rng.normal(size=shape),
        gamma=1.0
        if average
        else np.where(rng.random(shape) < 0.2, 0.0, rng.uniform(0.5, 0.95, shape)),
        mu=mu,
        pi=pi,
        Phi=rng.normal(size=(STATES, FEATURES)),
        interest=None if average else rng.uniform(0.5, 2.0, STATES),
        average_reward=average,
    )
    if not law.action_values:
        return problem
    return ActionValues(problem, rng.normal(size=(STATES, ACTIONS, FEATURES)))


class MeanStep:
    """E[change of y] / alpha as a function of y, the stacked vectors, by enumeration.

    Only the law's own Python functions are used, no closed form. A step depends on the past through
    what the previous transition carries over, the law's memory and its traces. At given vectors,
    memory and traces are linear in their own past, so their conditional expectations given the
    previous transition may stand for them, and those are found by repeating the law's functions
    over all pairs of consecutive transitions until nothing changes; with a window of n steps, n - 1
    times. A memory that asks for nothing but itself and hyper-parameters is a clock: the mean is
    that over its cycle. Where a law is not linear in its past, or its memory has no finite mean,
    there is an error.
    """

    def __init__(self, learner: Learner, task: Task, alpha: float = ALPHA) -> None:
        self.law, self.n_features, self.alpha = learner.law, task.n_features, alpha
        m = task.base.moments()
        self.values = {**learner.values, "alpha": alpha}
        s, a, s_next, facts, p = Steps.of(m, m.d)
        row, row_next = task.rows(s, a, s_next, 0)
        self.x, self.x_next = task.table[row], task.table[row_next]
        frequency = m.d[s] * m.mu[s, a] * p
        self.facts = [named(row) for row in facts]
        # pairs of consecutive transitions; `chance` is that of the first given the second
        self.before, self.now = np.nonzero(s_next[:, None] == s[None, :])
        self.chance = frequency[self.before] / m.d[s[self.now]]
        self.frequency = self.chance * frequency[self.now]
        asked = arguments(self.law.update)
        self.products = {n: pair for n, pair in self.law.products.items() if n in asked}
        asked_by_traces = {name for f in self.law.traces.values() for name in arguments(f)}
        self.trace_products = {n: p for n, p in self.law.products.items() if n in asked_by_traces}
        # what a law remembers, as one vector: its memory, then its traces
        self.clocks = clocks_of(self.law)
        self.cycle = self._cycle()
        self.kept = [name for name in self.law.remembered if name not in self.clocks]
        self.remembered = len(self.kept) + len(self.law.traces) * self.n_features
        moving = {*self.law.traces, *self.kept}
        windows = {learner.window(name) for name in self.law.windows}
        if windows and (moving != set(self.law.windows) or len(windows) > 1):
            raise self._unknown("its traces and memory have windows of different lengths")
        self.window = min(windows, default=0)
        self.steady: list[Floats] | None = None

    def __call__(self, y: Floats) -> Floats:
        """The mean change at y, divided by alpha."""
        means = []
        for phase, past in zip(self.cycle, self._remembered(y), strict=True):
            changes = [self._step(p, one, y, phase)[1] for p, one in enumerate(past[self.before])]
            means.append(self.frequency @ np.array(changes) / self.alpha)
        return np.asarray(np.mean(means, axis=0))

    def _remembered(self, y: Floats) -> list[Floats]:
        """`_steady`, found once where what is remembered does not depend on y."""
        if self.trace_products or any(self.law.memory[name] is None for name in self.kept):
            return self._steady(y)
        if self.steady is None:
            self.steady = self._steady(y)
        return self.steady

    def _cycle(self) -> list[dict[str, float]]:
        """The values of the clocks, one after the other until they begin again."""
        now, cycle = dict.fromkeys(self.clocks, 0.0), list[dict[str, float]]()
        while len(cycle) < 2 or cycle[0] != cycle[-1]:
            if len(cycle) > CYCLE:
                raise self._unknown("its memory does not begin again")
            now = {n: call(f, {**self.values, **now}) for n, f in self.clocks.items()}
            cycle.append(now)
        return cycle[:-1]

    def expectation(self) -> Expectation:
        """M and g of E[change of y] = alpha (g - M y), from its values at 0 and unit vectors."""
        size = len(self.law.vectors) * self.n_features + len(self.law.scalars)
        g = self(np.zeros(size))
        return Expectation(M=np.stack([g - self(unit) for unit in np.eye(size)], axis=1), g=g)

    def _step(
        self, p: int, past: Floats, y: Floats, clocks: Mapping[str, float]
    ) -> tuple[Floats, Floats]:
        """The second step of pair p: what is remembered after it, and the change of y."""
        law, d = self.law, self.n_features
        size = len(self.kept)
        memory = dict(zip(self.kept, past[:size].tolist(), strict=True))
        old = dict(zip(law.traces, past[size:].reshape(-1, d), strict=True))
        previous, present = self.facts[self.before[p]], self.facts[self.now[p]]
        scope: dict[str, Any] = {**self.values, **present, **memory, **clocks}
        scope |= {now: previous[then] for now, then in CARRIED.items()}
        for name, function in law.memory.items():
            if function is not None and name not in clocks:
                memory[name] = scope[name] = call(function, scope)
        vectors = {name: y[place] for name, place in law.places(d).items()}
        scope |= {name: float(vectors[name][0]) for name in law.scalars}
        vectors["1"] = np.ones(1)
        vectors["x"] = self.x[self.now[p]]
        vectors["x_next"] = self.x_next[self.now[p]]
        before = {**vectors, **old}
        pairs = {n: float(before[a] @ before[b]) for n, (a, b) in self.trace_products.items()}
        for name, function in law.traces.items():
            decay, scale = call(function, scope | pairs)
            vectors[name] = decay * old[name] + scale * vectors["x"]
        scope |= {n: float(vectors[a] @ vectors[b]) for n, (a, b) in self.products.items()}
        change = {name: np.zeros_like(vectors[name]) for name in (*law.vectors, *law.scalars)}
        for (name, part), multiple in multiples(law, scope).items():
            if name in memory:
                memory[name] = multiple
            else:
                change[name] = change[name] + multiple * vectors[part]
        for name, function in law.maps.items():
            moved = vectors[name] + change[name]
            mapped = [call(function, {**scope, "value": value}) for value in moved.tolist()]
            change[name] = change[name] + (np.array(mapped) - moved)
        kept = [np.array(list(memory.values())), *(vectors[name] for name in law.traces)]
        return np.concatenate(kept), np.concatenate(list(change.values()))

    def _steady(self, y: Floats) -> list[Floats]:
        """What is remembered on average before every phase: [phase][transition, remembered]."""
        size, pairs = self.remembered, range(len(self.now))
        maps = []
        for phase in self.cycle:
            fresh = np.array([self._step(p, np.zeros(size), y, phase)[0] for p in pairs])
            ahead = [[self._step(p, unit, y, phase)[0] for unit in np.eye(size)] for p in pairs]
            decay = np.array(ahead).reshape(len(pairs), size, size) - fresh[:, None, :]
            maps.append((fresh, decay))
        means = [np.zeros((len(self.x), size)) for _ in self.cycle]
        for repetition in range(REPETITIONS):
            if self.window and repetition == self.window - 1:
                break
            last = [mean.copy() for mean in means]
            for i, (fresh, decay) in enumerate(maps):
                after = np.zeros_like(means[i])
                kept = fresh + np.einsum("pi,pij->pj", means[i][self.before], decay)
                np.add.at(after, self.now, self.chance[:, None] * kept)
                means[(i + 1) % len(maps)] = after
            sizes = np.abs(means).max(axis=(0, 1), initial=0.0)
            if (np.abs(np.array(means) - last) <= CONVERGED * sizes).all() and not self.window:
                break
        else:
            raise self._unknown("its memory or trace has no finite mean")
        self._check_linear(y, means)
        return means

    def _check_linear(self, y: Floats, means: list[Floats]) -> None:
        """The change and the next memory must be linear in the past: (f(0) + f(2u)) / 2 = f(u).

        Around what is remembered on average, since some traces are as small as alpha. Memory that
        the update writes may multiply traces, but must itself not depend on the past.
        """
        rng = np.random.default_rng(0)
        written = [self.kept.index(n) for n in self.kept if self.law.memory[n] is None]
        for p in rng.integers(len(self.now), size=20):
            i = int(rng.integers(len(means)))
            past = means[i][self.before[p]]
            u = rng.normal(size=self.remembered) * np.abs(means[i]).max(axis=0, initial=0.0)
            u[written] = 0.0
            found = [self._step(p, past + k * u, y, self.cycle[i]) for k in (0.0, 1.0, 2.0)]
            none, one, two = (np.concatenate([kept, change / self.alpha]) for kept, change in found)
            scale = np.maximum(np.abs(none), np.abs(two))
            bent = np.abs((none + two) / 2 - one) > 1e-9 * scale + 1e-10 * scale.max()
            if bent.any() or (none[written] != two[written]).any():
                raise self._unknown("it is not linear in its own past")

    def _unknown(self, why: str) -> InputError:
        return InputError(f"the mean step of {self.law.name} cannot be enumerated: {why}.")
