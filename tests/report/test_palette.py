"""The palette: one look for each learner, apart for the colour-blind, on paper and in the dark."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from steadytd.learners import algorithm, names
from steadytd.report import palette
from steadytd.report.palette import DASHES, HUES, look, looks

# Machado, Oliveira & Fernandes (2009), severity 1, on linear RGB.
EYES = {
    "all colours": np.eye(3),
    "no red": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                        [-0.003882, -0.048116, 1.051998]]),
    "no green": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                          [-0.011820, 0.042940, 0.968881]]),
}  # fmt: skip
DARK_INK = "#e4e8ec"
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def rgb(colour: str) -> NDArray[np.float64]:
    return np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])


def lab(srgb: NDArray[np.float64], eye: NDArray[np.float64]) -> NDArray[np.float64]:
    """CIELAB of a colour as an eye sees it: a distance of 10 is plain to see."""
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip(eye @ linear, 0.0, 1.0) / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def in_the_dark(hue: str) -> NDArray[np.float64]:
    """A hue on a dark page: black is the page's ink, and every series a little brighter."""
    return np.clip(1.2 * rgb(DARK_INK if hue == "#222222" else hue), 0.0, 1.0)


def test_dark_pages_have_the_colours_that_are_computed_here() -> None:
    styles = Path(palette.__file__).with_name("templates")
    page, figure = ((styles / f"{name}.css").read_text() for name in ("page", "figure"))
    dark = page[page.index("prefers-color-scheme: dark") :]
    assert f"--ink: {DARK_INK};" in dark and "--marks: brightness(1.2);" in dark
    assert '[stroke="#222222"]' in figure and "filter: var(--marks, none)" in figure


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("dark", [False, True])
def test_hues_are_apart_for_every_eye(eye: str, dark: bool) -> None:
    seen = {h: lab(in_the_dark(h) if dark else rgb(h), EYES[eye]) for h in HUES}
    for a, b in combinations(HUES, 2):
        assert np.linalg.norm(seen[a] - seen[b]) > 10.0, (a, b)
    paper = lab(rgb("#14191e" if dark else "#ffffff"), EYES[eye])
    for hue in HUES:
        assert abs(seen[hue][0] - paper[0]) > 25.0, hue


def test_no_two_learners_look_alike() -> None:
    """Those of the average reward and the others are never drawn together."""
    average = [name for name in names() if algorithm(name).average_reward]
    found = [look(name) for name in names() if name not in average]
    assert len(set(found)) == len(found) > 30
    assert len({look(name) for name in average}) == len(average) == 3


def test_what_the_certificate_compares_has_a_solid_hue_of_its_own() -> None:
    first = [look(name) for name in ("td", "tdc", "perturbed_td", "etd", "tdc_as_published")]
    assert len({x.colour for x in first}) == 5
    assert {x.dash for x in first} == {DASHES[0]}
    assert look("perturbed_lstd").colour == look("perturbed_td").colour
    assert look("lstd").colour == look("td").colour


def test_a_law_from_outside_has_a_look_that_stays() -> None:
    assert look("my own law") == look("my own law")
    assert look("half \ud800 a character") == look("half \ud800 a character")
    assert look("my own law") != look("another law")


def test_settings_of_one_learner_share_its_hue_and_differ() -> None:
    series = {f"eta {i}": "perturbed_td" for i in range(5)} | {"td": "td"}
    found = looks(series)
    assert found["eta 0"] == look("perturbed_td")
    assert found["td"] == look("td")
    assert len(set(found.values())) == 6
