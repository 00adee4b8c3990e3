"""Many learners side by side on dense vectors: the plain loop, from which other layouts derive.

Vectors are stored feature-major, `V_w[feature, lane]`, so that every innermost loop runs over
contiguous lanes without a reduction: the compiler vectorises it under strict IEEE arithmetic, and a
lane's bits do not depend on its neighbours. An inner product is, for instance,

    for q in range(first_x, last_x):        # the active features of x
        k, x_k = ...
        for j in range(lanes):
            _w_x[j] += V_w[k, j] * x_k

With fewer than FEW lanes there is nothing to vectorise: each lane takes the whole step by itself,
and its numbers are locals. That form, with one lane, is the browser's, too.

Arrays that a law named begin with an underscore, so that none is one of the loop's own. A number of
a learner is a local inside a loop over lanes, `w_x_j`, or has a place in an array, `_w_x[j]`, where
another loop needs it later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from steadytd.engine.facts import CARRIED, STEP_FACTS
from steadytd.engine.law import Law
from steadytd.engine.step.program import (
    FEATURES,
    UNUSED,
    Call,
    Dot,
    Drop,
    Each,
    Gather,
    Grow,
    Keep,
    Let,
    Mean,
    Move,
    Outer,
    Program,
    ProgramError,
    Skip,
    Slide,
    Step,
    Sum,
    Total,
    Write,
    bound,
    step_program,
    sum_text,
    used,
)
from steadytd.engine.step.statements import Bind, For, If, Statement, bind, fused, lanes
from steadytd.engine.step.targets import javascript, numba

FEW = 4


class Lanes:
    """Writes the loop of a program; `dots`, `moves`, ... write the steps of one kind."""

    common: frozenset[str] = frozenset((*STEP_FACTS, *CARRIED))  # facts that all lanes share
    place = "k, j"  # of an entry in an array; one lane alone has "k"
    single = False  # writing the loop of one lane
    lists: tuple[str, ...] = ("L_list", "L_flag", "L_x")  # of a law with functions of entries

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
                found |= dict.fromkeys(bound(step) if kind in (Dot, Total) else ())
        return [name for name in found if name not in self.uniform]

    def phases(self, steps: Iterable[Step]) -> Iterator[tuple[type, list[Step]]]:
        """Steps that one loop can take together; the kind of all that make numbers is `Call`."""
        for kind, some in groupby(steps, lambda s: Call if isinstance(s, Let | Keep) else type(s)):
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
            case Call(results, function, given):
                made = self.call(function, given)
                self.open.update(bound(step))
                rename = self.number
                names = (
                    rename(n) if isinstance(n, str) else tuple(map(rename, n)) for n in results
                )
                return Bind(tuple(names), made)
        raise TypeError(step)

    def calls(self, steps: list[Step]) -> list[Statement]:
        """Numbers: those that all lanes share, and a loop over lanes for the others."""
        shared = [s for s in steps if bound(s) and self.uniform.issuperset(bound(s))]
        first = [self.scalar(step) for step in shared]
        found = self.over_lanes([self.scalar(step) for step in steps if step not in shared])
        self.close()
        return [*first, *found]

    # ---- Loops

    def over_lanes(self, body: Iterable[Statement]) -> list[Statement]:
        """The statements for every lane j, unless one takes the step alone."""
        return list(body) if self.single else lanes(body)

    def close(self) -> None:
        """The end of a loop over lanes: its locals are gone, unless one lane goes on alone."""
        if not self.single:
            self.open.clear()

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
            if isinstance(some[0], Skip):
                found += self.skips(some[0], located)
                continue
            if kind in (Dot, Move, Write, Outer, Gather, Each, Total) and not located:
                found += self.locate()
                located = True
            found += getattr(self, f"{kind.__name__.lower()}s")(some)
        return fused(found)

    # ---- The whole loop

    def source(self, path: str) -> str:
        """The source of the module that Numba compiles."""
        size = Bind(("features", "lanes"), "V_w.shape")
        step = If(f"lanes < {FEW}", lanes(self.alone()), self.steps(self.program.steps))
        body = numba.printed([size, *self.windows(), *self.time([step])])
        measured = len(self.program.vectors) if self.program.averaged else 0
        text = numba.head(self.program.name, path)
        return text + numba.driven(self.arrays(), len(self.stored), measured, body)

    def arrays(self) -> dict[str, str]:
        """The arrays of the loop, and what of the driver's each of them is."""
        program = self.program
        names = {
            "V": [f"V_{v}" for v in program.vectors] + ["average"] * program.averaged,
            "Z": [*(f"Z_{z}" for z in program.traces), *(self.lists if program.lists else ())],
            "M": [*(f"_{m}" for m in program.memory), *(["L_count"] if program.lists else [])],
            "params": [f"_{p}" for p in program.params],
            "scratch": [f"_{n}" for n in self.stored],
        }
        return {name: f"{part}[{i}]" for part, some in names.items() for i, name in enumerate(some)}

    def windows(self) -> list[Statement]:
        """How many steps a trace or memory looks back."""
        named = self.program.windows.items()
        return [
            bind(f"window_{name}", f"int(_{param}[0]) + {more}") for name, (param, more) in named
        ]

    def alone(self) -> list[Statement]:
        """One step of lane j alone, its numbers locals."""
        stored, self.stored, self.single = self.stored, [], True
        found = self.steps(self.program.steps)
        self.stored, self.single = stored, False
        self.open.clear()
        return found

    def entry(self, name: str) -> str:
        """Entry k of a vector or trace in lane j, or of the features."""
        if name in FEATURES:
            return "x_k"
        return f"{'Z' if name in self.program.traces else 'V'}_{name}[{self.place}]"

    def entries_of(self, step: Each | Total, over: str) -> dict[str, str]:
        """Entry k of what a function asks for; that of x is at hand in a loop over x."""
        own = {name: self.entry(name) for name in step.entries}
        return own | {"x": "x_k" if over == "x" else f"L_x[{self.place}]"}

    def eachs(self, steps: list[Each]) -> list[Statement]:
        """A function of entries and of numbers, for all entries that it is over."""
        (step,) = steps
        value = self.call(step.function, step.arguments, **self.entries_of(step, step.over))
        new = [f"new_{v}" for v in step.results]
        set_ = [f"{self.entry(v)} = {n}" for v, n in zip(step.results, new, strict=True)]
        body: list[Statement] = [Bind(tuple(new), value), *set_, *self.watched(new)]
        if step.over == "x":
            return self.over("x", self.over_lanes([If("x_k != 0.0", body)]))
        if not step.over:
            found = self.over("w", self.over_lanes(body))
        else:
            found = self.over_lanes([For("i", "0", "index(L_count[j])", [
                bind("k", f"index(L_list[{self.place.replace('k', 'i')}])"), *body,
            ])])  # fmt: skip
        if "x" not in step.entries:
            return found
        fill, clear = (
            self.over("x", self.over_lanes([f"L_x[{self.place}] = {value}"]))
            for value in ("x_k", "0.0")
        )
        return [*fill, *found, *clear]

    def watched(self, new: list[str]) -> list[Statement]:
        """Whether these numbers are finite is seen between stretches of steps."""
        return []

    def totals(self, steps: list[Total]) -> list[Statement]:
        """The sum of a function of entries, in the order of the features."""
        (step,) = steps
        self.open.add(step.name)
        total = self.number(step.name)
        value = self.call(step.function, step.arguments, **self.entries_of(step, "x"))
        added = self.over_lanes([If("x_k != 0.0", [f"{total} += {value}"])])
        return [*self.over_lanes([bind(total, "0.0")]), *self.over("x", added)]

    def gathers(self, steps: list[Gather]) -> list[Statement]:
        """The first L_count of L_list are listed; L_flag is 1 for each of them."""
        place, last = self.place, self.place.replace("k", "index(L_count[j])")
        new: list[Statement] = [
            f"L_flag[{place}] = 1.0", f"L_list[{last}] = k", "L_count[j] += 1.0",
        ]  # fmt: skip
        fresh = If(f"(x_k != 0.0) & (L_flag[{place}] == 0.0)", new)
        return self.over("x", self.over_lanes([fresh]))

    def drops(self, steps: list[Drop]) -> list[Statement]:
        """Those that stay listed move up."""
        (step,) = steps
        i, kept = (self.place.replace("k", at) for at in ("i", "index(kept)"))
        stays: list[Statement] = [f"L_list[{kept}] = k", "kept += 1.0"]
        return self.over_lanes([
            bind("kept", "0.0"),
            For("i", "0", "index(L_count[j])", [
                bind("k", f"index(L_list[{i}])"),
                If(f"{self.entry(step.vector)} != 0.0", stays, [f"L_flag[{self.place}] = 0.0"]),
            ]),
            "L_count[j] = kept",
        ])  # fmt: skip

    def means(self, steps: list[Mean]) -> list[Statement]:
        """The mean of a vector over all steps."""
        (step,) = steps
        mean, entry = f"average[{self.place}]", self.entry(step.vector)
        moved = self.over(step.vector, self.over_lanes([f"{mean} += ({entry} - {mean}) * share"]))
        return [bind("share", "1.0 / (first_step + t + 1)"), *moved]

    def dots(self, steps: list[Dot]) -> list[Statement]:
        """Inner products: a sum in the order of the features, for each lane."""
        found: list[Statement] = []
        for dot in steps:
            self.open.add(dot.name)
            if dot.left in FEATURES:
                found.append(bind(f"_{dot.name}", self.feature_dot(dot)))
        own = [dot for dot in steps if dot.left not in FEATURES]
        found += self.over_lanes(bind(self.number(dot.name), "0.0") for dot in own)
        for basis in dict.fromkeys((*FEATURES, *(dot.right for dot in own))):
            found += self.over(basis, self.over_lanes(
                f"{self.number(dot.name)} += {self.entry(dot.left)} * {self.entry(basis)}"
                for dot in own if dot.right == basis
            ))  # fmt: skip
        return found

    def slides(self, steps: list[Slide]) -> list[Statement]:
        """Move on a memory that looks back n steps: from itself without its oldest step."""
        (step,) = steps
        m = step.name
        younger = self.call(step.function, step.arguments, **{m: f"_{m}[(age + 1) * lanes + j]"})
        nothing = self.call(step.function, step.arguments, **{m: "0.0"})
        return self.over_lanes([
            For("age", "0", f"window_{m} - 1", [f"_{m}[age * lanes + j] = {younger}"]),
            f"_{m}[(window_{m} - 1) * lanes + j] = {nothing}",
        ])  # fmt: skip

    def moves(self, steps: list[Move]) -> list[Statement]:
        """Traces move on: all entries decay, the active ones grow."""
        found: list[Statement] = []
        plain = [step for step in steps if step.trace not in self.program.windows]
        for step in plain:
            z = self.entry(step.trace)
            found += self.over(
                step.trace, self.over_lanes([f"{z} = {self.number(step.decay)} * {z}"])
            )
        grown = (f"{self.entry(s.trace)} += {self.number(s.scale)} * x_k" for s in plain)
        found += self.over("x", self.over_lanes(grown))
        for step in steps:
            if step not in plain:
                found += self.move_window(step)
        return found

    def move_window(self, step: Move) -> list[Statement]:
        """Move on a trace that looks back n steps: from itself without its oldest step."""
        z, oldest = f"Z_{step.trace}", f"(window_{step.trace} - 1) * features"
        here, older, grown = (
            f"{z}[{self.place.replace('k', k)}]" for k in ("k", "k + features", "begin_k + k")
        )
        decayed = f"{here} = {self.number(step.decay)} * {older}"
        return [
            For("k", "0", oldest, self.over_lanes([decayed])),
            For("k", oldest, f"window_{step.trace} * features", self.over_lanes([f"{here} = 0.0"])),
            For("age", "0", f"window_{step.trace}", [
                bind("begin_k", "index(age * features)"),
                *self.over("x", self.over_lanes([f"{grown} += {self.number(step.scale)} * x_k"])),
            ]),
        ]  # fmt: skip

    def writes(self, steps: list[Write]) -> list[Statement]:
        """Add the multiples: of whole vectors first, while they are the old ones, then the rest."""
        (step,) = steps
        whole = [v for v in self.program.vectors if step.on(v)]
        added: list[Statement] = [bind(f"old_{v}", self.entry(v)) for v in whole]
        for v, parts in step.sums:
            by = {basis: number for number, basis in parts}
            # v itself first, so that -1 of v and 1 of another vector make a copy of that one
            for b in dict.fromkeys((v, *whole)):
                if b in by:
                    added.append(f"{self.entry(v)} += {self.number(by[b])} * old_{b}")
        found = self.over("w", self.over_lanes(added)) if whole else []
        for basis in (*self.program.traces, *FEATURES):
            found += self.over(basis, self.over_lanes(
                f"{self.entry(v)} += {self.number(n)} * {self.entry(basis)}"
                for v, n in step.on(basis)
            ))  # fmt: skip
        return found


class Browser(Lanes):
    """Writes the loop of a program for one lane, on plain arrays, in JavaScript."""

    place = "k"

    def arrays(self) -> dict[str, str]:
        """The arrays of a learner; all other numbers are locals."""
        return {n: a for n, a in super().arrays().items() if not a.startswith("scratch")}

    def script(self) -> str:
        """The loop, as an expression for a function."""
        one = [bind("lanes", "1"), bind("j", "0")]
        steps = self.time(self.alone(), f"facts[e * {len(STEP_FACTS)} + {{}}]")
        statements = [*one, *self.windows(), *steps]
        return javascript.loop(self.arrays(), self.program.functions, statements)


def loop_source(law: Law, traced: bool, averaged: bool = False) -> str:
    """The source of the loop of a law, with trace vectors or (at lam = 0) without.

    `averaged` adds one more vector, the mean of w over all steps, and measures its error.
    """
    path = f"{'with' if traced else 'without'} trace vectors"
    return Lanes(step_program(law, traced, averaged)).source(path)
