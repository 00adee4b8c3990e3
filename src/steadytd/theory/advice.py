"""Findings in plain words: what the certificate's numbers mean for somebody who wants to learn."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from steadytd.base.finding import Finding
from steadytd.theory.analysis import CLOSE, SOME, Analysis, zeroed
from steadytd.theory.choose import least_penalty
from steadytd.theory.margin import STEEP
from steadytd.theory.recommend import recommended

MATTERS = 0.1  # a reversed mode counts from this share of the value function's norm on


def advise(c: Analysis) -> list[Finding]:
    """All findings that apply, the verdict on plain TD first, the recommendation last."""
    found = [
        _td(c),
        _sign_reversal(c),
        _near_pole(c),
        _bias(c),
        _bound_loose(c),
        _rank_deficient(c),
        _no_coverage(c),
        recommended(c),
    ]
    return [finding for finding in found if finding is not None]


def advise_on(c: Analysis, eta: float) -> list[Finding]:
    """What to know about one penalty."""
    row = c.path([eta]).row(0, named=True)
    found = []
    if not row["stable"]:
        found.append(
            Finding(
                "eta_unstable",
                text=f"eta = {eta:g} does not stabilise the mean update: perturbed TD grows "
                f"without bound. Every eta above {c.eta_hurwitz:.4g} is stable.",
                numbers={"eta": eta, "eta_hurwitz": c.eta_hurwitz},
            )
        )
    elif found_close := _too_close(c, eta):
        found.append(found_close)
    return found


def _too_close(c: Analysis, eta: float) -> Finding | None:
    """Why eta=auto would not choose this stable penalty, whatever its error."""
    path = c.penalties
    if path.is_clear(eta):
        return None
    move = path.steepness(eta)
    if move > STEEP:
        pole = next((p for p in path.poles if path.near(eta, (p, p))), None)
        where = "on a steep stretch" if pole is None else f"close to the pole at {pole:.4g}"
        return Finding(
            "near_pole",
            text=f"eta = {eta:g} is {where}: a change of eta by 1 % moves the values by {move:.3g} "
            "of their norm. Choose another eta.",
            numbers={"eta": eta, "pole": pole, "move_per_percent": move},
        )
    ends = [end for interval in path.unstable for end in interval]
    end = min(ends, key=lambda e: abs(e - eta), default=eta)  # none: a scan missed it
    return Finding(
        "near_crossing",
        text=f"eta = {eta:g} is close to {end:.4g}, where the mean update becomes unstable: it is "
        "stable, but one mode hardly decays. Choose another eta.",
        numbers={"eta": eta, "crossing": end},
    )


def _td(c: Analysis) -> Finding:
    if c.td_stable:
        size = c.norm(c.moments.v_pi)
        error = zeroed(c.error(c.pencil.fixed_point(0.0)), size)
        with_penalty = c.error(c.pencil.fixed_point(c.best_eta))
        helps = with_penalty < error / CLOSE
        return Finding(
            "td_stable",
            text="off-policy TD is stable here as it is: no penalty is needed"
            + (", it would only add bias. " if not helps else " for that. ")
            + f"TD's fixed point has error {error:.4g}, "
            + f"the best linear fit {zeroed(c.best_error, size):.4g}"
            + (f", perturbed TD with eta = {c.best_eta:.4g} {with_penalty:.4g}." if helps else "."),
            numbers={"td_error": error, "best_error": c.best_error},
        )
    slowest = c.pencil.slowest(0.0)
    return Finding(
        "td_unstable",
        text=f"off-policy TD diverges: its mean update has a mode that grows at rate "
        f"{-slowest:.4g} per unit of alpha. Perturbed TD is stable for every eta above "
        f"{c.eta_hurwitz:.4g}, and its matrix is positive definite, as the theorem asks, "
        f"from {c.eta_pd:.4g} on.",
        numbers={"growth_rate": -slowest, "eta_hurwitz": c.eta_hurwitz, "eta_pd": c.eta_pd},
    )


def _sign_reversal(c: Analysis) -> Finding | None:
    """A real mode l < 0 of G^-1 A_0 whose part of the values comes out with the wrong sign."""
    m, pencil = c.moments, c.pencil
    size = c.norm(m.v_pi)
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
        share = abs(true) * c.norm(np.abs(m.Phi @ pencil.Q @ vector)) / size
        if real and share >= MATTERS and (true * np.conj(learned)).real < -SOME:
            factor = float((learned / true).real)
            return Finding(
                "sign_reversal",
                text="perturbed TD returns the wrong sign: the part of the value function along an "
                f"unstable mode ({share:.0%} of its size) is multiplied by {factor:.3g} at the "
                f"best penalty, eta = {c.best_eta:.4g}, and by a negative number at every penalty "
                "that stabilises it. Use a learner without this bias.",
                numbers={"mode": float(mode.real), "share": float(share), "factor": factor,
                 "eta": c.best_eta},
            )  # fmt: skip
    return None


def _near_pole(c: Analysis) -> Finding | None:
    """The stretch of stable penalties in which perturbed TD is worse than predicting zero."""
    poles = [p for p in c.poles if c.pencil.is_stable(p + 1e-6 * (1.0 + p))]
    if not c.b.any() or not poles:
        return None
    pole = max(poles)
    zero = c.error(np.zeros(c.problem.n_features))
    grid = pole + np.geomspace(1e-4, 10.0, 400)
    errors = np.array([c.error(c.pencil.fixed_point(eta)) for eta in grid])
    if errors[0] <= zero:
        return None
    better = np.flatnonzero(errors <= zero)
    until = float(grid[better[0] - 1 if len(better) else -1])
    clear = c.penalties.edge_above(pole)
    return Finding(
        "near_pole",
        text=f"w(eta) has a pole at {pole:.4g}: stable penalties just above it are the worst "
        f"choice. From the pole up to {until:.3g}{'' if len(better) else ' at least'} perturbed TD "
        f"is worse than predicting zero everywhere (error {zero:.4g}). eta=auto takes no penalty "
        f"between the pole and {clear:.4g}.",
        numbers={
            "pole": pole,
            "worse_than_zero_until": until,
            "error_of_zero": zero,
            "clear_from": clear,
        },
    )


def _bias(c: Analysis) -> Finding | None:
    size = c.norm(c.moments.v_pi)
    if size == 0.0:
        return None
    error = zeroed(c.error(c.pencil.fixed_point(c.best_eta)), size)
    eta = least_penalty(c.problem, c.penalties, c.policy, clear=False)
    least = c.error(c.pencil.fixed_point(eta))
    text = (
        f"at its best penalty, eta = {c.best_eta:.4g}, perturbed TD's fixed point is {error:.4g} "
        f"away from v_pi, whose size is {size:.4g}; no weights come closer than "
        f"{zeroed(c.best_error, size):.4g}."
    )
    if error > CLOSE * least + SOME * (1.0 + size):
        text += (
            f" At eta = {eta:.6g} it would be {least:.4g}, but that is too close to a penalty "
            "with a pole or without stability to rely on."
        )
    return Finding(
        "bias",
        text=text,
        numbers={"eta": c.best_eta, "error": error, "best_error": c.best_error, "size": size,
         "least_eta": eta, "least_error": least},
    )  # fmt: skip


def _bound_loose(c: Analysis) -> Finding | None:
    """The paper's bound, where a penalty is needed and this one spoils the fixed point.

    It is always at least twice eta_pd, so a factor says little: what it costs in error counts.
    """
    paper, exact = c.bounds["paper"], c.eta_pd
    if c.td_stable or not c.b.any():
        return None
    there, best = (c.error(c.pencil.fixed_point(eta)) for eta in (paper, c.best_eta))
    if there <= CLOSE * best:
        return None
    tight = c.bounds["numerical_range"]
    return Finding(
        "bound_loose",
        text=f"the theorem's bound asks for eta >= {paper:.4g}; exactly {exact:.4g} is needed, and "
        f"the tightest bound that does not look at the features is {tight:.4g}. With the theorem's "
        f"eta the error is {there:.4g}, at the best penalty, eta = {c.best_eta:.4g}, {best:.4g}.",
        numbers={"paper": paper, "eta_pd": exact, "numerical_range": tight, "error": there,
         "best_error": best},
    )  # fmt: skip


def _rank_deficient(c: Analysis) -> Finding | None:
    if c.pencil.rank == c.problem.n_features:
        return None
    return Finding(
        "rank_deficient",
        text=f"the features have rank {c.pencil.rank} of {c.problem.n_features}: the values "
        "converge, the weights only on the row space; part of w0 stays as it is.",
        numbers={"rank": c.pencil.rank, "features": c.problem.n_features},
    )


def _no_coverage(c: Analysis) -> Finding | None:
    missing = np.flatnonzero(c.problem.active_in(c.policy) & ~c.moments.visited)
    if not len(missing):
        return None
    shown = ", ".join(map(str, missing[:8])) + (", ..." if len(missing) > 8 else "")
    return Finding(
        "no_coverage",
        text=f"the behaviour policy does not return to {len(missing)} of {c.problem.n_states} "
        f"states ({shown}): nothing is learned about them, and the error does not count them.",
        numbers={"states": missing.tolist()},
    )
