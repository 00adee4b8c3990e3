"""A certificate of any problem that is accepted: verdicts, numbers, sentences, and no NaN."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator

import steadytd as st
from steadytd.theory.advice import advise_on
from steadytd.theory.certificate import Certificate
from tests.support.fuzz import EVERY_SIZE, no_nan, one_of, tried


def drawn(rng: Generator) -> st.Problem:
    """Any sizes, copies, nearly copies, zeros; rare states; discounts from 0 to 1."""
    S, A, d = int(rng.integers(1, 6)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    Phi = rng.normal(size=(S, d))
    kind = int(rng.integers(5))
    if kind == 0:
        apart = 10.0 ** rng.uniform(-17.0, 0.0) * rng.normal(size=(S, 1))
        Phi = np.hstack([Phi, Phi[:, :1] * (1.0 + apart)])
    if kind == 1:
        Phi[:, 0] = 0.0
    if kind == 2:
        Phi = np.round(Phi)
    if rng.integers(2):
        Phi = Phi * 10.0 ** rng.uniform(-8.0, 8.0, size=Phi.shape[1])
    P = rng.dirichlet(np.full(S, one_of(rng, [0.05, 1.0])), size=(S, A)) + 0.0
    mu = 0.9 * rng.dirichlet(np.full(A, 0.2), size=S) + 0.1 / A
    return st.Problem(
        name="x", P=P, mu=mu, pi=rng.dirichlet(np.full(A, 0.2), size=S), Phi=Phi,
        r=rng.normal(size=(S, A)) * one_of(rng, [0.0, 1.0, 1e-8, 1e80]),
        gamma=one_of(rng, [0.0, 0.5, 0.99, 1.0 - 1e-9, 1.0]),
    )  # fmt: skip


def case(rng: Generator) -> None:
    c = Certificate(drawn(rng))
    document = c.to_dict([0.0, 0.3])
    no_nan(document)
    assert isinstance(document["td_stable"], bool)
    assert all(isinstance(row["stable"], bool) for row in document["learners"])
    assert document["best_eta"] >= 0.0 and document["best_error"] >= 0.0
    assert all("nan" not in f["text"].split() for f in document["advice"])
    no_nan([f.to_dict() for f in advise_on(c, 0.3)])


@pytest.mark.parametrize("many", EVERY_SIZE)
def test_certificates(many: bool) -> None:
    tried(case, 25, 2, many=many)


@pytest.mark.parametrize("seed", [115, 423, 1239])
def test_matrices_that_are_singular_to_the_last_bit(seed: int) -> None:
    """States visited once in 10^24 steps (115, 1239); steps that rounding swallows (423)."""
    case(np.random.default_rng([seed, 2]))
