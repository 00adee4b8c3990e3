"""Texts that a user writes: learners, features, problems, column maps, CSV files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.random import Generator

import steadytd as st
from steadytd.features import feature_map
from tests.support.fuzz import EVERY_SIZE, HOSTILE, mutated, one_of, tried

LEARNERS = (
    "perturbed_td:alpha=1e-4,eta=1", "tdc:alpha=0.1,ratio=auto", "td:alpha=0.05,lam=0.8,power=0.5",
    "perturbed_td:alpha=0.03,eta=0.3,penalty=outside", "lstd:lam=0.5",
)  # fmt: skip
FEATURES = ("raw", "poly:2", "rbf:300", "fourier:3", "tiles:8x4", "onehot")
CSV = (
    "episode_id,t,obs_0,action,reward,terminated,behavior_prob,target_prob_a,größe\n"
    "0,0,0.5,1,1.0,false,0.5,0.6,1\n0,1,0.7,0,0.5,true,0.5,0.4,2\n1,0,0.1,1,0.0,true,0.25,1.0,3\n"
)


def learner(rng: Generator) -> None:
    text = mutated(rng, one_of(rng, LEARNERS), int(rng.integers(0, 3)))
    again = st.learner(text)
    assert st.learner(str(again)) == again


def features(rng: Generator) -> None:
    text = mutated(rng, one_of(rng, FEATURES), int(rng.integers(0, 3)))
    made = feature_map(one_of(rng, [text] * 9 + list(HOSTILE)), seed=int(rng.integers(5)))
    fitted = made.fit(rng.normal(size=(4, 2)))
    assert np.isfinite(fitted(rng.normal(size=(2, 2)))).all()


@pytest.mark.parametrize("many", EVERY_SIZE)
def test_texts_of_learners(many: bool) -> None:
    tried(learner, 1500, 5, many=many)


@pytest.mark.parametrize("many", EVERY_SIZE)
def test_texts_of_features(many: bool) -> None:
    tried(features, 300, 6, many=many)


@pytest.mark.parametrize("many", EVERY_SIZE)
def test_csv_files(many: bool, tmp_path: Path) -> None:
    def case(rng: Generator) -> None:
        text = mutated(rng, CSV, int(rng.integers(0, 4)))
        code = one_of(rng, ["utf-8", "latin-1", "utf-16", "utf-8-sig"])
        path = tmp_path / "log.csv"
        path.write_bytes(text.encode(code, errors="replace"))
        columns = one_of(rng, [None, {}, {"action": ""}, {"obs": "größe"}, *HOSTILE[12:]])
        for _ in st.open_log(str(path), discount=0.9, columns=columns).batches():
            pass

    tried(case, 200, 7, many=many)
