"""The certificate: is a learner's mean update stable, where does it lead, how good is that?

`Analysis` has the exact numbers; here they get their words. `docs/theory.md` derives them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from steadytd.base.errors import InputError, visible
from steadytd.base.files import reading_arrays
from steadytd.base.finding import Finding
from steadytd.base.parallel import single_threaded
from steadytd.mdp.action_values import ActionValues
from steadytd.mdp.problem import Problem, load_problem
from steadytd.problems import problem as make_problem
from steadytd.theory.advice import advise
from steadytd.theory.analysis import Analysis
from steadytd.theory.average import AverageCertificate
from steadytd.theory.proof.make import prove
from steadytd.theory.verdicts import Verdicts


@single_threaded
def certify(problem: Problem | str, policy: int = 0) -> Certificate:
    """Will a learner converge on this problem, to what, and how good is that? See `Certificate`.

    `problem` may be a name; `policy` says which of its target policies, where it has several. With
    average reward it is an `AverageCertificate`, which has learners, cures and advice alike.

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
    if not isinstance(found, Problem):
        raise InputError(f"certify needs a problem or the name of one, got {problem!r:.60}.")
    kind = AverageCertificate if found.average_reward else Certificate
    certificate = kind(found, policy)
    certificate.to_dict()  # computes everything, so that later look-ups are instant
    return cast(Certificate, certificate)  # for type checkers, as it nearly always is


def load_certificate(path: str | Path) -> Certificate:
    """Read a certificate that `Certificate.save` wrote, and compute it again."""
    with reading_arrays(Path(path), "certificate") as file:
        policy = int(file["policy"])
    return certify(load_problem(path), policy)


class Certificate(Verdicts, Analysis):
    """What is certain about learning on this problem. Made by `certify`."""

    def __repr__(self) -> str:
        p = self.problem
        policy = f", policy {self.policy}" if p.n_policies > 1 else ""
        td = "stable" if self.td_stable else f"unstable, with eta > {self.eta_hurwitz:.4g} stable"
        return visible(f"<certificate of {p.name}{policy}: off-policy TD's mean update is {td}>")

    @cached_property
    def advice(self) -> list[Finding]:
        """Findings in plain words, each with a code and the numbers behind it.

        The last one, `recommended`, is the one learner to use. `docs/theory.md` lists its numbers.
        """
        return advise(self)

    def to_dict(self, etas: Sequence[float] = (), *, cures: bool = False) -> dict[str, Any]:
        """The whole certificate for JSON, with the path at the given penalties, and the cures."""
        found: dict[str, Any] = {
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
            "advice": [finding.to_dict() for finding in self.findings(cures=cures)],
            "accuracy": dict(self.moments.accuracy),
        }
        if cures:
            found["cures"] = [t.row for t in self.treatments]
        return found

    def proof(
        self, claim: str = "positive_definite", *, eta: float | str | Fraction
    ) -> dict[str, Any]:
        """That A(eta) is positive definite, or that it is not, in exact fractions, for JSON.

        `steadytd verify` checks it with Python's fractions alone. See `docs/theory.md`.

        >>> import steadytd as st
        >>> c = st.certify("three_state")
        >>> c.proof("positive_definite", eta=0.5)["pivots"]
        ['81/110', '20/99']
        >>> c.proof("positive_definite", eta="29/70")["v_A_v"]
        '0'
        """
        return prove(self.moments, claim, eta, self.problem.name)
