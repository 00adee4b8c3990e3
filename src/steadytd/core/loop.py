"""Writes the compiled loop of a law: one stream, many learners as lanes.

Vectors are stored feature-major, `V[vector, feature, lane]`, so that every innermost loop runs over
contiguous lanes without a reduction: the compiler vectorises it under strict IEEE arithmetic, and a
lane's bits do not depend on its neighbours. A step has four phases, each a loop over lanes:

1. *trace*: memory and traces move on (only where the law has them);
2. *read*: inner products of the vectors with x, x_next and the traces;
3. *law*: the law's own arithmetic, from inner products to multiples;
4. *write*: the multiples of x, x_next and the traces are added to the vectors.

The loop is written out as Python source, once per law and path (with or without trace vectors),
because the loop of a law with one vector has no business paying for a law with three. Read one with
`steadytd show learner NAME --kernel`.
"""

from __future__ import annotations

from steadytd.core.law import CARRIED, STEP_FACTS, Function, Law, arguments

HEADER = '''"""The loop of {name}, {path}. Written by steadytd.core.loop; do not edit."""

import numpy as np
from numba import njit


@njit(nogil=True, error_model="numpy")
def advance(V, Z, M, carry, params, event, factor, row, row_next, facts,
            first, length, offset, feature, value, begin, end):
'''

# The driver runs `advance` from stop to stop. Where a lane has left the finite range since the last
# stop, it goes back and repeats that stretch one step at a time, so that the exact step is known
# without a check in the inner loop. The repeated stretch gives the same bits.
DRIVER = """

@njit(cache=True, nogil=True, error_model="numpy")
def run(state, kept, V, Z, M, carry, params, event, factor, row, row_next, facts,
        first, length, offset, feature, value, stops, records,
        goal_first, goal_length, goal_offset, goal_feature, goal_value, weight, target,
        errors, diverged, first_step):
    begin = np.int64(0)
    stop = 0
    recorded = 0
    repeating = False
    while stop < len(stops):
        end = begin + 1 if repeating else stops[stop]
        if not repeating:
            copy(state, kept)
        advance(V, Z, M, carry, params, event, factor, row, row_next, facts,
                first, length, offset, feature, value, begin, end)
        if repeating:
            mark_diverged(V, diverged, first_step + end)
        elif leaves_finite_range(V, diverged):
            copy(kept, state)
            repeating = True
            continue
        begin = end
        if begin == stops[stop]:
            repeating = False
            if records[stop]:
                measure(V[0], goal_first, goal_length, goal_offset, goal_feature, goal_value,
                        weight, target, diverged, errors[recorded])
                recorded += 1
            stop += 1
"""


def loop_source(law: Law, traced: bool) -> str:
    """The source of the module that runs `law`, with trace vectors or (at lam = 0) without."""
    path = "with trace vectors" if traced else "without trace vectors"
    return HEADER.format(name=law.name, path=path) + _Loop(law, traced).body() + DRIVER


class _Loop:
    """Writes the body of `advance` line by line."""

    def __init__(self, law: Law, traced: bool) -> None:
        self.law = law
        self.traced = traced
        self.lines: list[str] = []
        self.asked = set(arguments(law.update))
        self.reads = {n: p for n, p in law.products.items() if n in self.asked}
        if not traced:  # z is a multiple of x, so h.z is that multiple of h.x
            for vector, basis in list(self.reads.values()):
                if basis in law.traces:
                    self.reads.setdefault(f"{vector}_x", (vector, "x"))

    def add(self, depth: int, *lines: str) -> None:
        self.lines += ["    " * (depth + 1) + line for line in lines]

    def body(self) -> str:
        self.prepare()
        self.add(0, "for t in range(begin, end):")
        self.add(1, "e = event[t]")
        for i, fact in enumerate(STEP_FACTS):
            self.add(1, f"{fact} = facts[e, {i}]")
        self.memory()
        depth = 1
        if self.law.idle_at_rho_zero and not self.traced:
            self.add(1, "if rho != 0.0:")
            depth = 2
        self.locate(depth)
        if self.traced:
            self.trace(depth)
        self.read(depth)
        self.apply(depth)
        self.write(depth)
        self.add(1, *(f"{now} = {then}" for now, then in CARRIED.items()))
        self.add(0, *(f"carry[{i}] = {now}" for i, now in enumerate(CARRIED)))
        return "\n".join(self.lines) + "\n"

    def prepare(self) -> None:
        law = self.law
        self.add(0, "lanes = V.shape[2]")
        self.add(0, *(f"{v} = V[{i}]" for i, v in enumerate(law.vectors)))
        if self.traced:
            self.add(0, "features = V.shape[1]")
            self.add(0, *(f"{z} = Z[{i}]" for i, z in enumerate(law.traces)))
            for z in law.traces:
                self.add(0, f"decay_{z} = np.empty(lanes)", f"scale_{z} = np.empty(lanes)")
        elif any(part in law.vectors for parts in law.writes.values() for part in parts):
            self.add(0, "features = V.shape[1]")
        self.add(0, *(f"_{m} = M[{i}]" for i, m in enumerate(law.memory)))
        self.add(0, *(f"_{p} = params[{i}]" for i, p in enumerate(lane_params(law))))
        self.add(0, *(f"_{product} = np.empty(lanes)" for product in self.stored_reads()))
        for vector, parts in self.stored_writes().items():
            self.add(0, *(f"by_{part}_{vector} = np.empty(lanes)" for part in parts))
        self.add(0, *(f"{now} = carry[{i}]" for i, now in enumerate(CARRIED)))

    def stored_reads(self) -> dict[str, tuple[str, str]]:
        """Inner products that are really computed: without trace vectors, h.z comes from h.x."""
        if self.traced:
            return self.reads
        return {n: p for n, p in self.reads.items() if p[1] not in self.law.traces}

    def stored_writes(self) -> dict[str, list[str]]:
        """The multiples that are stored per vector: without trace vectors, z's is part of x's."""
        result = {}
        for vector, parts in self.law.writes.items():
            stored = [p if self.traced or p not in self.law.traces else "x" for p in parts]
            result[vector] = sorted(set(stored), key=stored.index)
        return result

    def call(self, function: Function, name: str) -> str:
        """A call of one of the law's functions with the arguments that it names, for lane j."""
        given = []
        for argument in arguments(function):
            if argument == "alpha":
                given.append("_alpha[j] * factor[t]")
            elif argument in self.law.params or argument in self.law.memory:
                given.append(f"_{argument}[j]")
            elif argument in self.law.products:
                vector, basis = self.law.products[argument]
                if basis in self.law.traces and not self.traced:
                    given.append(f"scale_{basis} * _{vector}_x[j]")
                else:
                    given.append(f"_{argument}[j]")
            else:
                given.append(argument)
        return f"{name}({', '.join(given)})"

    def memory(self) -> None:
        for m, function in self.law.memory.items():
            self.add(1, "for j in range(lanes):")
            self.add(2, f"_{m}[j] = {self.call(function, f'memory_{m}')}")

    def locate(self, depth: int) -> None:
        """Where the active features of x and x_next stand in the feature table."""
        for name, rows in (("x", "row"), ("x_next", "row_next")):
            self.add(depth, f"i = {rows}[e]")
            self.add(depth, f"first_{name} = first[i]", f"last_{name} = first[i] + length[i]")
            self.add(depth, f"shift_{name} = offset[i]")

    def over_features(self, depth: int, basis: str) -> int:
        """Open a loop over the active features of a basis; `k` is the feature, `x_k` its value."""
        if basis in ("x", "x_next"):
            self.add(depth, f"for q in range(first_{basis}, last_{basis}):")
            self.add(depth + 1, f"k = feature[q - shift_{basis}]", "x_k = value[q]")
        else:
            self.add(depth, "for k in range(features):")
        return depth + 1

    def over_lanes(self, depth: int) -> int:
        self.add(depth, "for j in range(lanes):")
        return depth + 1

    def trace(self, depth: int) -> None:
        inner = self.over_lanes(depth)
        for z, function in self.law.traces.items():
            self.add(inner, f"decay_{z}[j], scale_{z}[j] = {self.call(function, f'trace_{z}')}")
        for z in self.law.traces:
            inner = self.over_lanes(self.over_features(depth, z))
            self.add(inner, f"{z}[k, j] = decay_{z}[j] * {z}[k, j]")
        inner = self.over_lanes(self.over_features(depth, "x"))
        self.add(inner, *(f"{z}[k, j] += scale_{z}[j] * x_k" for z in self.law.traces))

    def read(self, depth: int) -> None:
        reads = self.stored_reads()
        if not reads:
            return
        inner = self.over_lanes(depth)
        self.add(inner, *(f"_{product}[j] = 0.0" for product in reads))
        for basis in self.law.bases:
            wanted = {n: v for n, (v, b) in reads.items() if b == basis}
            if wanted:
                inner = self.over_lanes(self.over_features(depth, basis))
                by = "x_k" if basis in ("x", "x_next") else f"{basis}[k, j]"
                self.add(inner, *(f"_{n}[j] += {v}[k, j] * {by}" for n, v in wanted.items()))

    def apply(self, depth: int) -> None:
        """Call the law, and fold the multiples of a trace into those of x where z is not stored."""
        law = self.law
        inner = self.over_lanes(depth)
        if not self.traced:
            for z, function in law.traces.items():
                self.add(inner, f"_, scale_{z} = {self.call(function, f'trace_{z}')}")
        shape = [
            f"({', '.join(f'{v}_by_{p}' for p in parts)})"
            if len(parts) > 1
            else f"{v}_by_{parts[0]}"
            for v, parts in law.writes.items()
        ]
        self.add(inner, f"{', '.join(shape)} = {self.call(law.update, 'update')}")
        for vector, stored in self.stored_writes().items():
            for target in stored:
                terms = []
                for part in law.writes[vector]:
                    if part == target:
                        terms.append(f"{vector}_by_{part}")
                    elif not self.traced and target == "x" and part in law.traces:
                        terms.append(f"{vector}_by_{part} * scale_{part}")
                self.add(inner, f"by_{target}_{vector}[j] = {' + '.join(terms)}")

    def write(self, depth: int) -> None:
        """Add the multiples: of whole vectors first, while they are the old ones, then the rest."""
        stored = self.stored_writes()
        whole = [b for b in self.law.vectors if any(b in parts for parts in stored.values())]
        if whole:
            inner = self.over_lanes(self.over_features(depth, whole[0]))
            self.add(inner, *(f"old_{b} = {b}[k, j]" for b in whole))
            for v, parts in stored.items():
                added = [b for b in whole if b in parts]
                self.add(inner, *(f"{v}[k, j] += by_{b}_{v}[j] * old_{b}" for b in added))
        for basis in (*self.law.traces, "x", "x_next"):
            wanted = [v for v, parts in stored.items() if basis in parts]
            if wanted:
                inner = self.over_lanes(self.over_features(depth, basis))
                by = "x_k" if basis in ("x", "x_next") else f"{basis}[k, j]"
                self.add(inner, *(f"{v}[k, j] += by_{basis}_{v}[j] * {by}" for v in wanted))


def lane_params(law: Law) -> tuple[str, ...]:
    """The hyper-parameters that differ from lane to lane, in the order of their rows."""
    return ("alpha", *law.params)
