"""What a certificate costs, over the size of the problem: processor seconds and memory.

    python benchmarks/certificates.py [--quick]

One certificate is made before, since some things are loaded and compiled only once in a process.
The large problems have a sparse matrix per action with four successors of each state, and dense
features; their certificate makes no matrix of all pairs of states. The peak is that of the process
so far, with the problem itself.
"""

from __future__ import annotations

import sys
from itertools import chain
from resource import RUSAGE_SELF, getrusage
from time import process_time

import numpy as np
from scipy.sparse import coo_array

import steadytd as st

QUICK = ((8, 4), (50, 20))
SIZES = (*QUICK, (200, 60), (500, 100), (1000, 200))
QUICK_SPARSE = ((1000, 20),)
SPARSE = ((1000, 200), (10_000, 200), (100_000, 200), (100_000, 500))
WITH_CURES = 20  # features up to which the cures are measured, too
SUCCESSORS, ACTIONS = 4, 2


def seconds(problem: st.Problem, *, cures: bool) -> float:
    """Of a new certificate; with `cures`, of what these take after it."""
    begin = process_time()
    c = st.certify(problem)
    if cures:
        begin = process_time()
        assert c.cures.height
    return process_time() - begin


def copy(problem: st.Problem) -> st.Problem:
    """The same problem, of which nothing is known yet."""
    names = ("name", "P", "r", "gamma", "mu", "pi", "Phi", "w0", "start", "interest")
    return st.Problem(**{name: getattr(problem, name) for name in names})


def sparse(states: int, features: int) -> st.Problem:
    """A drawn problem with a sparse matrix per action."""
    rng = np.random.default_rng(states + features)
    rows = np.repeat(np.arange(states), SUCCESSORS)
    P = [
        coo_array(
            (
                rng.dirichlet(np.ones(SUCCESSORS), states).reshape(-1),
                (rows, rng.integers(states, size=len(rows))),
            ),
            shape=(states, states),
        )
        for _ in range(ACTIONS)
    ]
    return st.Problem(
        name="sparse", P=P, r=rng.normal(size=(states, ACTIONS)), gamma=0.95,
        mu=rng.dirichlet(np.full(ACTIONS, 3.0), states),
        pi=rng.dirichlet(np.ones(ACTIONS), states), Phi=rng.normal(size=(states, features)),
    )  # fmt: skip


def main(quick: bool) -> None:
    """A line per problem."""
    named = [st.problem("three_state"), st.problem("baird")]
    drawn = (
        st.problem("random_mdp", states=states, features=features, seed=1)
        for states, features in (QUICK if quick else SIZES)
    )
    large = (sparse(*size) for size in (QUICK_SPARSE if quick else SPARSE))
    print(f"{'problem':14}{'states':>8}{'features':>10}{'certificate':>13}{'cures':>9}{'GB':>7}")
    seconds(copy(named[0]), cures=True)
    for p in chain(named, drawn, large):  # one at a time in memory
        found = seconds(copy(p), cures=False)
        with_cures = p.n_features <= WITH_CURES and not p.sparse
        cures = f"{seconds(copy(p), cures=True):9.2f}" if with_cures else 9 * " "
        peak = getrusage(RUSAGE_SELF).ru_maxrss / 1e6  # kilobytes on Linux
        line = f"{p.name:14}{p.n_states:8}{p.n_features:10}{found:13.2f}{cures}{peak:7.2f}"
        print(line, flush=True)


if __name__ == "__main__":
    main("--quick" in sys.argv)
