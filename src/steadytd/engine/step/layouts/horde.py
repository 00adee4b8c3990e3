"""A Horde: many predictions of one law, each with facts of its own, on one stream.

Predictions are lanes, in blocks of LANES. Traces cost what the active features cost, in the form of
`active` (docs/engine.md derives it), where a trace belongs to a *group*: the predictions of a block
that agree in all that decides it. With the row s of feature k in group g, and prediction j of g,

    z_k = Z[k, g] I[s, g] C[g],      v_k = B[j] (V[k, j] + Z[k, g] (A[s, j] + S[j] I[s, g])).

No live step may be long, so rows are a *ring*: when C leaves its range, the oldest row is opened
again. Features that are still in it are settled before, some in every step, by V_k += Z_k A[s],
Z_k *= I[s]; then they are in the open row, or in none where the trace has died away. A step reads
every active row of the weights once,

    v.x = B (V.x + sum over s of A[s] (Z_s.x) + S sum over s of I[s] (Z_s.x)),

computes all numbers in one loop over predictions, and writes every active row once:

    V_k += Z_k A[s] + (m - S add) x_k,      Z_k = Z_k I[s] + add x_k,      add = scale / C,

where m is the multiple of x; one of z goes to S. `horde_program` puts a program in this order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from steadytd.engine.law import Law
from steadytd.engine.step.layouts.layout import Layout
from steadytd.engine.step.program import (
    FEATURES,
    Dot,
    Grow,
    Keep,
    Let,
    Move,
    Program,
    Skip,
    Step,
    Write,
    at_active_features,
    bound,
    carried_products,
    check,
    growing,
    growth,
    law_functions,
    lower,
    used,
    without_traces,
)
from steadytd.engine.step.state import HIGH
from steadytd.engine.step.statements import For, If, Statement, bind, lanes
from steadytd.engine.step.targets import numba

LANES = 128  # predictions of a block; fewer make more of them, each with a copy of its traces
ROWS = 8  # of the ring
NONE = ROWS  # the row of a feature whose traces are 0
TURN = 8  # steps in which the oldest row is settled
COLUMNS = {
    "reward": "cumulants[t, column_c[j]]",
    "gamma_next": "discounts[t, column_d[j]]",
    "gamma_carried": "discounts[t, column_d[j]] * carries[t]",
    "rho": "rhos[t, column_p[j]]",
    "pi": "pis[t, column_p[j]]",
    "mu": "mus[t, column_p[j]]",
    "peak_min": "peaks_min[t, column_p[j]]",
    "peak_max": "peaks_max[t, column_p[j]]",
    "interest": "interests[t]",
}
TABLES = (
    "cumulants", "discounts", "rhos", "pis", "mus", "peaks_min", "peaks_max", "interests",
    "carries", "factors", "dots", "first_x", "feature_x", "value_x",
    "first_x_next", "feature_x_next", "value_x_next",
)  # fmt: skip
PLACES = ("column_c", "column_p", "column_d", "column_s", "group_of")
COUNTS = ("open_row", "swept", "filled")  # the open row; how far the oldest is settled; any in it
DOTS = {"x_x": 0, "x_x_next": 1, "x_next_x_next": 2}


def fits(law: Law, averaged: bool) -> bool:
    """Whether a prediction's step can be taken at the active features alone."""
    return at_active_features(law) and not law.windows and not averaged


@cache
def horde_program(law: Law, traced: bool) -> Program:
    """The program of a law with its inner products first, then numbers, then what is written.

    Inner products of a trace are those before it moves on; after it, z.x is a number.
    """
    lowered = lower(law)
    program = carried_products(lowered) if traced else without_traces(lowered)
    reads = {f"w_{basis}": Dot(f"w_{basis}", "w", basis) for basis in FEATURES}  # for the TD error
    numbers: list[Step] = []
    last: list[Step] = []
    always = 0  # numbers that a step with rho = 0 makes, too
    for step in program.every:
        match step:
            case Dot(name, z, basis) if z in program.traces and name == f"{z}_{basis}":
                before, with_x = f"before_{name}", f"x_{basis}"
                reads |= {before: Dot(before, z, basis), with_x: Dot(with_x, "x", basis)}
                numbers.append(Let(name, ((f"decay_{z}", before), (f"scale_{z}", with_x))))
            case Dot(name):
                reads[name] = step
            case Skip():
                always = len(numbers)
            case Move() | Grow():
                last.append(step)
            case Write():
                made = [step] if traced else list(growing(program, step))
                numbers += (one for one in made if bound(one))
                last += (one for one in made if not bound(one))
            case _:
                numbers.append(step)
    if program.idle_at_rho_zero and not traced:
        numbers = [*numbers[:always], Skip(tuple(numbers[always:]))]
    steps = (*reads.values(), *numbers, *last)
    return check(replace(program, steps=steps, functions=law_functions(law) | {"growth": growth}))


def asked_by_traces(program: Program) -> set[str]:
    """All numbers that decide a trace: predictions that agree in them may share it."""
    found = {n for step in program.every if isinstance(step, Move) for n in used(step)}
    size = 0
    while len(found) > size:
        size = len(found)
        for step in program.every:
            made = [step.name] if isinstance(step, Keep) else bound(step)
            found |= set(used(step)) if found & set(made) else set()
    return found


def traces_are_own(program: Program) -> bool:
    """Whether weights decide a trace, so that every prediction has one of its own."""
    asked = asked_by_traces(program)
    read = (step for step in program.every if isinstance(step, Dot) and step.name in asked)
    return any(dot.left in program.vectors for dot in read)


def horde_source(law: Law, traced: bool, averaged: bool = False) -> str:
    """The source of the loop of a law's predictions, with trace vectors or without."""
    return Horde(horde_program(law, traced)).source(f"{'with' if traced else 'without'} traces")


class Horde(Layout):
    """Writes the loop of a block of predictions from the program of `horde_program`."""

    common = frozenset({"interest"})

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.along = {v: [z for u, z in program.pairs if u == v] for v in program.vectors}
        self.grown = [step.vector for step in program.every if isinstance(step, Grow)]
        dots = [s for s in program.every if isinstance(s, Dot) and s.left not in FEATURES]
        self.of_vectors = [dot for dot in dots if dot.left in program.vectors]
        self.of_traces = [dot for dot in dots if dot.left in program.traces]
        bases = {b: [v for v, _ in program.write.on(b)] for b in FEATURES}
        bases["x"] = [v for v in program.vectors if v in bases["x"] or self.along[v]]
        self.written = [(v, b) for b in FEATURES for v in bases[b]]

    # ---- Arrays and names

    def source(self, path: str) -> str:
        """The source of the module that Numba compiles."""
        step = self.steps(self.program.steps)
        carried = lanes(
            f"last_{now}[j] = {COLUMNS[then]}" for now, then in self.program.carried.items()
        )
        body: list[Statement] = [
            bind("lanes", f"index({LANES})"), bind("features", "len(V_w)"),
            *(bind(name, f"limits[{i}]") for i, name in enumerate(("least", "gone", "small"))),
            *([bind("count", "index(row_of.shape[1])")] if self.program.traces else []),
            For("t", "0", "len(first_x) - 1", [*step, *carried]),
        ]  # fmt: skip
        return numba.head(self.program.name, f"of a Horde, {path}") + numba.blocked(
            self.arrays(), TABLES, [len(some) for some in self.scratch()], numba.printed(body)
        )

    def kept_numbers(self) -> list[str]:
        """What lasts from step to step, one number a prediction."""
        program = self.program
        products = ["_".join(pair) for pair in program.products]
        kept = [f"_{name}" for name in (*program.memory, *products)]
        return [*kept, *(f"last_{now}" for now in program.carried), *(f"B_{v}" for v in self.grown)]

    def scratch(self) -> tuple[list[str], list[str], list[str]]:
        """Arrays that last for one step: of the type of the weights, doubles, one for each row."""
        sums = [f"sum_{dot.name}" for dot in self.of_vectors]
        sums += [f"{v}_at_{basis}" for v, basis in self.written]
        numbers = [*(f"_{n}" for n in self.stored), *(f"add_{z}" for z in self.program.traces)]
        return sums, numbers, [f"{z}_on_{b}" for z in self.program.traces for b in FEATURES]

    def arrays(self) -> dict[str, str]:
        """The arrays of the loop, and how block b finds each of them.

        Each is an argument of its own: so the compiler knows that no two overlap.
        """
        program = self.program
        sums, numbers, rows = self.scratch()
        tables = {
            "A[b, {}]": [f"A_{v}_{z}" for v, z in program.pairs],
            "I[b, {}]": [f"I_{z}" for z in program.traces],
            "S[b, {}]": [f"S_{v}_{z}" for v, z in program.pairs],
            "C[b, {}]": [f"C_{z}" for z in program.traces],
            "M[b, {}]": self.kept_numbers(), "params[b, {}]": [f"_{p}" for p in program.params],
            "counts[b, {}]": COUNTS, "places[b, {}]": PLACES,
            "Z[{}, cells].reshape(shape)": [f"Z_{z}" for z in program.traces],
            "row_of[cells].reshape(shape)": ["row_of"] if program.traces else [],
            "sums[{}]": sums, "numbers[{}]": numbers, "rows[{}]": rows,
        }  # fmt: skip
        found = {f"V_{v}": "V[b]" for v in program.vectors}
        found |= {n: at.format(i) for at, names in tables.items() for i, n in enumerate(names)}
        rest = {"starts": "starts[b]", "delta": "out[:, b]", "limits": "limits"}
        return found | rest

    def number(self, name: str) -> str:
        """What a number is called, for prediction j."""
        if name in COLUMNS:
            return COLUMNS[name]
        if name in self.program.carried:
            return f"last_{name}[j]"
        return "_alpha[j] * factors[t, column_s[j]]" if name == "alpha" else super().number(name)

    def cell(self, vector: str) -> str:
        """What is stored for entry k of a vector; all vectors of a feature are one row."""
        return f"V_{vector}[k, {self.program.vectors.index(vector)}, j]"

    # ---- Loops

    def locate(self) -> list[Statement]:
        """Features are given step by step: there is nothing to find."""
        return []

    def over(self, basis: str, body: Iterable[Statement]) -> list[Statement]:
        """For the active features k of x or x_next, with value x_k."""
        k = bind("k", f"index(feature_{basis}[index(q)])")
        x_k = bind("x_k", f"value_{basis}[index(q)]")
        found = list(body)
        inside: list[Statement] = [k, x_k, *found]
        return [For("q", f"first_{basis}[t]", f"first_{basis}[t + 1]", inside)] if found else []

    def over_groups(self, body: Iterable[Statement]) -> list[Statement]:
        """For every group g."""
        found = list(body)
        return [For("g", "0", "count", found)] if found else []

    def over_group(self, body: Iterable[Statement]) -> list[Statement]:
        """For every prediction j of group g."""
        found = list(body)
        return [For("j", "starts[g]", "starts[g + 1]", found)] if found else []

    def skips(self, step: Skip, located: bool) -> list[Statement]:
        """Numbers are not made where rho = 0: nothing is written there."""
        made = [self.scalar(one) for one in step.steps]
        grown = {one.by for one in self.program.every if isinstance(one, Grow)}
        names = [n for n in self.stored if any(n in bound(one) for one in step.steps)]
        nothing = [f"_{name}[j] = {'1.0' if name in grown else '0.0'}" for name in names]
        self.close()
        return lanes([If(f"{COLUMNS['rho']} != 0.0", made, list(nothing))])

    # ---- Reading

    def dots(self, steps: list[Dot]) -> list[Statement]:
        """All inner products of a step, and the TD error."""
        found: list[Statement] = [
            bind(f"_{dot.name}", f"dots[t, {DOTS[dot.name]}]")
            for dot in steps if dot.left in FEATURES
        ]  # fmt: skip
        found += lanes(f"sum_{dot.name}[j] = 0.0" for dot in self.of_vectors)
        rows = [f"{z}_on_{b}[r, g] = 0.0" for z in self.program.traces for b in FEATURES]
        found += [For("r", "0", f"{NONE + 1}", self.over_groups(rows))] if rows else []
        for basis in FEATURES:
            found += self.over(basis, self.read(basis))
        found += lanes(f"_{dot.name}[j] = sum_{dot.name}[j]" for dot in self.of_vectors)
        found += self.over_groups(
            line for z in self.program.traces for b in FEATURES for line in self.with_trace(z, b)
        )
        found += lanes(
            f"_{d.name}[j] *= B_{d.left}[j]" for d in self.of_vectors if d.left in self.grown
        )
        reward, gamma = COLUMNS["reward"], COLUMNS["gamma_next"]
        return [*found, *lanes([f"delta[t, j] = {reward} + {gamma} * _w_x_next[j] - _w_x[j]"])]

    def read(self, basis: str) -> list[Statement]:
        """Add feature k to V.x, and to the Z_s.x of its row in every group."""
        traces = [
            f"{z}_on_{basis}[index(row_of[k, g]), g] += Z_{z}[k, g] * x_k"
            for z in self.program.traces
        ]
        sums = (
            f"sum_{dot.name}[j] += {self.cell(dot.left)} * x_k"
            for dot in self.of_vectors if dot.right == basis
        )  # fmt: skip
        return [*self.over_groups(traces), *lanes(sums)]

    def with_trace(self, z: str, basis: str) -> list[Statement]:
        """What the rows of a trace in group g add to v.x, and z.x."""
        read = [(f"_{d.name}[j]", d.left) for d in self.of_vectors if d.right == basis]
        read = [(name, v) for name, v in read if z in self.along[v]]
        asked = [f"_{d.name}[j]" for d in self.of_traces if d.pair == (z, basis)]
        added = self.over_group(f"{name} += A_{v}_{z}[r, j] * on_row" for name, v in read)
        lines = [f"{name} += S_{v}_{z}[j] * all_rows" for name, v in read]
        lines += [f"{name} = C_{z}[g] * all_rows" for name in asked]
        one_row: list[Statement] = [f"all_rows += I_{z}[r, g] * on_row", *added]
        rows: list[Statement] = [bind("on_row", f"{z}_on_{basis}[r, g]")]
        rows += [If("on_row != 0.0", one_row)]
        summed: list[Statement] = [bind("all_rows", "0.0"), For("r", "0", f"{ROWS}", rows)]
        return [*summed, *self.over_group(lines)] if lines else []

    # ---- Moving on

    def moves(self, steps: list[Move]) -> list[Statement]:
        """Traces decay, some of the oldest row is settled, and it is opened where a C is late.

        An open row that no feature is in stays open, so that ratios of 0 do not turn the ring.
        """
        scales = [f"C_{step.trace}[g]" for step in steps]
        late = [f"(({c} < least) | ({c} > {HIGH}) | ({c} != {c}))" for c in scales]
        folded = [If(out, self.fold(s.trace)) for s, out in zip(steps, late, strict=True)]
        turned: list[Statement] = [bind("now", "oldest"), "open_row[g] = now"]
        turned += ["swept[g] = 0", "filled[g] = 0"]
        fresh = self.over_group(f"A_{v}_{z}[index(now), j] = 0.0" for v, z in self.program.pairs)
        fresh += [f"I_{z}[index(now), g] = 1.0" for z in self.program.traces]
        all_of_it = If("turns", [bind("until", "features")], [bind("until", "swept[g]")])
        return self.over_groups([
            bind("j", "starts[g]"),
            *(f"{c} *= {self.number(s.decay)}" for c, s in zip(scales, steps, strict=True)),
            bind("due", " | ".join(late)), bind("turns", "due & (filled[g] != 0)"),
            bind("now", "open_row[g]"), bind("oldest", f"(now + 1) % {ROWS}"),
            bind("until", f"min(features, swept[g] + features // {TURN} + 1)"),
            If("due", [all_of_it]), *self.settle(), "swept[g] = until",
            If("due", [*folded, If("turns", turned), *fresh]),
            bind("j", "starts[g]"),
            *(f"add_{s.trace}[g] = {self.number(s.scale)} / C_{s.trace}[g]" for s in steps),
            f"filled[g] |= {self.grow_here()}",
        ])  # fmt: skip

    def grow_here(self) -> str:
        """Whether a trace of group g grows in this step."""
        return " | ".join(f"(add_{z}[g] != 0.0)" for z in self.program.traces)

    def settle(self) -> list[Statement]:
        """Features of the oldest row, as far as `until`, move to the open one, or to none."""
        traces = self.program.traces
        lines: list[Statement] = []
        for z in traces:
            added = [
                f"{self.cell(v)} += z_k * A_{v}_{z}[index(oldest), j]"
                for v in self.program.vectors if z in self.along[v]
            ]  # fmt: skip
            lines += [bind("z_k", f"Z_{z}[k, g]"), *self.over_group(added)]
            lines += [f"Z_{z}[k, g] = z_k * I_{z}[index(oldest), g]"]
        lines += [f"row_of[k, g] = {NONE}"]
        alive = " | ".join(f"(Z_{z}[k, g] != 0.0)" for z in traces)
        lines += [If(alive, ["row_of[k, g] = now", "filled[g] = 1"])]
        here = If("row_of[k, g] == oldest", lines)
        return [For("k", "index(swept[g])", "index(until)", [here])]

    def fold(self, z: str) -> list[Statement]:
        """A += S I, I *= C in all rows, then S = 0, C = 1."""
        pairs = [f"{v}_{z}" for v in self.program.vectors if z in self.along[v]]
        folded = self.over_group(f"A_{p}[r, j] += S_{p}[j] * I_{z}[r, g]" for p in pairs)
        moved = [f"I_{z}[r, g] *= C_{z}[g]"]
        forgotten = If(f"not abs(I_{z}[r, g]) >= gone", [f"I_{z}[r, g] = 0.0"])
        rows = If(f"I_{z}[r, g] != 0.0", [*folded, *moved, forgotten])
        after = self.over_group(f"S_{p}[j] = 0.0" for p in pairs)
        return [For("r", "0", f"{ROWS}", [rows]), *after, f"C_{z}[g] = 1.0"]

    def grows(self, steps: list[Grow]) -> list[Statement]:
        """A vector as a whole is its factor B; where it leaves its range, it goes into V."""
        found: list[Statement] = []
        for step in steps:
            v, B = step.vector, f"B_{step.vector}[j]"
            pairs = [f"{v}_{z}" for z in self.along[v]]
            all_rows = [f"A_{p}[r, j] *= {B}" for p in pairs]
            inner: list[Statement] = [For("k", "0", "index(features)", [f"{self.cell(v)} *= {B}"])]
            inner += [f"S_{p}[j] *= {B}" for p in pairs]
            inner += [For("r", "0", f"{ROWS}", list(all_rows))] if all_rows else []
            inside = f"(abs({B}) > small) & (abs({B}) < 1.0 / small)"
            found += [f"{B} *= {self.number(step.by)}"]
            found += [If(inside, ["pass"], [*inner, f"{B} = 1.0"])]
        return lanes(found)

    # ---- Writing

    def writes(self, steps: list[Write]) -> list[Statement]:
        """Multiples of traces go to S; what remains is one visit to each active row."""
        (step,) = steps
        lines: list[Statement] = [bind("g", "index(group_of[j])")] if self.program.pairs else []
        for v, basis in self.written:
            has = [(u, n) for u, n in step.on(basis) if u == v]
            own = self.multiple(v, has[0][1]) if has else "0.0"
            back = (f" - S_{v}_{z}[j] * add_{z}[g]" for z in self.along[v] if basis == "x")
            lines += [f"{v}_at_{basis}[j] = {own}{''.join(back)}"]
        for v, z in self.program.pairs:
            lines += [f"S_{v}_{z}[j] += {self.multiple(v, step.number(v, z))} * C_{z}[g]"]
        found = lanes(lines)
        for basis in FEATURES:
            here = [v for v, b in self.written if b == basis]
            added = lanes(f"{self.cell(v)} += {v}_at_{basis}[j] * x_k" for v in here)
            touched = self.over_groups(self.touch()) if basis == "x" else []
            found += self.over(basis, [*touched, *added])
        return found

    def multiple(self, vector: str, number: str) -> str:
        """A multiple of something added to B V is that multiple / B added to V."""
        found = self.number(number)
        return f"{found} / B_{vector}[j]" if vector in self.grown else found

    def touch(self) -> list[Statement]:
        """Feature k moves to the open row of group g, and its traces grow."""
        traces = self.program.traces
        if not traces:
            return []
        lines: list[Statement] = [bind("s", "index(row_of[k, g])")]
        lines += [bind(f"old_{z}", f"Z_{z}[k, g]") for z in traces]
        lines += [f"Z_{z}[k, g] = old_{z} * I_{z}[s, g] + add_{z}[g] * x_k" for z in traces]
        moved = self.over_group(
            f"{self.cell(v)} += old_{z} * A_{v}_{z}[s, j]" for v, z in self.program.pairs
        )
        here = "index(open_row[g])"
        lines += [If(f"s != {here}", [f"row_of[k, g] = {here}", *moved])]
        return [If(self.grow_here(), lines)]
