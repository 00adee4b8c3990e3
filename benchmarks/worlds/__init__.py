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
    "DEVELOPMENT", "DRAWN", "DRAWN_KEPT", "FRESH", "LAST", "LATER", "PARTS", "RESERVED", "SEALED",
    "SET_ASIDE", "UNENDED", "UNSEEN", "Simulated", "World", "get",
]  # fmt: skip

PARTS: dict[str, dict[str, Mapping[str, Callable[[], Any]]]] = {
    "development": {
        "finite": DEVELOPMENT,
        "continuous": continuous_development.CONTINUOUS,
        "one-step": continuous_development.ONE_STEP,
    },
    "set aside": {
        "finite": {
            **SET_ASIDE, **FRESH, **LATER, **LAST, **UNENDED, **UNSEEN, **SEALED, **RESERVED,
        },
        "continuous": continuous_set_aside.CONTINUOUS,
        "one-step": continuous_set_aside.ONE_STEP,
    },
}  # fmt: skip


def get(name: str) -> Any:
    """The world of a name: of any part, but not a drawn one."""
    for kinds in PARTS.values():
        for worlds in kinds.values():
            if name in worlds:
                return worlds[name]()
    raise KeyError(name)
