"""TD with a ridge: w += alpha (rho delta x - ridge w), with the matrix A + ridge I.

Beside the paper's penalty eta G it pulls the weights to zero and not the values. So it depends on
the scale of the features, and where a direction of the features is rare (small in G), as in
unstable problems, it acts where eta G hardly does.
"""

from __future__ import annotations

from steadytd.mdp.moments import Expectation
from steadytd.theory.cures.cure import Cure, Setting

NAME = __name__.rpartition(".")[2]


def cure(setting: Setting) -> Cure:
    """The ridge."""
    s = setting
    return Cure(
        name=NAME, amount="ridge", setting=s,
        system=lambda ridge: Expectation(M=s.A + ridge * s.identity, g=s.b),
    )  # fmt: skip
