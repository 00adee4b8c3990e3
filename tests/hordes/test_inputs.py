"""Bad input gets one sentence: what, the rule, the value, the remedy; nothing is learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import steadytd as st
from steadytd.hordes import part
from steadytd.hordes.inputs import Inputs
from tests.support.hordes import not_compiled

TD, TREE = "td:alpha=0.1", "tree_backup:alpha=0.1"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "kernel", not_compiled)


def made(text: str = TD, **changes: Any) -> st.HordePrediction:
    given: dict[str, Any] = {"cumulant": 0, "policy": 0, "discount": 0.9, **changes}
    return st.prediction(text, **given)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"discount": None}, r"^a prediction needs its discount: give discount=\.\.\. .* got disc"),
        ({"discount_column": 1}, r"^a prediction needs its discount: .* discount_column=1\.$"),
        ({"discount": 1.5}, r"^discount must be from 0 to 1, got 1\.5\.$"),
        ({"discount": "high"}, r"^discount must be a number, got 'high'\.$"),
        ({"cumulant": -1}, r"^cumulant \(a column of the cumulants\) must be .* got -1\.$"),
        ({"policy": 0.5}, r"^policy \(a column of the ratios, or 'behavior'\) must be a whole"),
        ({"policy": "pi"}, r"^policy must be a column .* or 'behavior', .*; got 'pi'\.$"),
        ({"text": TREE, "policy": "behavior"}, r"^tree_backup needs pi and mu, .* give the column"),
        ({"text": "tdc:alpha=0.1,ratio=auto"}, r"ratio=auto needs a known model, which a live str"),
        ({"text": "tdd:alpha=0.1"}, r"^unknown learner 'tdd'; did you mean 'td'\?"),
    ],
)
def test_predictions(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(st.InputError, match=message):
        made(**changes)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"predictions": []}, r"^a horde needs at least one prediction, got none\.$"),
        ({"predictions": None}, r"^a horde needs a list of st\.prediction\(\.\.\.\), got NoneType"),
        ({"predictions": [TD]}, r"^a horde is made of st\.prediction\(\.\.\.\), got str\.$"),
        ({"n_features": 0}, r"^n_features must be a whole number >= 1, got 0\.$"),
        ({"n_features": 10**12}, r"would take 8,000 GB, more than the .* take fewer predictions"),
        ({"dtype": "float16"}, r"^unknown dtype of a horde 'float16'; did you mean"),
        ({"dtype": ["float32"]}, r"^unknown dtype of a horde '\['float32'\]'"),
        ({"w0": [1, 2, 3]}, r"^w0 must be 2 finite numbers, got shape \(3,\)\.$"),
        ({"w0": "x"}, r"^w0 must be numbers \(could not convert"),
        ({"w0": [1.0, np.nan]}, r"^w0 must be finite numbers, got nan at \[1\]\.$"),
        ({"threads": 0}, r"^threads must be a whole number"),
    ],
)
def test_hordes(given: dict[str, Any], message: str) -> None:
    with pytest.raises(st.InputError, match=message):
        st.horde(**{"n_features": 2, "predictions": [made()], **given})


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": [1, 0]}, r"^x must have 3 features .* got shape \(1, 2\)\.$"),
        ({"x": [1, NAN, 0]}, r"^x must be finite numbers, got nan at \[1\]\.$"),
        ({"x": "here"}, r"^x must be numbers \(could not convert"),
        ({"x_next": ([3], None)}, r"^the indices of x_next must be from 0 to 2, got 3\.$"),
        ({"x": ([0, 1, 0], None)}, r"^an index of x occurs twice in one step; add its values up"),
        ({"x": ([0, 1], [1.0])}, r"^x has 2 indices and 1 values; give one value for each index"),
        ({"x": ([0.5], None)}, r"^the indices of x must be whole numbers, got float64\.$"),
        ({"x": ([0], [1.0], 3)}, r"^x must be a pair \(indices, values\), got 3 items\.$"),
        ({"cumulants": [1.0]}, r"^cumulants must have 2 numbers, one per column .* shape \(1,\)"),
        ({"cumulants": [1.0, INF]}, r"^cumulants must be finite numbers, got inf at \[1\]\.$"),
        (
            {"rhos": None},
            r"^rhos are missing: td:alpha=0\.1 needs the importance ratio .* 1 column",
        ),
        ({"rhos": [-1.0]}, r"^rhos must be finite numbers >= 0, got -1 at \[0\]\.$"),
        ({"discounts": None}, r"^discounts are missing: .* pass discounts=\.\.\. with 1 column\.$"),
        ({"discounts": [1.01]}, r"^discounts must be from 0 to 1, got 1\.01 at \[0\]\.$"),
        ({"terminated": 1}, r"^terminated must be True or False for each step, got int64"),
        ({"interest": -1.0}, r"^interest must be finite numbers >= 0, got -1 at \[\]\.$"),
        ({"interest": "x"}, r"^interest must be numbers \(could not convert"),
        ({"interest": [1.0, 2.0]}, r"^interest must be one number, or one .* got shape \(2,\)\.$"),
        ({"peaks": 3}, r"^peaks must be two finite numbers >= 0, .* got 3\.$"),
        (
            {"peaks": (0.9, 0.1)},
            r"^peaks must be two finite numbers >= 0, .* got \(0\.9, 0\.1\)\.$",
        ),
        ({"peaks": (0.1, "x")}, r"^peaks must be two finite numbers >= 0"),
        ({"terminated": [[True], [True, False]]}, r"^terminated must be True or False"),
        ({"x": [[1, 0], [0]]}, r"^x must be numbers \(setting an array element"),
        ({"x": np.array([1j, 0, 0])}, r"^x must be numbers, got complex128\.$"),
        ({"pi": [0.5], "mu": "x"}, r"^mu must be numbers \(could not convert"),
        ({"pi": [0.5], "mu": [0.5, 0.5]}, r"^mu must be one number, or one .* got shape \(2,\)\.$"),
        ({"pi": [0.5]}, r"^give both pi and mu \(probabilities of the action taken\), or neither"),
        ({"pi": [0.5], "mu": 0.0}, r"^mu must be > 0: it is the probability of an action that was"),
        ({"pi": [0.5], "mu": 0.25}, r"^rhos must be pi/mu; give rhos, or pi and mu\.$"),
        ({"x": [[1, 0, 0]] * 2}, r"^update takes one step; use update_many for several\.$"),
    ],
)
def test_steps(changes: dict[str, Any], message: str) -> None:
    h = st.horde(3, [made(cumulant=1), made(discount=None, discount_column=0)])
    good: dict[str, Any] = {
        "x": [1, 0, 0], "x_next": [0, 1, 0], "cumulants": [1.0, 2.0], "rhos": [1.0],
        "discounts": [0.5],
    }  # fmt: skip
    with pytest.raises(st.InputError, match=message):
        h.update(**{**good, **changes})
    assert h.step == 0 and not h.w.any()
    h.update(**good)
    assert h.w.tolist() == [[0.2, 0.0, 0.0], [0.1, 0.0, 0.0]]


def test_what_nobody_asks_for() -> None:
    h = st.horde(2, [made(policy="behavior")])
    with pytest.raises(st.InputError, match=r"^discounts were given, but every prediction has"):
        h.update([1, 0], [0, 1], [1.0], discounts=[0.5])
    with pytest.raises(st.InputError, match=r"^x and x_next must have the same number of steps"):
        h.update_many(np.ones((2, 2)), np.ones((3, 2)), np.ones((2, 1)))
    with pytest.raises(st.InputError, match=r"^cumulants must have 1 number for each of 2 steps"):
        h.update_many(np.ones((2, 2)), np.ones((2, 2)), np.ones((3, 1)))


def test_laws_that_need_probabilities() -> None:
    h = st.horde(2, [made("tree_backup:alpha=0.5")])
    with pytest.raises(st.InputError, match=r"^tree_backup:alpha=0\.5 needs pi and mu, the prob"):
        h.update([1, 0], [0, 1], [1.0], rhos=[0.5])
    h.update([1, 0], [0, 1], [1.0], pi=[0.25], mu=0.5)
    assert h.w.tolist() == [[0.25, 0.0]]


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "uint64"])
def test_indices_in_any_order_and_of_any_type(dtype: str) -> None:
    """Differences of unsigned numbers are never negative, so these seemed to be in order."""
    inputs = Inputs(9, [made()], "float64")
    indices = np.array([[7, 2, 5], [0, 8, 3]], dtype=dtype)
    for values in (None, np.arange(1.0, 7.0).reshape(2, 3)):
        found = inputs.features("x", (indices, values))
        assert found.feature.tolist() == [2, 5, 7, 0, 3, 8]
        assert found.value.tolist() == ([1.0] * 6 if values is None else [2, 3, 1, 4, 6, 5])
    for wrong in ([[9, 1, 2]], [[1, 2, 9]]):
        with pytest.raises(st.InputError, match="must be from 0 to 8, got 9"):
            inputs.features("x", (np.array(wrong, dtype=dtype), None))


def test_features_too_large_for_single_precision() -> None:
    h = st.horde(2, [made()], dtype="float32")
    with pytest.raises(
        st.InputError, match=r"^features must fit into float32, got 1e\+300; use an"
    ):
        h.update([1e300, 0.0], [0.0, 1.0], cumulants=[1.0], rhos=[1.0])
    assert h.step == 0


def test_no_observations_have_no_predictions() -> None:
    assert st.horde(2, [made()] * 3).predict(np.zeros((0, 2))).shape == (0, 3)
