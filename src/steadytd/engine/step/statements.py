"""The four kinds of statements that a loop is written in, before it is in any language.

`For`, `If`, `Bind`, and a text. Texts are assignments to entries of arrays and additions to
names, such as `w_x_j += V_w[k] * x_k`: they mean the same in Python and in JavaScript, where
entries have one index (`layouts.browser`). A target (`step.targets`) prints them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from steadytd.engine.step.program import Pattern


@dataclass
class For:
    """For index = begin, ..., end - 1."""

    index: str
    begin: str
    end: str
    body: list[Statement]


@dataclass
class If:
    """If a condition holds, the body, else the other."""

    condition: str
    body: list[Statement]
    otherwise: list[Statement] = field(default_factory=list)


@dataclass
class Bind:
    """A name, or the results of a function, get a value."""

    names: Pattern
    value: str


Statement = For | If | Bind | str


def bind(name: str, value: str) -> Bind:
    """One name gets a value."""
    return Bind((name,), value)


def lanes(body: Iterable[Statement]) -> list[Statement]:
    """The statements for every lane j; no loop where there are none."""
    found = list(body)
    return [For("j", "0", "lanes", found)] if found else []


def fused(statements: Iterable[Statement]) -> list[Statement]:
    """The same with neighbouring loops over lanes as one: lanes do not see each other."""
    found: list[Statement] = []
    for one in statements:
        match found[-1:], one:
            case [For("j", _, "lanes", body)], For("j", _, "lanes", more):
                body += more
            case _:
                found.append(one)
    return found
