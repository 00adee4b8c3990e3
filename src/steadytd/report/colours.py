"""One palette: a learner has the same colour in every picture that is made of a run.

The colours can be told apart by the colour-blind (Okabe and Ito's, and four more). Laws that the
certificate compares come first, in its order, then all others by name; beyond the last colour they
begin again with another dash. So a colour depends on the law alone, not on who else is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple
from zlib import crc32

from steadytd.learners import algorithm, built_in

PALETTE = (
    "#D55E00", "#009E73", "#0072B2", "#CC79A7", "#8B5FBF", "#E69F00", "#56B4E9", "#222222",
    "#8C3B1E", "#6B8E23", "#C2185B", "#5C6BC0",
)  # fmt: skip
DASHES = ((1, 0), (7, 3), (2, 2), (8, 3, 2, 3), (4, 2, 1, 2))


class Stroke(NamedTuple):
    """How a learner is drawn."""

    colour: str
    dash: tuple[int, ...]


@cache
def _order() -> dict[str, int]:
    """The place of every registered law in the palette."""
    places = {name: algorithm(name).standing.place for name in built_in()}
    ordered = sorted(places, key=lambda name: (not places[name], places[name], name))
    return {name: i for i, name in enumerate(ordered)}


def stroke(law: str, again: int = 0) -> Stroke:
    """The stroke of a law; `again` tells settings of one law apart that are drawn together.

    >>> stroke("mine") == stroke("mine"), stroke("mine").colour == stroke("mine", 1).colour
    (True, True)
    """
    place = _order().get(law, crc32(law.encode()) % len(PALETTE))
    dash = DASHES[(place // len(PALETTE) + again) % len(DASHES)]
    return Stroke(PALETTE[place % len(PALETTE)], dash)


def strokes(laws: Sequence[str]) -> list[Stroke]:
    """The strokes of lines that are drawn together, by the names of their laws."""
    return [stroke(law, list(laws[:i]).count(law)) for i, law in enumerate(laws)]
