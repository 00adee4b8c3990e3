"""Thresholds, bounds, paths and the paper's operators: what must hold on every problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some

import steadytd as st
from steadytd.base.arrays import Floats
from steadytd.theory import thresholds
from steadytd.theory.certificate import Certificate
from steadytd.theory.thresholds import singular_at
from tests.support.draws import examples, thinned
from tests.support.helpers import random_problem
from tests.support.realised import CHAIN, CHAIN_D, CHAIN_PHI, KINDS, chained, drawn, realised

SLACK = 1e-6  # relative: "just above" and "just below" a threshold; rounding is below 1e-9


def on_random_problems(every: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test on random problems of every kind, the same ones every time."""

    most = examples(every // 2, every)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        seeds = given(kind=some.sampled_from(KINDS), seed=some.integers(0, 9_999))
        fixed = settings(deadline=None, derandomize=True, max_examples=most, database=None)
        return fixed(seeds(test))

    return decorate


class Direct(NamedTuple):
    """A_0, G and b on the row space, from the problem's arrays and NumPy alone."""

    A0: Floats
    G: Floats
    b: Floats
    basis: Floats
    P_gamma: Floats
    r_pi: Floats

    @staticmethod
    def of(p: st.Problem) -> Direct:
        P_gamma = np.einsum("sa,sat,sat->st", p.pi, p.P, np.broadcast_to(p.gamma, p.P.shape))
        r_pi = np.einsum("sa,sat,sat->s", p.pi, p.P, p.r)
        _, sizes, rows = np.linalg.svd(p.Phi)
        X = p.Phi @ rows[: int((sizes > 1e-10 * sizes[0]).sum())].T
        weighted = X.T * p.d_mu
        A0 = weighted @ (X - P_gamma @ X)
        basis = rows[: X.shape[1]].T
        return Direct(A0, weighted @ X, weighted @ r_pi, basis, P_gamma, r_pi)

    def slowest(self, eta: float) -> float:
        return float(np.linalg.eigvals(self.A0 + eta * self.G).real.min())

    def definite(self, eta: float) -> bool:
        A = self.A0 + eta * self.G
        return bool(np.linalg.eigvalsh(A + A.T)[0] > 0.0)

    def weights(self, eta: float) -> Floats:
        return np.asarray(self.basis @ np.linalg.solve(self.A0 + eta * self.G, self.b))


def just(above_or_below: int, threshold: float) -> float:
    return threshold + above_or_below * SLACK * (1.0 + abs(threshold))


def d_norm(p: st.Problem, values: Floats) -> float:
    return float(np.sqrt(p.d_mu @ values**2))


def test_the_drawn_problems_are_of_every_sort() -> None:
    """Otherwise the tests below would prove little: stable, unstable, neither for long."""
    found = {kind: [Certificate(drawn(kind, seed)) for seed in range(40)] for kind in KINDS}
    unstable = {kind: sum(not c.td_stable for c in some) for kind, some in found.items()}
    assert unstable["off_policy"] >= 10
    assert unstable["off_policy_wide"] >= 10
    assert unstable["constant"] <= 5
    assert sum(c.td_stable and bool(c.unstable_etas) for c in found["chain"]) >= 30
    assert sum(c.eta_hurwitz < c.eta_pd - 0.1 for c in found["off_policy_wide"]) >= 10
    assert all(c.pencil.rank < c.problem.n_features for c in found["wide"])


@on_random_problems(60)
def test_the_chain_of_bounds(kind: str, seed: int) -> None:
    c = Certificate(drawn(kind, seed))
    names = ("numerical_range", "operator_norm", "sqrt_kappa", "gershgorin", "paper")
    chain = np.array([c.eta_pd, *(c.bounds[name] for name in names)])
    rounding = 1e-11 * (1.0 + abs(chain).max())
    assert (np.diff(chain) >= -rounding).all()
    assert c.bounds["policies"] >= c.bounds["sqrt_kappa"] - rounding
    assert set(c.bounds) == {*names, "policies"}


@on_random_problems(60)
def test_eta_pd_is_exact(kind: str, seed: int) -> None:
    p = drawn(kind, seed)
    eta_pd, direct = Certificate(p).eta_pd, Direct.of(p)
    assert direct.definite(just(+1, eta_pd))
    assert not direct.definite(just(-1, eta_pd))
    # with the same features combined and scaled otherwise: stable above, below not with all
    pencil, rng = Certificate(p).pencil, np.random.default_rng(seed)
    above, below = (pencil.A(eta_pd + x) for x in (0.01, -0.01))
    T = rng.normal(size=above.shape) * 10.0 ** rng.uniform(-1, 1, size=len(above))
    assert np.linalg.eigvals(T.T @ above @ T).real.min() > -1e-9 * np.abs(T.T @ above @ T).max()
    values, vectors = np.linalg.eigh(below + below.T)
    T = vectors * np.where(values < 0.0, 1.0, 1e-6)
    assert np.linalg.eigvals(T.T @ below @ T).real.min() < 0.0


@on_random_problems(60)
def test_from_eta_hurwitz_on_everything_is_stable(kind: str, seed: int) -> None:
    p = drawn(kind, seed)
    c, direct = Certificate(p), Direct.of(p)
    assert c.eta_hurwitz <= c.eta_pd + 1e-12 * (1.0 + abs(c.eta_pd))
    for eta in (*np.linspace(c.eta_hurwitz, c.eta_pd, 20)[1:-1], c.eta_pd + 1.0, 100.0):
        assert direct.slowest(max(eta, just(+1, c.eta_hurwitz))) > 0.0
    if c.eta_hurwitz > 0.0:
        assert direct.slowest(just(-1, c.eta_hurwitz)) < 0.0


@on_random_problems(60)
def test_the_unstable_set_is_what_eigenvalues_say(kind: str, seed: int) -> None:
    p = drawn(kind, seed)
    c, direct = Certificate(p), Direct.of(p)
    ends = [end for interval in c.unstable_etas for end in interval if end > 0.0]
    etas = np.linspace(0.0, max(c.eta_pd, 0.1), 41)
    etas = np.concatenate([etas, [just(side, end) for end in ends for side in (-1, 1)]])
    for eta in etas:
        if all(abs(eta - end) > 0.5 * SLACK * (1.0 + end) for end in ends):
            inside = any(low <= eta <= high for low, high in c.unstable_etas)
            assert inside == (direct.slowest(eta) < 0.0), eta
            assert c.pencil.is_stable(eta) is not inside
    assert c.td_stable == (direct.slowest(0.0) > 0.0)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_a_mode_that_neither_grows_nor_decays_is_not_stable(size: float) -> None:
    """A real mode or a pair at 0, in drawn coordinates: rounding gives it either sign."""
    rng = np.random.default_rng(0)
    pair = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    for A in (np.diag([0.0, 1.0, 2.0]), pair) * 10:
        Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        p = thresholds.Pencil(Q=np.eye(3), A0=size * Q @ A @ Q.T, G=size * np.eye(3), b=np.zeros(3))
        assert p.slowest(0.0) == 0.0 and not p.is_stable(0.0) and not p.unstable_from(0.0)
        assert p.slowest(1e-6) == pytest.approx(1e-6 * size, rel=1e-8) and p.is_stable(1e-6)


def test_an_unstable_set_of_two_pieces() -> None:
    """Two chains that do not meet: the set is the union of theirs, and both methods see it."""
    P, Phi = np.zeros((5, 5)), np.zeros((5, 3))
    P[:3, :3], P[3:, 4] = CHAIN, 1.0
    d = np.array([*(0.5 * np.array(CHAIN_D)), 0.25, 0.25])
    Phi[:3, :2], Phi[3, 2], Phi[4, 2] = CHAIN_PHI, 1.0, 1.2
    p = realised(P, d, Phi, 0.95)
    # one feature: unstable while (1 + eta) (1 + 1.2^2) < 0.95 (1.2 + 1.2^2)
    first = 0.95 * (1.2 + 1.2**2) / (1 + 1.2**2) - 1
    (low, high), (low2, high2) = st.certify(p).unstable_etas
    assert low == 0.0
    assert [high, low2, high2] == pytest.approx([first, 0.0346, 0.3337], abs=5e-5)


@example(kind="chain", seed=46)  # a pair crosses within 0.005 of a pole
@example(kind="off_policy_wide", seed=28)  # a pair crosses above the last pole, at eta < 0
@on_random_problems(50)
def test_the_scan_agrees_with_the_exact_method(kind: str, seed: int) -> None:
    p = drawn(kind, seed)
    exact = Certificate(p)
    assert exact.pencil.exact
    pieces, from_here = np.array(exact.unstable_etas).reshape(-1), exact.eta_hurwitz
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thresholds, "LARGEST_EXACT", 0)
        scan = Certificate(p)
        assert not scan.pencil.exact
        # brentq's 1e-10, or two ways to compute one eigenvalue
        assert np.array(scan.unstable_etas).reshape(-1) == pytest.approx(pieces, abs=1e-8)
        assert scan.td_stable == exact.td_stable
        # a scan does not look at penalties that cannot be used
        assert scan.eta_hurwitz >= from_here - 1e-8
        assert max(scan.eta_hurwitz, 0.0) == pytest.approx(max(from_here, 0.0), abs=1e-8)


@on_random_problems(50)
def test_the_path_is_the_direct_solution_and_keeps_its_bound(kind: str, seed: int) -> None:
    p = drawn(kind, seed)
    c, direct = Certificate(p), Direct.of(p)
    etas = [*np.geomspace(0.01, 30.0, 12), just(+1, max(0.0, c.contraction()["d_mu"] - 1.0))]
    bounded = 0
    for row in c.path(etas).iter_rows(named=True):
        w = direct.weights(row["eta"])
        values = np.array([row[f"value_{s}"] for s in range(p.n_states)])
        scale = 1.0 + float(np.abs(values).max())
        # both solve with the same condition number, at most 1e6 on these problems
        np.testing.assert_allclose(values, p.Phi @ w, rtol=1e-7, atol=1e-9 * scale)
        assert row["error"] == pytest.approx(float(p.error(w)), rel=1e-7, abs=1e-9 * scale)
        assert (row["error_bound"] is None) == (c.contraction(row["eta"])["d_mu"] >= 1.0)
        if row["error_bound"] is not None:
            bounded += 1
            assert row["error"] <= row["error_bound"] * (1.0 + 1e-9) + 1e-12
    assert bounded >= 2


def test_the_error_bound_counts_interest() -> None:
    """It bounds the error as it is measured: with the states' interest."""
    for seed in range(30):
        c = Certificate(random_problem(seed, interest=True))
        frame = c.path(np.geomspace(0.01, 20.0, 8)).drop_nulls("error_bound")
        assert len(frame) >= 4
        assert (frame["error"] <= frame["error_bound"]).all()


@on_random_problems(40)
def test_sensitivity_is_the_slope_of_the_path(kind: str, seed: int) -> None:
    p = drawn(kind, seed)
    c, direct = Certificate(p), Direct.of(p)
    eta, step = max(c.eta_pd, 0.0) + 0.5, 1e-4
    move = d_norm(p, p.Phi @ (direct.weights(eta + step) - direct.weights(eta - step)))
    # a central difference errs by step^2 times a third derivative of the size of the slope
    assert c.sensitivity(eta) == pytest.approx(move / (2 * step), rel=1e-5, abs=1e-8)


@on_random_problems(50)
def test_the_papers_operators(kind: str, seed: int) -> None:
    p = drawn(kind, seed)
    c, direct = Certificate(p), Direct.of(p)
    eta = max(c.eta_pd, 0.0) + 0.3
    D, Pi = np.diag(p.d_mu), c.projection
    np.testing.assert_allclose(Pi @ Pi, Pi, atol=1e-8)
    np.testing.assert_allclose(Pi @ p.Phi, p.Phi, atol=1e-8)
    np.testing.assert_allclose(D @ Pi, (D @ Pi).T, atol=1e-8)  # orthogonal in the d_mu norm
    v = p.Phi @ direct.weights(eta)
    np.testing.assert_allclose(Pi @ c.bellman(v, eta), v, atol=1e-7 * (1.0 + np.abs(v).max()))
    np.testing.assert_allclose(c.bellman(p.v_pi), p.v_pi, atol=1e-9)
    np.testing.assert_allclose(
        c.A(eta), p.Phi.T @ D @ ((1 + eta) * p.Phi - direct.P_gamma @ p.Phi), atol=1e-10
    )
    np.testing.assert_allclose(c.b, p.Phi.T @ D @ direct.r_pi, atol=1e-10)


@on_random_problems(50)
def test_contraction_moduli_hold_and_are_attained(kind: str, seed: int) -> None:
    p = drawn(kind, seed)
    c, rng = Certificate(p), np.random.default_rng(seed)
    moduli = c.contraction(0.4)
    for _ in range(20):
        u, v = rng.normal(size=(2, p.n_states))
        moved = c.bellman(u, 0.4) - c.bellman(v, 0.4)
        assert np.abs(moved).max() <= moduli["maximum"] * np.abs(u - v).max() + 1e-12
        for values in (moved, c.projection @ moved):
            assert d_norm(p, values) <= moduli["d_mu"] * d_norm(p, u - v) + 1e-9
    root = np.sqrt(p.d_mu)
    _, _, rows = np.linalg.svd(root[:, None] * Direct.of(p).P_gamma / root)
    worst = c.bellman(rows[0] / root, 0.4) - c.bellman(np.zeros(p.n_states), 0.4)
    assert d_norm(p, worst) == pytest.approx(moduli["d_mu"], rel=1e-9)
    ones = c.bellman(np.ones(p.n_states), 0.4) - c.bellman(np.zeros(p.n_states), 0.4)
    assert np.abs(ones).max() == pytest.approx(moduli["maximum"], rel=1e-9)


@pytest.mark.parametrize("k", [*thinned([2, 3, 6, 9, 12, 16, 20, 30], 2)])
def test_eigenvalues_that_coincide_are_one_pole(k: int) -> None:
    """k chained copies: rounding tears the k-fold eigenvalue apart, often into complex pairs."""
    rng = np.random.default_rng(k)
    for seed in range(12 if k == 12 else 4):
        go, gamma = (0.05, 0.95) if seed == 0 else (rng.uniform(0.03, 0.1), rng.uniform(0.95, 0.99))
        c = Certificate(chained(k, seed, go, gamma))
        pole = 1.2 * gamma * (1.0 - go) - 1.0
        # the mean of a scattered group moves by its condition times rounding: 1e-9 is ample
        assert c.poles == [pytest.approx(pole, abs=1e-9)]
        ((start, end),) = c.unstable_etas
        assert start == 0.0
        assert end == pytest.approx(pole, abs=1e-9)
        codes = {finding.code: finding for finding in c.advice}
        assert "near_pole" in codes
        assert c.pencil.exact is (k <= 3)
        assert ("nearly_defective" in codes) is not c.pencil.exact
        if "nearly_defective" in codes:
            numbers = codes["nearly_defective"].numbers
            K = np.linalg.solve(c.pencil.G, c.pencil.A0)
            off = float(np.abs(np.linalg.eigvals(K) + pole).max())
            assert 0.1 * off < numbers["moved"] < 1e4 * off
            assert numbers["condition"] > 1e8
            assert not c.penalties.exact


@on_random_problems(40)
def test_the_largest_step_size(kind: str, seed: int) -> None:
    """Just below it the mean update contracts on the row space, just above it does not."""
    p = drawn(kind, seed)
    c, eta = Certificate(p), max(Certificate(p).eta_pd, 0.0) + 0.2
    Q = Direct.of(p).basis
    for name, params in (("perturbed_td", {"eta": eta}), ("tdc", {"ratio": eta}), ("etd", {})):
        alpha = c.largest_alpha(name, **params)
        M = c.expectation(name, **params).M
        basis = np.kron(np.eye(len(M) // p.n_features), Q)
        M = basis.T @ M @ basis

        def radius(step: float, M: Floats = M) -> float:
            return float(np.abs(np.linalg.eigvals(np.eye(len(M)) - step * M)).max())

        assert 0.0 < alpha < np.inf
        assert radius(alpha * (1.0 - 1e-6)) < 1.0 <= radius(alpha * (1.0 + 1e-6))
    if not c.td_stable:
        assert c.largest_alpha("td") == 0.0


@on_random_problems(30)
def test_one_penalty_serves_every_trace(kind: str, seed: int) -> None:
    """Scaled traces: eta > sqrt(gamma_max c_max) - 1 is stable for every lam."""
    c = Certificate(drawn(kind, seed))
    eta = just(+1, max(0.0, c.bounds["sqrt_kappa"]))
    for lam in (0.0, 0.2, 0.5, 0.8, 0.95, 1.0):
        assert c.is_stable("perturbed_td", eta=eta, lam=lam)


@on_random_problems(30)
def test_the_ratio_that_stabilises_tdc(kind: str, seed: int) -> None:
    """TDC with a ratio above max(0, eta_pd) is stable on one time scale, without bias."""
    p = drawn(kind, seed)
    c = Certificate(p)
    for lam in (0.0, 0.6):
        ratio = just(+1, max(0.0, threshold_with_traces(c, lam)))
        assert c.is_stable("tdc", ratio=ratio, lam=lam)
        assert c.is_stable("perturbed_td", eta=ratio, lam=lam, penalty="outside")
    td, tdc = c.fixed_point("td"), c.fixed_point("tdc", ratio=2.0)
    np.testing.assert_allclose(p.Phi @ tdc, p.Phi @ td, rtol=1e-6, atol=1e-8)


def threshold_with_traces(c: Certificate, lam: float) -> float:
    """-lambda_min of (sym A_lam, G), by whitening."""
    direct = Direct.of(c.problem)
    X = c.problem.Phi @ direct.basis
    n = c.problem.n_states
    inner = np.linalg.solve(np.eye(n) - lam * direct.P_gamma, np.eye(n) - direct.P_gamma)
    white = np.linalg.inv(np.linalg.cholesky(direct.G))
    A = white @ (X.T * c.problem.d_mu) @ inner @ X @ white.T
    return -float(np.linalg.eigvalsh((A + A.T) / 2)[0])


def test_one_matrix_gives_the_values_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where S_0 + a S_1 is singular, with S_1 of half rank and of full rank."""
    rng = np.random.default_rng(0)
    for rank in (6, 12):
        S0, S1 = (
            rng.normal(size=(12, 12)),
            rng.normal(size=(12, rank)) @ rng.normal(size=(rank, 12)),
        )
        slow = singular_at(S0, S1)
        monkeypatch.setattr("steadytd.theory.thresholds.LARGE_PAIRS", 0)
        fast = singular_at(S0, S1)
        monkeypatch.undo()
        one, other = (a[np.abs(a) < 1e6] for a in (slow, fast))
        assert len(one) == len(other) == rank
        assert np.abs(one[:, None] - other).min(axis=1) == pytest.approx(0.0, abs=1e-7)
