"""Is A(eta) positive definite? Proved in exact fractions, to be checked without this library.

The problem's numbers are floats. They stand for fractions if each is that of a fraction with a
denominator up to a million, to the last digits, and all probabilities then sum to exactly 1. From
these the stationary distribution d follows by elimination in fractions, and with it A(eta). On a
basis B of the features' span, B (A + A') B' = L diag(pivots) L' without any rounding: positive
definite exactly if all pivots are positive. At the first pivot p <= 0, with S that matrix and S_j
its block before it, y = (-S_j^-1 s_j, 1, 0, ..) has y'Sy = p, and v = B'y proves the contrary.

Only states that mu returns to count, so the others are left out, with their rows of Phi. Where an
action leads that mu never takes does not count either: its row of P is zeros.
"""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError, unknown
from steadytd.base.json import json_text
from steadytd.mdp.moments import Moments
from steadytd.theory.proof.verify import BITS, FAILS, HOLDS, LARGEST, MOST

DENOMINATOR = 10**6  # a float has a fraction with a smaller one only by design
LONGEST = 100  # text of eta, and its exponent
DIGITS = 4  # units in the last place: 1 - 0.71 stands for 0.29

Vector = list[Fraction]
Matrix = list[Vector]


def prove(m: Moments, claim: str, eta: float | str | Fraction, problem: str) -> dict[str, Any]:
    """The proof that A(eta) is positive definite on the span of the features, or that it is not.

    A dictionary for JSON, all numbers as text. `eta` may be a text such as "29/70".
    """
    if claim != "positive_definite":
        raise unknown("claim", claim, ["positive_definite"])
    exact = _fractions(m, _penalty(eta))
    factors = _factors(exact)
    found = {
        "claim": FAILS if "v" in factors else HOLDS,
        "problem": problem,
        "states": len(exact["d"]),
        "actions": m.mu.shape[1],
        "features": m.n_features,
        **exact,
        **factors,
    }
    proof: dict[str, Any] = json.loads(json.dumps(found, default=str))
    text = json_text(proof)
    common = math.lcm(*map(int, re.findall(r"/(\d+)", text.replace(problem, ""))))
    if len(text) > LARGEST or common.bit_length() > BITS:
        raise InputError(
            f"the fractions of {problem} grow too long for a proof that can be checked; give the "
            "problem's numbers with fewer digits."
        )
    return proof


def _fractions(m: Moments, eta: Fraction) -> dict[str, Any]:
    """The problem in fractions, on the states that mu returns to."""
    visited = m.visited
    sizes = {"states": int(visited.sum()), "actions": m.mu.shape[1], "features": m.n_features}
    for name, most in MOST.items():
        if sizes[name] > most:
            raise InputError(f"a proof needs {name} <= {most}, got {sizes[name]}.")
    if not m.everywhere:
        raise InputError("a proof needs a target policy that is active in every state.")
    m.require_array("a proof")
    transitions, discounts = m.P[visited][:, :, visited], m.gamma[visited][:, :, visited]
    mu = [_distribution(row, "mu") for row in m.mu[visited]]
    nowhere = [Fraction()] * len(transitions)
    P = [
        [_distribution(row, "P") if taken else nowhere
         for row, taken in zip(actions, chances, strict=True)]
        for actions, chances in zip(transitions, mu, strict=True)
    ]  # fmt: skip
    counts = m.pi[visited][:, :, None] * transitions > 0.0
    chain = [
        [_dot(w, column) for column in zip(*rows, strict=True)]
        for w, rows in zip(mu, P, strict=True)
    ]
    return {
        "eta": eta,
        "P": P,
        "gamma": [
            [[_fraction(x, "gamma") for x in row] for row in actions]
            for actions in np.where(counts, discounts, 0.0)
        ],
        "mu": mu,
        "pi": [_distribution(row, "pi") for row in m.pi[visited]],
        "Phi": [[_fraction(x, "Phi") for x in row] for row in m.Phi[visited]],
        "d": _stationary(chain),
    }


def _penalty(eta: float | str | Fraction) -> Fraction:
    try:
        exponent = eta.lower().partition("e")[2] if isinstance(eta, str) else ""
        if (exponent and abs(int(exponent)) > LONGEST) or len(str(eta)) > LONGEST:
            raise ValueError  # such a fraction can have millions of digits
        value = Fraction(eta) if isinstance(eta, str | Fraction) else _fraction(eta, "eta")
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        raise InputError(f"eta must be a fraction such as 1/2, got {eta!r}.") from None
    if value < 0:
        raise InputError(f"eta must be >= 0, got {eta}.")
    return value


def _fraction(x: float, name: str) -> Fraction:
    """The fraction that a float stands for."""
    for digits in range(7):
        near = Fraction(float(x)).limit_denominator(10**digits)
        if abs(float(near) - float(x)) <= DIGITS * math.ulp(x):
            return near
    raise InputError(
        f"{name} holds {float(x)!r}, which is no fraction with a denominator up to {DENOMINATOR}; "
        "a proof needs a problem whose numbers are short fractions."
    )


def _distribution(row: Floats, name: str) -> Vector:
    found = [_fraction(x, name) for x in row]
    if sum(found) != 1:
        raise InputError(
            f"a row of {name} sums to {sum(found)} as fractions, not to 1; a proof needs a problem "
            "whose probabilities are exact."
        )
    return found


def _dot(x: Any, y: Any) -> Fraction:
    return sum((a * b for a, b in zip(x, y, strict=True) if a and b), Fraction())


def _stationary(chain: Matrix) -> Vector:
    """d with d P = d, by the elimination of Grassmann, Taksar and Heyman."""
    A, n = [list(row) for row in chain], len(chain)
    for k in range(n - 1, 0, -1):
        leaving = sum(A[k][:k], Fraction())
        for i in range(k):
            A[i][k] /= leaving
            if A[i][k]:
                A[i][:k] = [x + A[i][k] * y for x, y in zip(A[i][:k], A[k][:k], strict=True)]
    d = [Fraction(1)]
    for k in range(1, n):
        d.append(_dot(d, [A[i][k] for i in range(k)]))
    return [x / sum(d) for x in d]


def _factors(exact: dict[str, Any]) -> dict[str, Any]:
    """Basis, coordinates, L and pivots; or v and v'Av."""
    basis, coordinates = _basis(exact["Phi"])
    B = [exact["Phi"][s] for s in basis]
    S, r = _symmetric(exact, B), len(basis)
    L: Matrix = [[Fraction(int(i == j)) for j in range(r)] for i in range(r)]
    pivots: Vector = []
    for j in range(r):
        pivot = S[j][j] - sum((L[j][k] ** 2 * pivots[k] for k in range(j)), Fraction())
        if pivot <= 0:
            y = [Fraction()] * r
            y[j] = Fraction(1)
            for i in range(j - 1, -1, -1):  # L' y = unit vector
                y[i] = -sum((L[k][i] * y[k] for k in range(i + 1, j + 1)), Fraction())
            v = [_dot(y, column) for column in zip(*B, strict=True)]
            return {"v": v, "v_A_v": pivot / 2}
        pivots.append(pivot)
        for i in range(j + 1, r):
            known = sum((L[i][k] * L[j][k] * pivots[k] for k in range(j)), Fraction())
            L[i][j] = (S[i][j] - known) / pivot
    return {"basis": basis, "coordinates": coordinates, "L": L, "pivots": pivots}


def _symmetric(exact: dict[str, Any], B: Matrix) -> Matrix:
    """B (A + A') B'."""
    d, pi, P, gamma = (exact[name] for name in ("d", "pi", "P", "gamma"))
    states = range(len(d))
    values = [[_dot(b, row) for row in exact["Phi"]] for b in B]  # of each basis vector
    flow = [[d[s] * (1 + exact["eta"]) if s == t else Fraction() for t in states] for s in states]
    for s, t in product(states, states):
        ahead = [p[t] * g[t] for p, g in zip(P[s], gamma[s], strict=True)]
        flow[s][t] -= d[s] * _dot(pi[s], ahead)
    moved = [[_dot(row, v) for row in flow] for v in values]
    half = [[_dot(v, w) for w in moved] for v in values]
    return [[half[i][j] + half[j][i] for j in range(len(B))] for i in range(len(B))]


def _basis(rows: Matrix) -> tuple[list[int], Matrix]:
    """Rows that span all rows, by elimination, and every row as a combination of them."""
    reduced: list[tuple[int, Vector, Vector]] = []  # column of the pivot, row, combination
    basis: list[int] = []
    coordinates: Matrix = []
    for s, row in enumerate(rows):
        left, used = list(row), [Fraction()] * len(basis)
        for column, other, of in reduced:
            if factor := left[column]:
                left = [x - factor * y for x, y in zip(left, other, strict=True)]
                used = [
                    x + factor * y
                    for x, y in zip(used, of + [Fraction()] * len(basis), strict=False)
                ]
        column = next((i for i, x in enumerate(left) if x), -1)
        if column < 0:
            coordinates.append(used)
            continue
        basis.append(s)
        coordinates.append([*([Fraction()] * (len(basis) - 1)), Fraction(1)])
        own = [-x / left[column] for x in used] + [1 / left[column]]
        reduced.append((column, [x / left[column] for x in left], own))
    return basis, [[*row, *[Fraction()] * (len(basis) - len(row))] for row in coordinates]
