"""SplitMix64 in plain Python, written from `docs/streams.md` and `docs/problems.md` alone."""

from __future__ import annotations

WORD = 2**64
GOLDEN = 0x9E3779B97F4A7C15
MIX_1, MIX_2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
PROBLEM = 0xB5AD4ECEDA1CE2A9


def mix(z: int) -> int:
    z = (z ^ (z >> 30)) * MIX_1 % WORD
    z = (z ^ (z >> 27)) * MIX_2 % WORD
    return z ^ (z >> 31)


def uniform(key: int, n: int) -> float:
    return (mix((key + (n + 1) * GOLDEN) % WORD) >> 11) * 2.0**-53


def problem_uniform(seed: int, n: int) -> float:
    """Number n of a problem's seed."""
    return uniform(mix(seed ^ PROBLEM), n)
