"""Findings in plain words: what the certificate's numbers mean for somebody who wants to learn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from steadytd.base.finding import Finding
from steadytd.base.numbers import LARGEST_COUNT, about, number
from steadytd.mdp.scales import ROUNDING, SAME, zeroed
from steadytd.theory.analysis import Analysis, LearnersOn
from steadytd.theory.cure import CLOSE, STEEP
from steadytd.theory.recommend import horizon, off_by_two, recommended
from steadytd.theory.thresholds import solution

_TOO_CLOSE = "too close to a pole or to an unstable one."
NO_BASIS = 1e8  # condition number of the eigenvectors from which on they are no basis
NEARLY = 1e6  # condition number, with columns of length 1, from which on rounding shows
BY_ITERATION = ("d_mu", "v_pi", "follow_on", "operator_norm", "numerical_range")
MATTERS = 0.1  # a reversed mode counts from this share of the value function's norm on


def advise(c: Analysis) -> list[Finding]:
    """All findings that apply, the verdict on plain TD first, the recommendation last."""
    use = recommended(c)
    found = [
        _td(c, None if use is None else use.numbers["alpha"]),
        _sign_reversal(c, c.best_eta),
        _near_pole(c),
        _knife_edge(c),
        _bias(c),
        _bound_loose(c),
        rank_deficient(c),
        nearly_dependent(c),
        _nearly_defective(c),
        no_coverage(c),
        _by_iteration(c),
        use,
    ]
    return [finding for finding in found if finding is not None]


def advise_on(c: Analysis, eta: float) -> list[Finding]:
    """What to know about one penalty."""
    row = c.path([eta]).row(0, named=True)
    if not row["stable"]:
        return [
            Finding(
                "eta_unstable",
                text=f"eta = {number(eta, 6)} does not stabilise the mean update: one of its modes "
                "does not decay. Every eta above "
                f"{threshold(c.eta_hurwitz)} is stable{_as_far(c)}.",
                numbers={"eta": eta, "eta_hurwitz": c.eta_hurwitz},
            )
        ]
    found = [_too_close(c, eta) or _balanced(c, eta), _sign_reversal(c, eta)]
    return [finding for finding in found if finding is not None]


def _as_far(c: Analysis) -> str:
    """The proviso where the unstable penalties were found by a scan."""
    return "" if c.pencil.exact else ", as far as a scan of the penalties shows"


def _too_close(c: Analysis, eta: float) -> Finding | None:
    """Why eta=auto would not choose this stable penalty, whatever its error is."""
    path = c.penalties
    if path.is_clear(eta):
        return None
    move = path.steepness(eta)
    if move > STEEP:
        pole = next((p for p in path.poles if path.is_near(eta, (p, p))), None)
        where = "on a steep stretch" if pole is None else f"close to the pole at {number(pole)}"
        return Finding(
            "near_pole",
            text=f"eta = {number(eta, 6)} is {where}: a change of eta by 1 % moves the values by "
            f"{number(move, 3)} of their norm. Choose another eta.",
            numbers={"eta": eta, "pole": pole, "move_per_percent": move},
        )
    ends = [end for interval in path.unstable for end in interval]
    end = min(ends, key=lambda e: abs(e - eta), default=eta)  # none: a scan missed it
    return Finding(
        "near_crossing",
        text=f"eta = {number(eta, 6)} is close to {number(end)}, where the mean update becomes "
        "unstable: it is stable, but one mode hardly decays. Choose another eta.",
        numbers={"eta": eta, "crossing": end},
    )


def _td(c: Analysis, alpha: float | None) -> Finding:
    """The verdict on plain TD, with the horizon of its instability at the recommended alpha."""
    if c.td_stable:
        error = zeroed(c.error(c.pencil.fixed_point(0.0)), c.scale)
        least = c.penalties.automatic(clear=False)
        with_penalty = c.error(c.pencil.fixed_point(c.best_eta))
        lower = c.error(c.pencil.fixed_point(least)) < error / CLOSE
        end = "no penalty up to the theorem's bound lowers that by more than 5 %."
        if lower:
            end = f"perturbed TD with eta=auto, {number(c.best_eta)}, has {number(with_penalty)}."
        return Finding(
            "td_stable",
            text="the mean update of off-policy TD is stable here. Its fixed point has error "
            f"{number(error)}, "
            f"the best linear fit {number(zeroed(c.best_error, c.scale))}; {end}",
            numbers={"td_error": error, "best_error": c.best_error},
        )
    rate = max(0.0, -c.pencil.slowest(0.0))
    mode = f"that grows at rate {number(rate)} per unit of alpha" if rate else "that does not decay"
    numbers: dict[str, Any] = {
        "growth_rate": rate,
        "eta_hurwitz": c.eta_hurwitz,
        "eta_pd": c.eta_pd,
    }
    until = ""
    if rate and alpha is not None:
        modes = np.linalg.eigvals(c.pencil.A0)
        steps = horizon(modes[[modes.real.argmin()]], alpha)
        until = (
            f"At alpha = {number(alpha)} it grows a hundredfold in {about(steps, 'step')}; a much "
            "shorter run may not show it. "
        )
        known = int(steps) if steps <= LARGEST_COUNT else None
        numbers |= {"alpha": alpha, "growth_steps": known}
    return Finding(
        "td_unstable",
        text=f"off-policy TD is unstable: its mean update, which runs with small steps follow, has "
        f"a mode {mode}. {until}Perturbed TD's mean update is stable for every eta "
        f"above {threshold(c.eta_hurwitz)}{_as_far(c)}. Its matrix is positive definite, as the "
        f"theorem asks, from {threshold(c.eta_pd)} on.",
        numbers=numbers,
    )


def threshold(eta: float) -> str:
    """A penalty at which a verdict changes; 0 where it is rounding.

    >>> threshold(0.41428571), threshold(4.4e-17)
    ('0.4143', '0')
    """
    return number(eta if abs(eta) > ROUNDING else 0.0)


def _sign_reversal(c: Analysis, eta: float) -> Finding | None:
    """A real mode l < 0 of G^-1 A_0 whose part of the values has the wrong sign at this penalty.

    The part of w(eta) along the mode is a constant divided by l + eta: for all eta > -l it has one
    sign, for all eta < -l, TD's own eta = 0 among them, the other.
    """
    m, pencil = c.moments, c.pencil
    size = c.norm(m.v_pi)
    if size == 0.0 or pencil.at_pole(eta):
        return None
    modes, vectors, _ = pencil.eigen
    if np.linalg.cond(vectors) > NO_BASIS:
        return None
    wanted = c.best_fit
    reached = solution(pencil.A(eta), pencil.b)
    parts = np.linalg.lstsq(vectors, np.stack([wanted, reached], axis=1).astype(complex))[0]
    for mode, vector, (true, learned) in zip(modes, vectors.T, parts, strict=True):
        if abs(mode.imag) > SAME * (1.0 + abs(mode)) or not -eta < mode.real < 0.0:
            continue
        share = abs(true) * c.norm(np.abs(m.Phi @ pencil.Q @ vector)) / size
        factor = float((learned / true).real) if share >= MATTERS else 0.0
        if factor < -SAME:
            return Finding(
                "sign_reversal",
                text="perturbed TD returns the wrong sign: the part of the value function along "
                f"one mode ({share:.0%} of its size) is multiplied by {number(factor, 3)} at "
                f"eta = {number(eta)}, and by a negative number at every penalty above "
                f"{number(-mode.real)}. {_right_sign(c, float(-mode.real))}",
                numbers={"mode": float(mode.real), "share": float(share), "factor": factor,
                 "eta": eta},
            )  # fmt: skip
    return None


def _right_sign(c: Analysis, end: float) -> str:
    """Whether some stable penalty below `end`, where the sign is right, could be taken."""
    low, found = 0.0, []
    for left, right in [*c.unstable_etas, (end, end)]:
        if min(left, end) - low > SAME * (1.0 + end):
            found.append(f"{number(low)} and {number(min(left, end))}")
        low = max(low, right)
    if found:
        return f"Penalties that are stable and keep this sign lie between {', '.join(found)}."
    return f"No stable penalty lies below that{_as_far(c)}."


def _near_pole(c: Analysis) -> Finding | None:
    """The stretch of stable penalties in which perturbed TD is worse than predicting zero."""
    poles = [p for p in c.poles if c.pencil.is_stable(p + 1e-6 * (1.0 + p))]
    if not c.b.any() or not poles:
        return None
    pole = max(poles)
    zero = c.error(np.zeros(c.problem.n_features))
    far = max(1e-7, 2.0 * c.pencil.scatter[pole])  # nearer to it there is rounding
    times = 1e3 if far == 1e-7 else 2.0
    beside = np.geomspace(far, times * far, 30)
    grid = pole + np.concatenate([beside[:-1], np.geomspace(beside[-1], 10.0, 400)])
    errors = np.array([c.error(c.pencil.fixed_point(eta)) for eta in grid])
    worse = errors[: 30 if times == 1e3 else 1].min() > zero
    if not worse or errors[0] < times ** (2 / 3) * errors[29]:
        return None  # not worse than zero beside it, or b has no part there: no pole of w(eta)
    better = np.flatnonzero(errors <= zero)
    until = float(grid[better[0] - 1 if len(better) else -1])
    clear = c.penalties.edge_above(pole)
    avoided = f" eta=auto takes no penalty between the pole and {number(clear)}."
    if threshold(clear) == "0":
        avoided = ""
    return Finding(
        "near_pole",
        text=f"w(eta) has a pole at {threshold(pole)}: the error grows without bound towards it, "
        f"from stable penalties too. From the pole up to {number(until, 3)}"
        f"{'' if len(better) else ' at least'} perturbed TD is worse than predicting zero "
        f"everywhere (error {number(zero)}).{avoided}",
        numbers={
            "pole": pole,
            "worse_than_zero_until": until,
            "error_of_zero": zero,
            "clear_from": clear,
        },
    )


def _knife_edge(c: Analysis) -> Finding | None:
    """The penalty of least error, where it must be known exactly to be of any use."""
    eta = c.penalties.knife_edge
    if eta is None:
        return None
    found = _balanced(c, eta)
    assert found is not None
    chosen, off = c.penalties.error(c.best_eta), c.penalties.off_by_two(c.best_eta)
    return replace(
        found,
        text=f"{found.text} eta=auto takes {number(c.best_eta)}, with error {number(chosen)}, "
        f"{off_by_two(c)}. Of the penalties that are not close to a pole or to an unstable one, it "
        "has the least such error.",
        numbers={**found.numbers, "chosen": c.best_eta, "chosen_error": chosen, "chosen_off": off},
    )


def _balanced(c: Analysis, eta: float) -> Finding | None:
    """Whether a stable penalty is on a knife edge."""
    if not c.penalties.on_knife_edge(eta):
        return None
    beside = [
        f"{word} it has {number(c.penalties.error(e))}"
        for word, e in (("half of", eta / 2.0), ("twice", 2.0 * eta))
        if c.penalties.stable(e)
    ]
    return Finding(
        "knife_edge",
        text=f"eta = {number(eta)} is on a knife edge: its error is "
        f"{number(c.penalties.error(eta))}, but {' and '.join(beside)}.",
        numbers={"eta": eta, "error": c.penalties.error(eta), "off": c.penalties.off_by_two(eta)},
    )


def _bias(c: Analysis) -> Finding | None:
    size = c.error(np.zeros(c.problem.n_features))  # weighted by interest, as the error is
    if size == 0.0:
        return None
    error = zeroed(c.error(c.pencil.fixed_point(c.best_eta)), c.scale)
    eta = c.penalties.automatic(clear=False)
    least = c.error(c.pencil.fixed_point(eta))
    text = (
        f"with the penalty that eta=auto takes, {number(c.best_eta)}, perturbed TD's fixed point "
        f"is {number(error)} away from v_pi, whose size is {number(size)}; no weights come closer "
        f"than {number(zeroed(c.best_error, c.scale))}."
    )
    if error > CLOSE * least + SAME * c.scale:
        shorter = (f"{eta:.{digits}g}" for digits in range(6, 17))
        short = next(  # as many digits as the verdict and the error need
            (s for s in shorter if c.penalties.stable(x := float(s))
             and c.penalties.error(x) <= 1.0001 * least), str(eta),
        )  # fmt: skip
        text += f" At eta = {short} it would be {number(least)}, but that penalty is " + (
            "on a knife edge." if c.penalties.is_clear(eta) else _TOO_CLOSE
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
        text=f"the theorem's bound asks for eta >= {number(paper)}. Its condition, a positive "
        f"definite matrix, already holds from {threshold(exact)} on; the tightest bound that does "
        f"not use the features is {number(tight)}. With the theorem's eta the error is "
        f"{number(there)}; with {number(c.best_eta)}, which eta=auto takes, it is {number(best)}.",
        numbers={"paper": paper, "eta_pd": exact, "numerical_range": tight, "error": there,
         "best_error": best},
    )  # fmt: skip


def rank_deficient(c: LearnersOn) -> Finding | None:
    """Features of which some are combinations of others."""
    if c.rank == c.problem.n_features:
        return None
    return Finding(
        "rank_deficient",
        text=f"the features of the states that mu visits have rank {c.rank} of "
        f"{c.problem.n_features}: all statements are about the values. In the long run only the "
        "part of the weights in the row space changes; the rest of w0 stays as it is.",
        numbers={"rank": c.rank, "features": c.problem.n_features},
    )


def nearly_dependent(c: LearnersOn) -> Finding | None:
    """Features that are so close to dependent that rounding shows in the numbers."""
    condition = c.moments.span.condition
    if condition < NEARLY:
        return None
    lost = int(np.ceil(np.log10(condition)))
    return Finding(
        "nearly_dependent",
        text="the features of the states that mu visits are nearly dependent: with columns of "
        f"length 1 their condition number is {number(condition, 2)}, and rounding may cost the "
        f"errors and penalties here about {lost} of their 16 digits. Leave out a feature, or "
        "combine the features so that they differ more.",
        numbers={"condition": condition, "digits_lost": lost},
    )


def _nearly_defective(c: Analysis) -> Finding | None:
    """Eigenvalues that rounding moves so far that poles and thresholds are not exact."""
    _, vectors, moved = c.pencil.eigen
    if not c.pencil.blurred:
        return None
    condition = float(np.linalg.cond(vectors))
    return Finding(
        "nearly_defective",
        text="eigenvalues of G^-1 A_0 nearly coincide, and so do their eigenvectors: these have "
        f"the condition number {number(condition, 1)}, and rounding may move an eigenvalue by "
        f"{number(moved.max(), 1)}. Eigenvalues that rounding may have separated count as one "
        "pole, at their mean. The thresholds come from a scan of the penalties.",
        numbers={"condition": condition, "moved": float(moved.max())},
    )


def no_coverage(c: LearnersOn) -> Finding | None:
    """States to which the behaviour policy does not return."""
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


def _by_iteration(c: Analysis) -> Finding | None:
    """How exactly the numbers are known, and what is not there, where P is sparse."""
    m = c.moments
    if not m.sparse:
        return None
    _ = m.v_pi, m.follow_on, m.operator_norm, m.numerical_range
    known = {name: m.accuracy[name] for name in BY_ITERATION}
    stationary, values, emphasis, *norms = (f"{x:.0e}" for x in known.values())
    return Finding(
        "by_iteration",
        text="P is sparse, and no matrix of all pairs of states was made. Iterations found the "
        f"stationary distribution d, whose |d P - d| sums to {stationary}, and v_pi, which is off "
        f"by at most {values} of its largest value. They found the mean of ETD's trace, off by at "
        f"most {emphasis} of its largest, and two norms of P_gamma, with residuals {norms[0]} and "
        f"{norms[1]}. Left out are cures, proofs, values of single states, and learners whose "
        "closed form needs that matrix.",
        numbers=known,
    )
