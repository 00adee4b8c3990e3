"""Worlds of exactly known value, and logs of them: those that rules are made on, and others.

The worlds of `set_aside` were fixed before any rule of trust was tried (those with early cuts or
hidden signs before any was graded), those of `fresh`, `later`, `last`, `unended`, `unseen`,
`sealed` and `reserved` before its seven changes; no number of a rule was chosen on any of them.
`drawn` and `drawn_kept` have another world for every log: half of the families are for development,
half were set aside before any log of either was graded.
`docs/decisions/0018-trust.md` says what was measured.
"""

from benchmarks.worlds.development import DEVELOPMENT
from benchmarks.worlds.drawn_families import DRAWN
from benchmarks.worlds.drawn_kept import DRAWN_KEPT
from benchmarks.worlds.fresh import FRESH
from benchmarks.worlds.last import LAST
from benchmarks.worlds.later import LATER
from benchmarks.worlds.reserved import RESERVED
from benchmarks.worlds.sealed import SEALED
from benchmarks.worlds.set_aside import SET_ASIDE
from benchmarks.worlds.unended import UNENDED
from benchmarks.worlds.unseen import UNSEEN
from benchmarks.worlds.world import World

__all__ = [
    "DEVELOPMENT", "DRAWN", "DRAWN_KEPT", "FRESH", "LAST", "LATER", "RESERVED", "SEALED",
    "SET_ASIDE", "UNENDED", "UNSEEN", "World",
]  # fmt: skip
