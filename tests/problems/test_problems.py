"""The published facts of every problem, computed with NumPy and SciPy from its arrays alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import eigh, null_space, orth
from scipy.optimize import minimize_scalar

import steadytd
from steadytd import InputError, Problem, problem, problems
from steadytd.base.arrays import Floats

PAPER = ("theta2theta", "baird", "three_state")


@dataclass(frozen=True)
class Exact:
    """A problem's matrices, without the package's `Moments` and without its GTH."""

    d: Floats
    v: Floats
    Phi: Floats
    A0: Floats
    G: Floats
    b: Floats
    P_pi: Floats
    gamma: float
    basis: Floats  # orthonormal columns that span the row space of Phi

    def A(self, eta: float) -> Floats:
        """A(eta) on the row space of Phi."""
        return self.basis.T @ (self.A0 + eta * self.G) @ self.basis

    def fixed_point_error(self, eta: float) -> float:
        w = self.basis @ np.linalg.solve(self.A(eta), self.basis.T @ self.b)
        return self.error(w)

    def error(self, w: Floats) -> float:
        return float(np.sqrt(self.d @ (self.Phi @ w - self.v) ** 2))

    def best_error(self) -> float:
        root = np.sqrt(self.d)
        w = np.asarray(
            np.linalg.lstsq(root[:, None] * self.Phi, root * self.v)[0], dtype=np.float64
        )
        return self.error(w)

    def hurwitz(self, eta: float) -> bool:
        """Whether every eigenvalue of -A(eta) has a negative real part."""
        return bool(np.linalg.eigvals(self.A(eta)).real.min() > 0.0)

    def positive_definite_from(self) -> float:
        """-lambda_min of the generalised problem (sym A(0), G) on the row space."""
        H = self.A(0.0)
        G = self.basis.T @ self.G @ self.basis
        return -float(eigh((H + H.T) / 2, G, eigvals_only=True)[0])


def exact(name: str) -> Exact:
    p = problem(name)
    assert isinstance(p.gamma, float)
    n = p.n_states
    P_mu = np.einsum("sa,sat->st", p.mu, p.P)
    P_pi = np.einsum("sa,sat->st", p.pi, p.P)
    d = null_space((P_mu - np.eye(n)).T)[:, 0]
    d /= d.sum()
    r_pi = np.einsum("sa,sat,sat->s", p.pi, p.P, p.r)
    D = np.diag(d)
    return Exact(
        d=d,
        v=np.linalg.solve(np.eye(n) - p.gamma * P_pi, r_pi),
        Phi=p.Phi,
        A0=p.Phi.T @ D @ (np.eye(n) - p.gamma * P_pi) @ p.Phi,
        G=p.Phi.T @ D @ p.Phi,
        b=p.Phi.T @ D @ r_pi,
        P_pi=P_pi,
        gamma=p.gamma,
        basis=orth(p.Phi.T),
    )


def test_registry_is_the_directory() -> None:
    directory = Path(steadytd.__file__).parent / "problems"
    on_disk = {f.stem for f in directory.glob("*.py") if not f.stem.startswith("_")}
    assert set(problems()) == on_disk
    assert set(PAPER) <= on_disk


@pytest.mark.parametrize("name", sorted(problems()))
def test_every_problem_describes_itself(name: str) -> None:
    p = problem(name)
    assert isinstance(p, Problem)
    assert p.name == name
    assert problems()[name] == p.summary != ""
    assert p.summary == p.doc.partition("\n")[0]
    for part in ("Named fact:", "Source:"):
        assert f"\n{part} " in p.doc
    assert np.isfinite(p.v_pi).all()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("biard", "unknown problem 'biard'; did you mean 'baird'? Known: "),
        ("three-state", "unknown problem 'three-state'; did you mean 'three_state'? Known: "),
        ("zzz", "unknown problem 'zzz'. Known: "),
        ("__init__", "unknown problem '__init__'. Known: "),
    ],
)
def test_unknown_problem(name: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        problem(name)
    own = "A problem of your own: the problem itself in Python, or a file that it saved, mine.npz."
    assert str(caught.value) == f"{message}{', '.join(sorted(problems()))}. {own}"


def test_unknown_option() -> None:
    with pytest.raises(InputError, match=r"^problem baird has no options, got states; leave it"):
        problem("baird", states=3)
    with pytest.raises(InputError, match=r"option of problem random_mdp: 'state'; did you mean"):
        problem("random_mdp", state=3)


# Definitions, as the table has them


# Facts


@pytest.mark.parametrize(
    ("name", "d", "v"),
    [
        ("theta2theta", [1 / 2, 1 / 2], [0, 0]),
        ("baird", [1 / 7] * 7, [0] * 7),
        ("three_state", [5 / 11, 1 / 11, 5 / 11], [10, 10, 10]),
    ],
)
def test_stationary_distribution_and_values(name: str, d: list[float], v: list[float]) -> None:
    p, e = problem(name), exact(name)
    np.testing.assert_allclose(e.d, d, rtol=1e-12)
    np.testing.assert_allclose(p.d_mu, d, rtol=1e-14)
    np.testing.assert_allclose(e.v, v, rtol=1e-12)
    np.testing.assert_allclose(p.v_pi, v, rtol=1e-13)


@pytest.mark.parametrize("name", PAPER)
def test_moments_agree(name: str) -> None:
    p, e = problem(name), exact(name)
    m = p.moments()
    np.testing.assert_allclose(m.P_gamma, e.gamma * e.P_pi, rtol=1e-13)
    np.testing.assert_allclose(m.A(), e.A0, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(m.G, e.G, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(m.b(), e.b, rtol=1e-12, atol=1e-14)
    w = np.random.default_rng(0).normal(size=p.n_features)
    assert p.error(w) == pytest.approx(e.error(w), rel=1e-12)


@pytest.mark.parametrize(
    ("name", "best"), [("theta2theta", 0.0), ("baird", 0.0), ("three_state", 2.5482)]
)
def test_best_error_in_the_span_of_the_features(name: str, best: float) -> None:
    assert exact(name).best_error() == pytest.approx(best, abs=5e-5)


@pytest.mark.parametrize(
    ("name", "eta", "error", "tolerance"),
    [
        ("theta2theta", 1.0, 0.0, 1e-12),
        ("baird", 1.0, 0.0, 1e-12),
        ("three_state", 0.5, 3.0151, 5e-5),
        ("three_state", 0.6, 5.1393, 5e-5),
        ("three_state", 0.4, 77.4, 5e-2),
        ("three_state", 0.0, 12.27, 5e-3),  # the TD fixed point, which TDC finds
    ],
)
def test_error_of_the_perturbed_fixed_point(
    name: str, eta: float, error: float, tolerance: float
) -> None:
    assert exact(name).fixed_point_error(eta) == pytest.approx(error, abs=tolerance)


@pytest.mark.parametrize(
    ("name", "bound"), [("theta2theta", 0.8), ("baird", 5.93), ("three_state", 8.0)]
)
def test_bound_of_the_theorem(name: str, bound: float) -> None:
    """max_i gamma sum_j d(j) p(i|j) / d(i) - 1: column sums, as the theorem's proof needs them."""
    e = exact(name)
    assert (e.gamma * (e.d @ e.P_pi) / e.d).max() - 1.0 == pytest.approx(bound, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "eta", "tolerance"),
    [("theta2theta", 0.08, 1e-12), ("baird", 0.80465, 5e-6), ("three_state", 29 / 70, 1e-12)],
)
def test_smallest_eta_with_a_positive_definite_matrix(
    name: str, eta: float, tolerance: float
) -> None:
    e = exact(name)
    threshold = e.positive_definite_from()
    assert threshold == pytest.approx(eta, abs=tolerance)
    for shift in (-1e-6, 1e-6):  # by the plain definition, on either side of the threshold
        A = e.A(threshold + shift)
        assert (np.linalg.eigvalsh((A + A.T) / 2)[0] > 0.0) == (shift > 0.0)


@pytest.mark.parametrize(
    ("name", "below", "above"),
    [
        ("theta2theta", 0.08 - 1e-9, 0.08 + 1e-9),
        ("baird", 0.1220, 0.1221),
        ("three_state", 29 / 70 - 1e-9, 29 / 70 + 1e-9),
    ],
)
def test_smallest_eta_with_stable_mean_updates(name: str, below: float, above: float) -> None:
    """-A(eta) is Hurwitz from the threshold on, and nowhere below it."""
    e = exact(name)
    assert not any(e.hurwitz(eta) for eta in np.linspace(0.0, below, 400))
    assert all(e.hurwitz(eta) for eta in np.linspace(above, 10.0, 400))


@pytest.mark.parametrize("name", PAPER)
def test_td_is_unstable(name: str) -> None:
    assert not exact(name).hurwitz(0.0)


def test_eta_of_least_error_on_three_state() -> None:
    e = exact("three_state")
    stable = (29 / 70 + 1e-6, 10.0)
    grid = np.linspace(*stable, 2000)
    near = grid[np.argmin([e.fixed_point_error(eta) for eta in grid])]
    found = minimize_scalar(
        e.fixed_point_error, bounds=(near - 0.05, near + 0.05), method="bounded",
        options={"xatol": 1e-9},
    )  # fmt: skip
    # the error is flat at its minimum: half of the digits of a float are all one can hope for
    assert found.x == pytest.approx(18 / 35, abs=1e-6)
    assert found.fun == pytest.approx(2.5482, abs=5e-5)
    assert e.fixed_point_error(18 / 35) == pytest.approx(e.best_error(), rel=1e-12)


@pytest.mark.parametrize("name", ["theta2theta", "baird"])
def test_any_stable_eta_has_no_error_where_the_value_is_zero(name: str) -> None:
    e = exact(name)
    assert [e.fixed_point_error(eta) for eta in (0.2, 1.0, 5.0)] == [0.0, 0.0, 0.0]


def test_bairds_matrix_is_never_positive_definite_on_the_whole_space() -> None:
    """Why the threshold is taken on the row space: a direction outside it changes no value."""
    e = exact("baird")
    outside = null_space(e.Phi)[:, 0]
    assert outside @ (e.A0 + 100.0 * e.G) @ outside == pytest.approx(0.0, abs=1e-12)
