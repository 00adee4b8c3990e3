"""What the paper says of a curve: each test is shown a curve of the kind, and one that is not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from steadytd.reproduction import statements as say
from steadytd.reproduction.statements import Evidence, Spread, Statement, first_above

STEPS = np.arange(0, 1001, 100)


def evidence(
    curve: Sequence[float], *, stable: bool = True, ends: Sequence[float] = (), **more: object
) -> Evidence:
    """Four runs with this curve, and perhaps with other last points."""
    errors = np.tile(np.asarray(curve, dtype=float), (4, 1))
    if ends:
        errors[:, -1] = ends
    facts = {"best": 2.0, "rival": 3.0, "spread": None, **more}
    return Evidence(STEPS, errors, stable, **facts)  # type: ignore[arg-type]


def line(start: float, end: float) -> list[float]:
    return list(np.linspace(start, end, len(STEPS)))


def valley(low: float) -> list[float]:
    """Least at step 500."""
    return [10, 9, 8, 6, 4, low, 4, 6, 8, 9, 10]


def spread(ends: Sequence[float]) -> Spread:
    """Many runs that stay at their last point."""
    runs = np.tile(np.asarray(ends, dtype=float)[:, None], (1, len(STEPS)))
    return Spread(STEPS, runs, runs)


ZERO_END = [5.0] * 5 + [0.001] * 6
CASES: list[tuple[Statement, Evidence, Evidence]] = [
    (say.DIVERGES, evidence(line(1, 9), stable=False), evidence(line(1, 9), stable=True)),
    (say.DIVERGES, evidence(line(1, 9), stable=False), evidence(line(9, 1), stable=False)),
    (say.TO_ZERO, evidence(ZERO_END), evidence(line(5, 0.06))),
    (say.SLOWLY, evidence(line(5, 4)), evidence(line(5, 6))),
    (say.SLOWLY, evidence(line(5, 4)), evidence(line(5, 4), stable=False)),
    (say.SLOWLY, evidence(line(5, 4)), evidence(ZERO_END)),
    (say.OSCILLATES, evidence(line(5, 9), ends=[1, 5, 20, 40]), evidence(line(5, 9))),
    (say.WORSE, evidence(line(5, 3.1)), evidence(line(5, 2.9))),
    (say.NOT_CLOSE, evidence(line(5, 3.1)), evidence(line(5, 2.9))),
    (say.ends_at(4.6, 0.1), evidence(line(9, 4.55)), evidence(line(9, 4.45))),
    (say.text_number(2.97), evidence(line(9, 2.99)), evidence(line(9, 3.01))),
    (say.leaves(50, 400, 600, ""), evidence(line(0, 100)), evidence(line(0, 80))),
    (say.leaves(50, 400, 600, ""), evidence(line(0, 100)), evidence(line(0, 49))),
    (say.zero_by(500, 0.01, ""), evidence(ZERO_END), evidence([5.0] * 6 + [0.001] * 5)),
    (say.turns_at(2, 500, 0.1, 50, ""), evidence(valley(2.05)), evidence(valley(2.2))),
    (say.turns_at(2, 500, 0.1, 50, ""), evidence(valley(2)), evidence([2, *valley(3)[1:]])),
    (
        say.rests_between(7.5, 8, 0.1, ""),
        evidence(line(7.8, 7.8), ends=[7.8, 7.8, 99, 999]),
        evidence(line(7.8, 9.8)),
    ),
    # where ten runs need not look like ten others, the paper is held against many runs
    (
        say.ends_at(40, 1.0),
        evidence(line(5, 900), spread=spread(range(30, 60))),
        evidence(line(5, 40), spread=spread(range(50, 60))),
    ),
    (
        say.leaves(50, 0, 100, ""),
        evidence(line(0, 1), spread=spread([10, 20, 60, 70])),
        evidence(line(60, 70), spread=spread([10, 20, 30, 40])),
    ),
    (
        say.rests_between(7.5, 8, 0.1, ""),
        evidence(line(90, 90), spread=spread([7.7, 7.8, 7.9, 900])),
        evidence(line(7.8, 7.8), spread=spread([8.7, 8.8, 8.9, 900])),
    ),
]


@pytest.mark.parametrize(("statement", "shows", "does_not"), CASES)
def test_a_statement_tells_curves_apart(
    statement: Statement, shows: Evidence, does_not: Evidence
) -> None:
    assert statement.holds(shows) is True or statement.holds(shows) == np.True_
    assert not statement.holds(does_not)


def test_both_needs_both() -> None:
    statement = say.both(say.turns_at(2, 500, 0.1, 50, "turns"), say.ends_at(10, 0.1))
    assert statement.text == "turns; about 10"
    assert statement.number == 10
    assert statement.holds(evidence(valley(2)))
    assert not statement.holds(evidence(valley(3)))
    assert not statement.holds(evidence([*valley(2)[:-1], 11]))


def test_first_above() -> None:
    assert first_above(np.array([1.0, 5.0, 2.0]), 4.0, np.array([0, 10, 20])) == 10
    assert first_above(np.array([1.0, 2.0, np.inf]), 4.0, np.array([0, 10, 20])) == 20
    assert first_above(np.array([1.0, 2.0, 3.0]), 4.0, np.array([0, 10, 20])) == np.inf


def test_of_100_numbers_99_are_likely() -> None:
    low, high = spread([1.0]).likely(np.arange(1001.0))
    assert (low, high) == (5.0, 995.0)
