"""The values of a log: probabilities, rewards, discounts and observations within their bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Bools, Floats, read_only
from steadytd.logs.decode.kernels import all_within
from steadytd.logs.faults import Place, fault, first_true

Numbers = NDArray[Any]  # of the column's own type

BELOW_ZERO = float(np.nextafter(0.0, -1.0))  # every number above it is at least 0
LEAST = 1e-100  # behaviour's probability of a logged action: ratios must stay finite,
LARGEST = 1e30  # of a reward: samples are kept in single precision
SLACK = 1e-6  # a float32 softmax may end a little above 1: taken as 1
OF_DENSITY = "correct it (densities need a column 'action' of fractions: see docs/logs.md)"
IS_LOG = "it looks like a log-probability: give it as action_logp, or take exp"


def finite(values: Numbers, name: str, place: Place) -> None:
    """Fail at the first number that is NaN, infinite or too large for single precision."""
    if all_within(read_only(values), -LARGEST, LARGEST):
        return
    if (index := first_true(~(np.abs(values) <= LARGEST))) is not None:
        finite = bool(np.isfinite(values[index]))
        rule = f"must lie between -{LARGEST:g} and {LARGEST:g}" if finite else "must be finite"
        remedy = "use another unit" if finite else "correct it or drop the episode"
        raise fault(place, name, index, rule, values[index], remedy)


def finite_rows(matrix: NDArray[Any], name: str, place: Place, use: Bools | None = None) -> None:
    """Fail at the first row (among those of `use`) with a NaN or infinite number."""
    with np.errstate(all="ignore"):
        fine = np.isfinite(matrix.sum())
    if fine:
        return
    bad = ~np.isfinite(matrix)
    rows = bad.any(axis=1) if use is None else bad.any(axis=1) & use
    index = first_true(rows)
    if index is not None:
        number = first_true(bad[index]) or 0
        raise fault(
            place, name, index, "observations must be finite",
            f"{matrix[index, number]} as number {number}", "correct it or drop the episode",
        )  # fmt: skip


def discounts(values: Floats, name: str, place: Place) -> None:
    """Discounts lie in [0, 1]."""
    index = first_true(~((values >= 0.0) & (values <= 1.0)))
    if index is not None:
        raise fault(
            place, name, index, "a discount must lie in [0, 1]", values[index], "correct it"
        )


def target(values: Numbers, name: str, place: Place, most: float = 1.0) -> Numbers:
    """Target probabilities lie in [0, 1]; densities are at least 0 and finite (`most`)."""
    if all_within(read_only(values), BELOW_ZERO, most):
        return values
    index = first_true(~((values >= 0.0) & (values <= most + SLACK)))
    if index is not None:
        remedy = IS_LOG if values[index] < 0 else OF_DENSITY
        raise fault(place, name, index, _rule("[0", most), values[index], remedy)
    return np.minimum(values, 1.0)


def _rule(least: str, most: float) -> str:
    where = f"{least}, 1]" if most == 1.0 else f"{least}, infinity)"
    return f"a {'probability' if most == 1.0 else 'density'} must lie in {where}"


def distribution(values: NDArray[Any], name: str, place: Place, use: Bools | None = None) -> None:
    """Probabilities of all actions are at least 0 and add up to 1, in the rows of `use`."""
    total = values.sum(axis=1, dtype=np.float64)
    bad = ~((np.abs(total - 1.0) <= SLACK) & (values >= 0.0).all(axis=1))
    index = first_true(bad if use is None else bad & use)
    if index is None:
        return
    shown = ", ".join(f"{value:.6g}" for value in values[index][:8].tolist())
    low = (values[index] < 0.0).all()
    raise fault(
        place, name, index, "the probabilities of all actions must be at least 0 and add up to 1",
        f"[{shown}{', ...' if values.shape[1] > 8 else ''}], in sum {total[index]:.10g}",
        "they look like log-probabilities: take exp" if low else "correct them",
    )  # fmt: skip


def same_entry(values: Numbers, entries: Floats, name: str, place: Place, whole: str) -> None:
    """The probability of the logged action is its entry among those of all actions."""
    index = first_true(~(np.abs(values - entries) <= SLACK))
    if index is not None:
        raise fault(
            place, name, index, f"must be the logged action's entry in '{whole}', "
            f"{entries[index]:.10g}", values[index], "correct one of them, or leave one out",
        )  # fmt: skip


def behavior(
    values: Numbers, name: str, place: Place, is_log: bool, targets: Mapping[str, Numbers],
    most: float = 1.0,
) -> Numbers:  # fmt: skip
    """Behaviour probabilities of logged actions lie in (0, 1], their logarithms are <= 0.

    Densities are above 0 and finite (`most`).
    """
    if is_log:
        index = first_true(~((values <= np.log(most) + SLACK) & np.isfinite(values)))
        if index is not None:
            raise fault(
                place, name, index, "a log-probability must be finite and at most 0",
                values[index], "if these are probabilities, map them to behavior_prob",
            )  # fmt: skip
        probability = np.exp(values.astype(np.float64))
    else:
        probability = values
    if all_within(read_only(probability), LEAST, most):
        return probability
    index = first_true(~((probability > LEAST) & (probability <= most + SLACK)))
    if index is None:
        return np.minimum(probability, 1.0)
    value = probability[index]
    if value < 0:
        remedy = IS_LOG
    elif value == 0:
        for label, chance in targets.items():
            if chance[index] > 0:
                raise fault(
                    place, name, index, f"the target '{label}' takes the logged action with "
                    f"probability {chance[index]:.6g}, so the behaviour's must be above 0", value,
                    "the log cannot speak about this target: correct the probability, or leave "
                    "the target out",
                )  # fmt: skip
        remedy = "an action that was taken cannot have probability 0: correct it"
    elif value <= LEAST:
        raise fault(
            place, name, index, f"the probability of a logged action must be above {LEAST:g}",
            f"{values[index]:.6g}", "no ratio can be formed with it: correct it",
        )  # fmt: skip
    else:
        remedy = OF_DENSITY
    raise fault(place, name, index, _rule("(0", most), value, remedy)
