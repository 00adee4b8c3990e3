"""What one step of a law does, as a short list of operations.

A law (`engine.law`) says what it asks for and what it writes. `lower` turns it into a `Program`:
plain data that reads like the law's documentation. Printed, TD(lam) is

    decay_z, scale_z = trace_z(rho, gamma, lam)
    z = decay_z z + scale_z x
    w_x = w.x
    w_x_next = w.x_next
    w_by_z = update(reward, gamma_next, w_x, w_x_next, alpha)
    w += w_by_z z

Everything that runs a law starts from this list. What a path does otherwise is a *pass*, from
program to program: `without_traces` where lam = 0, and `active_program` where a step may touch
active features only. A layout (`step.layouts`) then says where the numbers live.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import takewhile

from steadytd.engine.facts import CARRIED, STEP_FACTS
from steadytd.engine.law import GENERAL, Entries, Function, Law, Window, arguments

FEATURES = ("x", "x_next")
UNUSED = "_"  # a result that nobody needs
LEAST = 1e-150  # what a vector is multiplied with instead of 0, so that it can still be divided by

Sum = tuple[tuple[str, ...], ...]  # of products of numbers: a b + c is (("a", "b"), ("c",))
Pattern = tuple["str | tuple[str, ...]", ...]  # what a function returns, by names


@dataclass(frozen=True)
class Dot:
    """name = left . right, an inner product of vectors, traces or features."""

    name: str
    left: str
    right: str

    @property
    def pair(self) -> tuple[str, str]:
        """Left and right."""
        return self.left, self.right

    def __str__(self) -> str:
        return f"{self.name} = {self.left}.{self.right}"


@dataclass(frozen=True)
class Let:
    """name = a sum of products of numbers; nothing is 0."""

    name: str
    value: Sum

    def __str__(self) -> str:
        return f"{self.name} = {sum_text(self.value)}"


@dataclass(frozen=True)
class Call:
    """results = one of the law's functions, of numbers."""

    results: Pattern
    function: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return f"{pattern_text(self.results)} = {self.function}({', '.join(self.arguments)})"


@dataclass(frozen=True)
class Keep:
    """A number that the next step finds: memory, or an inner product that is carried along."""

    name: str
    value: Sum

    def __str__(self) -> str:
        return f"keep {self.name} = {sum_text(self.value)}"


@dataclass(frozen=True)
class Slide:
    """A memory with a window moves on: what its function makes of the last so many steps."""

    name: str
    function: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return f"slide {self.name} = {self.function}({', '.join(self.arguments)})"


@dataclass(frozen=True)
class Move:
    """A trace moves on: z = decay z + scale x."""

    trace: str
    decay: str
    scale: str

    def __str__(self) -> str:
        return f"{self.trace} = {self.decay} {self.trace} + {self.scale} x"


@dataclass(frozen=True)
class Grow:
    """A vector is multiplied as a whole: h = grow_h h."""

    vector: str
    by: str

    def __str__(self) -> str:
        return f"{self.vector} = {self.by} {self.vector}"


@dataclass(frozen=True)
class Write:
    """Every vector += multiples of others, all of them taken before the first changes."""

    sums: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]  # vector: (number, its basis)

    def on(self, basis: str) -> list[tuple[str, str]]:
        """The vectors that get a multiple of a basis, and the number."""
        return [(v, n) for v, parts in self.sums for n, b in parts if b == basis]

    def number(self, vector: str, basis: str) -> str:
        """The multiple of a basis that a vector gets."""
        return next(n for v, n in self.on(basis) if v == vector)

    def __str__(self) -> str:
        lines = (f"{v} += {' + '.join(f'{n} {b}' for n, b in parts)}" for v, parts in self.sums)
        return "\n".join(lines)


@dataclass(frozen=True)
class Each:
    """Entries of vectors become what a function of entries and of numbers returns.

    `entries` are the arguments that are entries. `over` says which: "x" for those where x is not 0,
    a vector for those listed for it (see `Gather`), "" for all.
    """

    results: tuple[str, ...]
    function: str
    arguments: tuple[str, ...]
    entries: tuple[str, ...]
    over: str = ""

    def __str__(self) -> str:
        made = f"{', '.join(self.results)} = {self.function}({', '.join(self.arguments)})"
        where = {"": "", "x": " of x"}.get(self.over, f" listed for {self.over}")
        return f"every entry{where}: {made}"


@dataclass(frozen=True)
class Total:
    """name = the sum of a function of entries and of numbers where x is not 0."""

    name: str
    function: str
    arguments: tuple[str, ...]
    entries: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} = sum over x of {self.function}({', '.join(self.arguments)})"


@dataclass(frozen=True)
class Gather:
    """List the entries where x is not 0, beside those listed for a vector already.

    In all that are not listed the vector is 0.
    """

    vector: str

    def __str__(self) -> str:
        return f"list x for {self.vector}"


@dataclass(frozen=True)
class Drop:
    """Entries where the vector has become 0 are no longer listed for it."""

    vector: str

    def __str__(self) -> str:
        return f"unlist where {self.vector} = 0"


@dataclass(frozen=True)
class Skip:
    """Steps that are left out where rho = 0."""

    steps: tuple[Step, ...]

    def __str__(self) -> str:
        inner = "\n".join(map(str, self.steps))
        return "unless rho = 0:\n" + "\n".join(f"    {line}" for line in inner.splitlines())


@dataclass(frozen=True)
class Mean:
    """The mean of a vector over all steps, those that are left out included."""

    vector: str

    def __str__(self) -> str:
        return f"average = mean of {self.vector} over all steps"


@dataclass(frozen=True)
class Outer:
    """The sums of a law that is solved: b += target z, A += z (on_x x + on_x_next x_next)'.

    `matrix` is one more: "G" (the sum of rho x x'), "C" (the inverse of A), or none.
    """

    z: tuple[str, str]  # (number, basis): the trace, or without trace vectors a multiple of x
    equation: tuple[str, str, str]
    matrix: str

    def __str__(self) -> str:
        number, basis = self.z
        z = f"{number} {basis}".strip()
        target, on_x, on_x_next = self.equation
        more = {"G": "\nG += rho x x'", "C": "\nC = the inverse of A", "": ""}[self.matrix]
        return f"b += {target} {z}\nA += {z} ({on_x} x + {on_x_next} x_next)'{more}"


Step = (
    Dot | Let | Call | Keep | Slide | Move | Grow | Write | Each | Total | Gather | Drop
    | Skip | Mean | Outer
)  # fmt: skip


@dataclass(frozen=True)
class Program:
    """The steps of a law, and what its names are."""

    name: str
    facts: tuple[str, ...]  # of the step
    carried: Mapping[str, str]  # known from the step before: the name, and the fact that it was
    params: tuple[str, ...]  # one number a learner, in the order of their rows
    memory: tuple[str, ...]
    vectors: tuple[str, ...]
    traces: tuple[str, ...]
    functions: Mapping[str, Function]
    windows: Mapping[str, Window]
    steps: tuple[Step, ...]
    idle_at_rho_zero: bool = False
    products: tuple[tuple[str, str], ...] = field(default=())  # carried along as numbers

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))

    @property
    def every(self) -> Iterator[Step]:
        """All steps, those inside `Skip` too."""
        for step in self.steps:
            yield step
            if isinstance(step, Skip):
                yield from step.steps

    @property
    def averaged(self) -> bool:
        """Whether the mean of w is kept."""
        return any(isinstance(step, Mean) for step in self.steps)

    @property
    def lists(self) -> bool:
        """Whether a law's functions of entries may need lists of them."""
        return any(isinstance(step, Each | Total) for step in self.every)

    @property
    def write(self) -> Write:
        """What is written in a step."""
        return next((step for step in self.every if isinstance(step, Write)), Write(()))

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """A vector and a trace that it is written along."""
        parts = {v: [b for _, b in some] for v, some in self.write.sums}
        return [(v, z) for v in self.vectors for z in self.traces if z in parts.get(v, ())]


def sum_text(value: Sum) -> str:
    """A sum of products as text; in Python and in JavaScript it is read from left to right."""
    return " + ".join(" * ".join(product) for product in value) or "0.0"


def pattern_text(names: Pattern) -> str:
    """Names of results as they are assigned to."""
    return ", ".join(n if isinstance(n, str) else f"({', '.join(n)})" for n in names)


def flat(names: Pattern) -> list[str]:
    """All names of results, in order."""
    return [n for one in names for n in ([one] if isinstance(one, str) else one)]


def lane_params(law: Law) -> tuple[str, ...]:
    """The hyper-parameters that differ from learner to learner, in the order of their rows."""
    return tuple(name for name in law.all_params if name not in GENERAL)


def law_functions(law: Law) -> dict[str, Function]:
    """The plain Python functions of a law under the names that its program calls them by."""
    return {
        "update": law.update,
        **{f"trace_{name}": function for name, function in law.traces.items()},
        **{f"memory_{name}": f for name, f in law.memory.items() if f is not None},
        **{f"map_{name}": function for name, function in law.maps.items()},
        **{one.name: one.function for one in law.each},
    }


def step_program(law: Law, traced: bool, averaged: bool = False) -> Program:
    """The program of a law, with trace vectors or (at lam = 0) without; checked."""
    program = lower(law, averaged)
    return check(program if traced else without_traces(program))


# ---- From a law to its program


def lower(law: Law, averaged: bool = False) -> Program:
    """The steps of a law: memory, traces, inner products, the update, and what it writes."""
    products, update = law.products, arguments(law.update)
    carried = {now: then for now, then in CARRIED.items() if now in law.asked}
    facts = law.asked | set(carried.values()) | {"rho"}
    asked = dict.fromkeys(a for f in law.traces.values() for a in arguments(f) if a in products)
    before = {n: f"before_{n}" for n in asked if products[n][0] not in FEATURES}
    results = tuple(
        v if v in law.numbers
        else tuple(f"{v}_by_{p}" for p in parts) if len(parts) > 1 else f"{v}_by_{parts[0]}"
        for v, parts in law.writes.items()
    )  # fmt: skip
    read = [n for n in asked if n not in before]
    wanted = {*update, *(a for one in law.each for a in arguments(one.function))}
    read += [n for n in products if n in wanted and n not in read]
    written = [m for m in law.memory if m in law.writes]
    written_along = [] if law.each else law.vectors
    sums = tuple((v, tuple((f"{v}_by_{p}", p) for p in law.writes[v])) for v in written_along)
    steps: list[Step] = [
        *_memory(law),
        *(Dot(n, *products[n]) for n in read if products[n][0] in FEATURES),
        *(Dot(name, *products[n]) for n, name in before.items()),
        *(
            Call(
                (f"decay_{z}", f"scale_{z}"),
                f"trace_{z}",
                tuple(before.get(a, a) for a in arguments(f)),
            )
            for z, f in law.traces.items()
        ),
        *(Move(z, f"decay_{z}", f"scale_{z}") for z in law.traces),
        *(Dot(n, *products[n]) for n in read if products[n][0] not in FEATURES),
        Call(results, "update", update),
        *(
            Keep(m, ((m,), (f"{m}_by_1",)) if m in law.scalars else ((f"{m}_by_value",),))
            for m in written
        ),
        *(_entries(law) if law.each else [Write(sums)]),
        *(
            Each((v,), f"map_{v}", tuple(v if a == "value" else a for a in arguments(f)), (v,))
            for v, f in law.maps.items()
        ),
        *([Mean("w")] if averaged else []),
    ]
    return Program(
        name=law.name,
        facts=tuple(f for f in STEP_FACTS if f in facts),
        carried=carried,
        params=lane_params(law),
        memory=tuple(law.memory),
        vectors=law.vectors,
        traces=tuple(law.traces),
        functions=law_functions(law),
        windows=law.windows,
        steps=tuple(steps),
        idle_at_rho_zero=law.idle_at_rho_zero,
    )


def _memory(law: Law) -> Iterator[Step]:
    """Memory moves on."""
    for m, function in law.memory.items():
        if function is not None and m in law.windows:
            yield Slide(m, f"memory_{m}", arguments(function))
        elif function is not None:
            yield Call((f"new_{m}",), f"memory_{m}", arguments(function))
            yield Keep(m, ((f"new_{m}",),))


def _entries(law: Law) -> Iterator[Step]:
    """Steps through the entries of vectors, and sums of them."""
    if law.listed:
        yield Gather(law.listed)
    for one in law.each:
        given = arguments(one.function)
        entries = tuple(name for name in given if name in ("x", *law.vectors))
        if isinstance(one, Entries):
            yield Each(one.writes, one.name, given, entries, one.over)
        else:
            yield Total(one.number, one.name, given, entries)
    if law.listed:
        yield Drop(law.listed)


# ---- Passes


def without_traces(program: Program) -> Program:
    """The program where no trace vector is kept (lam = 0): z is scale_z x.

    So h.z is scale_z h.x, and what is written along z is written along x. A trace that is not there
    is 0 before it moves. Where the law says so, steps with rho = 0 are left out.
    """
    traces = program.traces
    memory = list(takewhile(_moves_memory, program.steps))
    dots: dict[str, Dot] = {}
    renamed: dict[str, str] = {}
    steps: list[Step] = []
    for step in program.steps[len(memory) :]:
        match step:
            case Dot(name=name) if not set(step.pair) & set(traces):
                plain = "_".join(step.pair)  # the same before a trace moves and after
                renamed[name] = plain
                dots[plain] = replace(step, name=plain)
            case Dot(name=name) if name.startswith("before_"):
                steps.append(Let(name, ()))
            case Dot(name=name):
                left, right = (("x" if part in traces else part) for part in step.pair)
                scales = [f"scale_{part}" for part in step.pair if part in traces]
                dots[f"{left}_{right}"] = Dot(f"{left}_{right}", left, right)
                steps.append(Let(name, ((*scales, f"{left}_{right}"),)))
            case Call(results=(_, scale), function=f) if f.startswith("trace_"):
                given = tuple(renamed.get(a, a) for a in step.arguments)
                steps.append(replace(step, results=(UNUSED, scale), arguments=given))
            case Move():
                pass
            case Write():
                steps += _on_x(step, traces)
            case Outer(z=(_, z)):
                steps.append(replace(step, z=(f"scale_{z}", "x")))
            case _:
                steps.append(step)
    features_first = sorted(dots.values(), key=lambda dot: dot.left not in FEATURES)
    learning: tuple[Step, ...] = (*features_first, *steps)
    if program.idle_at_rho_zero:
        mean = [step for step in learning if isinstance(step, Mean)]
        learning = (Skip(tuple(step for step in learning if step not in mean)), *mean)
    return replace(program, traces=(), steps=(*memory, *learning))


def _moves_memory(step: Step) -> bool:
    of_memory = isinstance(step, Call) and step.function.startswith("memory_")
    return of_memory or isinstance(step, Keep | Slide)


def _on_x(write: Write, traces: tuple[str, ...]) -> Iterator[Step]:
    """A multiple of z is a multiple of x, added to that of x itself in the order of the law."""
    sums = []
    for v, parts in write.sums:
        along = [(n, b) for n, b in parts if b in (*traces, "x")]
        rest = [part for part in parts if part not in along]
        if any(b in traces for _, b in along):
            yield Let(
                f"{v}_on_x", tuple((n, f"scale_{b}") if b in traces else (n,) for n, b in along)
            )
            along = [(f"{v}_on_x", "x")]
        sums.append((v, (*rest, *along)))
    yield Write(tuple(sums))


@cache
def active_program(law: Law, traced: bool) -> Program:
    """The program where a step touches active features only.

    Inner products are read first, then numbers are made, and what is written comes last. Those of
    a trace are read before it moves on; after it, z.x = decay z.x + scale x.x is a number. No step
    sums over all features: products of traces are carried along as numbers,

        z.y <- (decay z + scale x).(decay y + scale x)
        h.z <- decay h.z + scale h.x                        when z moves
        h.z <- h.z + m z.z + n x.z                          when h <- h + m z + n x

    A vector that is multiplied as a whole (h <- h + m h) has the factor grow_h = 1 + m.
    """
    program = lower(law) if traced else without_traces(lower(law))
    products = _products(program)
    reads, moved, alias = _reads(program, products)
    numbers: list[Step] = []
    last: list[Step] = []
    skipped = 0  # the first number that a step with rho = 0 does not make
    for step in program.every:
        match step:
            case Dot():
                pass
            case Skip():
                skipped = len(numbers)
            case Call():
                if step.function == "update":
                    numbers += moved.values()
                    numbers += (one for pair in products for one in _moved(program, *pair))
                arguments = tuple(alias.get(a, a) for a in step.arguments)
                numbers.append(replace(step, arguments=arguments))
            case Write():
                for one in growing(program, step):
                    (last if isinstance(one, Grow | Write) else numbers).append(one)
            case Move():
                last.append(step)
            case _:
                numbers.append(step)
    if any(isinstance(step, Skip) for step in program.steps):
        numbers = [*numbers[:skipped], Skip(tuple(numbers[skipped:]))]
    return check(
        replace(
            program, steps=(*reads.values(), *numbers, *last), products=tuple(products),
            functions={**program.functions, "growth": growth},
        )
    )  # fmt: skip


def _reads(
    program: Program, products: list[tuple[str, str]]
) -> tuple[Mapping[str, Dot], Mapping[str, Let], Mapping[str, str]]:
    """What is read, what follows once traces have moved on, and which names are those of products.

    It is what the law asks for, and what the products need.
    """
    reads = {f"w_{basis}": Dot(f"w_{basis}", "w", basis) for basis in FEATURES}  # for the TD error
    moved: dict[str, Let] = {}
    alias: dict[str, str] = {}

    def read(left: str, right: str, name: str = "") -> None:
        found = "_".join(in_order(program, left, right))
        name = name or found
        if in_order(program, left, right) in products:
            alias[name] = found
        elif left in program.traces and not name.startswith("before_"):
            read(left, right, f"before_{name}")
            read("x", right)
            terms = (f"decay_{left}", f"before_{name}"), (f"scale_{left}", f"x_{right}")
            moved[name] = Let(name, terms)
        else:
            reads[name] = Dot(name, left, right)

    for step in program.every:
        if isinstance(step, Dot):
            read(step.left, step.right, step.name)
    for left, z in products:
        if left in program.traces:
            read("x", "x")
            read(left, "x", f"before_{left}_x")
            read(z, "x", f"before_{z}_x")
            continue
        read(left, "x")
        for _, basis in dict(program.write.sums)[left]:
            if basis in FEATURES:
                read(z, basis)
    return reads, moved, alias


def growth(multiple: float) -> float:
    """What a vector is multiplied with as a whole; never 0."""
    grown = 1.0 + multiple
    return LEAST if abs(grown) < LEAST else grown


def _products(program: Program) -> list[tuple[str, str]]:
    """The inner products with a trace that are carried along: what is asked for, and its needs."""
    found: list[tuple[str, str]] = []
    waiting = [step.pair for step in program.every if isinstance(step, Dot)]
    while waiting:
        pair = in_order(program, *waiting.pop(0))
        if pair[1] in program.traces and pair[0] not in FEATURES and pair not in found:
            found.append(pair)
            waiting += [(y, pair[1]) for v, y in program.pairs if v == pair[0]]
    return found


def in_order(program: Program, left: str, right: str) -> tuple[str, str]:
    """The product of two traces under one name: y.z and z.y are the same number."""
    if left in program.traces and right in program.traces:
        left, right = sorted((left, right), key=program.traces.index)
    return left, right


def _moved(program: Program, left: str, z: str) -> Iterator[Step]:
    """left.z, once the traces have moved on."""
    name, decay, scale = f"{left}_{z}", f"decay_{z}", f"scale_{z}"
    if left not in program.traces:
        yield Keep(name, ((decay, name), (scale, f"{left}_x")))
        return
    yield Let(f"old_{name}", ((decay, name), (scale, f"before_{left}_x")))
    yield Let(f"new_{name}", ((decay, f"before_{z}_x"), (scale, "x_x")))
    yield Keep(name, ((f"decay_{left}", f"old_{name}"), (f"scale_{left}", f"new_{name}")))


def growing(program: Program, write: Write) -> Iterator[Step]:
    """Factors of whole vectors, the products as they will be, and what is written beside."""
    grown = {v: n for v, parts in write.sums for n, basis in parts if basis == v}
    yield from (Call((f"grow_{v}",), "growth", (number,)) for v, number in grown.items())
    for left, z in _products(program):
        if left in program.vectors:
            yield _written(program, left, z, grown)
    yield from (Grow(v, f"grow_{v}") for v in grown)
    yield Write(tuple((v, tuple(p for p in parts if p[1] != v)) for v, parts in write.sums))


def _written(program: Program, left: str, z: str, grown: Mapping[str, str]) -> Keep:
    """left.z, once the vector has changed."""
    name = f"{left}_{z}"
    terms: list[tuple[str, ...]] = [(f"grow_{left}", name) if left in grown else (name,)]
    for number, basis in dict(program.write.sums)[left]:
        if basis in program.traces:
            terms.append((number, "_".join(in_order(program, basis, z))))
        elif basis in FEATURES:
            terms.append((number, f"{z}_{basis}"))
    return Keep(name, tuple(terms))


def at_active_features(law: Law) -> bool:
    """Whether a step of the law, its traces too, can be taken at the active features alone.

    It cannot where all entries of a vector are mapped, where a trace or memory forgets what is
    older than so many steps, and where whole vectors are added to or multiplied with other ones.
    """
    across = any(b in law.vectors and b != v for v, bases in law.writes.items() for b in bases)
    across |= any(isinstance(one, Entries) and not one.over for one in law.each)
    asked = [pair for name, pair in law.products.items() if name in law.asked]
    squares = any({left, right} <= set(law.vectors) for left, right in asked)
    return law.block is None and not (across or squares or law.maps or law.windows)


# ---- Validation


class ProgramError(ValueError):
    """A program that cannot be run: a mistake of the lowering or of a pass."""


def used(step: Step) -> list[str]:
    """The numbers that a step uses."""
    found: list[str] = []
    match step:
        case Let(value=value) | Keep(value=value):
            found = [name for product in value for name in product]
        case Call(arguments=names):
            found = list(names)
        case Slide(name=own, arguments=names):
            found = [n for n in names if n != own]
        case Move(decay=decay, scale=scale):
            found = [decay, scale]
        case Grow(by=by):
            found = [by]
        case Write(sums=sums):
            found = [n for _, parts in sums for n, _ in parts]
        case Each(arguments=names, entries=entries) | Total(arguments=names, entries=entries):
            found = [n for n in names if n not in entries]
        case Outer(z=(number, _), equation=equation):
            found = [n for n in (number, *equation) if n]
    return found


def bound(step: Step) -> list[str]:
    """The numbers that a step makes."""
    match step:
        case Dot(name=name) | Let(name=name) | Total(name=name):
            return [name]
        case Call(results=results):
            return [name for name in flat(results) if name != UNUSED]
        case _:
            return []


def check(program: Program) -> Program:
    """The program, if every name is known when it is used and means one thing.

    A loop that uses a number before it is made would go on with that of the step or learner before:
    silently, and wrongly.
    """
    lasting = [*program.memory, *("_".join(pair) for pair in program.products)]
    given = [*program.facts, *program.carried, *program.params, *lasting]
    known = set(given)
    whole = {*program.vectors, *program.traces, *FEATURES}

    def require(true: bool, problem: str) -> None:
        if not true:
            raise ProgramError(f"{program.name}: {problem}.")

    require(len(known) == len(given), "a name means two things")
    for step in program.every:
        for name in used(step):
            require(name in known, f"'{name}' is not known in '{step}'")
        for name in bound(step):
            require(name not in known, f"'{name}' is made twice, in '{step}'")
            known.add(name)
        vectors: set[str] = set()
        match step:
            case Dot():
                vectors = set(step.pair)
            case Grow(vector=v) | Move(trace=v):
                vectors = {v}
            case Write(sums=sums):
                vectors = {v for v, _ in sums} | {b for _, parts in sums for _, b in parts}
            case Each(results=results, entries=entries):
                vectors = {*results, *entries}
            case Total(entries=entries):
                vectors = set(entries)
        if isinstance(step, Call | Slide | Each | Total):
            expected = arguments(program.functions[step.function])
            require(len(step.arguments) == len(expected), f"wrong arguments in '{step}'")
        require(vectors <= whole, f"no such vector in '{step}'")
    return program
