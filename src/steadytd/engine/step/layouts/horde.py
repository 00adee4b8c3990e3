"""A Horde: many predictions of one law, each with facts of its own, on one stream.

Predictions are lanes, in blocks of LANES. Their traces are those of `layouts.active`. What differs
from a run is where a step's facts and features stand, and that every step returns its TD errors.
"""

from __future__ import annotations

from collections.abc import Iterable

from steadytd.engine.law import Law
from steadytd.engine.step.layouts.active import Active
from steadytd.engine.step.program import Dot, active_program
from steadytd.engine.step.statements import For, Statement, bind, lanes

LANES = 128  # predictions of a block; fewer make more of them, each with a copy of its traces
COLUMNS = {
    "reward": "cumulants[t, column_c[j]]",
    "gamma_next": "discounts[t, column_d[j]]",
    "gamma_carried": "discounts[t, column_d[j]] * carries[t]",
    "rho": "rhos[t, column_p[j]]",
    "pi": "pis[t, column_p[j]]",
    "mu": "mus[t, column_p[j]]",
    "peak_min": "peaks_min[t, column_p[j]]",
    "peak_max": "peaks_max[t, column_p[j]]",
    "interest": "interests[t]",
}
DOTS = {"x_x": 0, "x_x_next": 1, "x_next_x_next": 2}


def horde_source(law: Law, traced: bool, averaged: bool = False) -> str:
    """The source of the loop of a law's predictions, with trace vectors or without."""
    path = f"of a Horde, {'with' if traced else 'without'} traces"
    return Horde(active_program(law, traced)).source(path)


class Horde(Active):
    """Writes the loop of a block of predictions from the program of `active_program`."""

    common = frozenset({"interest"})
    places = ("column_c", "column_p", "column_d", "column_s")
    tables = (
        "cumulants", "discounts", "rhos", "pis", "mus", "peaks_min", "peaks_max", "interests",
        "carries", "factors", "dots", "first_x", "feature_x", "value_x",
        "first_x_next", "feature_x_next", "value_x_next", "out",
    )  # fmt: skip

    def lasting_numbers(self) -> list[str]:
        """What lasts from step to step; here every prediction carries facts of its own."""
        return [*super().lasting_numbers(), *(f"last_{now}" for now in self.program.carried)]

    def arrays(self) -> dict[str, str]:
        """Those of a run, and the TD errors."""
        return super().arrays() | {"delta": "out[:, b]"}

    def number(self, name: str) -> str:
        """What a number is called, for prediction j."""
        if name in COLUMNS:
            return COLUMNS[name]
        if name in self.program.carried:
            return f"last_{name}[j]"
        return "_alpha[j] * factors[t, column_s[j]]" if name == "alpha" else super().number(name)

    def time(self, body: list[Statement], entry: str = "") -> list[Statement]:
        """The loop over steps; what each carries over is kept for every prediction."""
        carried = lanes(
            f"last_{now}[j] = {COLUMNS[then]}" for now, then in self.program.carried.items()
        )
        return [For("t", "0", "len(first_x) - 1", [*body, *carried])]

    def locate(self) -> list[Statement]:
        """Features are given step by step: there is nothing to find."""
        return []

    def over(self, basis: str, body: Iterable[Statement]) -> list[Statement]:
        """For the active features k of x or x_next, with value x_k."""
        k = bind("k", f"index(feature_{basis}[index(q)])")
        x_k = bind("x_k", f"value_{basis}[index(q)]")
        found = list(body)
        inside: list[Statement] = [k, x_k, *found]
        return [For("q", f"first_{basis}[t]", f"first_{basis}[t + 1]", inside)] if found else []

    def feature_dot(self, dot: Dot) -> str:
        """An inner product of features, which all blocks share."""
        return f"dots[t, {DOTS[dot.name]}]"

    def dots(self, steps: list[Dot]) -> list[Statement]:
        """All inner products of a step, and the TD errors."""
        reward, gamma = COLUMNS["reward"], COLUMNS["gamma_next"]
        error = f"delta[t, j] = {reward} + {gamma} * _w_x_next[j] - _w_x[j]"
        return [*super().dots(steps), *lanes([error])]

    def watched(self, new: list[str]) -> list[Statement]:
        """As `noticed`."""
        return []

    def noticed(self) -> list[Statement]:
        """The health of a Horde sees divergence in the TD errors."""
        return []
