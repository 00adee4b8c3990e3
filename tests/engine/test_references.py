"""Every learner against its equations, written out a second time in plain NumPy.

The references below come from the published equations, not from the laws, and they see the
problem's arrays, not the engine's tables. Several of them were got wrong elsewhere; so each known
mistake is made here on purpose, to show that this stream would tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pytest

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.engine.law import Value, arguments
from steadytd.engine.learner import Learner
from steadytd.learners import names
from steadytd.mdp.action_values import Task
from steadytd.streams.finite import FiniteStream
from tests.support.cases import CASES, off_policy_problem, task_for
from tests.support.cure_references import CURES

STEPS = 200
SEED = 2
ALPHA = 0.01
TOLERANCE = 1e-10  # of the largest weight: some thirty roundings a step, hardly amplified
VISIBLE = 5e-4  # what a mistake changes at least: five million times the tolerance


class Step(NamedTuple):
    """One step as the equations name it; `gamma` and `*_1` belong to the previous transition."""

    x: Floats
    x_next: Floats
    reward: float
    gamma: float
    gamma_next: float
    rho: float
    rho_1: float
    pi: float
    pi_1: float
    mu: float
    mu_1: float
    interest: float
    peaks: tuple[float, float]


Params = dict[str, Value]
Reference = Callable[[Sequence[Step], Floats, Params], Floats]


def number(params: Params, name: str) -> float:
    return float(params[name])


def td(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    alpha, lam = number(params, "alpha"), number(params, "lam")
    z = np.zeros_like(w)
    for s in steps:
        z = s.rho * (s.gamma * lam * z + s.x)
        w = w + alpha * (s.reward + s.gamma_next * (w @ s.x_next) - w @ s.x) * z
    return w


def perturbed_td(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    alpha, lam, eta = (number(params, name) for name in ("alpha", "lam", "eta"))
    z = np.zeros_like(w)
    for s in steps:
        bootstrap = s.reward + s.gamma_next * (w @ s.x_next)
        if params["penalty"] == "scaled":
            z = s.rho * (s.gamma * lam / (1 + eta) * z + s.x)
            w = w + alpha * (bootstrap - (1 + eta) * (w @ s.x)) * z
        else:
            z = s.rho * (s.gamma * lam * z + s.x)
            w = w + alpha * ((bootstrap - w @ s.x) * z - eta * s.rho * (w @ s.x) * s.x)
    return w


def etd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    alpha, lam = number(params, "alpha"), number(params, "lam")
    z, F = np.zeros_like(w), 0.0
    for s in steps:
        F = s.gamma * s.rho_1 * F + s.interest
        M = lam * s.interest + (1 - lam) * F
        z = s.rho * (s.gamma * lam * z + M * s.x)
        w = w + alpha * (s.reward + s.gamma_next * (w @ s.x_next) - w @ s.x) * z
    return w


def gtd2(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    alpha, lam = number(params, "alpha"), number(params, "lam")
    beta = number(params, "ratio") * alpha
    z, h = np.zeros_like(w), np.zeros_like(w)
    for s in steps:
        z = s.rho * (s.gamma * lam * z + s.x)
        delta = s.reward + s.gamma_next * (w @ s.x_next) - w @ s.x
        w, h = (
            w + alpha * ((h @ s.x) * s.x - s.gamma_next * (1 - lam) * (h @ z) * s.x_next),
            h + beta * (delta * z - (h @ s.x) * s.x),
        )
    return w


def tdc(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    alpha, lam = number(params, "alpha"), number(params, "lam")
    beta = number(params, "ratio") * alpha
    z, h = np.zeros_like(w), np.zeros_like(w)
    for s in steps:
        z = s.rho * (s.gamma * lam * z + s.x)
        delta = s.reward + s.gamma_next * (w @ s.x_next) - w @ s.x
        w, h = (
            w + alpha * (delta * z - s.gamma_next * (1 - lam) * (h @ z) * s.x_next),
            h + beta * (delta * z - (h @ s.x) * s.x),
        )
    return w


def tdc_as_published(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """At lam = 0 the notebooks' lines: no weight at all, or pi(s, a) on every term."""
    alpha, lam = number(params, "alpha"), number(params, "lam")
    beta = number(params, "ratio") * alpha
    z, h = np.zeros_like(w), number(params, "h0") * w
    for s in steps:
        weight = s.pi if params["weight"] == "pi" else 1.0
        z = weight * (s.gamma * lam * z + s.x)
        delta = s.reward + s.gamma_next * (w @ s.x_next) - w @ s.x
        w, h = (
            w + alpha * (delta * z - s.gamma_next * (1 - lam) * (h @ z) * s.x_next),
            h + beta * (delta * z - weight * (h @ s.x) * s.x),
        )
    return w


def gq(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """TDC's form on pairs (x' is the expectation under pi); rho belongs to the trace's past."""
    alpha, lam = number(params, "alpha"), number(params, "lam")
    beta = number(params, "ratio") * alpha
    z, h = np.zeros_like(w), np.zeros_like(w)
    for s in steps:
        z = s.rho * s.gamma * lam * z + s.x
        delta = s.reward + s.gamma_next * (w @ s.x_next) - w @ s.x
        w, h = (
            w + alpha * (delta * z - s.gamma_next * (1 - lam) * (h @ z) * s.x_next),
            h + beta * (delta * z - (h @ s.x) * s.x),
        )
    return w


def tdrc(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    alpha, lam, reg = (number(params, name) for name in ("alpha", "lam", "reg"))
    beta = number(params, "ratio") * alpha
    z, h = np.zeros_like(w), np.zeros_like(w)
    for s in steps:
        z = s.rho * (s.gamma * lam * z + s.x)
        delta = s.reward + s.gamma_next * (w @ s.x_next) - w @ s.x
        w, h = (
            w + alpha * (delta * z - s.gamma_next * (1 - lam) * (h @ z) * s.x_next),
            h + beta * (delta * z - (h @ s.x) * s.x - reg * h),
        )
    return w


def gtd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    alpha = number(params, "alpha")
    beta = number(params, "ratio") * alpha
    h = np.zeros_like(w)
    for s in steps:
        delta = s.reward + s.gamma_next * (w @ s.x_next) - w @ s.x
        w, h = (
            w + alpha * s.rho * (s.x - s.gamma_next * s.x_next) * (h @ s.x),
            h + beta * (s.rho * delta * s.x - h),
        )
    return w


def htd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    alpha, lam = number(params, "alpha"), number(params, "lam")
    beta = number(params, "ratio") * alpha
    z, z_b, h = np.zeros_like(w), np.zeros_like(w), np.zeros_like(w)
    for s in steps:
        z = s.rho * (s.gamma * lam * z + s.x)
        z_b = s.gamma * lam * z_b + s.x
        delta = s.reward + s.gamma_next * (w @ s.x_next) - w @ s.x
        forward = s.x - s.gamma_next * s.x_next
        w, h = (
            w + alpha * (delta * z + forward * ((z - z_b) @ h)),
            h + beta * (delta * z - forward * (z_b @ h)),
        )
    return w


def pgtd2(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    alpha, lam = number(params, "alpha"), number(params, "lam")
    beta = number(params, "ratio") * alpha
    z, h = np.zeros_like(w), np.zeros_like(w)

    def slopes(s: Step, w: Floats, h: Floats) -> tuple[Floats, Floats]:
        delta = s.reward + s.gamma_next * (w @ s.x_next) - w @ s.x
        for_w = (h @ s.x) * s.x - s.gamma_next * (1 - lam) * (h @ z) * s.x_next
        return for_w, delta * z - (h @ s.x) * s.x

    for s in steps:
        z = s.rho * (s.gamma * lam * z + s.x)
        for_w, for_h = slopes(s, w, h)
        for_w, for_h = slopes(s, w + alpha * for_w, h + beta * for_h)
        w, h = w + alpha * for_w, h + beta * for_h
    return w


def rotd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """As matrices: y = (h; w) down M' u with soft thresholds, u = (u; v) up M y - q in its box."""
    alpha, c, l1, radius = (number(params, name) for name in ("alpha", "c", "l1", "radius"))
    d = len(w)
    y, dual = np.concatenate([np.zeros(d), w]), np.zeros(2 * d)
    for s in steps:
        forward = s.rho * (s.x - s.gamma_next * s.x_next)
        M = np.block(
            [
                [c * np.outer(s.x, s.x), c * np.outer(s.x, forward)],
                [s.rho * s.gamma_next * np.outer(s.x_next, s.x), np.outer(s.x, forward)],
            ]
        )
        q = s.rho * s.reward * np.concatenate([c * s.x, s.x])
        lower, higher = y - alpha * M.T @ dual, dual + alpha * (M @ y - q)
        y = np.sign(lower) * np.maximum(np.abs(lower) - alpha * l1, 0.0)
        dual = np.clip(higher, -radius, radius)
    return y[d:]


def etd_beta(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    return perturbed_etd(steps, w, {**params, "eta": 0.0})


def perturbed_etd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    alpha, lam, beta, eta = (number(params, name) for name in ("alpha", "lam", "beta", "eta"))
    z, F = np.zeros_like(w), 0.0
    for s in steps:
        if s.gamma == 0.0:
            F = 0.0
        F = beta * s.rho_1 * F + s.interest
        M = lam * s.interest + (1 - lam) * F
        z = s.rho * (s.gamma * lam / (1 + eta) * z + M * s.x)
        w = w + alpha * (s.reward + s.gamma_next * (w @ s.x_next) - (1 + eta) * (w @ s.x)) * z
    return w


def cut(steps: Sequence[Step], w: Floats, alpha: float, keep: Callable[[Step], float]) -> Floats:
    """z = gamma keep z + x, w += alpha rho delta z: the methods that differ in what they keep."""
    z = np.zeros_like(w)
    for s in steps:
        z = s.gamma * keep(s) * z + s.x
        w = w + alpha * s.rho * (s.reward + s.gamma_next * (w @ s.x_next) - w @ s.x) * z
    return w


def tree_backup(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    lam = number(params, "lam")
    return cut(steps, w, number(params, "alpha"), lambda s: lam * s.pi_1)


def vtrace(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    lam = number(params, "lam")
    return cut(steps, w, number(params, "alpha"), lambda s: lam * min(1.0, s.rho_1))


def abtd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    zeta = number(params, "zeta")

    def keep(s: Step) -> float:
        if s.mu_1 == 0.0:  # the very first step
            return 0.0
        psi_0, psi_max = 1 / s.peaks[1], 1 / s.peaks[0]
        psi = 2 * zeta * psi_0 + max(0.0, 2 * zeta - 1) * (psi_max - 2 * psi_0)
        return min(psi, 1 / max(s.pi_1, s.mu_1)) * s.pi_1

    return cut(steps, w, number(params, "alpha"), keep)


def cop_td(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """With the ratio c(s) = 1 + u.(x - m), whose mean is 1 when m is the mean of x."""
    alpha, beta = number(params, "alpha"), number(params, "beta")
    a = number(params, "ratio") * alpha
    u, m, F, c_1 = np.zeros_like(w), np.zeros_like(w), 0.0, 0.0
    for s in steps:
        F = s.rho_1 * (beta * F + (1 - beta) * c_1)
        centred = s.x - m
        c = 1 + float(u @ centred)
        delta = s.reward + s.gamma_next * (w @ s.x_next) - w @ s.x
        w = w + alpha * c * s.rho * delta * s.x
        u, m, c_1 = u + a * (F - c) * centred, m + a * centred, c
    return w


def discounted_cop_td(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    alpha, g = number(params, "alpha"), number(params, "g")
    a = number(params, "ratio") * alpha
    c = np.zeros_like(w)
    for s in steps:
        delta = s.reward + s.gamma_next * (w @ s.x_next) - w @ s.x
        w, c = (
            w + alpha * (c @ s.x) * s.rho * delta * s.x,
            c + a * (g * s.rho * (c @ s.x) + (1 - g) - c @ s.x_next) * s.x_next,
        )
    return w


def gem_etd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    """GTD2 on the emphasis m, whose equation runs backwards: m(s') = 1 + gamma' rho m(s)."""
    alpha = number(params, "alpha")
    beta = number(params, "ratio") * alpha
    m, k = np.zeros_like(w), np.zeros_like(w)
    for s in steps:
        delta = s.reward + s.gamma_next * (w @ s.x_next) - w @ s.x
        error = 1 + s.gamma_next * s.rho * (m @ s.x) - m @ s.x_next
        w, m, k = (
            w + alpha * (m @ s.x) * s.rho * delta * s.x,
            m + beta * (k @ s.x_next) * (s.x_next - s.gamma_next * s.rho * s.x),
            k + beta * (error - k @ s.x_next) * s.x_next,
        )
    return w


def solved(
    steps: Sequence[Step], w0: Floats, lam: float, emphasis: Sequence[float], eta: float
) -> tuple[Floats, Floats]:
    """The sums A + eta G and b with the trace z = rho (gamma lam z + emphasis x)."""
    z, A, b = np.zeros_like(w0), np.zeros((len(w0), len(w0))), np.zeros_like(w0)
    for s, M in zip(steps, emphasis, strict=True):
        z = s.rho * (s.gamma * lam * z + M * s.x)
        A = A + np.outer(z, s.x - s.gamma_next * s.x_next) + eta * s.rho * np.outer(s.x, s.x)
        b = b + s.reward * z
    return A, b


def lstd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    A, b = solved(steps, w, number(params, "lam"), [1.0] * len(steps), eta=0.0)
    ridge = number(params, "ridge")
    return np.linalg.solve(A + ridge * np.eye(len(w)), b + ridge * w).astype(np.float64)


def lsetd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    lam, ridge = number(params, "lam"), number(params, "ridge")
    F, emphasis = 0.0, []
    for s in steps:
        beta = s.gamma if params["beta"] == "gamma" else number(params, "beta")
        F = beta * s.rho_1 * F * (s.gamma > 0.0) + s.interest
        emphasis.append(lam * s.interest + (1 - lam) * F)
    A, b = solved(steps, w, lam, emphasis, eta=0.0)
    return np.linalg.solve(A + ridge * np.eye(len(w)), b + ridge * w).astype(np.float64)


def perturbed_lstd(steps: Sequence[Step], w: Floats, params: Params) -> Floats:
    emphasis = [1.0] * len(steps)
    A, b = solved(steps, w, number(params, "lam"), emphasis, number(params, "eta"))
    return np.linalg.solve(A, b).astype(np.float64)


REFERENCES: dict[str, Reference] = {
    "abtd": abtd,
    "cop_td": cop_td,
    "discounted_cop_td": discounted_cop_td,
    "etd": etd,
    "etd_beta": etd_beta,
    "gem_etd": gem_etd,
    "gq": gq,
    "gtd": gtd,
    "gtd2": gtd2,
    "htd": htd,
    "lsetd": lsetd,
    "lstd": lstd,
    "perturbed_etd": perturbed_etd,
    "perturbed_lstd": perturbed_lstd,
    "perturbed_td": perturbed_td,
    "pgtd2": pgtd2,
    "rotd": rotd,
    "td": td,
    "tdc": tdc,
    "tdc_as_published": tdc_as_published,
    "tdrc": tdrc,
    "tree_backup": tree_backup,
    "vtrace": vtrace,
    **CURES,
}
LEARNERS = [
    case.replace(alpha=ALPHA) if "alpha" in case.values else case
    for case in CASES
    if case.name in REFERENCES
]


def steps_of(problem: st.Problem, policy: int, Psi: Floats | None = None) -> list[Step]:
    """The stream of the seed for one target policy, from the problem's own arrays.

    With `Psi` for pairs of states and actions: x = Psi[s, a], and x' its expectation under pi.
    """
    stream = FiniteStream(problem)
    events, _ = stream.take(stream.begin(SEED), STEPS)
    triples = zip(stream.s[events], stream.a[events], stream.s_next[events], strict=True)
    gammas = np.asarray(problem.gamma)
    steps = []
    pi, mu = problem.pi[policy], problem.mu
    largest = np.maximum(pi, mu)
    peaks = float(largest.min()), float(largest.max())
    gamma = rho_1 = pi_1 = mu_1 = 0.0  # the first step begins an episode: nothing is before it
    for s, a, s_next in triples:
        step = Step(
            x=problem.Phi[s] if Psi is None else Psi[s, a],
            x_next=problem.Phi[s_next] if Psi is None else pi[s_next] @ Psi[s_next],
            reward=float(problem.r[policy, s, a, s_next]),
            gamma=gamma,
            gamma_next=float(gammas[policy, s, a, s_next]),
            rho=float(pi[s, a] / mu[s, a]),
            rho_1=rho_1,
            pi=float(pi[s, a]),
            pi_1=pi_1,
            mu=float(mu[s, a]),
            mu_1=mu_1,
            interest=float(problem.interest[policy, s]),
            peaks=peaks,
        )
        steps.append(step)
        gamma, rho_1, pi_1, mu_1 = step.gamma_next, step.rho, step.pi, step.mu
    return steps


@pytest.fixture(scope="module")
def problem() -> st.Problem:
    """Two target policies with their own rewards, discounts (some 0) and interests."""
    return off_policy_problem(55, policies=2)


@pytest.fixture(scope="module")
def tasks(problem: st.Problem) -> dict[bool, Task]:
    """The problem and, for learners of action values, its pairs."""
    return {case.law.action_values: task_for(case, problem) for case in LEARNERS}


@pytest.fixture(scope="module")
def streams(tasks: dict[bool, Task]) -> dict[bool, list[list[Step]]]:
    """The steps of both policies, per kind of task."""
    return {
        kind: [
            steps_of(task.base, k, task.Psi if isinstance(task, st.ActionValues) else None)
            for k in range(2)
        ]
        for kind, task in tasks.items()
    }


@pytest.fixture(scope="module")
def found(tasks: dict[bool, Task]) -> dict[Learner, Floats]:
    """The final weights [policy, feature] of every learner."""
    weights: dict[Learner, Floats] = {}
    for kind, task in tasks.items():
        learners = [case for case in LEARNERS if case.law.action_values == kind]
        result = st.run(task, learners, steps=STEPS, seeds=[SEED], points=2)
        weights |= {case: result.final_weights[i, 0] for i, case in enumerate(learners)}
    return weights


def difference(found: Floats, expected: Floats) -> float:
    return float(np.abs(found - expected).max() / np.abs(found).max())


def test_every_learner_has_a_reference() -> None:
    missing = set(names()) - set(REFERENCES)
    assert not missing, f"write the equations of {sorted(missing)} as references in this file"


def test_the_stream_is_rich(streams: dict[bool, list[list[Step]]]) -> None:
    for steps in streams[False]:
        assert sum(s.rho == 0.0 for s in steps) > STEPS / 10
        assert sum(s.gamma_next == 0.0 for s in steps) > STEPS / 10
        assert len({s.gamma_next for s in steps}) > 10
        assert max(s.rho for s in steps) > 1.5
        assert abs(steps[0].rho - 1.0) > 0.3
    assert any(a.reward != b.reward for a, b in zip(*streams[False], strict=True))


@pytest.mark.parametrize("case", LEARNERS, ids=str)
def test_equals_the_reference(
    case: Learner,
    problem: st.Problem,
    streams: dict[bool, list[list[Step]]],
    found: dict[Learner, Floats],
) -> None:
    for policy, steps in enumerate(streams[case.law.action_values]):
        expected = REFERENCES[case.name](steps, problem.w0, dict(case.values))
        assert difference(found[case][policy], expected) < TOLERANCE
        assert difference(problem.w0, expected) > 0.05


def first_step_without_rho(steps: Sequence[Step]) -> list[Step]:
    return [steps[0]._replace(rho=1.0, pi=1.0), *steps[1:]]


def episodes_without_first_rho(steps: Sequence[Step]) -> list[Step]:
    return [s._replace(rho=1.0, pi=1.0) if s.gamma == 0.0 else s for s in steps]


def next_gamma_in_the_trace(steps: Sequence[Step]) -> list[Step]:
    return [s._replace(gamma=s.gamma_next) for s in steps]


def present_instead_of_previous(steps: Sequence[Step]) -> list[Step]:
    return [s._replace(rho_1=s.rho, pi_1=s.pi, mu_1=s.mu) for s in steps]


def rho_twice(steps: Sequence[Step]) -> list[Step]:
    return [s._replace(rho=s.rho**2, pi=s.pi**2) for s in steps]


def previous_gamma_in_delta(steps: Sequence[Step]) -> list[Step]:
    return [s._replace(gamma_next=s.gamma) for s in steps]


def asks(case: Learner, *facts: str) -> bool:
    """Whether the past reaches the learner through one of these facts."""
    memory = [function for function in case.law.memory.values() if function is not None]
    functions = [*memory, *(case.law.traces.values() if case.traced else ())]
    return any(fact in arguments(function) for function in functions for fact in facts)


def on_the_first_step(case: Learner) -> bool:
    """Two learners have to learn an emphasis first, one learns in the last step of a period."""
    return on_first_steps(case) and case.name not in {"discounted_cop_td", "gem_etd", "per_etd"}


def on_first_steps(case: Learner) -> bool:
    """For action values the ratio belongs to the trace's past, which a first step does not have."""
    return weighs(case) and not case.law.action_values


def on_some_steps(case: Learner) -> bool:
    return weighs(case) and (case.traced or not case.law.action_values)


def weighs(case: Learner) -> bool:
    """Whether the learner looks at the target policy at all."""
    asked = {name for function in case.law.functions for name in arguments(function)}
    return not asked.isdisjoint({"rho", "rho_prev", "pi", "pi_prev"})


MISTAKES: dict[Callable[[Sequence[Step]], list[Step]], Callable[[Learner], bool]] = {
    first_step_without_rho: on_the_first_step,
    episodes_without_first_rho: on_first_steps,
    rho_twice: on_some_steps,
    previous_gamma_in_delta: lambda case: True,
    next_gamma_in_the_trace: lambda case: asks(case, "gamma"),
    present_instead_of_previous: lambda case: asks(case, "rho_prev", "pi_prev", "mu_prev"),
}


@pytest.mark.parametrize(
    ("mistake", "case"),
    [(m, case) for m, concerns in MISTAKES.items() for case in LEARNERS if concerns(case)],
    ids=lambda part: part.__name__ if callable(part) else str(part),
)
def test_a_known_mistake_would_show(
    mistake: Callable[[Sequence[Step]], list[Step]],
    case: Learner,
    problem: st.Problem,
    streams: dict[bool, list[list[Step]]],
    found: dict[Learner, Floats],
) -> None:
    visible = [
        difference(
            found[case][policy],
            REFERENCES[case.name](mistake(steps), problem.w0, dict(case.values)),
        )
        for policy, steps in enumerate(streams[case.law.action_values])
    ]
    assert max(visible) > VISIBLE


def td_with_rho_in_trace_and_update(
    steps: Sequence[Step], w: Floats, alpha: float, lam: float
) -> Floats:
    z = np.zeros_like(w)
    for s in steps:
        z = s.rho * (s.gamma * lam * z + s.x)
        w = w + alpha * s.rho * (s.reward + s.gamma_next * (w @ s.x_next) - w @ s.x) * z
    return w


@pytest.mark.parametrize("case", [x for x in LEARNERS if x.name == "td"], ids=str)
def test_rho_in_trace_and_update_would_show(
    case: Learner,
    problem: st.Problem,
    streams: dict[bool, list[list[Step]]],
    found: dict[Learner, Floats],
) -> None:
    for policy, steps in enumerate(streams[case.law.action_values]):
        alpha, lam = float(case["alpha"]), float(case["lam"])
        wrong = td_with_rho_in_trace_and_update(steps, problem.w0, alpha, lam)
        assert difference(found[case][policy], wrong) > VISIBLE
