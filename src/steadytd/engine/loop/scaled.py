"""Writes the loop of a law with traces that costs O(active features) per step, exactly.

`docs/engine.md` derives the form in which traces and vectors are kept here, and `state` says
what the arrays are. A step has the phases of the plain loop:

1. *trace*: C *= decay; where C leaves its range, the history gets a new row;
2. *touch*: every active feature is brought up to date, v.x is read, and x is added to the traces;
3. *read*: the products with x_next; the products with traces are carried along as numbers;
4. *law*: as everywhere;
5. *write*: a multiple of a trace is a number added to S, one of x goes to the active features.

Nothing here loops over all features. What a lane computes does not depend on the others: a row
that another lane opened holds the same numbers as the one before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from steadytd.engine.law import Law
from steadytd.engine.loop.parts import FEATURES, lane_params
from steadytd.engine.loop.state import HIGH, LARGE, LOW, SMALL
from steadytd.engine.loop.write import Loop

LEAST = 1e-150  # what a vector is multiplied with instead of 0, so that it can still be divided by

HEADER = '''"""The loop of {name}, {path}. Written by steadytd.engine.loop.scaled; do not edit."""

import numpy as np
from numba import njit


@njit(nogil=True, error_model="numpy", pipeline_class=Disjoint, no_cfunc_wrapper=True)
def run({arrays},
        carry, event, factor, row, row_next, facts,
        first, length, offset, feature, value, first_step, begin, end):
'''


class Structure(NamedTuple):
    """What of a law decides its scaled loop, by name.

    `pairs` are a vector and a trace that it is written along; `products` those inner products with
    a trace that are carried from step to step: what the law asks for, and what these need.
    """

    pairs: list[tuple[str, str]]
    products: list[tuple[str, str]]


def structure(law: Law) -> Structure:
    """The pairs and products of a law."""
    pairs = [(v, z) for v in law.vectors for z in law.traces if z in law.writes[v]]
    found: list[tuple[str, str]] = []
    waiting = [pair for name, pair in law.products.items() if name in law.asked]
    while waiting:
        pair = in_order(law, *waiting.pop(0))
        if pair[1] in law.traces and pair[0] not in FEATURES and pair not in found:
            found.append(pair)
            waiting += [(y, pair[1]) for v, y in pairs if v == pair[0]]
    return Structure(pairs, found)


def in_order(law: Law, left: str, right: str) -> tuple[str, str]:
    """The product of two traces under one name: y.z and z.y are the same number."""
    traces = list(law.traces)
    if left in traces and right in traces:
        left, right = sorted((left, right), key=traces.index)
    return left, right


def can_be_scaled(law: Law) -> bool:
    """Whether the law's steps are of the form that `state` describes.

    They are not where a vector is mapped entry by entry, where a trace forgets what is older than
    so many steps, and where whole vectors are added to or multiplied with other ones.
    """
    across = any(b in law.vectors and b != v for v in law.vectors for b in law.writes[v])
    asked = [pair for name, pair in law.products.items() if name in law.asked]
    squares = any({left, right} <= set(law.vectors) for left, right in asked)
    odd = across or squares or law.maps or set(law.windows) & set(law.traces)
    return bool(law.traces) and law.block is None and not odd


def scaled_source(law: Law, traced: bool = True, averaged: bool = False) -> str:
    """The source of the module that runs `law` with scaled traces."""
    return ScaledLoop(law).module("with scaled traces", shown=0)


class ScaledLoop(Loop):
    """Writes the body of `run` for scaled traces."""

    head = HEADER

    def __init__(self, law: Law) -> None:
        super().__init__(law, traced=True, averaged=False)
        self.pairs, self.products = structure(law)
        self.along = {v: [z for u, z in self.pairs if u == v] for v in law.vectors}
        self.grown = [v for v in law.vectors if v in law.writes[v]]
        carried = {n for n, p in law.products.items() if in_order(law, *p) in self.products}
        self.reads = {n: p for n, p in self.reads.items() if n not in carried}
        self.before = {n: p for n, p in self.before.items() if n not in carried}
        for left, z in self.products:
            self.need(left, z)

    def need(self, left: str, z: str) -> None:
        """The inner products with features that carrying left.z along takes."""
        known = self.law.products
        if left in self.law.traces:
            self.reads["x_x"] = known["x_x"]
            self.before |= {f"{y}_x": known[f"{y}_x"] for y in (left, z)}
        else:
            self.reads[f"{left}_x"] = known[f"{left}_x"]
            for basis in FEATURES:
                if basis in self.law.writes[left]:
                    self.reads[f"{z}_{basis}"] = known[f"{z}_{basis}"]

    def module(self, path: str, shown: int) -> str:
        """The source of the whole module: the loop alone, which `ScaledBlock` drives."""
        return self.header(path) + self.body()

    def arrays(self) -> dict[str, str]:
        """The arrays that `run` works on, one argument each."""
        return dict.fromkeys(self.places(), "")

    def places(self) -> dict[str, tuple[str, int]]:
        """The arrays by the name that they have in a block, and a number in it (-1: all of it)."""
        law = self.law
        names = {
            "A": [f"A_{v}_{z}" for v, z in self.pairs],
            "I": [f"I_{z}" for z in law.traces],
            "S": [f"S_{v}_{z}" for v, z in self.pairs],
            "C": [f"C_{z}" for z in law.traces],
            "P": [f"P_{left}_{z}" for left, z in self.products],
            "M": [f"_{m}" for m in law.memory],
            "params": [f"_{p}" for p in lane_params(law)],
            "scratch": self.scratch(),
        }
        found = {name: (part, i) for part, ns in names.items() for i, name in enumerate(ns)}
        found |= {f"B_{v}": ("B", law.vectors.index(v)) for v in self.grown}
        whole = {f"T_{name}": "T" for name in (*law.vectors, *law.traces)}
        whole |= {"row_of": "at", "listed": "listed", "count": "counts"}
        return found | {name: (part, -1) for name, part in whole.items()}

    def trace_scratch(self) -> list[str]:
        """Arrays of one number per lane, of the traces."""
        added = [f"add_{z}" for z in self.law.traces]
        return [*super().trace_scratch(), *added, "late", "moved"]

    def cell(self, name: str, which: str = "") -> str:
        """Entry k of a vector or trace in lane j.

        All are one table, but each has a name of its own: no two of them overlap.
        """
        place = (*self.law.vectors, *self.law.traces).index(name)
        return f"T_{name}[k{which}, {place}, j]"

    def prepare(self) -> None:
        """What comes before the first step."""
        self.add(0, "lanes = T_w.shape[2]")
        self.add(0, "now, many_listed = count[0], count[1]")
        self.add(0, *(f"alive_{z} = count[{2 + i}]" for i, z in enumerate(self.law.traces)))

    def finish(self) -> None:
        """What comes after the last step."""
        self.add(0, "count[0], count[1] = now, many_listed")
        self.add(0, *(f"count[{2 + i}] = alive_{z}" for i, z in enumerate(self.law.traces)))
        self.add(0, "return end")

    def leave(self) -> None:
        """End where a factor B has left its range: the driver brings it back."""
        if self.grown:
            self.add(1, "if wild:", "    end = t + 1", "    break")

    def step(self, depth: int) -> None:
        """Traces, then learning."""
        for name, (left, right) in self.reads.items():
            if left in FEATURES:
                self.feature_product(depth, name, left, right)
        self.enlist(depth)
        self.trace(depth)
        self.touch(depth)
        self.read_all(depth, "x_next", self.wanted("x_next"), "_")
        self.scale_reads(depth, self.lane_reads(), "_")
        self.carry(depth)
        self.apply(depth)
        self.account(depth + 1)
        self.write(depth)

    def enlist(self, depth: int) -> None:
        """Give a row to the active features that have none.

        A loop of its own, because it looks up all their rows at once: with very many features these
        are far away in memory, and here the processor waits for all of them together.
        """
        for basis in FEATURES:
            inner = self.over_features(depth, basis)
            self.add(inner, "if row_of[k] < 0:", "    listed[many_listed] = k")
            self.add(inner, "    many_listed += 1", "    row_of[k] = 0")

    def argument(self, name: str) -> str:
        """What a law's argument is called in the loop, for lane j."""
        pair = in_order(self.law, *self.law.products.get(name, ("", "")))
        return f"P_{pair[0]}_{pair[1]}[j]" if pair in self.products else super().argument(name)

    def wanted(self, basis: str) -> dict[str, str]:
        """The inner products with x or x_next that differ from lane to lane, and what of."""
        return {n: left for n, (left, right) in self.lane_reads().items() if right == basis}

    def trace(self, depth: int) -> None:
        """Let the traces decay; open a row of the history where a scale leaves its range."""
        for basis in FEATURES:
            asked = {n: left for n, (left, right) in self.before.items() if right == basis}
            self.zero(depth, asked, "_before_")
            self.read_all(depth, basis, asked, "_before_")
        self.scale_reads(depth, self.before, "_before_")
        self.add(depth, "due = 0", "for j in range(lanes):")
        self.add(depth + 1, *(f"_{name}[j] = 0.0" for name in self.lane_reads()))
        for z, function in self.law.traces.items():
            self.add(depth + 1, f"decay_{z}[j], scale_{z}[j] = {self.call_trace(z, function)}")
        for z in self.law.traces:
            self.add(depth + 1, f"C_{z}[j] *= decay_{z}[j]", f"c = C_{z}[j]")
            self.add(depth + 1, f"due |= (c < {LOW}) | (c > {HIGH}) | (c != c)")
        self.add(depth, "if due:")
        for z in self.law.traces:
            self.add(depth + 1, f"these = Late(late, moved, outside(C_{z}, late))")
            for v, y in self.pairs:
                if y == z:
                    self.add(depth + 1, f"fold(A_{v}_{z}, I_{z}, S_{v}_{z}, these, alive_{z}, now)")
            self.add(depth + 1, f"alive_{z} = decay(I_{z}, these, alive_{z}, now)")
        self.add(depth + 1, "now += 1")
        self.add(depth, "for j in range(lanes):")
        self.add(depth + 1, *(f"add_{z}[j] = scale_{z}[j] / C_{z}[j]" for z in self.law.traces))

    def zero(self, depth: int, reads: dict[str, object] | dict[str, str], prefix: str) -> None:
        """Set sums to 0."""
        if reads:
            self.add(depth, "for j in range(lanes):")
            self.add(depth + 1, *(f"{prefix}{name}[j] = 0.0" for name in reads))

    def touch(self, depth: int) -> None:
        """Bring the active features up to date, read them, and add x to the traces."""
        self.in_pairs(depth, "x", self.touch_some)

    def touch_some(self, depth: int, which: tuple[str, ...]) -> None:
        """The same for one or two features."""
        for w in which:
            self.add(depth, f"s{w} = np.uintp(row_of[k{w}])", f"row_of[k{w}] = now")
        self.add(depth, "for j in range(lanes):")
        reads = {left: n for n, left in self.wanted("x").items()}
        for w in which:
            for z in self.law.traces:
                self.add(depth + 1, f"i_{z}{w} = I_{z}[s{w}, j]", f"old_{z}{w} = {self.cell(z, w)}")
                added = f"add_{z}[j] * x_k{w}"
                self.add(depth + 1, f"new_{z}{w} = old_{z}{w} * i_{z}{w} + {added}")
            for v in self.law.vectors:
                if self.along[v] or v in reads:
                    self.add(depth + 1, f"{v}_k{w} = {self.now(v, w)}")
        for w in which:
            for v, traces in self.along.items():
                back = "".join(f" - S_{v}_{z}[j] * new_{z}{w}" for z in traces)
                self.add(depth + 1, *([f"{self.cell(v, w)} = {v}_k{w}{back}"] if traces else []))
            self.add(depth + 1, *(f"{self.cell(z, w)} = new_{z}{w}" for z in self.law.traces))
        for name, n in reads.items():
            entry = f"new_{name}" if name in self.law.traces else f"{name}_k"
            total = f"_{n}[j]"
            for w in which:
                total = f"({total} + {entry}{w} * x_k{w})"
            self.add(depth + 1, f"_{n}[j] = {total}")

    def in_pairs(
        self, depth: int, basis: str, write: Callable[[int, tuple[str, ...]], None]
    ) -> None:
        """Loop over the active features two at a time: half the loads and stores of sums."""
        self.add(depth, f"for q in range(first_{basis}, last_{basis} - 1, 2):")
        self.look_up(depth + 1, basis, "q", "k", "x_k")
        self.look_up(depth + 1, basis, "(q + 1)", "k_2", "x_k_2")
        write(depth + 1, ("", "_2"))
        self.add(depth, f"if (last_{basis} - first_{basis}) % 2 == 1:")
        self.look_up(depth + 1, basis, f"(last_{basis} - 1)", "k", "x_k")
        write(depth + 1, ("",))

    def now(self, name: str, which: str) -> str:
        """The present entry of a vector or trace, but for B and C; `i_z` and `old_z` are known."""
        if name in self.law.traces:
            return f"old_{name}{which} * i_{name}{which}"
        moved = (
            f" + old_{z}{which} * (A_{name}_{z}[s{which}, j] + S_{name}_{z}[j] * i_{z}{which})"
            for z in self.along[name]
        )
        return self.cell(name, which) + "".join(moved)

    def read_all(self, depth: int, basis: str, wanted: dict[str, str], prefix: str) -> None:
        """Inner products with the features of x or x_next, two features at a time."""
        if wanted:
            self.in_pairs(depth, basis, lambda inner, w: self.sums(inner, wanted, prefix, w))

    def sums(self, depth: int, wanted: dict[str, str], prefix: str, which: tuple[str, ...]) -> None:
        """Add one or two features to the sums."""
        needed = {z for name in wanted.values() for z in (name, *self.along.get(name, ()))}
        traces = [z for z in self.law.traces if z in needed]
        self.add(depth, *(f"s{w} = np.uintp(row_of[k{w}])" for w in which if traces))
        self.add(depth, "for j in range(lanes):")
        for z in traces:
            for w in which:
                self.add(depth + 1, f"i_{z}{w} = I_{z}[s{w}, j]", f"old_{z}{w} = {self.cell(z, w)}")
        for n, left in wanted.items():
            total = f"{prefix}{n}[j]"
            for w in which:
                total = f"({total} + ({self.now(left, w)}) * x_k{w})"
            self.add(depth + 1, f"{prefix}{n}[j] = {total}")

    def scale_reads(self, depth: int, reads: dict[str, tuple[str, str]], prefix: str) -> None:
        """The factor that all entries of a vector or trace share."""
        factors = {n: f"C_{left}" for n, (left, _) in reads.items() if left in self.law.traces}
        factors |= {n: f"B_{left}" for n, (left, _) in reads.items() if left in self.grown}
        if factors:
            self.add(depth, "for j in range(lanes):")
            self.add(depth + 1, *(f"{prefix}{n}[j] *= {by}[j]" for n, by in factors.items()))

    def carry(self, depth: int) -> None:
        """Move the inner products with traces on, as the traces were.

        z.y <- (decay z + scale x).(decay y + scale x),    v.z <- decay v.z + scale v.x
        """
        if self.products:
            self.add(depth, "for j in range(lanes):")
        for left, z in self.products:
            total = f"decay_{z}[j] * P_{left}_{z}[j] + scale_{z}[j] * _{left}_x[j]"
            if left in self.law.traces:
                one, two = f"_before_{left}_x[j]", f"_before_{z}_x[j]"
                total = (
                    f"decay_{left}[j] * (decay_{z}[j] * P_{left}_{z}[j] + scale_{z}[j] * {one})"
                    f" + scale_{left}[j] * (decay_{z}[j] * {two} + scale_{z}[j] * x_x)"
                )
            self.add(depth + 1, f"P_{left}_{z}[j] = {total}")

    def account(self, depth: int) -> None:
        """Within the law's loop over lanes: what is written along traces and whole vectors."""
        for v in self.grown:
            self.add(depth, f"grow_{v} = 1.0 + by_{v}_{v}[j]")
            self.add(depth, f"grow_{v} = {LEAST} if abs(grow_{v}) < {LEAST} else grow_{v}")
            self.add(depth, f"B_{v}[j] *= grow_{v}")
            self.add(depth, f"wild |= (abs(B_{v}[j]) < {SMALL}) | (abs(B_{v}[j]) > {LARGE})")
        for left, z in self.products:
            if left in self.law.traces:
                continue
            start = f"grow_{left} * " if left in self.grown else ""
            terms = [f"{start}P_{left}_{z}[j]"]
            for part in self.law.writes[left]:
                if part in self.law.traces:
                    y, other = in_order(self.law, part, z)
                    terms.append(f"by_{part}_{left}[j] * P_{y}_{other}[j]")
                elif part in FEATURES:
                    terms.append(f"by_{part}_{left}[j] * _{z}_{part}[j]")
            self.add(depth, f"P_{left}_{z}[j] = {' + '.join(terms)}")
        for v, parts in self.law.writes.items():
            if v in self.grown:
                some = [p for p in parts if p != v]
                self.add(depth, *(f"by_{p}_{v}[j] /= B_{v}[j]" for p in some))
        for v, z in self.pairs:
            self.add(depth, f"S_{v}_{z}[j] += by_{z}_{v}[j] * C_{z}[j]")

    def apply(self, depth: int) -> None:
        """Call the law."""
        if self.grown:
            self.add(depth, "wild = 0")
        super().apply(depth)

    def write(self, depth: int) -> None:
        """Add the multiples of x and x_next."""
        stored = self.stored_writes()
        for basis in FEATURES:
            wanted = [v for v, parts in stored.items() if basis in parts]
            if wanted:
                inner = self.over_lanes(self.over_features(depth, basis))
                for v in wanted:
                    self.add(inner, f"{self.cell(v)} += by_{basis}_{v}[j] * x_k")
