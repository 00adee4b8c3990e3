"""A cache inside the object that results belong to: it is freed together with the object."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, TypeVar

F = TypeVar("F")
P = ParamSpec("P")
R = TypeVar("R")
Function = Callable[Concatenate[F, P], R]


class Results(dict[Any, Any]):
    """Results by arguments. A copy of the object begins with none."""

    def __reduce__(self) -> tuple[type[Results], tuple[()]]:
        return Results, ()


def cached(most: int) -> Callable[[Function[F, P, R]], Function[F, P, R]]:
    """A function whose newest `most` results are stored in its first argument.

    `functools.lru_cache` would keep unused problems alive, with megabytes for each certificate.
    An argument that is left out counts as its default.

    >>> class Thing: ...
    >>> @cached(2)
    ... def double(thing: Thing, number: int) -> int:
    ...     print("computed")
    ...     return 2 * number
    >>> thing = Thing()
    >>> double(thing, 3), double(thing, 3)
    computed
    (6, 6)
    """

    def decorate(function: Function[F, P, R]) -> Function[F, P, R]:
        place = f"{function.__module__}.{function.__qualname__}"
        asked = signature(function)

        @wraps(function)
        def lookup(first: F, /, *args: P.args, **kwargs: P.kwargs) -> R:
            known = vars(first).setdefault(place, Results())
            key: tuple[object, ...] = args
            if kwargs or len(args) + 1 < len(asked.parameters):
                given = asked.bind(first, *args, **kwargs)
                given.apply_defaults()
                key = tuple(given.arguments.values())[1:]
            try:
                return known[key]  # type: ignore[no-any-return]
            except KeyError:
                found = function(first, *args, **kwargs)
            known[key] = found
            while len(known) > most:
                known.pop(next(iter(known)), None)
            return found

        return lookup

    return decorate
