"""The certificate: is a learner's mean update stable, where does it lead, how good is that?

`Analysis` has the exact numbers; here they get their words. `docs/theory.md` derives them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from steadytd.base.errors import InputError
from steadytd.base.finding import Finding
from steadytd.base.parallel import single_threaded
from steadytd.mdp.action_values import ActionValues
from steadytd.mdp.problem import Problem
from steadytd.problems import problem as make_problem
from steadytd.theory.analysis import Analysis
from steadytd.theory.words.advice import advise
from steadytd.theory.words.overview import overview


@single_threaded
def certify(problem: Problem | str, policy: int = 0) -> Certificate:
    """Will a learner converge on this problem, to what, and how good is that? See `Certificate`.

    `problem` may be a name; `policy` says which of its target policies, where it has several.

    >>> import steadytd as st
    >>> c = st.certify(st.problem("three_state"))
    >>> c.td_stable, round(c.eta_pd, 4), round(c.best_eta, 4)
    (False, 0.4143, 0.5143)
    """
    if isinstance(problem, ActionValues):
        raise InputError(
            "certify works with state values only; for gq see steadytd.theory.dynamics."
        )
    found = make_problem(problem) if isinstance(problem, str) else problem
    certificate = Certificate(found, policy)
    certificate.to_dict()  # computes everything, so that later look-ups are instant
    return certificate


class Certificate(Analysis):
    """What is certain about learning on this problem. Made by `certify`."""

    @cached_property
    def advice(self) -> list[Finding]:
        """Findings in plain words, each with a code and the numbers behind it."""
        return advise(self)

    def to_dict(self, etas: Sequence[float] = ()) -> dict[str, Any]:
        """The whole certificate for JSON, with the path at the given penalties."""
        return {
            "problem": self.problem.name,
            "policy": self.policy,
            "states": self.problem.n_states,
            "features": self.problem.n_features,
            "rank": self.pencil.rank,
            "td_stable": self.td_stable,
            "eta_pd": self.eta_pd,
            "eta_hurwitz": self.eta_hurwitz,
            "unstable_etas": [list(interval) for interval in self.unstable_etas],
            "exact": self.pencil.exact,
            "poles": self.poles,
            "bounds": self.bounds,
            "best_eta": self.best_eta,
            "best_error": self.best_error,
            "error_of_zero": self.error(np.zeros(self.problem.n_features)),
            "learners": self.learners,
            "path": self.path(etas).to_dicts() if len(etas) else [],
            "advice": [finding.to_dict() for finding in self.advice],
        }

    @cached_property
    def learners(self) -> list[dict[str, Any]]:
        """Every registered learner here: stability, fixed point's error, largest step size."""
        return overview(self)
