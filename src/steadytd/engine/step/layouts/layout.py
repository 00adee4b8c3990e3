"""What all layouts have in common: the names of numbers, and loops over steps and features.

Arrays that a law named begin with an underscore, so that none is one of the loop's own. A number of
a learner is a local inside a loop over lanes, `w_x_j`, or has a place in an array, `_w_x[j]`, where
another loop needs it later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

from steadytd.engine.facts import CARRIED, STEP_FACTS
from steadytd.engine.step.program import (
    FEATURES,
    UNUSED,
    Call,
    Dot,
    Grow,
    Keep,
    Let,
    Map,
    Mean,
    Move,
    Outer,
    Pattern,
    Program,
    ProgramError,
    Skip,
    Slide,
    Step,
    Sum,
    Write,
    bound,
    sum_text,
    used,
)
from steadytd.engine.step.statements import Bind, For, If, Statement, bind, fused, lanes

SCALAR = (Let, Call, Keep)
METHODS = {  # of a layout, by the kind of the steps that it writes
    Call: "scalars", Dot: "dots", Move: "moves", Grow: "grows", Write: "writes", Slide: "slides",
    Map: "maps", Mean: "means", Outer: "outers",
}  # fmt: skip


class Layout:
    """Turns the steps of a program into statements. A layout says how each kind is done."""

    common: frozenset[str] = frozenset((*STEP_FACTS, *CARRIED))  # facts that all lanes share

    def __init__(self, program: Program) -> None:
        self.program = program
        self.lasting = {*program.memory, *("_".join(pair) for pair in program.products)}
        self.uniform = self._uniform()
        self.stored = self._stored()
        self.open: set[str] = set()  # locals of the loop over lanes that is being written

    # ---- Names

    def _uniform(self) -> set[str]:
        """Numbers that are the same for all lanes: facts, and what depends on nothing else."""
        found = set(self.common)
        for step in self.program.every:
            if isinstance(step, Dot):
                found |= {step.name} if step.left in FEATURES else set()
            elif isinstance(step, Let | Call) and found.issuperset(used(step)):
                found |= set(bound(step))
        return found

    def _stored(self) -> list[str]:
        """Numbers that have an array: inner products, and what a later loop over lanes needs."""
        found: dict[str, None] = {}
        made: dict[str, int] = {}  # the phase that made it
        for i, (kind, steps) in enumerate(self.phases(self.program.every)):
            for step in steps:
                found |= dict.fromkeys(n for n in used(step) if made.get(n, i) != i)
                made |= dict.fromkeys(bound(step), i)
                found |= dict.fromkeys(bound(step) if kind is Dot else ())
        return [name for name in found if name not in self.uniform]

    def phases(self, steps: Iterable[Step]) -> Iterator[tuple[type, list[Step]]]:
        """Steps that one loop can take together: numbers, inner products, traces."""
        for kind, some in groupby(steps, lambda s: Call if isinstance(s, SCALAR) else type(s)):
            if kind in (Call, Dot, Move, Grow):
                yield kind, list(some)
            else:
                yield from ((kind, [step]) for step in some)

    def number(self, name: str) -> str:
        """What a number is called, for lane j."""
        program = self.program
        if name in program.facts or name in program.carried or name == UNUSED:
            return name
        if name == "alpha":
            return "_alpha[j] * factor[t]"
        if name in self.uniform:
            return f"_{name}"
        if name in program.params or name in self.lasting or name in self.stored:
            return f"_{name}[j]"
        if name not in self.open:  # a stale number would be taken silently
            raise ProgramError(
                f"{program.name}: {name} is used in another loop than it is made in."
            )
        return f"{name}_j"

    def numbers(self, value: Sum) -> str:
        """A sum of products of numbers."""
        return sum_text(tuple(tuple(map(self.number, product)) for product in value))

    def call(self, function: str, names: tuple[str, ...], **other: str) -> str:
        """A call of one of the law's functions."""
        return f"{function}({', '.join(other.get(n) or self.number(n) for n in names)})"

    def scalar(self, step: Step) -> Statement:
        """A number, for lane j."""
        match step:
            case Let(name, value):
                self.open.add(name)
                return bind(self.number(name), self.numbers(value))
            case Keep(name, value):
                return f"_{name}[j] = {self.numbers(value)}"
            case Call(results, function, names):
                made = self.call(function, names)
                self.open.update(bound(step))
                return Bind(renamed(results, self.number), made)
        raise TypeError(step)

    def scalars(self, steps: list[Step]) -> list[Statement]:
        """Numbers: those that all lanes share, and a loop over lanes for the others."""
        shared = [s for s in steps if bound(s) and self.uniform.issuperset(bound(s))]
        first = [self.scalar(step) for step in shared]
        found = self.over_lanes([self.scalar(step) for step in steps if step not in shared])
        self.close()
        return [*first, *found]

    def close(self) -> None:
        """The end of a loop over lanes: its locals are gone."""
        self.open.clear()

    # ---- Loops

    def over_lanes(self, body: Iterable[Statement]) -> list[Statement]:
        """The statements for every lane j."""
        return lanes(body)

    def over(self, basis: str, body: Iterable[Statement]) -> list[Statement]:
        """For the active features k of x or x_next, with value x_k; or for all features."""
        found = list(body)
        if not found:
            return []
        if basis not in FEATURES:
            return [For("k", "0", "features", found)]
        k = bind("k", f"index(feature[index(q - shift_{basis})])")
        x_k = bind("x_k", "value[index(q)]")
        return [For("q", f"first_{basis}", f"last_{basis}", [k, x_k, *found])]

    def locate(self) -> list[Statement]:
        """Where the active features of x and x_next stand in the feature table."""
        found: list[Statement] = []
        for name, rows in (("x", "row"), ("x_next", "row_next")):
            found += [
                bind("at", f"index({rows}[e])"),
                bind(f"first_{name}", "first[at]"),
                bind(f"last_{name}", "first[at] + length[at]"),
                bind(f"shift_{name}", "offset[at]"),
            ]
        return found

    def feature_dot(self, dot: Dot) -> str:
        """An inner product of two rows of the feature table."""
        places = (f"first_{name}, last_{name}, shift_{name}" for name in dot.pair)
        return f"row_dot(feature, value, {', '.join(places)})"

    def time(self, body: list[Statement], entry: str = "facts[e, {}]") -> list[Statement]:
        """The loop over steps: facts come in, and are carried over to the next one."""
        facts = [bind(f, entry.format(STEP_FACTS.index(f))) for f in self.program.facts]
        carried = self.program.carried
        last = (
            f"carry[{i}] = {entry.format(STEP_FACTS.index(then))}"
            for i, then in enumerate(CARRIED.values())
        )
        return [
            *(bind(n, f"carry[{i}]") for i, n in enumerate(CARRIED) if n in carried),
            For("t", "begin", "end", [
                bind("e", "index(event[t])"), *facts, *body,
                *(bind(now, then) for now, then in carried.items()),
            ]),
            If("begin < end", [bind("e", "index(event[end - 1])"), *last]),
        ]  # fmt: skip

    def skips(self, step: Skip, located: bool) -> list[Statement]:
        """Steps that are left out where rho = 0."""
        return [If("rho != 0.0", self.steps(step.steps, located))]

    def steps(self, steps: Iterable[Step], located: bool = False) -> list[Statement]:
        """All steps in order, the rows of features being found before the first that needs them."""
        found: list[Statement] = []
        for kind, some in self.phases(steps):
            if kind is Skip:
                (skip,) = some
                assert isinstance(skip, Skip)
                found += self.skips(skip, located)
                continue
            if kind in (Dot, Move, Write, Outer) and not located:
                found += self.locate()
                located = True
            found += getattr(self, METHODS[kind])(some)
        return fused(found)


def renamed(names: Pattern, rename: Callable[[str], str]) -> Pattern:
    """A pattern of results under other names."""
    return tuple(rename(n) if isinstance(n, str) else tuple(map(rename, n)) for n in names)
