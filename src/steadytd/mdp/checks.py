"""Checks of a problem's arrays. Every message names the place, the rule, the value, the remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steadytd.base.arrays import Bools, Floats, frozen
from steadytd.base.errors import InputError
from steadytd.mdp import chains, sparse

TOLERANCE = 1e-9  # how far a row of probabilities may be from sum 1
LARGEST = 1e100  # of a reward, feature, start weight or interest: squares must stay finite
SMALLEST = 1e-100  # of the largest entry of a feature that is not 0 everywhere


def array(name: str, values: ArrayLike, *dimensions: int) -> Floats:
    """The values as finite floats with one of the given numbers of dimensions."""
    try:
        result = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must be an array of numbers ({error}).") from None
    if dimensions and result.ndim not in dimensions:
        wanted = " or ".join(map(str, dimensions))
        raise InputError(f"{name} must have {wanted} dimensions, got shape {result.shape}.")
    if result.size == 0:
        raise InputError(f"{name} must not be empty, got shape {result.shape}.")
    if not np.isfinite(result).all():
        place = _place(~np.isfinite(result))
        where = f"{name}{list(place)}" if result.ndim else name
        raise InputError(f"{where} must be a finite number, got {result[place]}.")
    return result


def shape(name: str, values: Any, wanted: tuple[int, ...], axes: str) -> None:
    """The array has the wanted shape."""
    if values.shape != wanted:
        raise InputError(f"{name} must have shape {wanted} for {axes}, got {values.shape}.")


def between(name: str, values: Floats, low: float, high: float) -> None:
    """Every entry lies in [low, high]."""
    bad = (values < low) | (values > high)
    if bad.any():
        place = _place(bad)
        where = f"{name}{list(place)}" if values.ndim else name
        rule = f"between {low:g} and {high:g}" if np.isfinite(high) else f"at least {low:g}"
        raise InputError(f"{where} must be {rule}, got {values[place]:g}.")


def distributions(name: str, values: Floats) -> None:
    """Along the last axis the entries are probabilities that sum to 1."""
    if (values < 0.0).any():
        place = _place(values < 0.0)
        raise InputError(
            f"{name}{list(place)} is a probability and must not be negative, got {values[place]:g}."
        )
    off = np.abs(values.sum(axis=-1) - 1.0) > TOLERANCE
    if off.any():
        place = _place(off)
        total = values[place].sum()
        where = f"row {name}{list(place)}" if place else name
        raise InputError(
            f"{where} must sum to 1, its sum is {total:.12g}; "
            "divide it by its sum or add what is missing."
        )


def coverage(pi: Floats, mu: Floats) -> None:
    """mu takes every action that pi takes."""
    bad = (pi > 0.0) & (mu == 0.0)
    if bad.any():
        place = _place(bad)
        s, a = place[-2:]
        raise InputError(
            f"pi{list(place)} = {pi[place]:g} but mu[{s}, {a}] = 0: in state {s} the behaviour "
            f"policy never takes action {a}, so nothing can be learned about it; "
            f"give mu[{s}, {a}] > 0."
        )


def transitions(P: Any) -> Any:
    """P[s, a, s'], every P[s, a] a distribution; or a tuple of sparse matrices, one per action."""
    if chains.is_per_action(P):
        found = tuple(sparse.stored(one, f"P[{a}]") for a, one in enumerate(P))
        for a, one in enumerate(found):
            shape(f"P[{a}]", one, (found[0].shape[0],) * 2, "[s, s']")
            if one.nnz:
                between(f"P[{a}].data", array(f"P[{a}].data", one.data), 0.0, 1.0)
            distributions(f"P[{a}]", np.asarray(one.sum(axis=1))[:, None])
        return found
    values = array("P", P, 3)
    return probabilities("P", values, (*values.shape[:2], values.shape[0]), "[s, a, s']")


def probabilities(
    name: str, values: ArrayLike, wanted: tuple[int, ...], axes: str, *, several: bool = False
) -> Floats:
    """Distributions of the wanted shape, with a policy axis before it where several may come."""
    n = len(wanted)
    result = array(name, values, n, *([n + 1] if several else []))
    axes = f"{axes} or [policy, {axes[1:]}" if several else axes
    shape(name, result, (*result.shape[:-n], *wanted), axes)
    distributions(name, result)
    return frozen(result)


def rewards(
    values: ArrayLike, K: tuple[int, ...], S: int, A: int, *, sparse: bool = False
) -> Floats:
    """Rewards [.., s, a, s'] from a number, [s, a] or [s, a, s'], with or without policies.

    [s, a] where P is sparse.
    """
    result = array("r", values)
    if sparse:
        if result.shape not in {(), (S, A)}:
            raise InputError(
                f"r must be a number or have shape {(S, A)} for [s, a], since P is sparse, got "
                f"{result.shape}."
            )
        between("r", result, -LARGEST, LARGEST)
        return frozen(np.broadcast_to(result, (S, A)))
    if result.shape not in {(), (S, A), (S, A, S), (*K, S, A, S)}:
        raise InputError(
            f"r must have shape {(S, A, S)} for [s, a, s'] or {(S, A)} for [s, a]"
            f"{f' or {(*K, S, A, S)} with a policy axis' if K else ''}, got {result.shape}."
        )
    between("r", result, -LARGEST, LARGEST)
    if result.shape == (S, A):
        result = result[..., None]
    return frozen(np.broadcast_to(result, (*K, S, A, S)))


def discounts(
    values: ArrayLike, K: tuple[int, ...], S: int, A: int, *, sparse: bool = False
) -> Floats:
    """Discounts as given: a number, [s'] or [s, a, s'], the arrays with or without policies.

    A number or [s'] where P is sparse.
    """
    result = array("gamma", values)
    if sparse and result.shape not in {(), (S,)}:
        raise InputError(
            f"gamma must be a number or have shape {(S,)} for [s'], since P is sparse, got "
            f"{result.shape}."
        )
    if result.shape not in {(), (S,), (S, A, S), (*K, S), (*K, S, A, S)}:
        raise InputError(
            f"gamma must be a number, or have shape {(S,)} for [s'] or {(S, A, S)} for [s, a, s']"
            f"{f', or {(*K, S)}, {(*K, S, A, S)} with a policy axis' if K else ''}, "
            f"got {result.shape}."
        )
    between("gamma", result, 0.0, 1.0)
    return frozen(result)


def undiscounted(gamma: Floats, interest: Floats) -> None:
    """What the average reward asks for: no discount, and states weighted by d_mu alone."""
    for name, values, why in (
        ("gamma", gamma, "an endless stream has no ends; let an episode lead to a start state"),
        ("interest", interest, "the mean value under d_mu fixes the constant"),
    ):
        bad = values != 1.0
        if bad.any():
            place = _place(bad)
            raise InputError(
                f"{name}{list(place) if values.ndim else ''} must be 1 with average_reward=True, "
                f"got {values[place]:g}: {why}."
            )


def per_transition(gamma: Floats, full: tuple[int, ...]) -> Floats:
    """Discounts as [.., s, a, s']."""
    if gamma.ndim == 2:  # [policy, s']
        gamma = gamma[:, None, None, :]
    return np.broadcast_to(gamma, full)


def features(values: Any, S: int) -> Any:
    """Phi[s, k], an array or a SciPy sparse matrix, which stays one."""
    if sparse.is_sparse(values):
        return _sparse_features(values, S)
    result = array("Phi", values, 2)
    shape("Phi", result, (S, result.shape[1]), "[s, k]")
    usable_sizes("Phi", result)
    return frozen(result)


def _sparse_features(values: Any, S: int) -> Any:
    result = sparse.stored(values)
    shape("Phi", result, (S, result.shape[1]), "[s, k]")
    if result.shape[1] == 0:
        raise InputError(f"Phi must not be empty, got shape {result.shape}.")
    bad = ~(np.abs(result.data) <= LARGEST)
    if bad.any():
        (q,) = _place(bad)
        s = int(np.searchsorted(result.indptr, q, side="right")) - 1
        rule = f"between {-LARGEST:g} and {LARGEST:g}"
        rule = rule if np.isfinite(result.data[q]) else "a finite number"
        where = f"Phi[{s}, {result.indices[q]}]"
        raise InputError(f"{where} must be {rule}, got {result.data[q]:g}.")
    _not_too_small("Phi", sparse.largest_entries(result))
    return result


def usable_sizes(name: str, Phi: Floats) -> None:
    """No feature is so large or so small that products of two of them overflow or vanish."""
    between(name, Phi, -LARGEST, LARGEST)
    _not_too_small(name, sparse.largest_entries(Phi))


def _not_too_small(name: str, largest: Floats) -> None:
    small = (largest > 0.0) & (largest < SMALLEST)
    if small.any():
        (k,) = _place(small)
        raise InputError(
            f"feature {k} of {name} must be 0 everywhere or reach {SMALLEST:g}, its largest entry "
            f"is {largest[k]:.3g}: its square would vanish; use another unit for it."
        )


def start_weights(values: ArrayLike | None, d: int) -> Floats:
    """w0[k], zero by default."""
    result = array("w0", np.zeros(d) if values is None else values, 1)
    shape("w0", result, (d,), "[k]")
    between("w0", result, -LARGEST, LARGEST)
    return frozen(result)


def _per_state(name: str, values: ArrayLike | None, K: tuple[int, ...], S: int) -> Floats:
    """Numbers [s] or [policy, s], one by default."""
    result = array(name, np.ones(S) if values is None else values)
    if result.shape not in {(S,), (*K, S)}:
        raise InputError(
            f"{name} must have shape {(S,)} for [s]"
            f"{f' or {(*K, S)} with a policy axis' if K else ''}, got {result.shape}."
        )
    return result


def interest(values: ArrayLike | None, K: tuple[int, ...], S: int) -> Floats:
    """Interest [.., s] from [s] or [policy, s], one by default."""
    result = _per_state("interest", values, K, S)
    between("interest", result, 0.0, LARGEST)
    return frozen(np.broadcast_to(result, (*K, S)))


def active(values: ArrayLike | None, K: tuple[int, ...], S: int) -> Bools:
    """Active states [.., s] from [s] or [policy, s], all by default."""
    result = _per_state("active", values, K, S)
    bad = (result != 0.0) & (result != 1.0)
    if bad.any():
        place = _place(bad)
        raise InputError(f"active{list(place)} must be true or false, got {result[place]:g}.")
    idle = ~(result == 1.0).any(axis=-1)
    if idle.any():
        which = f" of policy {_place(idle)[0]}" if result.ndim == 2 else ""
        raise InputError(f"active{which} has no true entry, so nothing would be learned; give one.")
    return frozen(np.broadcast_to(result == 1.0, (*K, S)), np.bool_)


def all_active(active: Bools) -> None:
    """Every state is active, as it must be where P is sparse."""
    if not active.all():
        place = _place(~active)
        raise InputError(
            f"active{list(place)} must be true, since P is sparse; leave `active` out, or give P "
            "as one array [s, a, s']."
        )


def ends_where_inactive(active: Bools, P: Floats, mu: Floats, gamma: Floats) -> None:
    """Every step that mu can make from an active state into an inactive one has discount 0.

    `gamma` is [.., s, a, s'].
    """
    if active.all():
        return
    leaves = active[..., :, None, None] & ~active[..., None, None, :]
    bad = leaves & (mu[:, :, None] * P > 0.0) & (gamma > 0.0)
    if bad.any():
        place = _place(bad)
        s, a, s_next = place[-3:]
        which = f" for policy {place[0]}" if active.ndim == 2 else ""
        raise InputError(
            f"gamma{list(place)} must be 0, got {gamma[place]:g}: the step from state {s} (active"
            f"{which}) by action {a} to state {s_next} (not active) would carry values and "
            "traces through states in which nothing is learned. End the episode there with "
            f"discount 0, or make state {s_next} active."
        )


def _place(bad: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> tuple[int, ...]:
    """The first index at which the mask is set."""
    return tuple(int(i) for i in np.argwhere(bad)[0])
