"""Findings in plain words: what the certificate's numbers mean for somebody who wants to learn."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg

from steadytd.core.learner import Learner
from steadytd.theory.dynamics import decay_rates, follow_on_growth

if TYPE_CHECKING:
    from steadytd.theory.certificate import Certificate

MATTERS = 0.1  # a reversed mode counts from this share of the value function's norm on
LOOSE = 2.0  # the paper's bound is called loose from this factor on
CLOSE = 1.05  # errors within 5 % are equally good, and the faster learner is recommended
SOME = 1e-9  # relative size below which a number counts as zero


@dataclass(frozen=True)
class Finding:
    """One finding: a code for programs, a sentence for people, the numbers behind it."""

    code: str
    text: str
    numbers: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.code}: {self.text}"


@dataclass(frozen=True)
class Candidate:
    """A learner that could be recommended, with what decides it."""

    learner: Learner
    error: float
    rate: float
    infinite_variance: bool


def advise(c: Certificate) -> list[Finding]:
    """All findings that apply, the verdict on plain TD first, the recommendation last."""
    found = [
        _td(c),
        _sign_reversal(c),
        _near_pole(c),
        _bias(c),
        _bound_loose(c),
        _rank_deficient(c),
        _no_coverage(c),
        _recommended(c),
    ]
    return [finding for finding in found if finding is not None]


def advise_on(c: Certificate, eta: float) -> list[Finding]:
    """What to know about one penalty."""
    row = c.path([eta]).row(0, named=True)
    found = []
    if not row["stable"]:
        found.append(
            Finding(
                "eta_unstable",
                f"eta = {eta:g} does not stabilise the mean update: perturbed TD grows without "
                f"bound. Every eta above {c.eta_hurwitz:.4g} is stable.",
                {"eta": eta, "eta_hurwitz": c.eta_hurwitz},
            )
        )
    pole = min(c.poles, key=lambda p: abs(p - eta), default=None)
    if pole is not None and row["error"] is not None and row["sensitivity"] is not None:
        move = 0.01 * row["sensitivity"]
        if move > 0.1 * _norm(c, c.problem.Phi @ c.pencil.fixed_point(eta)):
            found.append(
                Finding(
                    "near_pole",
                    f"eta = {eta:g} is close to the pole at {pole:.4g}: a change of eta by 0.01 "
                    f"moves the values by {move:.3g}. Choose another eta.",
                    {"eta": eta, "pole": pole, "move_per_hundredth": move},
                )
            )
    return found


def _td(c: Certificate) -> Finding:
    if c.td_stable:
        error = _zeroed(c.error(c.pencil.fixed_point(0.0)), _norm(c, c.moments.v_pi))
        with_penalty = c.error(c.pencil.fixed_point(c.best_eta))
        helps = with_penalty < error / CLOSE
        return Finding(
            "td_stable",
            "off-policy TD is stable here as it is: no penalty is needed"
            + (", it would only add bias. " if not helps else " for that. ")
            + f"TD's fixed point has error {error:.4g}, the best linear fit {c.best_error:.4g}"
            + (f", perturbed TD with eta = {c.best_eta:.4g} {with_penalty:.4g}." if helps else "."),
            {"td_error": error, "best_error": c.best_error},
        )
    slowest = c.pencil.slowest(0.0)
    return Finding(
        "td_unstable",
        f"off-policy TD diverges: its mean update has a mode that grows at rate {-slowest:.4g} "
        f"per unit of alpha. Perturbed TD is stable for every eta above {c.eta_hurwitz:.4g}, and "
        f"its matrix is positive definite, as the theorem asks, from {c.eta_pd:.4g} on.",
        {"growth_rate": -slowest, "eta_hurwitz": c.eta_hurwitz, "eta_pd": c.eta_pd},
    )


def _zeroed(value: float, size: float) -> float:
    """The value, or 0 where it is rounding next to `size`."""
    return value if abs(value) > SOME * (1.0 + size) else 0.0


def _norm(c: Certificate, values: Any) -> float:
    return float(np.sqrt(c.moments.d @ np.asarray(values) ** 2))


def _sign_reversal(c: Certificate) -> Finding | None:
    """A real mode l < 0 of G^-1 A_0 whose part of the values comes out with the wrong sign."""
    m, pencil = c.moments, c.pencil
    size = _norm(c, m.v_pi)
    if size == 0.0 or c.td_stable:
        return None
    modes, vectors = scipy.linalg.eig(pencil.A0, pencil.G)
    wanted = np.linalg.lstsq(
        np.sqrt(m.d)[:, None] * (m.Phi @ pencil.Q), np.sqrt(m.d) * m.v_pi, rcond=None
    )[0]
    reached = np.linalg.solve(pencil.A(c.best_eta), pencil.b)
    parts = np.linalg.lstsq(vectors, np.stack([wanted, reached], axis=1).astype(complex))[0]
    for mode, vector, (true, learned) in zip(modes, vectors.T, parts, strict=True):
        real = abs(mode.imag) <= SOME * (1.0 + abs(mode)) and mode.real < 0.0
        share = abs(true) * _norm(c, np.abs(m.Phi @ pencil.Q @ vector)) / size
        if real and share >= MATTERS and (true * np.conj(learned)).real < -SOME:
            factor = float((learned / true).real)
            return Finding(
                "sign_reversal",
                "perturbed TD returns the wrong sign: the part of the value function along an "
                f"unstable mode ({share:.0%} of its size) is multiplied by {factor:.3g} at the "
                f"best penalty, eta = {c.best_eta:.4g}, and by a negative number at every penalty "
                "that stabilises it. Use a learner without this bias.",
                {"mode": float(mode.real), "share": float(share), "factor": factor,
                 "eta": c.best_eta},
            )  # fmt: skip
    return None


def _near_pole(c: Certificate) -> Finding | None:
    """The stretch of stable penalties in which perturbed TD is worse than predicting zero."""
    poles = [p for p in c.poles if c.pencil.is_stable(p + 1e-6 * (1.0 + p))]
    if not c.b.any() or not poles:
        return None
    pole = max(poles)
    zero = c.error(np.zeros(c.problem.n_features))
    grid = pole + np.geomspace(1e-4, 10.0, 400)
    errors = np.array([c.error(c.pencil.fixed_point(eta)) for eta in grid])
    if not (errors > zero).any():
        return None
    until = float(grid[np.flatnonzero(errors > zero)[-1]])
    reach = "all of them" if until >= grid[-1] else f"up to {until:.3g}"
    return Finding(
        "near_pole",
        f"w(eta) has a pole at {pole:.4g}: stable penalties just above it are the worst choice. "
        f"Between the pole and larger ones ({reach}) perturbed TD is worse than predicting zero "
        f"everywhere (error {zero:.4g}).",
        {"pole": pole, "worse_than_zero_until": until, "error_of_zero": zero},
    )


def _bias(c: Certificate) -> Finding | None:
    size = _norm(c, c.moments.v_pi)
    if size == 0.0:
        return None
    error = c.error(c.pencil.fixed_point(c.best_eta))
    return Finding(
        "bias",
        f"at its best penalty, eta = {c.best_eta:.4g}, perturbed TD's fixed point is {error:.4g} "
        f"away from v_pi, whose size is {size:.4g}; no weights come closer than "
        f"{_zeroed(c.best_error, size):.4g}.",
        {"eta": c.best_eta, "error": error, "best_error": c.best_error, "size": size},
    )


def _bound_loose(c: Certificate) -> Finding | None:
    paper, exact = c.bounds["paper"], c.eta_pd
    if exact <= 0.0 or paper < LOOSE * exact:
        return None
    tight = c.bounds["numerical_range"]
    return Finding(
        "bound_loose",
        f"the theorem's bound asks for eta >= {paper:.4g}; exactly {exact:.4g} is needed. The "
        f"tightest bound that does not look at the features is {tight:.4g}.",
        {"paper": paper, "eta_pd": exact, "numerical_range": tight},
    )


def _rank_deficient(c: Certificate) -> Finding | None:
    if c.pencil.rank == c.problem.n_features:
        return None
    return Finding(
        "rank_deficient",
        f"the features have rank {c.pencil.rank} of {c.problem.n_features}: the values converge, "
        "the weights only on the row space; part of w0 stays as it is.",
        {"rank": c.pencil.rank, "features": c.problem.n_features},
    )


def _no_coverage(c: Certificate) -> Finding | None:
    missing = np.flatnonzero(~c.moments.visited)
    if not len(missing):
        return None
    shown = ", ".join(map(str, missing[:8])) + (", ..." if len(missing) > 8 else "")
    return Finding(
        "no_coverage",
        f"the behaviour policy does not return to {len(missing)} of {c.problem.n_states} states "
        f"({shown}): nothing is learned about them, and the error does not count them.",
        {"states": missing.tolist()},
    )


def candidates(c: Certificate) -> list[Candidate]:
    """The stable learners among td, tdc, perturbed_td and etd, with automatic parameters."""
    growth = follow_on_growth(c.problem, c.policy)
    found = []
    for text in ("td", "tdc:ratio=auto", "perturbed_td:eta=auto", "etd"):
        learner = c.resolved(text)
        rate = float(decay_rates(c.problem, learner, c.policy).real.min())
        if rate > 0.0:
            heavy = learner.name == "etd" and growth >= 1.0
            error = _zeroed(c.error(c.fixed_point(learner)), _norm(c, c.moments.v_pi))
            found.append(Candidate(learner, error, rate, heavy))
    return found


def _recommended(c: Certificate) -> Finding | None:
    """The least error; among equally good ones finite variance first, then speed."""
    possible = candidates(c)
    if not possible:
        return None
    least = min(p.error for p in possible)
    slack = CLOSE * least + SOME * (1.0 + _norm(c, c.moments.v_pi))
    good = [p for p in possible if p.error <= slack]
    best = min(good, key=lambda p: (p.infinite_variance, -p.rate))
    calm = [p for p in possible if not p.infinite_variance]
    if best.infinite_variance and calm:
        best = min(calm, key=lambda p: (p.error, -p.rate))
    learner = best.learner
    params = {k: v for k, v in learner.values.items() if k in learner.law.params and k != "lam"}
    shown = ", ".join(f"{k} = {v:.4g}" for k, v in params.items() if not isinstance(v, str))
    others = "; ".join(
        f"{p.learner.name} {p.error:.4g}{' (infinite variance)' if p.infinite_variance else ''}"
        for p in possible
        if p is not best
    )
    why = f"error of the fixed point {best.error:.4g}" + (f" (others: {others})" if others else "")
    return Finding(
        "recommended",
        f"use {learner.name}{f' with {shown}' if shown else ''}: {why}.",
        {
            "learner": learner.name,
            "params": {k: v for k, v in learner.values.items() if k in learner.law.params},
            "error": best.error,
            "rate": best.rate,
        },
    )
