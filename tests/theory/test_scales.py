"""The certificate does not depend on the sizes of the features, as far as the truth does not.

With features Phi S for a diagonal S the values that can be reached are the same, so are A(eta)'s
definiteness and poles, the errors and the best penalty, and fixed points are S^-1 w. Whether an
update is *stable* may depend on S in truth, since the step of a small feature is small: there the
oracle is Hurwitz's criterion in exact fractions.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.learners import names
from steadytd.theory import dynamics
from tests.support.draws import seeds, thinned
from tests.support.made import doubled, in_units, with_features
from tests.support.realised import KINDS, drawn

PHI = np.array([[1.0, 0.3], [1.0, -0.8], [1.0, 1.1]])
SCALES = (1e5, 1e-6, 1e-8, 1e8, 1e-16)
OPEN = ("ctdc",)  # a line of fixed points, since the features span constants; of least norm is one


def three_states(Phi: Floats = PHI) -> st.Problem:
    P = np.zeros((3, 2, 3))
    P[:, 0] = [[0.1, 0.8, 0.1], [0.2, 0.2, 0.6], [0.5, 0.3, 0.2]]
    P[:, 1] = [[0.3, 0.3, 0.4], [0.6, 0.2, 0.2], [0.1, 0.1, 0.8]]
    r = [[1.0, 0.0], [0.0, 2.0], [-1.0, 0.5]]
    return st.Problem(
        name="x", P=P, r=r, gamma=0.9, mu=np.full((3, 2), 0.5), pi=[[0.9, 0.1]] * 3, Phi=Phi
    )


def same(one: st.Certificate, other: st.Certificate, rel: float = 1e-7) -> None:
    """What does not depend on the sizes of the features, in truth."""
    a, b = one.to_dict(), other.to_dict()
    assert a["rank"] == b["rank"]
    assert b["poles"] == pytest.approx(a["poles"], rel=rel, abs=rel)
    for name in ("eta_pd", "best_error", "error_of_zero"):
        assert b[name] == pytest.approx(a[name], rel=rel, abs=rel), name
    assert b["bounds"] == pytest.approx(a["bounds"], rel=rel)


@pytest.mark.parametrize("s", thinned(SCALES, 2))
def test_one_feature_in_other_units(s: float) -> None:
    """Here all is definite: verdicts, errors, the best penalty and the advice are the same."""
    one, other = st.certify(three_states()), st.certify(three_states(PHI * [1.0, s]))
    same(one, other)
    a, b = one.to_dict(), other.to_dict()
    assert b["td_stable"] and a["td_stable"]
    assert b["best_eta"] == pytest.approx(a["best_eta"], rel=1e-6)
    assert [f["code"] for f in b["advice"]] == [f["code"] for f in a["advice"]]
    assert [x["learner"] for x in b["learners"]] == [x["learner"] for x in a["learners"]]
    for x, y in zip(a["learners"], b["learners"], strict=True):
        assert (y["learner"], y["stable"]) == (x["learner"], x["stable"])
        if x["learner"] not in OPEN:
            assert y["error"] == pytest.approx(x["error"], rel=1e-6), x["learner"]
    w, v = (c.fixed_point("perturbed_td", eta=0.1) for c in (one, other))
    assert v * [1.0, s] == pytest.approx(w, rel=1e-9)


@pytest.mark.parametrize("apart", thinned([1e-8, 1e-10, 1e-12, 1e-14], 3))
def test_columns_that_are_nearly_the_same(apart: float) -> None:
    """The span is that of x and x n, so its numbers hold up to rounding times the condition."""
    noise = np.array([0.3, 0.7, -0.4])
    x = PHI[:, 1]
    wanted = st.certify(three_states(np.stack([x, x * noise], axis=1)))
    found = st.certify(three_states(np.stack([x, x * (1.0 + apart * noise)], axis=1)))
    same(wanted, found, rel=30.0 * 2.0**-52 / apart)
    assert "nearly_dependent" in {f.code for f in found.advice}
    assert "nearly_dependent" not in {f.code for f in wanted.advice}


def test_a_copy_of_a_column_is_left_out() -> None:
    x = PHI[:, 1:]
    found = st.certify(three_states(np.hstack([x, 1e-9 * x, 1e12 * x])))
    assert found.pencil.rank == 1
    same(st.certify(three_states(x)), found)


def sizes(rng: np.random.Generator, d: int) -> Floats:
    """Numbers over 16 orders of magnitude."""
    return np.asarray(10.0 ** rng.uniform(-8.0, 8.0, size=d))


@seeds(1, 3)
@pytest.mark.parametrize("kind", KINDS)
def test_drawn_problems_in_any_units(kind: str, seeds: range) -> None:
    """Fixed points of every law that has one at both, too, and the poles' side of stability."""
    for seed in seeds:
        p = drawn(kind, seed)
        S = sizes(np.random.default_rng([seed, 77]), p.n_features)
        q = with_features(p, p.Phi * S)
        one, other = st.certify(p), st.certify(q)
        same(one, other)
        if one.eta_pd < -1e-6:
            assert other.td_stable and one.td_stable
        odd = sum(pole > 1e-9 for pole in one.poles) % 2 == 1
        if odd:  # det A < 0, whatever the sizes
            assert not other.td_stable and not one.td_stable
        if one.pencil.rank == p.n_features and not any(abs(x - 0.5) < 1e-3 for x in one.poles):
            w, v = (c.fixed_point("perturbed_td", eta=0.5) for c in (one, other))
            assert v * S == pytest.approx(w, rel=1e-6, abs=1e-7 * float(np.abs(w).max()))


def _routh(c: list[Fraction]) -> bool:
    """Whether all zeros of the polynomial c[0] x^n + ... have a negative real part."""
    n = len(c)
    upper, lower = c[0::2], c[1::2]
    firsts = [upper[0]]
    for _ in range(n - 1):
        if not lower or lower[0] == 0:
            return False
        firsts.append(lower[0])
        rest = [
            (upper[i + 1] - upper[0] * (lower[i + 1] if i + 1 < len(lower) else 0) / lower[0])
            for i in range(len(upper) - 1)
        ]
        upper, lower = lower, rest
    return all(a * b > 0 for a, b in pairwise(firsts))


def hurwitz(M: Floats) -> bool:
    """Whether all eigenvalues of M have a positive real part, without rounding (Leverrier)."""
    n = len(M)
    exact = [[-Fraction(float(x)) for x in row] for row in M]
    power = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    coefficients = [Fraction(1)]
    for k in range(1, n + 1):
        product = [
            [sum((exact[i][m] * power[m][j] for m in range(n)), Fraction(0)) for j in range(n)]
            for i in range(n)
        ]
        c = -sum((product[i][i] for i in range(n)), Fraction(0)) / k
        coefficients.append(c)
        power = [[product[i][j] + (c if i == j else 0) for j in range(n)] for i in range(n)]
    return _routh(coefficients)


def test_the_oracle() -> None:
    assert hurwitz(np.array([[1.0, 5.0], [-5.0, 1e-9]]))
    assert not hurwitz(np.array([[1.0, 5.0], [-5.0, -1.0 - 1e-9]]))
    rng = np.random.default_rng(0)
    for _ in range(200):
        M = rng.normal(size=(4, 4)) + 1.5 * np.eye(4)
        assert hurwitz(M) is bool((np.linalg.eigvals(M).real > 0.0).all())


def test_stability_is_that_of_the_features_as_they_are() -> None:
    """TD and perturbed TD with sizes over 16 orders, against exact fractions."""
    seen = set()
    for kind in ("off_policy", "chain", "sparse"):
        for seed in range(6):
            p = drawn(kind, seed)
            m = p.moments()
            if m.row_space.shape[1] < p.n_features:
                continue
            S = sizes(np.random.default_rng([seed, 5]), p.n_features)
            c = st.Certificate(with_features(p, p.Phi * S))
            for eta in (0.0, 0.1, 0.4, 1.0):
                A = m.A() + eta * m.G
                wanted = hurwitz(S[:, None] * A * S)
                equal = hurwitz(A)
                seen.add((wanted, equal))
                assert c.pencil.is_stable(eta) is wanted, (kind, seed, eta)
                assert c.is_stable("perturbed_td", eta=eta) is wanted, (kind, seed, eta)
    assert {(True, True), (False, False)} <= seen


def test_a_stable_update_that_other_units_make_unstable() -> None:
    """The sizes matter in truth: A = [[-1, 2], [-2, 3]] is stable, with its first feature large
    it is not. Searched for among the drawn chains.
    """
    found = 0
    for seed in range(150):
        rng = np.random.default_rng([seed, 8])
        p = drawn("off_policy", seed)
        if p.n_features != 2 or p.moments().row_space.shape[1] < 2:
            continue
        A, S = p.moments().A(), sizes(rng, 2)
        if hurwitz(A) is not hurwitz(S[:, None] * A * S):
            found += 1
            c = st.Certificate(with_features(p, p.Phi * S))
            assert c.td_stable is hurwitz(S[:, None] * A * S)
    assert found >= 1


def test_every_law_has_its_fixed_point_in_other_units() -> None:
    one, other = three_states(), three_states(PHI * [1e-7, 1e6])
    c, e = st.Certificate(one), st.Certificate(other)
    for row in c.learners:
        law = row["learner"]
        assert law in names()
        learner = c.resolved(law, **row["params"])
        w, v = dynamics.fixed_point(one, learner), dynamics.fixed_point(other, learner)
        if law in OPEN:
            continue
        assert v * [1e-7, 1e6] == pytest.approx(w, rel=1e-6), law
        assert e.error(v) == pytest.approx(row["error"], rel=1e-6)


def test_doubled_features_keep_the_best_error() -> None:
    p = drawn("off_policy", 3)
    found = st.certify(doubled(p, 1e-9))
    assert found.best_error <= st.certify(p).best_error * (1.0 + 1e-6)


@seeds(1, 8)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", thinned([2.0**-40, 2.0**40], 2))
def test_rewards_in_other_units(kind: str, seeds: range, unit: float) -> None:
    """What is said is the same, and every error is as many times as large as the rewards."""
    for seed in seeds:
        p = drawn(kind, seed)
        one, other = (st.certify(in_units(p, k)) for k in (1.0, unit))
        assert other.best_eta == pytest.approx(one.best_eta, rel=1e-5, abs=1e-7)
        assert [f.code for f in other.advice] == [f.code for f in one.advice]
        a, b = (c.advice[-1].numbers for c in (one, other))
        assert b["learner"] == a["learner"]
        zero = a["error_of_zero"]
        assert b["error"] / unit == pytest.approx(a["error"], rel=1e-6, abs=2e-9 * zero)
        for row, row_2 in zip(one.learners, other.learners, strict=True):
            known = row["error"] is not None
            assert (row_2["error"] is not None) is known, row["learner"]
            if known:
                error = row_2["error"] / unit
                assert error == pytest.approx(row["error"], rel=1e-5, abs=1e-7 * zero)


@seeds(1, 4)
@pytest.mark.parametrize("kind", thinned(KINDS, 6))
@pytest.mark.parametrize("unit", thinned([2.0**-40, 2.0**40], 2))
def test_cures_of_rewards_in_other_units(kind: str, seeds: range, unit: float) -> None:
    for seed in seeds:
        p = drawn(kind, seed)
        both = [st.certify(in_units(p, k)).recommended(cures=True) for k in (1.0, unit)]
        mine, theirs = (found.numbers for found in both if found is not None)
        assert theirs["learner"] == mine["learner"]
        numbers = [{k: v for k, v in x["params"].items() if k != "penalty"} for x in (mine, theirs)]
        assert numbers[1] == pytest.approx(numbers[0], rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("seed", thinned(range(4), 2))
def test_rewards_that_cancel_are_no_rewards(seed: int, unit: float) -> None:
    """What rounding leaves of them is not called an error."""
    p = three_states()
    rng = np.random.default_rng(seed)
    share = rng.uniform(0.1, 0.9, size=3)
    pi = np.stack([share, 1.0 - share], axis=1)
    r = unit * np.stack([1.0 - share, -share], axis=1)
    c = st.certify(st.Problem(name="x", P=p.P, r=r, gamma=p.gamma, mu=p.mu, pi=pi, Phi=p.Phi))
    assert c.advice[-1].numbers["error"] == 0.0


@pytest.mark.parametrize("seed", thinned(range(4), 4))
def test_an_episode_that_hardly_ends_has_a_fixed_point(seed: int) -> None:
    """Values of 10^11 leave rounding behind that is not small next to the rewards."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(10), size=(10, 1))
    P[:, :, 9] = 1e-11 * rng.random((10, 1))
    P /= P.sum(axis=2, keepdims=True)
    mu, gamma = np.ones((10, 1)), np.append(np.ones(9), 0.0)
    p = st.Problem(
        name="x", P=P, r=rng.normal(size=(10, 1)), gamma=gamma, mu=mu, pi=mu, Phi=np.eye(10)
    )
    assert st.certify(p).fixed_point("td") == pytest.approx(p.v_pi, rel=1e-2)
