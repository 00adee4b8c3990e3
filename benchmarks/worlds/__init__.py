"""Worlds of exactly known value, and logs of them: those that rules are made on, and others.

The worlds of `set_aside` were fixed before any rule of trust was tried (those with early cuts or
hidden signs before any was graded), those of `fresh`, `later`, `last`, `unended`, `unseen`,
`sealed` and `reserved` before its seven changes; no number of a rule was chosen on any of them.
`drawn` and `drawn_kept` have another world for every log: half of the families are for development,
half were set aside before any log of either was graded.
`docs/decisions/0018-trust.md` says what was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from benchmarks.worlds import continuous_development, continuous_set_aside
from benchmarks.worlds.development import DEVELOPMENT
from benchmarks.worlds.drawn_families import DRAWN
from benchmarks.worlds.drawn_kept import DRAWN_KEPT
from benchmarks.worlds.fresh import FRESH
from benchmarks.worlds.last import LAST
from benchmarks.worlds.later import LATER
from benchmarks.worlds.reserved import RESERVED
from benchmarks.worlds.sealed import SEALED
from benchmarks.worlds.set_aside import SET_ASIDE
from benchmarks.worlds.simulated import Simulated
from benchmarks.worlds.unended import UNENDED
from benchmarks.worlds.unseen import UNSEEN
from benchmarks.worlds.world import World

__all__ = [
    "DEVELOPMENT",
    "DRAWN",
    "DRAWN_KEPT",
    "FRESH",
    "KINDS",
    "LAST",
    "LATER",
    "PARTS",
    "RESERVED",
    "SEALED",
    "SET_ASIDE",
    "UNENDED",
    "UNSEEN",
    "Simulated",
    "World",
    "get",
]  # fmt: skip

KINDS = ("finite", "continuous", "one-step", "endless", "drawn")


def _by_kind(finite: dict[str, Callable[[], World]], more: Any, drawn: Any) -> dict[str, Any]:
    """Worlds by kind; the names of endless worlds say that they are."""
    found = {**finite, **more.CONTINUOUS}
    one_step = {name: make for name, make in finite.items() if name.split()[0] in BANDITS}
    endless = {name: make for name, make in found.items() if "endless" in name.split()}
    other = one_step.keys() | endless.keys()
    return {
        "finite": {k: v for k, v in finite.items() if k not in other},
        "continuous": {k: v for k, v in more.CONTINUOUS.items() if k not in other},
        "one-step": {**one_step, **more.ONE_STEP},
        "endless": endless,
        "drawn": drawn,
    }


BANDITS = (
    "bandit",
    "slots",
    "ratios",
    "contextual",
    "prizes",
    "news",
    "trials",
    "adverts",
    "scratch",
)
PARTS: dict[str, dict[str, Mapping[str, Callable[..., Any]]]] = {
    "development": _by_kind(DEVELOPMENT, continuous_development, DRAWN),
    "set aside": _by_kind(
        {**SET_ASIDE, **FRESH, **LATER, **LAST, **UNENDED, **UNSEEN, **SEALED, **RESERVED},
        continuous_set_aside, DRAWN_KEPT,
    ),
}  # fmt: skip


@lru_cache(maxsize=8)
def _made(part: str, kind: str, name: str) -> Any:
    return PARTS[part][kind][name]()


def get(part: str, kind: str, name: str, seed: int = 0) -> Any:
    """A world; of those that are drawn, that of a seed."""
    if kind == "drawn":
        return PARTS[part][kind][name](seed)
    return _made(part, kind, name)
