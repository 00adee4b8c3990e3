"""Feature maps against slow implementations of their definitions, and against bad input."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.engine.rows import Rows
from steadytd.engine.step.kernels import mix, uniform
from steadytd.features import KINDS, FeatureMap, feature_map, feature_map_from
from steadytd.features.base import ArrayMap
from steadytd.features.onehot import OneHot
from steadytd.features.tiles import Tiles
from steadytd.features.transformer import PROBES
from tests.support.draws import thinned

SPECS = ["raw", "poly:3", "rbf:40", "fourier:2", "tiles:4x3", "onehot"]


def sample(n: int = 400, seed: int = 0) -> Floats:
    """Three varying columns of different size, and a constant one in their midst."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3)) * [1.0, 50.0, 0.02] + [0.0, 1000.0, -1.0]
    return np.insert(np.round(z, 3), 1, 7.0, axis=1)


def standardised(obs: Floats, fitted_on: Floats) -> Floats:
    columns = [0, 2, 3]
    z = fitted_on[:, columns]
    return np.asarray((obs[:, columns] - z.mean(axis=0)) / z.std(axis=0))


def in_range(obs: Floats, fitted_on: Floats) -> Floats:
    """The columns scaled by their robust range and clipped, one number at a time."""
    result = np.empty((len(obs), 3))
    for j, column in enumerate([0, 2, 3]):
        values = fitted_on[:, column]
        low, high = np.quantile(values, 0.005), np.quantile(values, 0.995)
        wider = 0.1 * (high - low)
        low, high = max(low - wider, values.min()), min(high + wider, values.max())
        for i, o in enumerate(obs[:, column]):
            result[i, j] = min(max((o - low) / (high - low), 0.0), 1.0)
    return result


def slow_raw(obs: Floats, fitted_on: Floats, f: FeatureMap) -> Floats:
    return np.insert(standardised(obs, fitted_on), 0, 1.0, axis=1)


def slow_poly(obs: Floats, fitted_on: Floats, f: FeatureMap) -> Floats:
    z = standardised(obs, fitted_on)
    powers = [p for p in itertools.product(range(4), repeat=3) if sum(p) <= 3]
    powers.sort(key=lambda p: (sum(p), tuple(-k for k in p)))
    return np.stack([np.prod(z ** np.array(p), axis=1) for p in powers], axis=1)


def slow_rbf(obs: Floats, fitted_on: Floats, f: FeatureMap) -> Floats:
    z, centres = standardised(obs, fitted_on), f.save_arrays()["centres"].T
    near = [sorted(math.dist(a, b) for b in centres)[6] for a in centres]  # 0 is itself
    h = float(np.median(near))
    bumps = [[math.exp(-(math.dist(a, c) ** 2) / (2 * h * h)) for c in centres] for a in z]
    return np.insert(np.array(bumps), 0, 1.0, axis=1)


def slow_fourier(obs: Floats, fitted_on: Floats, f: FeatureMap) -> Floats:
    s = in_range(obs, fitted_on)
    waves = list(itertools.product(range(3), repeat=3))
    return np.array([[math.cos(math.pi * np.dot(c, row)) for c in waves] for row in s])


def slow_tiles(obs: Floats, fitted_on: Floats, f: FeatureMap) -> Floats:
    result = np.zeros((len(obs), 4 * 27))
    for i, s in enumerate(in_range(obs, fitted_on)):
        for tiling in range(4):
            shifts = [tiling * odd % 4 / 4 for odd in (1, 3, 5)]
            a, b, c = (math.floor(s[j] * 2 + shifts[j]) for j in range(3))
            result[i, 27 * tiling + 9 * a + 3 * b + c] = 1.0
    return result


def slow_onehot(obs: Floats, fitted_on: Floats, f: FeatureMap) -> Floats:
    known = sorted({tuple(row) for row in fitted_on.tolist()})
    return np.array([[float(tuple(row) == one) for one in known] for row in obs.tolist()])


SLOW: dict[str, Callable[[Floats, Floats, FeatureMap], Floats]] = {
    "raw": slow_raw,
    "poly": slow_poly,
    "rbf": slow_rbf,
    "fourier": slow_fourier,
    "tiles": slow_tiles,
    "onehot": slow_onehot,
}


def dense(rows: Rows, n_features: int) -> Floats:
    """A feature table as a matrix, by its definition."""
    matrix = np.zeros((len(rows.first), n_features))
    for i, (first, length, offset) in enumerate(
        zip(rows.first, rows.length, rows.offset, strict=True)
    ):
        for q in range(first, first + length):
            matrix[i, rows.feature[q - offset]] += rows.value[q]
    return matrix


def test_every_kind_is_tested() -> None:
    assert {spec.partition(":")[0] for spec in SPECS} == set(KINDS) == set(SLOW)


@pytest.mark.parametrize("spec", SPECS)
def test_features_are_as_defined(spec: str) -> None:
    fitted_on = sample()
    obs = np.concatenate([fitted_on[:50], sample(50, seed=1)])
    f = feature_map(spec).fit(fitted_on)
    found = f(obs)
    wanted = SLOW[f.kind](obs, fitted_on, f)
    assert found.shape == wanted.shape == (100, f.n_features)
    assert found.dtype == np.float64
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-11)
    assert np.abs(wanted).sum() > 0
    np.testing.assert_array_equal(dense(f.rows(obs), f.n_features), found)


@pytest.mark.parametrize("spec", SPECS)
def test_a_row_has_the_same_bits_alone(spec: str) -> None:
    obs = sample(700)
    f = feature_map(spec).fit(obs)
    together = f(obs)
    for i in (0, 255, 256, 699):
        assert f(obs[i : i + 1]).tobytes() == together[i].tobytes()
    assert f(obs[100:600:3]).tobytes() == together[100:600:3].tobytes()  # strided input


@pytest.mark.parametrize("spec", thinned(SPECS, 3))
def test_single_precision_is_read_as_it_is(spec: str) -> None:
    obs = sample().astype(np.float32)
    f = feature_map(spec).fit(obs)
    np.testing.assert_array_equal(f(obs), f(obs.astype(np.float64)))


@pytest.mark.parametrize("spec", SPECS)
def test_out_is_filled(spec: str) -> None:
    obs = sample()
    f = feature_map(spec).fit(obs)
    out = np.full((len(obs), f.n_features), np.nan)
    assert f(obs, out=out) is out
    np.testing.assert_array_equal(out, f(obs))
    with pytest.raises(st.InputError, match=r"out must be a contiguous float64 array of shape"):
        f(obs, out=out[:, ::-1])
    with pytest.raises(st.InputError, match="got float64 of shape"):
        f(obs[1:], out=out)


@pytest.mark.parametrize("spec", SPECS)
def test_saved_and_read_again_without_pickle(spec: str, tmp_path: Path) -> None:
    obs = sample()
    f = feature_map(spec, seed=3).fit(obs)
    np.savez(tmp_path / "map.npz", allow_pickle=False, **f.save_arrays())
    with np.load(tmp_path / "map.npz", allow_pickle=False) as arrays:
        again = feature_map_from(arrays)
    assert type(again) is type(f)
    assert (again.spec, again.seed, again.n_features) == (spec, 3, f.n_features)
    assert again(obs).tobytes() == f(obs).tobytes()


@pytest.mark.parametrize("spec", SPECS)
def test_maps_are_immutable_and_leave_the_sample_alone(spec: str) -> None:
    obs = sample()
    before = obs.copy()
    unfitted = feature_map(spec)
    f = unfitted.fit(obs)
    assert f is not unfitted
    assert not unfitted.fitted
    assert (f.spec, str(f)) == (spec, spec)
    with pytest.raises(dataclasses.FrozenInstanceError):
        f.seed = 1  # type: ignore[misc]
    assert isinstance(f, ArrayMap) and f.state
    assert not any(array.flags.writeable for array in f.state.values())
    obs += 1.0
    np.testing.assert_array_equal(f(before), feature_map(spec).fit(before)(before))


def test_constant_columns_are_left_out() -> None:
    obs = sample()
    assert feature_map("raw").fit(obs).n_features == 1 + 3
    assert feature_map("fourier:2").fit(obs).n_features == 27
    alone = np.full((20, 2), 0.1)
    for spec in ("raw", "poly:3", "fourier:3"):
        assert feature_map(spec).fit(alone)(alone).tolist() == [[1.0]] * 20
    assert feature_map("tiles:2x4").fit(alone)(alone).tolist() == [[1.0, 1.0]] * 20
    assert feature_map("rbf:1").fit(alone)(alone).tolist() == [[1.0, 1.0]] * 20


def test_rbf_centres_are_drawn_by_squared_distance() -> None:
    """One after the other, by inversion of the seed's uniform numbers (docs/streams.md)."""
    obs = np.random.default_rng(0).normal(size=(300, 2))
    centres = feature_map("rbf:30", seed=4).fit(obs).save_arrays()["centres"].T
    z = (obs - obs.mean(axis=0)) / obs.std(axis=0)
    key = np.uint64(mix(np.uint64(4)))
    chosen: list[Floats] = []
    for i in range(30):
        share = [min((math.dist(a, c) ** 2 for c in chosen), default=1.0) for a in z]
        u, total, at = uniform(key, i) * sum(share), 0.0, -1
        while u >= total:
            at += 1
            total += share[at]
        chosen.append(z[at])
    np.testing.assert_allclose(centres, chosen, rtol=1e-9)


def test_rbf_of_far_observations_is_the_constant() -> None:
    obs = sample()
    f = feature_map("rbf:20").fit(obs)
    assert f([[1e200, 7.0, 0.0, 0.0]]).tolist() == [[1.0] + [0.0] * 20]


def test_tiles_outside_the_range_are_those_of_the_edge() -> None:
    f = feature_map("tiles:3x4").fit([[0.0], [1.0]])
    np.testing.assert_array_equal(f([[-1e30], [1e30]]), f([[0.0], [1.0]]))


def test_robust_range_ignores_outliers_and_rare_values() -> None:
    line = np.linspace(0.0, 1.0, 1001)
    f = feature_map("tiles:1x3").fit(np.append(line, 1e6)[:, None])
    assert isinstance(f, Tiles)
    assert f.save_arrays()["width"][0] < 1.3
    rare = np.append(np.zeros(1000), 1.0)[:, None]  # both quantiles are 0
    g = feature_map("tiles:1x2").fit(rare)
    assert g([[0.0], [1.0]]).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_onehot_unknown_states_are_zero_and_told() -> None:
    f = feature_map("onehot").fit([[0, 1], [2, 0], [0, 0], [0, 1]])
    assert isinstance(f, OneHot)
    asked = np.array([[0, 1], [5, 5], [2, 0], [-1, 0], [0.0, -0.0]])
    assert f.unknown(asked).tolist() == [False, True, False, True, False]
    assert f(asked).tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0], [1, 0, 0]]
    np.testing.assert_array_equal(dense(f.sparse(asked), 3), f(asked))
    assert feature_map("onehot").fit([[0.0, 1.0], [-0.0, 1.0]]).n_features == 1


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("rfb:300", "unknown features 'rfb'; did you mean 'rbf'?"),
        ("tile:8x8", "did you mean 'tiles'?"),
        (
            "rbf",
            "features 'rbf' are written rbf:N with whole numbers from 1 to 999999, .* got 'rbf'",
        ),
        ("rbf:0", "got 'rbf:0'"),
        ("rbf:-3", "got 'rbf:-3'"),
        ("rbf:1000000", "from 1 to 999999, .* got 'rbf:1000000'"),
        ("rbf:2.5", "got 'rbf:2.5'"),
        ("rbf:3x4", "got 'rbf:3x4'"),
        ("poly:", "for instance 'poly:2'"),
        ("tiles:8", "written tiles:NxM"),
        ("tiles:8x", "written tiles:NxM"),
        ("tiles:8x1", "M >= 2 tiles per column"),
        ("raw:3", "features 'raw' take no number, got 'raw:3'"),
        ("", "unknown features ''"),
    ],
)
def test_bad_specs(spec: str, message: str) -> None:
    with pytest.raises(st.InputError, match=message):
        feature_map(spec)


@given(some.text(alphabet="rbfpolytiesxnhwu:0123456789 ", max_size=12))
def test_any_text_is_a_map_or_a_clear_error(text: str) -> None:
    try:
        f = feature_map(text)
    except st.InputError:
        return
    assert f.spec == text.strip()


@pytest.mark.parametrize(
    ("obs", "message"),
    [
        ([[1.0, np.nan]], "finite numbers, got nan in row 0, column 1"),
        ([[1.0, 2.0], [-np.inf, 3.0]], "got -inf in row 1, column 0"),
        ([1.0, 2.0], r"got shape \(2,\); use obs.reshape"),
        (np.zeros((3, 0)), r"got shape \(3, 0\)"),
        ([["a", "b"]], "observations must be numbers"),
        ([[1.0], [1.0, 2.0]], "observations must be numbers"),
        (np.zeros((0, 2)), "at least one observation"),
    ],
)
@pytest.mark.parametrize("spec", SPECS)
def test_bad_observations(spec: str, obs: Any, message: str) -> None:
    with pytest.raises(st.InputError, match=message):
        feature_map(spec).fit(obs)


@pytest.mark.parametrize("spec", SPECS)
def test_bad_use(spec: str) -> None:
    f = feature_map(spec)
    with pytest.raises(st.InputError, match=f"{spec} is not fitted yet"):
        f(sample())
    with pytest.raises(st.InputError, match="is not fitted yet"):
        f.save_arrays()
    with pytest.raises(st.InputError, match="fitted on observations of 4 numbers, got 3"):
        f.fit(sample())(sample()[:, :3])
    with pytest.raises(st.InputError, match="got nan in row 1, column 0"):
        f.fit(sample())([sample()[0], [np.nan, 0.0, 0.0, 0.0]])


def test_large_finite_observations_are_not_taken_for_infinite() -> None:
    obs = np.full((1000, 1), 3e38, dtype=np.float32)
    obs[0] = 2e38
    assert np.isfinite(feature_map("raw").fit(obs)(obs)).all()
    huge = np.array([[-1.7e308], [1.7e308]])
    for spec in ("raw", "tiles:2x2"):
        with pytest.raises(st.InputError, match="column 0 cannot be scaled"):
            feature_map(spec).fit(huge)


@pytest.mark.parametrize(
    ("spec", "columns", "message"),
    [
        ("fourier:9", 5, "fourier:9 would have 100,000 features, more than 10,000; fourier:5 is"),
        ("fourier:1", 20, "20 columns are too many for fourier; use rbf:N"),
        ("poly:9", 10, "92,378 features, more than 10,000; poly:6 is the largest"),
        ("tiles:8x32", 4, "8,388,608 features, more than 1,000,000; tiles:8x18 is the largest"),
        ("tiles:8x2", 64, "1.5e[+]20 features.*64 columns are too many for tiles"),
        ("rbf:10000", 2, "rbf:10000 would have 10,001 features"),
        ("poly:999999", 1, "1,000,000 features, more than 10,000; poly:9999 is the largest"),
        ("fourier:999999", 2, "1,000,000,000,000 features, more than 10,000; fourier:99 is"),
        ("tiles:2x999999", 1, "1,999,998 features, more than 1,000,000; tiles:2x500000 is"),
    ],
)
def test_caps(spec: str, columns: int, message: str) -> None:
    obs = np.random.default_rng(0).normal(size=(50, columns))
    with pytest.raises(st.InputError, match=message):
        feature_map(spec).fit(obs)


def test_other_limits() -> None:
    with pytest.raises(st.InputError, match=r"rbf:5 needs 5 different .* has 2; use rbf:2"):
        feature_map("rbf:5").fit([[0.0], [1.0], [0.0]])
    with pytest.raises(st.InputError, match="onehot is for a finite set of states"):
        feature_map("onehot").fit(np.arange(10_001.0)[:, None])
    with pytest.raises(st.InputError, match="poly:3 overflows at observation 1"):
        feature_map("poly:3").fit(sample())([[0.0, 7.0, 0.0, 0.0], [1e150, 7.0, 0.0, 0.0]])
    wide = feature_map("tiles:8x18").fit(np.random.default_rng(0).normal(size=(50, 4)))
    with pytest.raises(st.InputError, match="as a full array takes 6 GB; use sparse"):
        wide(np.zeros((1000, 4)))
    assert len(wide.rows(np.zeros((1000, 4))).value) == 8000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"spec": None}, r"\(without a name\) is damaged: 'spec' is missing"),
        ({"centres": None}, "rbf:40 is damaged: 'centres' is missing"),
        ({"centres": np.zeros((3, 39))}, "'centres' has a wrong form"),
        ({"centres": np.zeros((2, 40))}, "'centres' has a wrong form"),
        ({"mean": np.zeros(3, dtype=np.float32)}, "'mean' has a wrong form"),
        ({"mean": np.array([0.0, np.nan, 0.0])}, "'mean' has a wrong form"),
        ({"columns": np.array([0, 1, 4])}, "a column is out of range"),
        ({"columns": np.array([0, 1, -1])}, "a column is out of range"),
        ({"width": np.array(0.0)}, "'width' must be > 0"),
        ({"spec": np.array("rfb:40")}, "did you mean 'rbf'"),
        ({"spec": np.array(["rbf:40", "raw"])}, "'spec' has a wrong form"),
        ({"n_obs": np.array([4, 4])}, "'n_obs' has a wrong form"),
        ({"n_obs": np.array(2)}, "a column is out of range"),
        ({"seed": np.array(0.5)}, "'seed' has a wrong form"),
        ({"seed": np.array(-1)}, "seed must be a whole number"),
        ({"mean": np.array(["a", "b", "c"])}, "'mean' has a wrong form"),
    ],
)
def test_damaged_arrays(change: dict[str, Any], message: str) -> None:
    arrays: dict[str, Any] = feature_map("rbf:40").fit(sample()).save_arrays()
    arrays |= change
    with pytest.raises(st.InputError, match=message):
        feature_map_from({name: array for name, array in arrays.items() if array is not None})


class Doubled:
    """A transformer of one's own."""

    def fit(self, obs: Floats) -> Doubled:
        self.width = obs.shape[1]
        return self

    def transform(self, obs: Floats) -> Floats:
        return 2.0 * obs

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}


def scikit(name: str, **settings: Any) -> Any:
    import importlib

    module, _, kind = name.rpartition(".")
    return getattr(importlib.import_module(f"sklearn.{module}"), kind)(**settings)


SCIKIT: list[tuple[str, dict[str, Any]]] = [
    ("preprocessing.StandardScaler", {}),
    ("preprocessing.PolynomialFeatures", {"degree": 2}),
    ("kernel_approximation.RBFSampler", {"gamma": 0.1, "n_components": 20, "random_state": 0}),
    ("decomposition.PCA", {"n_components": 2}),
    ("preprocessing.MinMaxScaler", {"feature_range": (0, 2)}),
]


@pytest.mark.parametrize(("name", "settings"), SCIKIT, ids=lambda x: x if x is str else None)
def test_scikit_transformers(name: str, settings: dict[str, Any], tmp_path: Path) -> None:
    given, alone = scikit(name, **settings), scikit(name, **settings)
    obs = sample()
    f = feature_map(given).fit(obs)
    np.testing.assert_array_equal(f(obs), alone.fit_transform(obs))
    assert not [key for key in vars(given) if key.endswith("_")]  # the user's is not fitted
    assert f.spec == f"sklearn:{name.rpartition('.')[2]}"
    np.savez(tmp_path / "map.npz", allow_pickle=False, **f.save_arrays())
    with np.load(tmp_path / "map.npz", allow_pickle=False) as arrays:
        again = feature_map_from(arrays)
    assert (again.n_features, again.n_obs) == (f.n_features, 4)
    assert again(obs).tobytes() == f(obs).tobytes()


def test_transformers_that_cannot_be_saved_say_so() -> None:
    obs = sample()
    line = scikit("pipeline.Pipeline", steps=[("scale", scikit("preprocessing.StandardScaler"))])
    spline = scikit("preprocessing.SplineTransformer")
    for one, why in ((line, "'steps'"), (spline, "'bsplines_'"), (Doubled(), "its class is not")):
        f = feature_map(one).fit(obs)
        assert f(obs).shape == (400, f.n_features)
        with pytest.raises(st.InputError, match=f"cannot be saved without pickle: {why}"):
            f.save_arrays()


def test_only_classes_of_scikit_are_loaded() -> None:
    arrays = feature_map(scikit("preprocessing.StandardScaler")).fit(sample()).save_arrays()
    for name, message in (
        ("os:system", "must be one of scikit-learn, got 'os'"),
        ("sklearn_evil.x:Thing", "must be one of scikit-learn"),
        ("sklearn.preprocessing:Nothing", "'Nothing' is not available"),
        ("sklearn.base:clone", "'clone' is not a transformer"),
    ):
        with pytest.raises(st.InputError, match=message):
            feature_map_from({**arrays, "class": np.array(name)})
    for change in (
        {"settings": np.array('{"with_maen": true}')},
        {"settings": np.array("{")},
        {"attributes": np.array('{"__class__": 1}')},
        {"probe": np.zeros(3)},
    ):
        with pytest.raises(st.InputError, match="transformer 'StandardScaler' is damaged: "):
            feature_map_from({**arrays, **change})
    del arrays["settings"]
    with pytest.raises(st.InputError, match="is damaged: 'settings' is missing"):
        feature_map_from(arrays)


def test_transformer_errors() -> None:
    with pytest.raises(st.InputError, match=r"sklearn:PCA.fit, given .* failed: .*n_components"):
        feature_map(scikit("decomposition.PCA", n_components=9)).fit(sample())
    with pytest.raises(st.InputError, match="sklearn:PCA is not fitted yet"):
        feature_map(scikit("decomposition.PCA"))(sample())


class Strange:
    """A transformer that may fail, or change its mind about how many features there are."""

    def __init__(self, fails: str = "", later: int = 2) -> None:
        self.fails, self.later = fails, later

    def fit(self, obs: Any) -> Strange:
        if self.fails == "fit":
            raise KeyError("fit")
        return self

    def transform(self, obs: Any) -> Any:
        if self.fails == "transform" and len(obs) > PROBES:
            raise KeyError("transform")
        if self.fails == "ragged":
            return [[1.0], [1.0, 2.0]]
        if self.fails == "write":
            obs *= 2.0
        return np.ones((len(obs), 2 if len(obs) <= PROBES else self.later))


@pytest.mark.parametrize(
    ("strange", "words"),
    [
        (Strange("fit"), r"sklearn:Strange\.fit, given \d+ observations, failed: KeyError"),
        (Strange("transform"), r"Strange\.transform, given \d+ observations, failed: KeyError"),
        (Strange("ragged"), r"Strange\.transform, .*failed: ValueError"),
        (Strange("write"), r"Strange\.transform, .*failed: ValueError .*read-only"),
        (Strange(later=1), "gave 2 features at first and 1 now; it must give every"),
        (Strange(later=3), "gave 2 features at first and 3 now; it must give every"),
    ],
)
def test_a_users_transformer_that_fails(strange: Strange, words: str) -> None:
    """One column less would be spread over all features without a word."""
    with pytest.raises(st.InputError, match=words):
        feature_map(strange).fit(sample())(sample())
