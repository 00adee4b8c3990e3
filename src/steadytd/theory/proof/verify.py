"""Check a proof that `steadytd` wrote, with Python's fractions alone: python verify.py proof.json

It computes A = Phi' diag(d) ((1 + eta) I - P_gamma) Phi from the problem in the file, and compares
B (A + A') B' = L diag(pivots) L' for a basis B of rows of Phi, or v'Av <= 0 for a vector v.
"""

import json
import math
import re
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

NUMBER = re.compile(r"-?\d{1,1000}(/\d{1,1000})?", re.ASCII)
MOST = {"states": 100, "actions": 50, "features": 40}
LARGEST, BITS = 2_000_000, 3000  # bytes of a file, bits of the common denominator
HOLDS, FAILS = "positive definite", "not positive definite"


def need(true: object, why: str) -> None:  # noqa: D103
    if not true:
        raise ValueError(why)


def numbers(tree: Any, *shape: int) -> Any:
    """Nested lists of fractions, of this shape, from text."""
    if not shape:
        need(isinstance(tree, str) and NUMBER.fullmatch(tree), f"not a fraction: {tree!r:.40}")
        need(int(tree.partition("/")[2] or 1), "a denominator is 0")
        return Fraction(tree)
    need(isinstance(tree, list) and len(tree) == shape[0], f"a list of {shape[0]} is missing")
    return [numbers(branch, *shape[1:]) for branch in tree]


def product(X: Any, Y: Any) -> list[list[Fraction]]:
    """X Y', from the rows of both."""
    rows = [list(y) for y in Y]
    return [[sum(map(Fraction.__mul__, x, y), Fraction()) for y in rows] for x in X]


def check(proof: Any) -> str:
    """What the file proves, in words; `ValueError` if it proves nothing."""
    need(isinstance(proof, dict) and proof.get("claim") in (HOLDS, FAILS), "it makes no claim")
    for name, most in MOST.items():
        need(proof.get(name) in range(1, most + 1), f"{name} must be from 1 to {most}")
    S, K, n = (proof[name] for name in MOST)
    P, gamma = (numbers(proof.get(name), S, K, S) for name in ("P", "gamma"))
    mu, pi = (numbers(proof.get(name), S, K) for name in ("mu", "pi"))
    d, Phi, eta = numbers(proof.get("d"), S), numbers(proof.get("Phi"), S, n), proof.get("eta")
    for row in [d, *mu, *pi, *(P[s][a] for s in range(S) for a in range(K) if mu[s][a])]:
        need(min(row) >= 0 and sum(row) == 1, "a distribution is negative or does not sum to 1")
    chain = [product([mu[s]], zip(*P[s], strict=True))[0] for s in range(S)]
    need(min(d) > 0 and product([d], zip(*chain, strict=True)) == [d], "d is not stationary")
    reached = {0}  # from all states, so that d is unique
    while more := {s for s in range(S) if any(chain[s][t] for t in reached)} - reached:
        reached |= more
    need(len(reached) == S, "mu has more than one stationary distribution")
    flow = [[numbers(eta) + 1 if s == t else Fraction() for t in range(S)] for s in range(S)]
    for s, a, t in ((s, a, t) for s in range(S) for a in range(K) for t in range(S)):
        need(0 <= gamma[s][a][t] <= bool(pi[s][a] * P[s][a][t]), "a discount is not possible")
        need(mu[s][a] or not pi[s][a], "pi takes an action that mu does not take")
        flow[s][t] -= pi[s][a] * P[s][a][t] * gamma[s][a][t]
    features = list(zip(*Phi, strict=True))
    A = product([list(map(Fraction.__mul__, d, x)) for x in features], product(features, flow))
    said = f"A({numbers(eta)}) of {str(proof.get('problem'))[:60]!r} is {proof['claim']}"
    if proof["claim"] == FAILS:
        v = numbers(proof.get("v"), n)
        ((value,),) = product(product([v], zip(*A, strict=True)), [v])
        need(value <= 0 and value == numbers(proof.get("v_A_v")), "v'Av > 0, or not as stated")
        need(any(row[0] for row in product(Phi, [v])), "v has the value 0 in every state")
        return f"{said}: v'Av = {value}"
    need(isinstance(rows := proof.get("basis"), list) and 0 < len(rows) <= n, "it has no basis")
    B, size = [Phi[s] for s in rows], len(rows)
    L, pivots = numbers(proof.get("L"), size, size), numbers(proof.get("pivots"), size)
    parts = numbers(proof.get("coordinates"), S, size)
    need(product(parts, zip(*B, strict=True)) == Phi, "the basis does not span the features")
    lower = all(L[i][j] == (i == j) for i in range(size) for j in range(i, size))
    need(lower and min(pivots) > 0, "L is not unit lower triangular, or a pivot is not positive")
    both = [[A[i][j] + A[j][i] for j in range(n)] for i in range(n)]
    scaled = [[x * p for x, p in zip(row, pivots, strict=True)] for row in L]
    need(product(product(B, both), B) == product(scaled, L), "L diag(pivots) L' is not the matrix")
    return f"{said} on the span of the features, of dimension {size} of {n}"


def verify(path: str | Path) -> str:
    """What a file proves; of a file that is too large, nothing."""
    need(Path(path).stat().st_size <= LARGEST, f"the file has more than {LARGEST} bytes")
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
        common = math.lcm(*{int(x) for x in re.findall(r"/(\d{1,1000})", text, re.ASCII)})
        need(common.bit_length() <= BITS, "its fractions have too many different denominators")
        return check(json.loads(text) if text.lstrip()[:1] in "{[" else None)
    except (ValueError, RecursionError, TypeError, LookupError) as error:
        raise ValueError(str(error)[:200]) from None


if __name__ == "__main__":
    print("proved:", verify(sys.argv[1]))
