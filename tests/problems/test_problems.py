"""The registry, and the matrices of the paper's problems with NumPy from their arrays alone.

Their published thresholds and errors are in `tests/theory/test_certificate.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import null_space

import steadytd
from steadytd import InputError, Problem, problem, problems


def test_registry_is_the_directory() -> None:
    directory = Path(steadytd.__file__).parent / "problems"
    on_disk = {f.stem for f in directory.glob("*.py") if not f.stem.startswith("_")}
    assert set(problems()) == on_disk


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


@pytest.mark.parametrize(
    ("name", "d_mu", "v_pi"),
    [
        ("theta2theta", [1 / 2, 1 / 2], [0, 0]),
        ("baird", [1 / 7] * 7, [0] * 7),
        ("three_state", [5 / 11, 1 / 11, 5 / 11], [10, 10, 10]),
    ],
)
def test_distribution_values_and_matrices(name: str, d_mu: list[float], v_pi: list[float]) -> None:
    """Without the package's `Moments` and without its GTH."""
    p = problem(name)
    identity = np.eye(p.n_states)
    P_mu, P_pi = (np.einsum("sa,sat->st", policy, p.P) for policy in (p.mu, p.pi))
    r_pi = np.einsum("sa,sat,sat->s", p.pi, p.P, p.r)
    d = null_space((P_mu - identity).T)[:, 0]
    d /= d.sum()
    v = np.linalg.solve(identity - p.gamma * P_pi, r_pi)
    np.testing.assert_allclose(d, d_mu, rtol=1e-12)
    np.testing.assert_allclose(p.d_mu, d_mu, rtol=1e-14)
    np.testing.assert_allclose(v, v_pi, rtol=1e-12)
    np.testing.assert_allclose(p.v_pi, v_pi, rtol=1e-13)
    m, D = p.moments(), np.diag(d)
    np.testing.assert_allclose(m.P_gamma, p.gamma * P_pi, rtol=1e-13)
    A = p.Phi.T @ D @ (identity - p.gamma * P_pi) @ p.Phi
    np.testing.assert_allclose(m.A(), A, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(m.G, p.Phi.T @ D @ p.Phi, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(m.b(), p.Phi.T @ D @ r_pi, rtol=1e-12, atol=1e-14)
    w = np.random.default_rng(0).normal(size=p.n_features)
    assert p.error(w) == pytest.approx(np.sqrt(d @ (p.Phi @ w - v) ** 2), rel=1e-12)
