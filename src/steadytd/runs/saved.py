"""The way back from disk: a result that `Result.save` wrote."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from steadytd.base.arrays import frozen
from steadytd.base.errors import InputError
from steadytd.base.files import reading_arrays
from steadytd.engine.law import Law
from steadytd.engine.learner import Learner, parse_params
from steadytd.learners import learner as make_learner
from steadytd.mdp.problem import load_problem
from steadytd.runs.result import KEPT, Result, Subject


class Named(NamedTuple):
    """What learners ran on, where no more than this was kept: a stream, or action values."""

    name: str
    n_policies: int
    n_features: int


def load_result(directory: str | Path, laws: Iterable[Law] = ()) -> Result:
    """Read a result that `Result.save` or `steadytd run --out` wrote; name your own laws in `laws`.

    >>> import tempfile
    >>> import steadytd as st
    >>> r = st.run("three_state", "td:alpha=0.01", steps=100, points=3)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     files = r.save(place)
    ...     load_result(place).summary.equals(r.summary)
    True
    """
    place = Path(directory)
    own = {law.name: law for law in laws}
    with reading_arrays(place / "result.npz", "result") as file:
        about = json.loads(str(file["about"]))
        arrays = {name: frozen(file[name], file[name].dtype) for name in KEPT}
        size = (len(about["learners"]), len(arrays["seeds"]), len(arrays["steps"]))
        if arrays["errors"].shape != size:
            raise InputError(f"its errors have the shape {arrays['errors'].shape}, not {size}")
    learners = []
    for text in about["learners"]:
        name, _, rest = text.partition(":")
        known_law = Learner(own[name], parse_params(name, rest)) if name in own else None
        learners.append(known_law or make_learner(text))
    subject: Subject = Named(about["name"], about["n_policies"], about["n_features"])
    if (place / "problem.npz").exists():
        subject = load_problem(place / "problem.npz")
    seeds = [int(seed) for seed in arrays.pop("seeds")]
    found = Result(problem=subject, learners=learners, asked=about["asked"], seeds=seeds,
                   family=about["family"], **arrays)  # fmt: skip
    vars(found)["outcomes"] = about["outcomes"]  # without a model they could not be told again
    return found
