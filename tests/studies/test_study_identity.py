"""What a study's blocks depend on: each input changed once, and seen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import steadytd as st
from steadytd.base.source import closure
from steadytd.engine.law import Law
from steadytd.mdp.problem import ARRAYS, LATER, Problem
from steadytd.studies import dataset
from steadytd.studies.blocks import grid_blocks
from steadytd.studies.spec import Spec, parse_spec
from steadytd.studies.study import Study
from tests.support.draws import examples
from tests.support.other_code import changed

TEXT = """
problem = "{problem}"
steps = 40
every = 20
seeds = 2
confirm = {{ seeds = 0 }}

[[learners]]
name = "{learner}"
alpha = [0.01, 0.02]
"""


def spec(problem: str = "three_state", learner: str = "td") -> Spec:
    return parse_spec(TEXT.format(problem=problem, learner=learner), "s")


def identity(of: Spec) -> set[str]:
    return {block.fingerprint for block in grid_blocks(of)}


def with_problem(given: Spec, problem: Problem) -> Spec:
    vars(given.tasks[0])["problem"] = problem
    return given


@pytest.fixture(scope="module")
def before() -> set[str]:
    return identity(spec())


def test_every_module_that_makes_the_numbers_counts(before: set[str]) -> None:
    names = {f"steadytd.{name}" for name in (
        "engine.schedule", "engine.rows", "engine.step.program", "mdp.moments", "mdp.problem",
        "mdp.stationary", "runs.lanes", "runs.measures", "streams.finite", "studies.blocks",
        "studies.dataset",
    )}  # fmt: skip
    assert names <= set(closure("steadytd.studies.dataset"))
    for name in sorted(names)[:: examples(8, 1)]:
        with changed(name):
            assert identity(spec()).isdisjoint(before), name
    with changed("steadytd.report.pages", "steadytd.evaluation.evaluate", "steadytd.cli.main"):
        assert identity(spec()) == before
    assert identity(spec()) == before


def test_every_array_of_a_problem_counts(before: set[str]) -> None:
    plain = st.problem("three_state")
    arrays = {name: getattr(plain, name) for name in (*ARRAYS, *LATER)}
    assert identity(with_problem(spec(), Problem(name="other", **arrays))) == before
    seen = set(before)
    for name, value in (
        ("gamma", 0.5), ("r", plain.r + 1.0), ("w0", plain.w0 + 1.0), ("Phi", 2.0 * plain.Phi),
        ("interest", plain.interest + 1.0), ("start", np.eye(3)[0]), ("mu", plain.pi),
    ):  # fmt: skip
        changed = identity(with_problem(spec(), Problem(name="a", **{**arrays, name: value})))
        assert changed.isdisjoint(seen), name
        seen |= changed


def test_rooms_that_differ_only_in_where_they_learn() -> None:
    plain = st.problem("rooms")
    arrays = {name: getattr(plain, name) for name in (*ARRAYS, *LATER)}
    gamma = np.zeros_like(plain.gamma)  # so that learning may end anywhere
    fewer = np.array(plain.active)
    fewer[:, np.flatnonzero(fewer.any(axis=0))[0]] = False
    one = Problem(name="rooms", **{**arrays, "gamma": gamma})
    two = Problem(name="rooms", **{**arrays, "gamma": gamma, "active": fewer})
    assert all(np.array_equal(getattr(one, name), getattr(two, name)) for name in ARRAYS)
    assert identity(with_problem(spec("rooms"), one)).isdisjoint(
        identity(with_problem(spec("rooms"), two))
    )


def test_the_code_that_draws_instances_counts() -> None:
    family = identity(spec("collision"))
    with changed("steadytd.problems.collision"):
        assert identity(spec("collision")).isdisjoint(family)
    alone = identity(spec("three_state"))
    with changed("steadytd.problems.collision", "steadytd.problems.three_state"):
        assert identity(spec("three_state")) == alone  # its arrays say it all


def other_update(reward: float, alpha: float) -> float:
    return alpha * reward


def test_a_law_counts_with_all_that_it_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    def laws(given: Spec) -> Iterator[Law]:
        yield from {learner.law for task in given.tasks for learner in task.learners}

    for name in ("td", "etd"):
        known = identity(spec(learner=name))
        for law in laws(spec(learner=name)):
            with monkeypatch.context() as patch:
                patch.setitem(vars(law), "update", other_update)
                assert identity(spec(learner=name)).isdisjoint(known)
        assert identity(spec(learner=name)) == known


def run(out: Path) -> tuple[list[str], dict[str, bytes]]:
    said: list[str] = []
    Study(spec()).run(out=out, threads=1, say=said.append)
    return said, {path.name: path.read_bytes() for path in sorted((out / "grid").iterdir())}


def test_results_of_other_code_are_left_alone(tmp_path: Path) -> None:
    _, first = run(tmp_path)
    with changed("steadytd.engine.schedule"):
        said, both = run(tmp_path)
    assert len(both) == 2 * len(first) and said
    assert all("is not part of this study; it is left alone" in text for text in said)


def test_provenance_names_the_code(tmp_path: Path) -> None:
    def code() -> Any:
        return dataset.provenance()["code"]

    known = code()
    with changed("steadytd.engine.rows"):
        assert code() != known
    assert code() == known
