"""What the page needs of a problem and of a learner, as plain numbers for JSON."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from steadytd.base.arrays import Longs
from steadytd.base.errors import InputError
from steadytd.engine.law import Law
from steadytd.engine.learner import Learner
from steadytd.engine.rows import sparse_rows
from steadytd.lab.module import BUCKETS, law_module
from steadytd.mdp.problem import Problem
from steadytd.runs.measures import goal
from steadytd.streams.finite import FiniteStream


def problem_tables(problem: Problem, policy: int = 0) -> dict[str, Any]:
    """Transitions, features and the goal of a problem, for `Bench` in assets/engine.js."""
    stream = FiniteStream(problem)
    if stream.active[policy] is not None:
        raise InputError(
            f"{problem.name}: states that are not active for a policy are not in the lab; run it "
            "with st.run."
        )
    row, row_next, facts = stream.transitions[policy]
    rows, aim = sparse_rows(problem.table), goal(problem, policy)
    arrays = {
        "guide": _guide(stream), "cumulative": stream.cumulative, "next_state": stream.row_next,
        "row": row, "row_next": row_next, "facts": facts.ravel(), "start": stream.start,
        **rows._asdict(), "w0": problem.w0, "weight": aim.weight, "target": aim.target,
    }  # fmt: skip
    numbers = {name: array.tolist() for name, array in arrays.items()}
    return {"n_states": problem.n_states, "n_features": problem.n_features, **numbers}


def _guide(stream: FiniteStream) -> Longs:
    """The first transition out of each state that a number in each bucket can mean."""
    lows = np.arange(BUCKETS) / BUCKETS
    pairs = zip(stream.first[:-1], stream.first[1:], strict=True)
    found = [a + np.searchsorted(stream.cumulative[a:b], lows, side="right") for a, b in pairs]
    return np.concatenate(found).astype(np.int64)


def learner_spec(learner: Learner) -> dict[str, Any]:
    """The module of a learner's loop (base64), and the numbers that it starts from."""
    law = learner.law
    if law.block is not None:
        raise InputError(
            f"{law.name} solves equations and takes no steps along a gradient; it is not in the "
            "lab."
        )
    made = law_module(law, learner.traced, learner.averaged)
    words = {n: v for n, v in learner.values.items() if isinstance(v, str)}
    params = {n: float(v) for n, v in learner.values.items() if n not in words}
    return {
        "text": str(learner),
        "binary": base64.b64encode(made.binary).decode(),
        "arguments": made.arguments,
        "memory": list(law.memory),
        "windows": dict(law.windows),
        "starts": dict(law.starts),
        "affine": affine(law, learner.traced),
        "params": params,
    }


def affine(law: Law, traced: bool) -> bool:
    """Whether a step is an affine map of the vectors, and they are all that is carried over."""
    return not (traced or law.memory or law.maps or law.settled)
