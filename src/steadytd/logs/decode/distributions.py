"""Policies that are known as a whole: probabilities of all actions, from columns or functions."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadytd.base.arrays import Bools, Floats, Longs, read_only
from steadytd.base.errors import InputError, users_own
from steadytd.base.wording import count
from steadytd.logs.columns import BEHAVIOR_WHOLE, NEXT_WHOLE, WHOLE
from steadytd.logs.decode import arrays, checks
from steadytd.logs.decode.meaning import Meaning, Policy
from steadytd.logs.faults import Place, fault, first_true
from steadytd.logs.sources.source import LogSource

OF_BEHAVIOR = ""  # where policies go by name, the behaviour policy's


def with_distributions(source: LogSource, meaning: Meaning) -> Meaning:
    """The meaning with the policies that are known as a whole, and how many actions there are."""
    c, file = meaning.columns, source.files[0]
    sizes = {WHOLE + name: _size(source, names) for name, names in c.whole.items()}
    sizes |= {NEXT_WHOLE + name: _size(source, names) for name, names in c.next_whole.items()}
    if c.behavior_whole:
        sizes[BEHAVIOR_WHOLE] = _size(source, c.behavior_whole)
    if sizes:
        meaning.need_actions(file, f"'{next(iter(sizes))}' has the probabilities of all actions")
    first = _first(source, meaning) if meaning.policies or meaning.behavior else None
    called = {
        name: _returned(policy, label(name), first) for name, policy in meaning.policies.items()
    }
    sizes |= {label(name): n for name, n in called.items()}
    behaves = 0
    if meaning.behavior is not None:
        behaves = _returned(meaning.behavior, label(OF_BEHAVIOR), first)
    sizes[label(OF_BEHAVIOR)] = behaves
    sizes = {name: n for name, n in sizes.items() if n}
    for name, n in sizes.items():
        if n != next(iter(sizes.values())):
            raise InputError(
                f"{file}: {next(iter(sizes))} has {next(iter(sizes.values()))} actions, but {name} "
                f"has {n}; give every policy one probability for each action."
            )
    if NEXT_WHOLE in "".join(sizes) and (lone := set(c.next_whole) - set(c.whole)):
        raise InputError(
            f"{file}: there is '{NEXT_WHOLE}{min(lone)}' but no '{WHOLE}{min(lone)}'; give the "
            "probabilities of all actions in both."
        )
    return replace(
        meaning,
        actions=next(iter(sizes.values()), 0),
        whole=tuple(n for n in meaning.targets if n in c.whole or called.get(n)),
        behavior_whole=bool(behaves) if meaning.behavior is not None else bool(c.behavior_whole),
    )


def _size(source: LogSource, names: Sequence[str]) -> int:
    """How many numbers a distribution has; 0: not known from the schema or the first row."""
    kind = source.schemas[0].field(names[0]).type
    if len(names) > 1 or not arrays.is_list(kind):
        return len(names)
    kind = getattr(kind, "storage_type", kind)
    size = int(getattr(kind, "list_size", -1))
    if size < 0:
        for chunk in source.read(names, 0, 1, 1):
            size = len(chunk.batch.column(names[0])[0].as_py() or ())
    return max(size, 0)


def label(name: str) -> str:
    """How a sentence speaks of a policy."""
    return f"the target '{name}'" if name != OF_BEHAVIOR else "the behaviour policy"


class AskedAt(NamedTuple):
    """Observations at which a policy is asked, and where their rows begin."""

    obs: NDArray[Any]
    place: Place


def _first(source: LogSource, meaning: Meaning) -> AskedAt:
    """The log's first observation."""
    names = meaning.columns.obs
    chunk = next(iter(source.read(names, 0, 1, 1)))
    columns = [chunk.batch.column(name) for name in names]
    obs = arrays.matrix(columns, names, chunk.place, meaning.width).astype(meaning.dtype)
    return AskedAt(obs, chunk.place)


def _returned(policy: Policy, what: str, first: AskedAt | None) -> int:
    """How many actions a function of observations alone knows; 0: it is one of actions, too."""
    try:
        parameters = inspect.signature(policy).parameters.values()
    except (TypeError, ValueError):
        return 0
    by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in by_place if p.default is p.empty]
    several = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(needed) > 1 or several:
        return 0
    assert first is not None
    found = _answer(policy, what, first)
    if found.ndim == 2 and len(found) == 1:
        return int(found.shape[1])
    if len(by_place) > 1:
        return 0
    raise InputError(
        f"{what} is a function of observations [n, k] alone, so it must return the probabilities "
        f"of all actions, an array [n, actions], got the shape {found.shape} for one observation; "
        "a function of (obs, action) may return [n], the logged action's probability."
    )


class RowsSoFar(NamedTuple):
    """What is known of rows before their probabilities."""

    batch: Any
    obs: NDArray[Any]
    action: NDArray[Any] | None
    place: Place


def distributions(rows: RowsSoFar, meaning: Meaning, fields: frozenset[str]) -> dict[str, Floats]:
    """Probabilities [n, actions] by policy: of all that are known, or of those needed."""
    c = meaning.columns
    found: dict[str, Floats] = {}
    targets = bool({"probs", "target_prob"} & fields)
    for name in meaning.whole:
        if name in meaning.policies:
            if targets:
                asked_at = AskedAt(rows.obs, rows.place)
                found[name] = asked(meaning.policies[name], label(name), asked_at, meaning.actions)
                checks.distribution(found[name], WHOLE + name, rows.place)
        elif "probs" in fields or name in meaning.picked(fields):
            found[name] = _column(rows, c.whole[name], meaning.actions)
    if meaning.behavior_whole and {"probs", "behavior_prob"} & fields:
        if meaning.behavior is not None:
            asked_at = AskedAt(rows.obs, rows.place)
            found[OF_BEHAVIOR] = asked(
                meaning.behavior, label(OF_BEHAVIOR), asked_at, meaning.actions
            )
            checks.distribution(found[OF_BEHAVIOR], BEHAVIOR_WHOLE, rows.place)
        elif "probs" in fields or meaning.picks_behavior(fields):
            found[OF_BEHAVIOR] = _column(rows, c.behavior_whole, meaning.actions)
    return found


def _column(rows: RowsSoFar, names: Sequence[str], actions: int) -> Floats:
    columns = [rows.batch.column(name) for name in names]
    values = arrays.matrix(columns, names, rows.place, actions, "probabilities")
    checks.distribution(values, names[0], rows.place)
    return values.astype(np.float64, copy=False)


class Ends(NamedTuple):
    """Where the rows of a batch lead."""

    next_obs: NDArray[Any] | None
    has_next: Bools | None
    first: Bools
    discount: Floats


def next_distributions(rows: RowsSoFar, meaning: Meaning, ends: Ends) -> Floats:
    """Probabilities [n, policies, actions] at the next observations; NaN where not known.

    A function is asked where a row's next observation is not that of the following row.
    """
    found = np.full((len(rows.obs), meaning.policies_known, meaning.actions), np.nan)
    functions = {name: meaning.policies.get(name) for name in meaning.whole}
    functions |= {OF_BEHAVIOR: meaning.behavior} if meaning.behavior_whole else {}
    at = _leading_away(rows.obs, ends) if any(functions.values()) else np.empty(0, np.int64)
    for p, (name, policy) in enumerate(functions.items()):
        columns = meaning.columns.next_whole.get(name, ())
        if policy is not None and len(at) and ends.next_obs is not None:
            obs = ends.next_obs[at].astype(meaning.dtype, copy=False)
            asked_at = AskedAt(obs, rows.place)
            found[at, p] = asked(policy, label(name), asked_at, meaning.actions)
            use = np.zeros(len(found), dtype=np.bool_)
            use[at] = True
            checks.distribution(found[:, p], NEXT_WHOLE + name, rows.place, use)
        elif policy is None and columns:
            given = [rows.batch.column(column) for column in columns]
            values, known = arrays.optional(
                given, columns, rows.place, meaning.actions, "probabilities"
            )
            if values is not None:
                checks.distribution(values, columns[0], rows.place, known)
                found[known, p] = values[known]
    return found


def _leading_away(obs: NDArray[Any], ends: Ends) -> Longs:
    """The rows whose next observation is given and is not the following row's."""
    if ends.next_obs is None or ends.has_next is None:
        return np.empty(0, dtype=np.int64)
    away = ends.has_next & (ends.discount != 0.0)
    same = (ends.next_obs[:-1] == obs[1:]).all(axis=1)
    away[:-1] &= ~(same & ~ends.first[1:])
    return np.flatnonzero(away)


def _answer(policy: Policy, what: str, asked_at: AskedAt, *actions: NDArray[Any]) -> NDArray[Any]:
    """What a user's function returns, as an array. It sees the log, and cannot change it."""
    obs, place = asked_at
    asked_about = f"{count(len(obs), 'observation')} from row {place.row} on (counted from 0)"
    with users_own(f"{place.file}: {what}, asked about {asked_about},"):
        return np.asarray(policy(*map(read_only, (obs, *actions))))


def asked(policy: Policy, what: str, asked_at: AskedAt, actions: int) -> Floats:
    """Probabilities of all actions from a function of observations, with its result checked."""
    result = _answer(policy, what, asked_at)
    if result.shape != (len(asked_at.obs), actions) or result.dtype.kind not in "fiub":
        raise InputError(
            f"{what} must return the probabilities of all actions, an array of shape "
            f"({len(asked_at.obs)}, {actions}), got an array of shape {result.shape} and type "
            f"{result.dtype}."
        )
    return result.astype(np.float64)


def called(policy: Policy, what: str, rows: RowsSoFar) -> Floats:
    """Probabilities from a function of observations and actions, with its result checked."""
    if rows.action is None:
        raise InputError(f"{what} is a function of the action, but the log has no column 'action'.")
    result = _answer(policy, what, AskedAt(rows.obs, rows.place), rows.action)
    if result.shape != (len(rows.obs),) or result.dtype.kind not in "fiub":
        raise InputError(
            f"{what} must return one probability per row, an array of shape ({len(rows.obs)},), "
            f"got an array of shape {result.shape} and type {result.dtype}; a function that "
            "returns the probabilities of all actions takes observations alone."
        )
    return result.astype(np.float64)


def indices(rows: RowsSoFar, name: str, actions: int) -> Longs:
    """The logged actions as numbers 0, ..., actions - 1 of the entries of a distribution."""
    taken, place = rows.action, rows.place
    assert taken is not None
    if taken.ndim > 1:
        raise fault(
            place, name, 0, "an action must be one number, where policies give the probabilities "
            "of all actions", taken[0].tolist(), "number the actions 0, 1, 2, ...",
        )  # fmt: skip
    index = first_true(~((taken >= 0) & (taken < actions) & (taken == np.floor(taken))))
    if index is not None:
        raise fault(
            place, name, index, f"an action must be one of 0, ..., {actions - 1}, the entries of "
            "the policies' probabilities", taken[index], "number the actions as the policies do",
        )  # fmt: skip
    return taken.astype(np.int64)


def entry(whole: Floats, taken: Longs) -> Floats:
    """The probability of each logged action."""
    return np.asarray(np.take_along_axis(whole, taken[:, None], axis=1)[:, 0])
