"""One palette: a learner has the same colour and dash in every page and picture.

The hues are those of Okabe and Ito (yellow, too pale on paper, is left out) with a violet and a
brown; they stay apart for people who do not tell red from green. A colour alone is never the only
difference: learners that share a hue differ in their dashes. What the certificate compares has a
hue of its own, a direct solver the hue of the learner whose fixed point it solves for, and the
others take turns, those that learn step sizes last. A law from outside gets its look from its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple
from zlib import crc32

from steadytd.learners import algorithm, names

HUES = (
    "#D55E00", "#E69F00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#9977FF", "#222222",
    "#774400",
)  # fmt: skip
DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (6, 3), (2, 2), (9, 3, 2, 3), (1, 3))
DOTTED = DASHES[2]
INK, SOFT, PALE = "#1d2329", "#5b6570", "#9aa5b1"
SHADE, GOOD = "#D55E00", "#009E73"  # what is unstable; what is chosen
RAMP = {"name": "viridis", "extent": [0.12, 0.88]}  # legible on white and on black


class Look(NamedTuple):
    """How a series is drawn."""

    colour: str
    dash: tuple[int, ...] = DASHES[0]


@cache
def _looks() -> dict[str, Look]:
    """The registered learners of this package, in an order that no further law can change.

    Those of the average reward are drawn beside each other only, and have colours of their own.
    """
    laws = {name: algorithm(name) for name in names()}
    own = {n: x for n, x in laws.items() if x.update.__module__.startswith("steadytd.")}
    average = [n for n, x in own.items() if x.average_reward]
    own = {n: x for n, x in own.items() if n not in average}
    first = sorted((n for n in own if own[n].role.place), key=lambda n: own[n].role.place)
    first += [n for n in own if own[n].role.exhibit]
    looks = {name: Look(HUES[i]) for i, name in enumerate(first)}
    for name in first:
        solver = own[name].role.solver
        if solver and solver not in looks:
            looks[solver] = Look(looks[name].colour, DASHES[1])
    free = [Look(hue, dash) for dash in DASHES for hue in HUES]
    free = [look for look in free if look not in looks.values()]
    rest = sorted((n for n in own if n not in looks), key=lambda n: bool(own[n].adapts))
    looks |= dict(zip(rest, free, strict=False))
    average.sort(key=lambda name: laws[name].role.place)
    return looks | {name: Look(HUES[i]) for i, name in enumerate(average)}


def look(learner: str) -> Look:
    """Colour and dash of a learner, by its name without settings.

    >>> look("perturbed_td")
    Look(colour='#0072B2', dash=(1, 0))
    """
    known = _looks().get(learner)
    if known is not None:
        return known
    code = crc32(learner.encode(errors="backslashreplace"))
    return Look(HUES[code % len(HUES)], DASHES[1 + code // len(HUES) % (len(DASHES) - 1)])


def looks(series: Mapping[str, str]) -> dict[str, Look]:
    """A look for each label, given the learner behind it.

    The first label of a learner has the learner's own look; further ones (other settings of it)
    have lighter or darker shades of its colour and other dashes.

    >>> looks({"eta 0.4": "perturbed_td", "eta 0.5": "perturbed_td"})["eta 0.5"]
    Look(colour='#69acd2', dash=(6, 3))
    """
    found: dict[str, Look] = {}
    taken: dict[Look, int] = {}
    for label, learner in series.items():
        first = look(learner)
        again = taken.get(first, 0)
        taken[first] = again + 1
        found[label] = first if again == 0 else _another(first, again)
    return found


def _another(first: Look, again: int) -> Look:
    shade = mixed(first.colour, "#ffffff" if again % 2 else "#000000", 0.41)
    start = DASHES.index(first.dash)
    return Look(shade, DASHES[(start + again) % len(DASHES)])


def mixed(colour: str, other: str, share: float) -> str:
    """A colour with a share of another one.

    >>> mixed("#000000", "#ffffff", 0.5)
    '#808080'
    """
    parts = [[int(text[i : i + 2], 16) for i in (1, 3, 5)] for text in (colour, other)]
    return "#" + "".join(
        f"{round((1 - share) * a + share * b):02x}" for a, b in zip(*parts, strict=True)
    )
