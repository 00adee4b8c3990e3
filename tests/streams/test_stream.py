"""The random stream against a plain Python version, written from `docs/streams.md` alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from steadytd import InputError, Problem, problem
from steadytd.base.arrays import Ints
from steadytd.engine.facts import STEP_FACTS, columns, named
from steadytd.engine.step import kernels
from steadytd.streams.finite import FiniteStream, Position
from tests.support.helpers import random_problem
from tests.support.splitmix import GOLDEN, MIX_1, MIX_2, WORD, mix, uniform

Step = tuple[int, int, int]


def invert(probabilities: Iterable[float], u: float) -> int:
    """The first place whose cumulative sum exceeds u; the last sum counts as 1."""
    given_ones = list(probabilities)
    total = 0.0
    for i, probability in enumerate(given_ones[:-1]):
        total += probability
        if total > u:
            return i
    return len(given_ones) - 1


def choices(p: Problem, s: int) -> list[tuple[int, int, float]]:
    """(a, s', probability) of every transition out of s."""
    return [
        (a, t, float(p.mu[s, a] * p.P[s, a, t]))
        for a in range(p.n_actions)
        for t in range(p.n_states)
        if p.mu[s, a] * p.P[s, a, t] != 0.0
    ]


def reference(p: Problem, seed: int, steps: int) -> list[Step]:
    """(s, a, s') of every step."""
    key = mix(seed)
    possible = [s for s in range(p.n_states) if p.start[s] > 0.0]
    s = possible[invert((float(p.start[i]) for i in possible), uniform(key, 0))]
    table = [choices(p, i) for i in range(p.n_states)]
    result = []
    for t in range(steps):
        chosen = invert((x[2] for x in table[s]), uniform(key, t + 1))
        a, s_next, _ = table[s][chosen]
        result.append((s, a, s_next))
        s = s_next
    return result


def events(p: Problem, seed: int, steps: int) -> Ints:
    stream = FiniteStream(p)
    return stream.take(stream.begin(seed), steps)[0]


def walked(p: Problem, seed: int, steps: int) -> list[Step]:
    """(s, a, s') of every step of the package's own stream."""
    stream = FiniteStream(p)
    taken = events(p, seed, steps)
    columns = (stream.s[taken], stream.a[taken], stream.s_next[taken])
    return list(zip(*(c.tolist() for c in columns), strict=True))


def uneven_problem(seed: int, states: int, actions: int) -> Problem:
    """Many successors, with probabilities from nearly 1 down to 1e-25 and start in few states."""
    rng = np.random.default_rng(seed)
    P = 10.0 ** rng.uniform(-18, 0, size=(states, actions, states))
    P /= P.sum(axis=-1, keepdims=True)
    mu = 10.0 ** rng.uniform(-8, 0, size=(states, actions))
    mu /= mu.sum(axis=-1, keepdims=True)
    start = np.zeros(states)
    start[1 : states - 1] = 1 / (states - 2)
    one = np.ones((states, 1))
    return Problem(name="uneven", P=P, r=0.0, gamma=0.5, mu=mu, pi=mu, Phi=one, start=start)


# Numbers


def test_published_vector_of_splitmix64() -> None:
    """Seed 0: the first outputs of Vigna's splitmix64.c, by the reference and by the package."""
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert [mix((n + 1) * GOLDEN % WORD) for n in range(3)] == published
    for n, output in enumerate(published):
        counter = np.uint64((n + 1) * GOLDEN % WORD)
        assert int(kernels.mix(counter)) == output
        assert kernels.uniform(np.uint64(0), n) == (output >> 11) / 2**53 == uniform(0, n)
    documented = [0.8833108082136426, 0.43152799704850997, 0.026433771592597743]
    assert [uniform(0, n) for n in range(3)] == documented


def test_streams_of_the_first_seeds_are_far_apart() -> None:
    """How many numbers after seed a's first number seed b's first number would come."""
    per_step = pow(GOLDEN, -1, WORD)
    places = sorted(mix(seed) * per_step % WORD for seed in range(1000))
    gaps = [b - a for a, b in pairwise(places)]
    assert min(*gaps, places[0] + WORD - places[-1]) > 10**12


# Transitions


@pytest.mark.parametrize("seed", [0, 1, 7, 2**40 + 3, 2**63 - 1])
@pytest.mark.parametrize("name", ["theta2theta", "baird", "three_state"])
def test_events_equal_the_reference(name: str, seed: int) -> None:
    p = problem(name)
    assert walked(p, seed, 2000) == reference(p, seed, 2000)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(
    problem_seed=some.integers(0, 10**6),
    seed=some.integers(0, 2**63 - 1),
    states=some.integers(1, 12),
    actions=some.integers(1, 4),
    sparse=some.booleans(),
)
def test_events_of_random_problems(
    problem_seed: int, seed: int, states: int, actions: int, sparse: bool
) -> None:
    p = random_problem(problem_seed, states, actions, sparse=sparse)
    assert walked(p, seed, 200) == reference(p, seed, 200)


@pytest.mark.parametrize("seed", range(5))
def test_events_with_many_successors_and_tiny_probabilities(seed: int) -> None:
    p = uneven_problem(seed, states=40, actions=20)
    steps = walked(p, seed, 2000)
    assert steps == reference(p, seed, 2000)
    assert len(set(steps)) > 100  # it does not run in a small circle


def test_first_states() -> None:
    p = uneven_problem(0, states=6, actions=2)
    stream = FiniteStream(p)
    firsts = [stream.begin(seed).state for seed in range(300)]
    assert firsts == [reference(p, seed, 1)[0][0] for seed in range(300)]
    assert set(firsts) == {1, 2, 3, 4}  # the states of positive start probability, each of them


def unmix(z: int) -> int:
    """The inverse of `mix`: which input gives this output."""
    z ^= (z >> 31) ^ (z >> 62)
    z = z * pow(MIX_2, -1, WORD) % WORD
    z ^= (z >> 27) ^ (z >> 54)
    z = z * pow(MIX_1, -1, WORD) % WORD
    return z ^ (z >> 30) ^ (z >> 60)


def draw(stream: FiniteStream, s: int, numerator: int) -> int:
    """The event out of s at the uniform number numerator / 2^53, by a key made for it."""
    key = (unmix(numerator << 11) - 2 * GOLDEN) % WORD  # number 1 is that of step 0
    assert uniform(key, 1) == numerator / 2**53
    return int(stream.take(Position(np.uint64(key), 0, s), 1)[0][0])


@pytest.mark.parametrize(
    "p",
    [
        problem("baird"),
        problem("three_state"),
        random_problem(3, states=8, actions=3),
        random_problem(5, states=7, actions=4, sparse=True),
        uneven_problem(1, states=9, actions=5),
    ],
    ids=lambda p: p.name,
)
def test_draws_at_the_very_boundaries(p: Problem) -> None:
    """The numbers just below, at and just above every cumulative sum, 0 and the largest one."""
    stream = FiniteStream(p)
    for s in range(p.n_states):
        out = choices(p, s)
        sums = np.cumsum([x[2] for x in out])
        edges = [0, *(math.ceil(Fraction(float(c)) * 2**53) for c in sums), 2**53 - 1]
        for numerator in {e + shift for e in edges for shift in (-1, 0, 1)}:
            if 0 <= numerator < 2**53:
                e = draw(stream, s, numerator)
                a, t, _ = out[invert((x[2] for x in out), numerator / 2**53)]
                assert (stream.s[e], stream.a[e], stream.s_next[e]) == (s, a, t)


# What depends on what


@settings(deadline=None, derandomize=True, max_examples=30)
@given(seed=some.integers(0, 2**63 - 1), chunks=some.lists(some.integers(0, 400), max_size=8))
def test_chunks_do_not_matter(seed: int, chunks: list[int]) -> None:
    stream = FiniteStream(random_problem(2))
    whole, end = stream.take(stream.begin(seed), 3200)
    position = stream.begin(seed)
    parts = []
    for count in [*chunks, 3200 - sum(chunks)]:
        part, position = stream.take(position, count)
        assert len(part) == count
        parts.append(part)
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert position == end
    assert end.step == 3200


def test_the_stream_knows_nothing_of_targets_and_features() -> None:
    p = random_problem(11)
    two = np.stack([p.mu, p.mu])
    other = Problem(
        name="other", P=p.P, mu=p.mu, start=p.start, r=5.0, gamma=0.1, pi=two, Phi=np.eye(5)
    )
    np.testing.assert_array_equal(events(p, 3, 1000), events(other, 3, 1000))


def asymptotic_variance(p: Problem, stream: FiniteStream) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The variance of sqrt(N) times a transition's frequency in N steps, N to infinity.

    f (1 - f) + 2 f q H[s', s]: f the long-run frequency, q the probability given s, and
    H = (I - P + 1 d')^-1 - 1 d' the sum over k of P^k - 1 d', which collects how seeing the
    transition now changes the chance to see it k + 1 steps later.
    """
    n = p.n_states
    P_mu = np.einsum("sa,sat->st", p.mu, p.P)
    d = np.broadcast_to(p.d_mu, (n, n))
    H = np.linalg.inv(np.eye(n) - P_mu + d) - d
    q = stream.probability
    f = p.d_mu[stream.s] * q
    return np.asarray(f * (1 - f) + 2 * f * q * H[stream.s_next, stream.s])


@pytest.mark.parametrize(
    "p",
    [
        problem("theta2theta"),
        problem("baird"),
        problem("three_state"),
        random_problem(1),
        random_problem(2, states=6, actions=2, sparse=True),
    ],
    ids=lambda p: p.name,
)
def test_frequencies(p: Problem) -> None:
    """Every transition is as frequent as d(s) mu(a|s) p(s'|s, a) says.

    Tolerance: five standard deviations by the central limit theorem for Markov chains. With right
    streams one of the some 150 transitions would miss it about once in 10,000 seeds; a wrong one is
    found if it is off by 1 % of itself at a frequency of 1/4, by 7 % at 1/200. One more occurrence
    in N is granted to the start, which is not stationary.
    """
    N = 1_000_000
    stream = FiniteStream(p)
    counts = np.bincount(events(p, 0, N), minlength=len(stream.s))
    tolerance = 5.0 * np.sqrt(asymptotic_variance(p, stream) / N) + 1.0 / N
    off = np.abs(counts / N - p.d_mu[stream.s] * stream.probability) / tolerance
    assert off.max() < 1.0


def test_first_states_are_as_frequent_as_start_says() -> None:
    """10,000 seeds are independent draws; five standard deviations of a binomial count."""
    p = random_problem(6)
    stream = FiniteStream(p)
    n = 10_000
    counts = np.bincount([stream.begin(seed).state for seed in range(n)], minlength=5)
    tolerance = 5.0 * np.sqrt(n * p.start * (1.0 - p.start))
    assert (np.abs(counts - n * p.start) < tolerance).all()


# Facts of the transitions


@pytest.mark.parametrize("policies", [None, 1, 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_facts(policies: int | None, sparse: bool) -> None:
    p = random_problem(9, policies=policies, sparse=sparse, interest=True)
    stream = FiniteStream(p)
    assert isinstance(p.gamma, np.ndarray)
    assert len(stream.transitions) == (policies or 1)
    for k, transitions in enumerate(stream.transitions):
        given_ones = (p.r, p.gamma, p.pi, p.interest)
        r, gamma, pi, interest = given_ones if policies is None else (x[k] for x in given_ones)
        peaks = [max(pi[s, a], p.mu[s, a]) for s, a in np.ndindex(5, 3) if p.mu[s, a] > 0.0]
        np.testing.assert_array_equal(transitions.row, stream.s)
        np.testing.assert_array_equal(transitions.row_next, stream.s_next)
        assert transitions.facts.shape == (len(stream.s), len(STEP_FACTS))
        for e, (s, a, t) in enumerate(zip(stream.s, stream.a, stream.s_next, strict=True)):
            assert named(transitions.facts[e]) == {
                "reward": r[s, a, t],
                "gamma_next": gamma[s, a, t],
                "gamma_carried": gamma[s, a, t],
                "rho": pi[s, a] / p.mu[s, a],
                "pi": pi[s, a],
                "mu": p.mu[s, a],
                "interest": interest[s],
                "peak_min": min(peaks),
                "peak_max": max(peaks),
            }


@pytest.mark.parametrize(
    "gamma", [0.75, np.array([0.5, 0.25, 0.0]), np.linspace(0, 1, 18).reshape(3, 2, 3)]
)
def test_discounts_of_transitions(gamma: Any) -> None:
    """gamma_next is that of the transition, however the discounts were given."""
    base = problem("three_state")
    p = Problem(
        name="x", P=base.P, r=base.r, gamma=gamma, mu=base.mu, pi=base.pi, Phi=base.Phi
    )  # fmt: skip
    full = np.broadcast_to(gamma, (3, 2, 3))
    stream = FiniteStream(p)
    facts = stream.transitions[0].facts
    for name in ("gamma_next", "gamma_carried"):
        column = columns(facts, name)[:, 0]
        np.testing.assert_array_equal(column, full[stream.s, stream.a, stream.s_next])


# Bad seeds


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, 2.0, float("nan"), "1", None])
def test_bad_seeds(seed: Any) -> None:
    with pytest.raises(InputError) as caught:
        FiniteStream(problem("baird")).begin(seed)
    expected = f"seed must be a whole number >= 0 and < 2^63, got {seed!r}."
    assert str(caught.value) == expected
