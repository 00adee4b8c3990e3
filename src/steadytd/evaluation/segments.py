"""Values and decisions for every segment of a log, and where segments differ.

A segment has the episodes with one value of a column, and is evaluated as a log of its own: its
own equations, second feature map and checks. Intervals are simultaneous over all segments and
targets: with m of them each has the level 1 - 0.05 / m (Bonferroni), so that all hold together in
95 % of logs.

Two segments s and t have the same effect if D_s = D_t. With half widths S (chance) and C (bias and
truncation) of the differences D to the logged policy, the p-value of a pair is

    p = P( |z| > max(|D_s - D_t| - C_s - C_t, 0) / se ),   se = sqrt(S_s^2 + S_t^2) / 1.96

for normal z, times the number of pairs and targets (Bonferroni). Where a unit is in several
segments, their errors may depend on each other: then se is (S_s + S_t) / 1.96, which no dependence
exceeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from scipy.special import ndtr, ndtri

from steadytd.base.arrays import Longs
from steadytd.base.errors import InputError
from steadytd.evaluation.decide import Decision, compared, difference, shortest
from steadytd.evaluation.rule import EFFECTIVE_UNITS, LEVEL, clipped
from steadytd.logs.log import Log
from steadytd.logs.selection import groups, selected, unit_groups

if TYPE_CHECKING:
    import polars as pl


MOST_SEGMENTS = 50
T = TypeVar("T")
NORMAL = float(ndtri(0.5 + LEVEL / 2.0))


@dataclass(frozen=True)
class Parting:
    """The segment of every row of a log."""

    column: str
    names: tuple[str, ...]
    segment: Longs = field(repr=False)  # [rows]
    units: tuple[int, ...]  # how many are in every segment
    overlapping: bool  # a unit is in several segments

    @staticmethod
    def of(log: Log, column: str) -> Parting:
        """By a column that is constant in every episode."""
        episode = log.schema.columns["episode_id"]
        segment, values = groups(log.source, column, "segment", episode)
        if len(values) > MOST_SEGMENTS:
            raise InputError(
                f"column '{column}' has {len(values):,} values; at most {MOST_SEGMENTS} segments "
                "can be compared: join some, or name another column."
            )
        unit = unit_groups(log)[0]
        pairs = np.unique(np.column_stack([segment, unit]), axis=0)
        number = np.bincount(pairs[:, 0], minlength=len(values))
        order = np.argsort(np.array(values.to_pylist(), dtype=str), kind="stable")
        place = np.argsort(order)
        return Parting(
            column, tuple(values[int(i)].as_py() for i in order), place[segment],
            tuple(number[order].tolist()), len(pairs) > len(np.unique(unit)),
        )  # fmt: skip


@dataclass(frozen=True)
class SegmentValue:
    """One target in one segment, with joint intervals; numbers are NaN where it is too small."""

    segment: str
    target: str
    units: int
    value: float
    lo: float
    hi: float
    difference: float
    difference_lo: float
    difference_hi: float
    decision: str
    trusted: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Contrast:
    """Two segments whose effects of a target are compared; `p` is adjusted for all pairs."""

    target: str
    segment: str
    other: str
    apart: float
    p: float

    @property
    def differ(self) -> bool:
        """Whether the effects differ, at level 5 % for all pairs together."""
        return self.p < 1.0 - LEVEL


@dataclass(frozen=True)
class Segments:
    """Values by segment; `evaluations` are those of the segments that are large enough."""

    column: str
    rows: tuple[SegmentValue, ...]
    contrasts: tuple[Contrast, ...]
    evaluations: Mapping[str, Any] = field(repr=False)

    def __getitem__(self, name: str) -> Any:
        return self.evaluations[name]

    @property
    def frame(self) -> pl.DataFrame:
        """One row per segment and target."""
        import polars as pl

        return pl.DataFrame([asdict(row) for row in self.rows], infer_schema_length=None)

    @property
    def text(self) -> str:
        """Where segments differ, as a sentence."""
        found = [c for c in self.contrasts if c.differ]
        many = len({row.target for row in self.rows}) > 1
        named = [f"{c.segment} from {c.other}" + f" ({c.target})" * many for c in found[:3]]
        named += [f"and {len(found) - 3} more pairs"] * (len(found) > 3)
        text = f"Effects differ: {'; '.join(named)} (joint level 5 %)."
        if not found:
            text = f"The log does not show that effects differ by {self.column}."
        doubtful = dict.fromkeys(row.segment for row in self.rows if not row.trusted)
        return f"{text} Not compared, as not trusted: {', '.join(doubtful)}." if doubtful else text

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "column": self.column,
            "rows": [asdict(row) for row in self.rows],
            "contrasts": [{**asdict(c), "differ": c.differ} for c in self.contrasts],
            "text": self.text,
        }


def by_segment(
    log: Log, parting: Parting, evaluate: Callable[..., T], checkpoint: Path | None
) -> dict[str, T]:
    """What `evaluate(log, checkpoint=...)` says of every segment that is large enough."""
    found: dict[str, T] = {}
    for i, name in enumerate(parting.names):
        if parting.units[i] >= EFFECTIVE_UNITS:
            kept = None if checkpoint is None else checkpoint / f"segment-{i}"
            try:
                found[name] = evaluate(selected(log, parting.segment == i), checkpoint=kept)
            except InputError as error:
                raise InputError(f"{parting.column} = {name}: {error}") from error
    return found


def joint(targets: Sequence[str], parting: Parting, found: dict[str, Any]) -> Segments:
    """All segments at a joint level, from the evaluations of those that are large enough."""
    together, rows = len(targets) * max(len(found), 1), []
    for i, name in enumerate(parting.names):
        for t, target in enumerate(targets):
            e, units = found.get(name), parting.units[i]
            rows.append(
                _too_small(name, target, units) if e is None else _row(name, e, t, units, together)
            )
    return Segments(parting.column, tuple(rows), _contrasts(found, parting.overlapping), found)


def _row(name: str, e: Any, t: int, units: int, together: int) -> SegmentValue:
    """A target's row at the joint level."""
    side, level = e.sides[t], 1.0 - (1.0 - LEVEL) / together
    decision: Decision = compared(side, None, e.data, together)
    chosen = side.selection.candidate
    lo, hi = clipped(chosen.value, chosen.half_width(level), e.data)
    return SegmentValue(
        name, side.name, units, side.selection.value, lo, hi, decision.difference, decision.lo,
        decision.hi, decision.decision, decision.trusted, decision.reasons,
    )  # fmt: skip


def _too_small(name: str, target: str, units: int) -> SegmentValue:
    nan = math.nan
    return SegmentValue(
        name, target, units, nan, nan, nan, nan, nan, nan, "undecided", False, ("few_units",)
    )


def _contrasts(found: Mapping[str, Any], overlapping: bool) -> tuple[Contrast, ...]:
    """All pairs of segments that can be trusted, for every target."""
    rows = []
    names = next(iter(found.values())).targets if found else []
    for t, target in enumerate(names):
        effects = {
            name: shortest([difference(c, None, e.data) for c in e.sides[t].selection.usable])
            for name, e in found.items()
            if not e.sides[t].reasons
        }
        for (one, a), (other, b) in combinations(effects.items(), 2):
            chance = max(a.chance, a.rare), max(b.chance, b.rare)
            error = (sum(chance) if overlapping else math.hypot(*chance)) / NORMAL
            beyond = max(abs(a.value - b.value) - a.fixed - b.fixed, 0.0)
            p = 2.0 * float(ndtr(-beyond / error)) if error > 0.0 else float(beyond == 0.0)
            rows.append(Contrast(target, one, other, a.value - b.value, p))
    return tuple(
        Contrast(c.target, c.segment, c.other, c.apart, min(c.p * len(rows), 1.0)) for c in rows
    )
