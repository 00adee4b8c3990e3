"""The paper's supplement: Experiments 2 and 3 with four step sizes, in eight panels.

The document was published with the authors' notebooks and later withdrawn. It has no numbers: what
stands here was read off its pictures, whose axes are 218 pixels high. A reading is good to one
pixel of its panel, and to `AROUND` steps along the other axis.
"""

from __future__ import annotations

from steadytd.reproduction.paper import AS_DEFINED, ETD, NO_RATIO, TD, Claim, Figure
from steadytd.reproduction.statements import (
    Statement,
    both,
    ends_at,
    leaves,
    rests_between,
    turns_at,
    zero_by,
)

PIXELS = 218
AROUND = 20_000  # steps: six pixels
AT_ONCE = 50_000  # steps: within a twentieth of the axis
STEPS = 1_000_000


def _pixel(axis: tuple[float, float]) -> float:
    return (axis[1] - axis[0]) / PIXELS


def _panel(
    letter: str, problem: str, alpha: float, axis: tuple[float, float], says: list[Statement | None]
) -> Figure:
    """One panel; `says` in the order TD, perturbed TD, ETD, TDC."""
    experiment, eta = (2, "1") if problem == "baird" else (3, "0.5")
    learners = (
        (f"td:alpha={alpha}", TD),
        (f"perturbed_td:alpha={alpha},eta={eta}", f"perturbed TD, eta {eta}"),
        (f"etd:alpha={alpha}", ETD),
        (f"tdc_as_published:alpha={alpha},ratio=10", NO_RATIO),
    )
    read = tuple(Claim(*one, said) for one, said in zip(learners, says, strict=True))
    return Figure(
        name=f"Supplement {experiment}{letter}",
        problem=problem,
        title=f"Experiment {experiment}, alpha = {alpha:g}",
        steps=STEPS,
        claims=(*read, Claim(f"tdc:alpha={alpha},ratio=10", AS_DEFINED)),
        axis=axis,
    )


def _at_once(cut: float) -> Statement:
    return leaves(cut, 0, AT_ONCE, "leaves the panel at once")


def _baird() -> tuple[Figure, ...]:
    tall, low = (-10.0, 100.0), (-10.0, 50.0)
    dot = _pixel(tall)
    return (
        _panel("a", "baird", 1e-3, tall, [
            _at_once(100), zero_by(AT_ONCE, dot, "zero at once"), _at_once(100),
            ends_at(1.6, dot),
        ]),
        _panel("b", "baird", 1e-4, tall, [
            _at_once(100), zero_by(50_000, dot, "zero by 50,000 steps"),
            leaves(100, 100_000 - AROUND, 100_000 + AROUND, "leaves the panel at 100,000 steps"),
            ends_at(1.8, dot),
        ]),
        _panel("c", "baird", 1e-5, tall, [
            leaves(100, 410_000 - AROUND, 410_000 + AROUND, "leaves the panel at 410,000 steps"),
            zero_by(500_000, dot, "zero by 500,000 steps"), ends_at(40, dot), ends_at(2.0, dot),
        ]),
        _panel("d", "baird", 1e-6, low, [
            ends_at(19.5, _pixel(low)), ends_at(5.1, _pixel(low)), ends_at(14, _pixel(low)),
            ends_at(4.4, _pixel(low)),
        ]),
    )  # fmt: skip


def _three_state() -> tuple[Figure, ...]:
    twenty, fifty, twelve = (0.0, 20.0), (0.0, 50.0), (0.0, 12.0)
    dot = _pixel(twenty)
    resting = rests_between(7.5, 8.0, dot, "rests at 7.5 to 8 between bursts")
    return (
        _panel("a", "three_state", 1e-3, twenty, [
            _at_once(20), ends_at(3.0, dot), resting, ends_at(4.6, dot),
        ]),
        _panel("b", "three_state", 1e-4, twenty, [
            both(
                turns_at(2.6, 70_000, dot, AROUND, "turns at 2.6 at 70,000 steps"),
                leaves(20, 100_000 - AROUND, 100_000 + AROUND, "leaves at 100,000"),
            ),
            both(turns_at(2.6, 350_000, dot, AROUND, "turns at 2.6 at 350,000 steps"),
                 ends_at(3.0, dot)),
            resting, ends_at(5.5, dot),
        ]),
        _panel("c", "three_state", 1e-5, fifty, [
            both(
                turns_at(2.6, 620_000, _pixel(fifty), AROUND, "turns at 2.6 at 620,000 steps"),
                ends_at(21.0, 2 * _pixel(fifty)),  # the curve is steep there
            ),
            ends_at(5.6, _pixel(fifty)), resting, ends_at(9.05, _pixel(fifty)),
        ]),
        _panel("d", "three_state", 1e-6, twelve, [
            ends_at(9.3, _pixel(twelve)), ends_at(9.4, _pixel(twelve)),
            ends_at(8.2, _pixel(twelve)), ends_at(9.8, _pixel(twelve)),
        ]),
    )  # fmt: skip


PANELS = (*_baird(), *_three_state())
