"""Worlds of known value, and logs of them: those that rules are made on, and others.

`PARTS[part][kind]` has functions that make worlds, by name. No number of a rule was chosen on any
world that is set aside. A world has `log(seed)`, `arguments` (what `st.evaluate` is told besides),
`truths` (by target) and `behavior_truth`. `docs/decisions/0018-trust.md` says what was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from benchmarks.worlds import (
    continuous_development,
    continuous_set_aside,
    drawn,
    finite_development,
    finite_set_aside,
)
from benchmarks.worlds.simulated import Simulated
from benchmarks.worlds.world import World

__all__ = ["DEVELOPMENT", "KINDS", "PARTS", "SET_ASIDE", "Simulated", "World", "get"]

KINDS = ("finite", "continuous", "one-step", "endless", "drawn")
ONE_STEP = ("bandit", "ratios", "claims", "slots", "contextual", "prizes", "trials", "scratch")
DEVELOPMENT, SET_ASIDE = finite_development.FINITE, finite_set_aside.FINITE
Makers = Mapping[str, Callable[..., Any]]


def _by_kind(finite: Makers, simulated: Any, families: Makers) -> dict[str, Makers]:
    """Worlds by kind: by their first word one-step ones, by their second endless ones."""
    found: dict[str, dict[str, Callable[..., Any]]] = {kind: {} for kind in KINDS}
    for kind, worlds in (("finite", finite), ("continuous", simulated.CONTINUOUS)):
        for name, make in worlds.items():
            words = name.split()
            own = "one-step" if words[0] in ONE_STEP else kind
            found["endless" if "endless" in words else own][name] = make
    found["one-step"] |= simulated.ONE_STEP
    return {**found, "drawn": families}


PARTS = {
    "development": _by_kind(DEVELOPMENT, continuous_development, drawn.DEVELOPMENT),
    "set aside": _by_kind(SET_ASIDE, continuous_set_aside, drawn.SET_ASIDE),
}


@lru_cache(maxsize=8)
def _made(part: str, kind: str, name: str) -> Any:
    return PARTS[part][kind][name]()


def get(part: str, kind: str, name: str, seed: int = 0) -> Any:
    """A world; of those that are drawn, that of a seed."""
    return PARTS[part][kind][name](seed) if kind == "drawn" else _made(part, kind, name)
