"""The stops of the page's dial over eta: what is known at each, so that the page computes nothing.

They lie at round numbers, four times as dense near 0, with the penalties that were asked about and
the one that eta=auto takes. Texts are those of the terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.wording import figures
from steadytd.theory.certificate import Certificate
from steadytd.theory.thresholds import Complexes

MOST_NUMBERS = 24_000  # values and eigenvalues of all stops together
STOPS = 120


class Move(NamedTuple):
    """One stop: eta, eigenvalues of A(eta), values and error of the fixed point (None: no such)."""

    eta: float
    rates: Complexes
    values: Floats | None
    error: float | None
    texts: dict[str, str]


def stops(c: Certificate, etas: Sequence[float], top: float) -> list[float]:
    """The penalties at which the dial stops, in order."""
    wanted = min(STOPS, max(12, MOST_NUMBERS // (c.problem.n_states + 2 * c.pencil.rank)))
    size = 10.0 ** np.floor(np.log10(top / wanted))
    step = next(k * size for k in (1.0, 2.0, 5.0, 10.0) if top / (k * size) <= wanted)
    coarse = np.arange(int(top / step) + 1) * step
    fine = np.arange(1, 40) * (step / 4.0)
    grid = [float(f"{eta:.6g}") for eta in (*coarse, *fine) if eta <= top]
    return sorted({*grid, c.best_eta, *(eta for eta in etas if eta <= top)})


def moves(c: Certificate, etas: Sequence[float], top: float) -> list[Move]:
    """What the dial shows at each stop."""
    found = c.path(stops(c, etas, top)).to_dicts()
    made = []
    for row in found:
        eta = row["eta"]
        rates = c.pencil.rates(eta)
        values = [row[f"value_{s}"] for s in range(c.problem.n_states)]
        known = row["error"] is not None
        texts = {
            "eta": figures(eta),
            "stable": "stable" if row["stable"] else "unstable",
            "error": figures(row["error"]) if known else "none",
            "slowest": figures(float(rates.real.min())),
            "choice": " (eta=auto)" if eta == c.best_eta else "",
        }
        made.append(Move(eta, rates, np.array(values) if known else None, row["error"], texts))
    return made


def stop(c: Certificate, found: Sequence[Move]) -> int:
    """Where the dial begins: at the penalty that eta=auto takes."""
    return [move.eta for move in found].index(c.best_eta)
