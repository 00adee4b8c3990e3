"""Traces at the cost of the active features, exactly: for runs, and for a Horde (`layouts.horde`).

`docs/engine.md` derives the form. A trace belongs to a *group*: the lanes of a block that agree in
all that decides it. Decays are numbers, not passes over all features: with the row s of feature k
in group g, and lane j of g,

    z_k = Z[k, g] I[s, g] C[g],      v_k = B[j] (V[k, j] + Z[k, g] (A[s, j] + S[j] I[s, g])).

A feature is in the row that was open when it was last active. A decay goes to C, a multiple of the
trace that is written goes to S. When C leaves its range, both are folded into the rows,

    A[s] += S I[s],      I[s] *= C,      S = 0,      C = 1,

and the next row is opened. The rows are a *ring*. Features that are still in the oldest row are
settled before it is opened again, some in every step, so that no step is long: V_k += Z_k A[s],
Z_k *= I[s]. Then they are in the open row, or in none where the trace has died away. `listed` are
the features of a group that are in a row, so each costs as often as it was active.

A step reads every active feature once,

    v.x = B (V.x + sum over s of A[s] (Z_s.x) + S sum over s of I[s] (Z_s.x)),

computes all numbers in one loop over lanes, and writes every active feature once:

    V_k += Z_k A[s] + (m - S add) x_k,      Z_k = Z_k I[s] + add x_k,      add = scale / C,

where m is the multiple of x. `active_program` puts the steps of a law in this order.
"""

from __future__ import annotations

from collections.abc import Iterable

from steadytd.engine.law import Law
from steadytd.engine.step.layouts.lanes import Lanes
from steadytd.engine.step.program import (
    FEATURES,
    Dot,
    Each,
    Grow,
    Keep,
    Move,
    Program,
    Skip,
    Write,
    active_program,
    bound,
    used,
)
from steadytd.engine.step.statements import For, If, Statement, bind, lanes
from steadytd.engine.step.targets import numba

ROWS = 8  # of the ring
NONE = ROWS  # the row of a feature whose traces are 0
TURN = 8  # steps in which the features of the oldest row are found
HIGH = 4.0  # the largest C
COUNTS = ("open_row", "count", "swept", "remain", "filled")  # of a group; see `Active.moves`
LIMITS = {  # least C, least I (below it a trace is forgotten), least B, by the type of V
    "float64": (2.0**-13, 2.0**-80, 1e-100),
    "float32": (2.0**-5, 2.0**-35, 1e-10),
}


def asked_by_traces(program: Program) -> set[str]:
    """All numbers that decide a trace: lanes that agree in them share it."""
    found = {n for step in program.every if isinstance(step, Move) for n in used(step)}
    size = 0
    while len(found) > size:
        size = len(found)
        for step in program.every:
            made = [step.name] if isinstance(step, Keep) else bound(step)
            found |= set(used(step)) if found & set(made) else set()
    return found


def traces_are_own(program: Program) -> bool:
    """Whether weights decide a trace, so that every lane has one of its own."""
    asked = asked_by_traces(program)
    read = (step for step in program.every if isinstance(step, Dot) and step.name in asked)
    return any(dot.left in program.vectors for dot in read)


def active_source(law: Law, traced: bool, averaged: bool = False) -> str:
    """The source of the loop of a run whose traces cost what the active features cost."""
    return Active(active_program(law, traced)).source("at the active features")


class Active(Lanes):
    """Writes the loop of a block from the program of `active_program`."""

    tables: tuple[str, ...] = (
        "diverged", "carry", "event", "factor", "row", "row_next", "facts", "first", "length",
        "offset", "feature", "value", "first_step", "begin", "end",
    )  # fmt: skip
    places: tuple[str, ...] = ()  # of a lane's facts

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
        body: list[Statement] = [
            bind("features", "V_w.shape[0]"), bind("lanes", "V_w.shape[2]"),
            *(bind(name, f"limits[{i}]") for i, name in enumerate(("least", "gone", "small"))),
            *([bind("groups", "index(row_of.shape[1])")] if self.program.traces else []),
            *self.time(self.steps(self.program.steps)),
        ]  # fmt: skip
        scratch = [len(some) for some in self.scratch()]
        return numba.head(self.program.name, path) + numba.blocked(
            self.arrays(), self.tables, scratch, numba.printed(body)
        )

    def lasting_numbers(self) -> list[str]:
        """What lasts from step to step, one number a lane."""
        program = self.program
        products = ["_".join(pair) for pair in program.products]
        kept = [f"_{name}" for name in (*program.memory, *products)]
        listed = ["L_count", "L_gone"] if program.lists else []
        return [*kept, *listed, *(f"B_{v}" for v in self.grown)]

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
        traced = bool(program.traces)
        tables = {
            "A[b, {}]": [f"A_{v}_{z}" for v, z in program.pairs],
            "I[b, {}]": [f"I_{z}" for z in program.traces],
            "S[b, {}]": [f"S_{v}_{z}" for v, z in program.pairs],
            "C[b, {}]": [f"C_{z}" for z in program.traces],
            "M[b, {}]": self.lasting_numbers(), "params[b, {}]": [f"_{p}" for p in program.params],
            "counts[b, {}]": COUNTS, "places[b, {}]": self.places,
            "Z[{}, cells].reshape(shape)": [f"Z_{z}" for z in program.traces],
            "E[b, {}]": self.lists if program.lists else (),
            "row_of[cells].reshape(shape)": ["row_of"] * traced,
            "listed[cells].reshape(shape[::-1])": ["listed"] * traced,
            "sums[{}]": sums, "numbers[{}]": numbers, "rows[{}]": rows,
        }  # fmt: skip
        found = {f"V_{v}": "V[b]" for v in program.vectors}
        found |= {n: at.format(i) for at, names in tables.items() for i, n in enumerate(names)}
        return found | {"starts": "starts[b]", "limits": "limits"}

    def cell(self, vector: str) -> str:
        """What is stored for entry k of a vector; all vectors of a feature are one row."""
        return f"V_{vector}[k, {self.program.vectors.index(vector)}, j]"

    def entry(self, name: str) -> str:
        """Entry k of a vector in lane j, or of the features."""
        return "x_k" if name in FEATURES else self.cell(name)

    # ---- Loops

    def over_groups(self, body: Iterable[Statement]) -> list[Statement]:
        """For every group g."""
        found = list(body)
        return [For("g", "0", "groups", found)] if found else []

    def over_group(self, body: Iterable[Statement]) -> list[Statement]:
        """For every lane j of group g."""
        found = list(body)
        return [For("j", "starts[g]", "starts[g + 1]", found)] if found else []

    def skips(self, step: Skip, located: bool) -> list[Statement]:
        """Numbers are not made where rho = 0: nothing is written there."""
        made = [self.scalar(one) for one in step.steps]
        grown = {one.by for one in self.program.every if isinstance(one, Grow)}
        names = [n for n in self.stored if any(n in bound(one) for one in step.steps)]
        nothing = [f"_{name}[j] = {'1.0' if name in grown else '0.0'}" for name in names]
        self.close()
        return lanes([If(f"{self.number('rho')} != 0.0", made, list(nothing))])

    # ---- Reading

    def dots(self, steps: list[Dot]) -> list[Statement]:
        """All inner products of a step."""
        found: list[Statement] = [
            bind(f"_{dot.name}", self.feature_dot(dot)) for dot in steps if dot.left in FEATURES
        ]
        found += lanes(f"sum_{dot.name}[j] = 0.0" for dot in self.of_vectors)
        pairs = [(z, basis) for z in self.program.traces for basis in FEATURES]
        rows = [f"{z}_on_{basis}[r, g] = 0.0" for z, basis in pairs]
        found += [For("r", "0", f"{NONE + 1}", self.over_groups(rows))] if rows else []
        for basis in FEATURES:
            found += self.over(basis, self.read(basis))
        lines = [f"_{dot.name}[j] = {self.product(dot)}" for dot in self.of_vectors]
        if not self.program.traces:
            return found + lanes(lines)
        lines += [f"_{d.name}[j] = C_{d.left}[g] * all_{d.left}_{d.right}" for d in self.of_traces]
        alive = (bind(f"all_{z}_{b}", self.over_rows(f"I_{z}[{{}}, g]", z, b)) for z, b in pairs)
        return found + self.over_groups([*alive, *self.over_group(lines)])

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

    def product(self, dot: Dot) -> str:
        """v.x from V.x and from what each row of its traces adds."""
        v, basis = dot.pair
        terms = [f"sum_{dot.name}[j]"]
        for z in self.along[v]:
            terms += [
                f"S_{v}_{z}[j] * all_{z}_{basis}",
                self.over_rows(f"A_{v}_{z}[{{}}, j]", z, basis),
            ]
        total = " + ".join(terms)
        return f"({total}) * B_{v}[j]" if v in self.grown else total

    def over_rows(self, factor: str, z: str, basis: str) -> str:
        """The sum over the rows s of a factor times Z_s.x."""
        return " + ".join(f"{factor.format(r)} * {z}_on_{basis}[{r}, g]" for r in range(ROWS))

    # ---- Moving on

    def moves(self, steps: list[Move]) -> list[Statement]:
        """Traces decay, some of the oldest row is settled, and it is opened where a C is late.

        An open row that no feature is in (`filled` = 0) stays open, so that ratios of 0 do not
        turn the ring. The first `count` of a group's `listed` features are in rows; those up to
        `swept` were looked at since the ring has turned, and `remain` of them stay in the list.
        """
        scales = [f"C_{step.trace}[g]" for step in steps]
        late = [f"(({c} < least) | ({c} > {HIGH}) | ({c} != {c}))" for c in scales]
        folded = [If(out, self.fold(s.trace)) for s, out in zip(steps, late, strict=True)]
        turned: list[Statement] = [bind("now", "oldest"), "open_row[g] = now"]
        turned += [f"{name}[g] = 0" for name in ("swept", "remain", "filled")]
        fresh = self.over_group(f"A_{v}_{z}[index(now), j] = 0.0" for v, z in self.program.pairs)
        fresh += [f"I_{z}[index(now), g] = 1.0" for z in self.program.traces]
        return self.over_groups([
            bind("j", "starts[g]"),
            *(f"{c} *= {self.number(s.decay)}" for c, s in zip(scales, steps, strict=True)),
            bind("due", " | ".join(late)), bind("turns", "due & (filled[g] != 0)"),
            bind("now", "open_row[g]"), bind("oldest", f"(now + 1) % {ROWS}"),
            bind("until", f"min(count[g], swept[g] + count[g] // {TURN} + 1)"),
            bind("left", f"count[g] // {TURN * ROWS // 2} + 1"),
            If("due", [
                bind("until", "swept[g]"),
                If("turns", [bind("until", "count[g]"), bind("left", "count[g]")]),
            ]),
            *self.settle(),
            If("due", [*folded, If("turns", turned), *fresh]),
            bind("j", "starts[g]"),
            *(f"add_{s.trace}[g] = {self.number(s.scale)} / C_{s.trace}[g]" for s in steps),
            f"filled[g] |= {self.grow_here()}",
        ])  # fmt: skip

    def grow_here(self) -> str:
        """Whether a trace of group g grows in this step."""
        return " | ".join(f"(add_{z}[g] != 0.0)" for z in self.program.traces)

    def settle(self) -> list[Statement]:
        """Listed features of the oldest row, up to `until`, move to the open one, or to none.

        At most `left` of them in this step: a sweep may meet many of them one after the other.
        """
        traces = self.program.traces
        lines: list[Statement] = [If("left == 0", [bind("until", "i"), "break"]), "left -= 1"]
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
        remains: list[Statement] = ["listed[g, remain[g]] = k", "remain[g] += 1"]
        return [
            For("i", "swept[g]", "until", [
                bind("k", "index(listed[g, i])"),
                If("row_of[k, g] == oldest", lines),
                If(f"row_of[k, g] != {NONE}", remains),
            ]),
            "swept[g] = until",
            If("until == count[g]", ["swept[g] = remain[g]", "count[g] = remain[g]"]),
        ]  # fmt: skip

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

    def eachs(self, steps: list[Each]) -> list[Statement]:
        """A function of entries and of numbers, and whether what it gives is finite."""
        return [*super().eachs(steps), *lanes(self.noticed())]

    def watched(self, new: list[str]) -> list[Statement]:
        """0 * inf and 0 * NaN are NaN."""
        return [f"L_gone[j] += ({' + '.join(new)}) * 0.0"]

    def writes(self, steps: list[Write]) -> list[Statement]:
        """Multiples of traces go to S; what remains is one visit to each active feature."""
        (step,) = steps
        lines: list[Statement] = []
        for v, basis in self.written:
            has = [(u, n) for u, n in step.on(basis) if u == v]
            own = self.multiple(v, has[0][1]) if has else "0.0"
            back = (f" - S_{v}_{z}[j] * add_{z}[g]" for z in self.along[v] if basis == "x")
            lines += [f"{v}_at_{basis}[j] = {own}{''.join(back)}"]
        for v, z in self.program.pairs:
            lines += [f"S_{v}_{z}[j] += {self.multiple(v, step.number(v, z))} * C_{z}[g]"]
        lines += self.noticed()
        found = self.over_groups(self.over_group(lines)) if self.program.pairs else lanes(lines)
        for basis in FEATURES:
            here = [v for v, b in self.written if b == basis]
            added = lanes(f"{self.cell(v)} += {v}_at_{basis}[j] * x_k" for v in here)
            touched = self.over_groups(self.touch()) if basis == "x" else []
            found += self.over(basis, [*touched, *added])
        return found

    def noticed(self) -> list[Statement]:
        """Note the step in which lane j leaves the finite range: 0 * inf and 0 * NaN are NaN."""
        numbers = [f"{v}_at_{basis}[j]" for v, basis in self.written]
        numbers += [f"S_{v}_{z}[j]" for v, z in self.program.pairs]
        numbers += [f"B_{v}[j]" for v in self.grown] + ["L_gone[j]"] * self.program.lists
        gone = f"(({' + '.join(numbers)}) * 0.0 != 0.0) & (diverged[j] < 0)"
        return [f"diverged[j] = first_step + t + 1 if {gone} else diverged[j]"]

    def multiple(self, vector: str, number: str) -> str:
        """A multiple of something added to B V is that multiple / B added to V."""
        found = self.number(number)
        return f"{found} / B_{vector}[j]" if vector in self.grown else found

    def touch(self) -> list[Statement]:
        """Feature k moves to the open row of group g, and its traces grow.

        One that was in no row is listed: in place of one that a sweep has found dead, or last.
        """
        traces = self.program.traces
        if not traces:
            return []
        lines: list[Statement] = [bind("s", "index(row_of[k, g])")]
        lines += [bind(f"old_{z}", f"Z_{z}[k, g]") for z in traces]
        lines += [f"Z_{z}[k, g] = old_{z} * I_{z}[s, g] + add_{z}[g] * x_k" for z in traces]
        moved = self.over_group(
            f"{self.cell(v)} += old_{z} * A_{v}_{z}[s, j]" for v, z in self.program.pairs
        )
        place = If(
            "remain[g] < swept[g]",
            ["listed[g, remain[g]] = k", "remain[g] += 1"],
            ["listed[g, count[g]] = k", "count[g] += 1"],
        )
        here = "index(open_row[g])"
        lines += [
            If(f"s != {here}", [f"row_of[k, g] = {here}", If(f"s == {NONE}", [place], moved)])
        ]
        return [If(self.grow_here(), lines)]
