"""Which amount of a cure to take.

An amount is *clear* if it is stable and, as for penalties (`margin.py`), no unstable amount lies
within a tenth of it nor within a fiftieth of the largest unstable one, and moving it by one per
cent moves the values by at most a tenth of their norm. (A whole number is clear if it is stable.)
Among the clear amounts with finite second moments, if there are any, the errors within 5 % of the
least are equally good; of these the *best* is the smallest that reaches nine tenths of the best
rate at equal noise (`Cure.efficiency`). On a knife edge the error is counted that the amount has
if it is off by a factor of two. Where "auto" is offered, the best is what "auto" takes.
"""

from __future__ import annotations

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.theory.analysis import CLOSE, SOME
from steadytd.theory.choose import ENOUGH
from steadytd.theory.cures.cure import UNBOUNDED, Cure
from steadytd.theory.cures.search import StableSet, reach
from steadytd.theory.margin import FLOOR, MARGIN, NUDGE, STEEP

GRID = 121  # amounts tried
ZOOMS, ZOOM = 5, 9  # then so many times so many around the best
COMPARED = 24  # equally good amounts whose rate and noise are compared
HALVINGS = 12  # to find from where on the second moment is not finite


def grid(cure: Cure, found: StableSet) -> Floats:
    """The amounts that are tried and drawn, dense near the lower end, and what is clear first."""
    if cure.whole:
        top = max(found.until, cure.low + 10.0)
        steps = np.geomspace(1.0, top - cure.low + 1.0, GRID)
        return np.unique(np.rint(steps + cure.low - 1.0))
    top = cure.high
    ends = [end for interval in found.unstable for end in interval if end < UNBOUNDED]
    share = np.linspace(0.0, 1.0, GRID)
    if top == UNBOUNDED:
        top = max(cure.low + reach(cure), 4.0 * max([0.0, *ends]), cure.chosen or 0.0)
        share = share**2
    even = cure.low + (top - cure.low) * share
    far = FLOOR * max([0.0, *ends])
    edges = [max(e + far, e / (1.0 - MARGIN)) * (1.0 + SOME) for e in ends]
    edges += [min(e - far, e / (1.0 + MARGIN)) * (1.0 - SOME) for e in ends]
    usable = [e for e in edges if cure.low < e < top]
    amounts = np.unique(np.concatenate([even, usable]))
    return amounts[1:] if cure.open_below else amounts


def is_clear(cure: Cure, found: StableSet, amount: float) -> bool:
    """Whether nothing speaks against this amount but perhaps its error."""
    if cure.whole:
        return cure.stable(amount)
    largest = max([0.0, *(hi for _, hi in found.unstable if hi < UNBOUNDED)])
    far = max(MARGIN * amount, FLOOR * largest)
    if any(lo <= amount + far and amount - far <= hi for lo, hi in found.unstable):
        return False
    return cure.stable(amount) and _steepness(cure, amount) <= STEEP


def _steepness(cure: Cure, amount: float) -> float:
    """By what share of their norm one per cent of the amount moves the values, at most."""
    near = [min(amount * f, cure.high) for f in (1.0, 1.0 - NUDGE, 1.0 + NUDGE)]
    here, *there = (cure.weights(a) for a in near)
    if here is None or any(w is None for w in there):
        return UNBOUNDED
    moved = max(cure.setting.norm(w - here) for w in there if w is not None)
    size = cure.setting.norm(here)
    return moved / size if size > 0.0 else UNBOUNDED if moved > 0.0 else 0.0


def best(cure: Cure, found: StableSet) -> float | None:
    """The amount to take; None if there is no stable one."""
    if cure.chosen is not None:
        return cure.chosen
    amounts = grid(cure, found)
    clear = [float(a) for a in amounts if is_clear(cure, found, float(a))]
    clear = clear or [float(a) for a in amounts if cure.stable(float(a))]
    clear = _finite(cure, clear)
    if not clear:
        return None
    clear = clear if cure.whole else _zoomed(cure, found, clear)
    edge = cure.knife_edge(min(clear, key=cure.error))
    counted = cure.off if edge else cure.error
    slack = CLOSE * min(map(counted, clear)) + SOME * cure.setting.scale
    good = [a for a in clear if counted(a) <= slack]
    places = np.unique(np.linspace(0, len(good) - 1, COMPARED).astype(int))
    some: list[float] = [good[i] for i in places.tolist()]
    speeds = list(map(cure.efficiency, some))
    return next(a for a, speed in zip(some, speeds, strict=True) if speed >= ENOUGH * max(speeds))


def _zoomed(cure: Cure, found: StableSet, clear: list[float]) -> list[float]:
    """More clear amounts around the one of least error, which may lie between two of the grid."""
    more = list(clear)
    for _ in range(ZOOMS):
        i = int(np.argmin([cure.error(a) for a in more]))
        ends = more[max(i - 1, 0)], more[min(i + 1, len(more) - 1)]
        between = np.linspace(*ends, ZOOM)[1:-1].tolist()
        more = sorted({*more, *(a for a in between if is_clear(cure, found, a))})
    return _finite(cure, more)


def _finite(cure: Cure, amounts: list[float]) -> list[float]:
    """Those with finite second moments, if any: the verdict changes at most once along them."""
    if not amounts:
        return []
    first, last = cure.is_finite(amounts[0]), cure.is_finite(amounts[-1])
    if first is last:
        return amounts
    low, high = 0, len(amounts) - 1
    for _ in range(HALVINGS):
        if high - low <= 1:
            break
        middle = (low + high) // 2
        low, high = (middle, high) if cure.is_finite(amounts[middle]) is first else (low, middle)
    return amounts[: low + 1] if first else amounts[high:]
