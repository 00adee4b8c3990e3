"""Which learners are one and the same update on a problem, found from their laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import steadytd as st
from steadytd.theory.same import same_update
from tests.support.realised import KINDS, drawn


def same(problem: st.Problem | str, one: str, other: str) -> bool:
    p = st.problem(problem) if isinstance(problem, str) else problem
    pair = [st.learner(text, alpha=0.05) for text in (one, other)]
    found = same_update(p, pair[0], pair[1])
    assert same_update(p, pair[1], pair[0]) is found
    return found


@pytest.mark.parametrize(
    ("problem", "one", "other", "expected"),
    [
        ("high_variance_rooms", "abtd:zeta=0.75", "vtrace:lam=1", True),
        ("high_variance_rooms", "abtd:zeta=0.3", "vtrace:lam=1", False),
        ("high_variance_rooms", "abtd:zeta=0.75", "vtrace:lam=0.9", False),
        ("collision", "tree_backup:lam=0.7", "vtrace:lam=0.7", True),
        ("collision", "tree_backup:lam=0.7", "td:lam=0.7", False),
        ("high_variance_rooms", "tree_backup:lam=0.7", "vtrace:lam=0.7", False),
        ("baird", "tree_backup:lam=0.7", "vtrace:lam=0.7", True),
        ("baird", "etd", "etd_beta:beta=0.99", True),
        ("baird", "etd", "etd_beta:beta=0.9", False),
        ("random_walk", "etd", "etd_beta:beta=0.9", False),
    ],
)
def test_known_cases(problem: str, one: str, other: str, expected: bool) -> None:
    assert same(problem, one, other) is expected


@pytest.mark.parametrize("name", ["high_variance_rooms", "rooms", "collision", "baird"])
def test_where_abtd_is_vtrace(name: str) -> None:
    """Exactly where nu pi = min(1, rho) for all that mu does in an active state: by the arrays."""
    p = st.problem(name)
    seen = set()
    for zeta in (0.3, 0.5, 0.75):
        equal = []
        for policy in range(p.n_policies):
            m = p.moments(policy)
            taken = (p.mu > 0.0) & p.active_in(policy)[:, None]
            peak, (low, high) = np.maximum(m.pi, p.mu)[taken], m.peaks
            psi = 2 * zeta / high + max(0.0, 2 * zeta - 1) * (1 / low - 2 / high)
            cut = np.minimum(psi, 1 / peak) * m.pi[taken]
            equal.append(np.allclose(cut, np.minimum(1.0, m.pi[taken] / p.mu[taken]), atol=1e-12))
        assert same(p, f"abtd:zeta={zeta}", "vtrace:lam=1") is all(equal)
        seen.add(all(equal))
    assert True in seen
    assert name == "baird" or False in seen


ORDINARY = ("sparse", "off_policy", "chain")
EVERY_KIND = [
    pytest.param(kind, marks=() if kind in ORDINARY else pytest.mark.slow) for kind in KINDS
]


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_what_reduces_to_what_does_so_everywhere(kind: str) -> None:
    """The files' own reductions are the same update on every drawn problem, their nears are not."""
    for seed in range(1):
        p = drawn(kind, seed)
        for one, other in [
            ("perturbed_td:eta=0,lam=0.4", "td:lam=0.4"),
            ("perturbed_td:eta=0.3", "perturbed_td:eta=0.3,penalty=outside"),
            ("tdrc:reg=0,ratio=2,lam=0.4", "tdc:ratio=2,lam=0.4"),
            ("tree_backup", "vtrace"),
            ("abtd", "td"),
            ("abtd:zeta=1", "vtrace:lam=1"),
            ("etd_beta:beta=0", "td"),
            ("perturbed_etd:eta=0,beta=0.4", "etd_beta:beta=0.4"),
        ]:
            assert same(p, one, other), (one, other, seed)
        for one, other in [
            ("perturbed_td:eta=1e-6", "td"),
            ("tdrc:reg=0.1,ratio=2", "tdc:ratio=2"),
            ("tdc:ratio=1", "tdc:ratio=2"),
            ("gtd2:ratio=1", "tdc:ratio=1"),
            ("td:power=0.5", "td"),
        ]:
            assert not same(p, one, other), (one, other, seed)


@pytest.mark.slow
def test_one_rare_action_is_enough_to_differ() -> None:
    """rho = 1 but for one action of one state among 200, which mu takes once in 1e9 steps."""
    rng = np.random.default_rng(5)
    n = 200
    P = rng.dirichlet(np.full(n, 0.05), size=(n, 2))
    mu = np.tile([0.5, 0.5], (n, 1))
    pi = mu.copy()
    parts: dict[str, Any] = {
        "name": "rare",
        "P": P,
        "r": 0.0,
        "gamma": 0.9,
        "Phi": rng.normal(size=(n, 2)),
    }
    assert same(st.Problem(mu=mu, pi=pi, **parts), "htd:lam=0.5", "td:lam=0.5")
    mu[7], pi[7] = [1e-9, 1.0 - 1e-9], [2e-9, 1.0 - 2e-9]
    assert not same(st.Problem(mu=mu, pi=pi, **parts), "htd:lam=0.5", "td:lam=0.5")


def test_the_step_size_belongs_to_the_update_and_auto_does_not() -> None:
    p = st.problem("baird")
    assert not same_update(p, st.learner("td:alpha=0.1"), st.learner("td:alpha=0.2"))
    assert not same_update(p, st.learner("td:alpha=0.1,average=1"), st.learner("td:alpha=0.1"))
    assert same_update(p, st.learner("lstd"), st.learner("lstd:ridge=0"))
    assert same_update(p, st.learner("lstd"), st.learner("perturbed_lstd:eta=0"))
    assert not same_update(p, st.learner("lstd"), st.learner("perturbed_lstd:eta=0.1"))
    for name in ("baird", "theta2theta"):
        assert not same_update(st.problem(name), st.learner("lstd"), st.learner("lsetd"))
    assert not same_update(p, st.learner("lstd"), st.learner("td:alpha=0.1"))
    with pytest.raises(st.InputError, match="eta=auto needs a known model"):
        same_update(p, st.learner("perturbed_td:alpha=1,eta=auto"), st.learner("td:alpha=1"))


def test_a_law_of_ones_own() -> None:
    @st.law(writes={"w": "x"})
    def mine(
        reward: float, rho: float, gamma_next: float, w_x: float, w_x_next: float, alpha: float
    ) -> float:
        return alpha * rho * (reward + gamma_next * w_x_next - w_x)

    td = st.learner("td:alpha=0.1")
    assert same_update(st.problem("three_state"), st.learner(mine, alpha=0.1), td)
    assert not same_update(st.problem("three_state"), st.learner(mine, alpha=0.2), td)
