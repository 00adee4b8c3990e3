"""Every learner against its equations, written out a second time in plain NumPy.

Several of the equations were got wrong elsewhere; so each known mistake is made here on purpose, to
show that this stream would tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.engine.law import arguments
from steadytd.engine.learner import Learner
from steadytd.learners import names
from steadytd.mdp.action_values import Task
from tests.support.cases import CASES, kind_of, off_policy_problem, task_for
from tests.support.references import REFERENCES, Step, error, steps_of

STEPS = 200
SEED = 2
ALPHA = 0.01
TOLERANCE = 1e-10  # of the largest weight: some thirty roundings a step, hardly amplified
VISIBLE = 5e-4  # what a mistake changes at least: five million times the tolerance


LEARNERS = [
    case.replace(alpha=ALPHA) if "alpha" in case.values else case
    for case in CASES
    if case.name in REFERENCES
]


@pytest.fixture(scope="module")
def problem() -> st.Problem:
    """Two target policies with their own rewards, discounts (some 0) and interests."""
    return off_policy_problem(55, policies=2)


@pytest.fixture(scope="module")
def tasks(problem: st.Problem) -> dict[str, Task]:
    """The problem and, for learners of action values, its pairs."""
    return {kind_of(case): task_for(case, problem) for case in LEARNERS}


@pytest.fixture(scope="module")
def streams(tasks: dict[str, Task]) -> dict[str, list[list[Step]]]:
    """The steps of both policies, per kind of task."""
    return {
        kind: [steps_of(task.base, k, STEPS, SEED, getattr(task, "Psi", None)) for k in range(2)]
        for kind, task in tasks.items()
    }


@pytest.fixture(scope="module")
def found(tasks: dict[str, Task]) -> dict[Learner, Floats]:
    """The final weights [policy, feature] of every learner."""
    weights: dict[Learner, Floats] = {}
    for kind, task in tasks.items():
        learners = [case for case in LEARNERS if kind_of(case) == kind]
        result = st.run(task, learners, steps=STEPS, seeds=[SEED], points=2)
        weights |= {case: result.final_weights[i, 0] for i, case in enumerate(learners)}
    return weights


def difference(found: Floats, expected: Floats) -> float:
    return float(np.abs(found - expected).max() / np.abs(found).max())


def test_every_learner_has_a_reference() -> None:
    missing = set(names()) - set(REFERENCES)
    assert not missing, f"write the equations of {sorted(missing)} as references in this file"


def test_the_stream_is_rich(streams: dict[str, list[list[Step]]]) -> None:
    for steps in streams["states"]:
        assert sum(s.rho == 0.0 for s in steps) > STEPS / 10
        assert sum(s.gamma_next == 0.0 for s in steps) > STEPS / 10
        assert len({s.gamma_next for s in steps}) > 10
        assert max(s.rho for s in steps) > 1.5
        assert abs(steps[0].rho - 1.0) > 0.3
    assert any(a.reward != b.reward for a, b in zip(*streams["states"], strict=True))


@pytest.mark.parametrize("case", LEARNERS, ids=str)
def test_equals_the_reference(
    case: Learner,
    problem: st.Problem,
    streams: dict[str, list[list[Step]]],
    found: dict[Learner, Floats],
) -> None:
    for policy, steps in enumerate(streams[kind_of(case)]):
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
    return weighs(case) and kind_of(case) != "pairs"


def on_some_steps(case: Learner) -> bool:
    return weighs(case) and (case.traced or kind_of(case) != "pairs")


def weighs(case: Learner) -> bool:
    """Whether the learner looks at the target policy at all."""
    asked = {name for function in case.law.functions for name in arguments(function)}
    return not asked.isdisjoint({"rho", "rho_prev", "pi", "pi_prev"})


MISTAKES: dict[Callable[[Sequence[Step]], list[Step]], Callable[[Learner], bool]] = {
    first_step_without_rho: on_the_first_step,
    episodes_without_first_rho: on_first_steps,
    rho_twice: on_some_steps,
    previous_gamma_in_delta: lambda case: True,
    next_gamma_in_the_trace: lambda case: kind_of(case) != "endless" and asks(case, "gamma"),
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
    streams: dict[str, list[list[Step]]],
    found: dict[Learner, Floats],
) -> None:
    visible = [
        difference(
            found[case][policy],
            REFERENCES[case.name](mistake(steps), problem.w0, dict(case.values)),
        )
        for policy, steps in enumerate(streams[kind_of(case)])
    ]
    assert max(visible) > VISIBLE


def td_with_rho_in_trace_and_update(
    steps: Sequence[Step], w: Floats, alpha: float, lam: float
) -> Floats:
    z = np.zeros_like(w)
    for s in steps:
        z = s.rho * (s.gamma * lam * z + s.x)
        w = w + alpha * s.rho * error(s, w) * z
    return w


@pytest.mark.parametrize("case", [x for x in LEARNERS if x.name == "td"], ids=str)
def test_rho_in_trace_and_update_would_show(
    case: Learner,
    problem: st.Problem,
    streams: dict[str, list[list[Step]]],
    found: dict[Learner, Floats],
) -> None:
    for policy, steps in enumerate(streams[kind_of(case)]):
        alpha, lam = float(case["alpha"]), float(case["lam"])
        wrong = td_with_rho_in_trace_and_update(steps, problem.w0, alpha, lam)
        assert difference(found[case][policy], wrong) > VISIBLE
