"""What a certificate costs, over the size of the problem, in processor seconds.

    python benchmarks/certificates.py [--quick]

One certificate is made before, since some things are loaded and compiled only once in a process.
"""

from __future__ import annotations

import sys
from time import process_time

import steadytd as st

QUICK = ((8, 4), (50, 20))
SIZES = (*QUICK, (200, 60), (500, 100), (1000, 200))
WITH_CURES = 20  # features up to which the cures are measured, too


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


def main(quick: bool) -> None:
    """A line per problem."""
    named = [st.problem("three_state"), st.problem("baird")]
    drawn = [
        st.problem("random_mdp", states=states, features=features, seed=1)
        for states, features in (QUICK if quick else SIZES)
    ]
    print(f"{'problem':14}{'states':>8}{'features':>10}{'certificate':>13}{'cures':>9}")
    seconds(copy(named[0]), cures=True)
    for p in (*named, *drawn):
        found = seconds(copy(p), cures=False)
        with_cures = p.n_features <= WITH_CURES
        cures = f"{seconds(copy(p), cures=True):9.2f}" if with_cures else ""
        print(f"{p.name:14}{p.n_states:8}{p.n_features:10}{found:13.2f}{cures}", flush=True)


if __name__ == "__main__":
    main("--quick" in sys.argv)
