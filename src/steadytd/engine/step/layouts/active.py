"""Traces at the cost of the active features, exactly: nothing here loops over all features.

`docs/engine.md` derives the form in which traces and vectors are kept, and `step.state` says what
the arrays are. With the row s of a feature k, and numbers per lane,

    z_k = Z_k I[s] C,      v_k = B (V_k + Z_k (A[s] + S I[s])).

The program comes from `carried_products`: inner products with traces are numbers in it. Its steps:

- a trace decays: C *= decay; where C leaves its range, the history gets a new row;
- it grows: every active feature is brought up to date and moved to the open row, and v.x is read;
- a multiple of a trace is written as a number added to S, one of x at the active features.

What a lane computes does not depend on the others: a row that another lane opened holds the same
numbers as the one before it.
"""

from __future__ import annotations

from collections.abc import Iterable

from steadytd.engine.step.layouts.lanes import row_dot
from steadytd.engine.step.layouts.layout import Layout
from steadytd.engine.step.program import FEATURES, Dot, Grow, Move, Program, Write
from steadytd.engine.step.state import HIGH, LARGE, LOW, SMALL
from steadytd.engine.step.statements import If, Statement, bind, lanes
from steadytd.engine.step.targets import numba

IMPORTS = (
    "from steadytd.engine.step.history import Late, decay, fold, outside",
    "from steadytd.engine.step.kernels import row_dot",
)


class Active(Layout):
    """Writes the loop of a program that `carried_products` made."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.along = {v: [z for u, z in program.pairs if u == v] for v in program.vectors}
        self.grown = [step.vector for step in program.steps if isinstance(step, Grow)]
        moves = [i for i, step in enumerate(program.steps) if isinstance(step, Move)]
        self.after = [
            step
            for step in program.steps[moves[0] :]
            if isinstance(step, Dot) and step.left not in FEATURES
        ]

    def source(self, path: str) -> str:
        """The source of the module that Numba compiles."""
        alive = [f"alive_{z}" for z in self.program.traces]
        counts = ["now", "many_listed", *alive]
        first: list[Statement] = [bind("lanes", "T_w.shape[2]")]
        first += [bind(name, f"count[{i}]") for i, name in enumerate(counts)]
        last = [f"count[{i}] = {name}" for i, name in enumerate(counts)]
        body = numba.printed([*first, *self.time(self.steps(self.program.steps)), *last])
        return numba.head(self.program.name, path, *IMPORTS) + numba.called(self.places(), body)

    def places(self) -> dict[str, tuple[str, int]]:
        """The arrays of the loop: what of a block each is, and its number in it (-1: all of it)."""
        program = self.program
        names = {
            "A": [f"A_{v}_{z}" for v, z in program.pairs],
            "I": [f"I_{z}" for z in program.traces],
            "S": [f"S_{v}_{z}" for v, z in program.pairs],
            "C": [f"C_{z}" for z in program.traces],
            "B": [f"B_{v}" for v in program.vectors],
            "P": [f"_{left}_{z}" for left, z in program.products],
            "M": [f"_{m}" for m in program.memory],
            "params": [f"_{p}" for p in program.params],
            "scratch": self.scratch(),
        }
        found = {name: (part, i) for part, ns in names.items() for i, name in enumerate(ns)}
        whole = {f"T_{name}": "T" for name in (*program.vectors, *program.traces)}
        whole |= {"row_of": "at", "listed": "listed", "count": "counts"}
        return found | {name: (part, -1) for name, part in whole.items()}

    def scratch(self) -> list[str]:
        """Arrays of one number a lane that last for one step."""
        added = [f"add_{z}" for z in self.program.traces]
        return [*(f"_{n}" for n in self.stored), *added, "late", "moved"]

    def cell(self, name: str) -> str:
        """What is stored for entry k of a vector or trace in lane j.

        All are one table, but each has a name of its own: no two of them overlap.
        """
        place = (*self.program.vectors, *self.program.traces).index(name)
        return f"T_{name}[k, {place}, j]"

    def locate(self) -> list[Statement]:
        """Find the active features, and give a row to those that have none.

        A loop of its own, because it looks up all their rows at once: with very many features these
        are far away in memory, and here the processor waits for all of them together.
        """
        found = [*super().locate(), bind("due", "0"), bind("wild", "0")]
        new = ["listed[many_listed] = k", "many_listed += 1", "row_of[k] = 0"]
        for basis in FEATURES:
            found += self.over(basis, [If("row_of[k] < 0", list(new))])
        return found

    def dots(self, steps: list[Dot]) -> list[Statement]:
        """Inner products with x and x_next, and the factor that all entries share.

        Those with x after the traces have moved are read where they move.
        """
        found: list[Statement] = []
        own = [dot for dot in steps if dot.left not in FEATURES]
        found += [bind(f"_{d.name}", row_dot(*d.pair)) for d in steps if d not in own]
        for basis in FEATURES:
            read = [d for d in own if d.right == basis and not (basis == "x" and d in self.after)]
            found += self.zero(read)
            found += self.over(basis, self.read(read))
        factors = {dot: f"C_{dot.left}" for dot in own if dot.left in self.program.traces}
        factors |= {dot: f"B_{dot.left}" for dot in own if dot.left in self.grown}
        return [*found, *lanes(f"_{dot.name}[j] *= {by}[j]" for dot, by in factors.items())]

    def zero(self, dots: Iterable[Dot]) -> list[Statement]:
        """Sums begin at 0."""
        return lanes(f"_{dot.name}[j] = 0.0" for dot in dots)

    def read(self, dots: list[Dot]) -> list[Statement]:
        """Add feature k to the sums."""
        needed = {z for dot in dots for z in (dot.left, *self.along.get(dot.left, ()))}
        traces = [z for z in self.program.traces if z in needed]
        sums = [f"_{dot.name}[j] += ({self.now(dot.left)}) * x_k" for dot in dots]
        row = [bind("s", "index(row_of[k])")] if traces else []
        return [*row, *lanes([*self.stored_entries(traces), *sums])] if dots else []

    def stored_entries(self, traces: Iterable[str]) -> list[Statement]:
        """The entries of traces at feature k, and what became of their row."""
        return [
            line for z in traces
            for line in (bind(f"i_{z}", f"I_{z}[s, j]"), bind(f"old_{z}", self.cell(z)))
        ]  # fmt: skip

    def now(self, name: str) -> str:
        """The present entry of a vector or trace, but for B and C; `i_z` and `old_z` are known."""
        if name in self.program.traces:
            return f"old_{name} * i_{name}"
        moved = (
            f" + old_{z} * (A_{name}_{z}[s, j] + S_{name}_{z}[j] * i_{z})" for z in self.along[name]
        )
        return self.cell(name) + "".join(moved)

    def moves(self, steps: list[Move]) -> list[Statement]:
        """Traces decay, with a new row of the history where a scale leaves its range, and grow."""
        decayed: list[Statement] = []
        folded: list[Statement] = []
        for step in steps:
            z, C = step.trace, f"C_{step.trace}"
            decayed += [f"{C}[j] *= {self.number(step.decay)}", bind("c", f"{C}[j]")]
            decayed += [f"due |= (c < {LOW}) | (c > {HIGH}) | (c != c)"]
            folded += [bind("these", f"Late(late, moved, outside({C}, late))")]
            folded += [
                f"fold(A_{v}_{z}, I_{z}, S_{v}_{z}, these, alive_{z}, now)"
                for v, y in self.program.pairs if y == z
            ]  # fmt: skip
            folded += [bind(f"alive_{z}", f"decay(I_{z}, these, alive_{z}, now)")]
        added = (f"add_{s.trace}[j] = {self.number(s.scale)} / C_{s.trace}[j]" for s in steps)
        return [
            *lanes(decayed), If("due", [*folded, "now += 1"]),
            *lanes(added), *self.zero(dot for dot in self.after if dot.right == "x"),
            *self.over("x", self.touch()),
        ]  # fmt: skip

    def touch(self) -> list[Statement]:
        """Bring feature k up to date, read it, and add x to the traces."""
        traces = self.program.traces
        reads = {dot.left: dot.name for dot in self.after if dot.right == "x"}
        lines = self.stored_entries(traces)
        lines += [bind(f"new_{z}", f"old_{z} * i_{z} + add_{z}[j] * x_k") for z in traces]
        seen = [v for v in self.program.vectors if self.along[v] or v in reads]
        lines += [bind(f"{v}_k", self.now(v)) for v in seen]
        for v, some in self.along.items():
            back = "".join(f" - S_{v}_{z}[j] * new_{z}" for z in some)
            lines += [f"{self.cell(v)} = {v}_k{back}"] if some else []
        lines += [f"{self.cell(z)} = new_{z}" for z in traces]
        for name, n in reads.items():
            lines.append(f"_{n}[j] += {f'new_{name}' if name in traces else f'{name}_k'} * x_k")
        return [bind("s", "index(row_of[k])"), "row_of[k] = now", *lanes(lines)]

    def grows(self, steps: list[Grow]) -> list[Statement]:
        """A vector as a whole is its factor B; `wild` where one leaves its range."""
        lines: list[Statement] = []
        for step in steps:
            B = f"B_{step.vector}[j]"
            lines += [f"{B} *= {self.number(step.by)}"]
            lines += [f"wild |= (abs({B}) < {SMALL}) | (abs({B}) > {LARGE})"]
        return lanes(lines)

    def writes(self, steps: list[Write]) -> list[Statement]:
        """Multiples of traces go to S, those of x and x_next to the active features.

        Where a factor B has left its range the loop ends: the block brings it back.
        """
        (step,) = steps
        lines: list[Statement] = []
        for v in self.grown:
            own = [n for n, _ in dict(step.sums)[v] if n not in self.uniform]
            lines += [f"{self.number(n)} /= B_{v}[j]" for n in own]
        for v, z in self.program.pairs:
            lines += [f"S_{v}_{z}[j] += {self.multiple(v, step.number(v, z))} * C_{z}[j]"]
        found = lanes(lines)
        for basis in FEATURES:
            found += self.over(basis, lanes(
                f"{self.cell(v)} += {self.multiple(v, n)} * x_k" for v, n in step.on(basis)
            ))  # fmt: skip
        return [*found, *([If("wild", ["end = t + 1", "break"])] if self.grown else [])]

    def multiple(self, vector: str, name: str) -> str:
        """A number that is added to a vector, over the factor that the vector has."""
        shared = vector in self.grown and name in self.uniform
        return f"{self.number(name)} / B_{vector}[j]" if shared else self.number(name)
