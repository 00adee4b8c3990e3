"""The old generator, until the Horde and the lab are written from a program, too."""

from __future__ import annotations

from typing import ClassVar

from steadytd.base.files import file_name
from steadytd.engine.facts import CARRIED, STEP_FACTS
from steadytd.engine.law import Function, Law, arguments
from steadytd.engine.step.program import lane_params

FEW = 4
HEADER = '''"""The loop of {name}, {path}. Written by steadytd.engine.loop.write; do not edit."""

import numpy as np
from numba import njit


@njit(nogil=True, error_model="numpy", pipeline_class=Inner,
      no_cpython_wrapper=True, no_cfunc_wrapper=True)  # only the driver calls it
def advance({arrays},
            carry, event, factor, row, row_next, facts,
            first, length, offset, feature, value, first_step, begin, end):
'''

FINE = 32  # steps of the pieces in which a stretch is repeated where a lane diverged in it

# How the driver comes in: with the same arguments for every law.
ENTRY = """

@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def enter(V, Z, M, params, scratch, carry, event, factor, row, row_next, facts,
          first, length, offset, feature, value, first_step, begin, end):
    advance({arrays},
            carry, event, factor, row, row_next, facts,
            first, length, offset, feature, value, first_step, begin, end)


SCRATCH = {scratch}  # rows that the driver provides
SHOWN = {shown}  # the vector whose error is measured
"""
FEATURES = ("x", "x_next")


class Parts:
    """What is read and written in a step, with trace vectors or (at lam = 0) without."""

    def __init__(self, law: Law, traced: bool, averaged: bool) -> None:
        self.law = law
        self.traced = traced
        self.averaged = averaged
        self.carried = {now: then for now, then in CARRIED.items() if now in law.asked}
        self.reads = {n: p for n, p in law.products.items() if n in arguments(law.update)}
        self.before = self.asked_by_traces()
        if not traced:  # z is a multiple of x, so h.z is that multiple of h.x, and z.z of x.x
            for left, right in list(self.reads.values()):
                needed = self.untraced(left), self.untraced(right)
                self.reads.setdefault("_".join(needed), needed)
            self.reads = {n: p for n, p in self.reads.items() if not set(p) & set(law.traces)}

    def asked_by_traces(self) -> dict[str, tuple[str, str]]:
        """The inner products that are read before the traces move on.

        Those of features are the same before and after. Without trace vectors all are read with the
        others, since the vectors are still the old ones; a trace that is not stored counts as 0.
        """
        asked = {name for f in self.law.traces.values() for name in arguments(f)}
        wanted = {n: p for n, p in self.law.products.items() if n in asked}
        same = {n: p for n, p in wanted.items() if p[0] in FEATURES}
        if not self.traced:
            same = {n: p for n, p in wanted.items() if not set(p) & set(self.law.traces)}
        self.reads |= same
        return {n: p for n, p in wanted.items() if n not in same}

    def untraced(self, name: str) -> str:
        """What a vector is a multiple of when there are no trace vectors."""
        return "x" if name in self.law.traces else name

    def lane_reads(self) -> dict[str, tuple[str, str]]:
        """Inner products that differ from lane to lane."""
        return {n: p for n, p in self.reads.items() if p[0] not in FEATURES}

    def stored_writes(self) -> dict[str, list[str]]:
        """The multiples that are stored per vector: without trace vectors, z's is part of x's."""
        result = {}
        for vector in self.law.vectors:
            parts = self.law.writes[vector]
            stored = [p if self.traced else self.untraced(p) for p in parts]
            result[vector] = sorted(set(stored), key=stored.index)
        return result

    def arrays(self) -> dict[str, str]:
        """The arrays that `advance` works on, one argument each, and what the driver gives.

        Each is an argument of its own because that is how the compiler learns that no two overlap.
        Else it would test for overlap before every loop over lanes: twice the time at 16 lanes.
        """
        law = self.law
        names = {
            "Z": [f"Z_{z}" for z in law.traces] * self.traced,
            "M": [f"_{m}" for m in law.memory],
            "params": [f"_{p}" for p in lane_params(law)],
            "scratch": self.scratch(),
        }
        given = {name: f"{part}[{i}]" for part, ns in names.items() for i, name in enumerate(ns)}
        return {**self.vectors(), **given}

    def vectors(self) -> dict[str, str]:
        """The same for V."""
        given = {f"V_{v}": f"V[{i}]" for i, v in enumerate(self.law.vectors)}
        return {**given, **({"average": f"V[{len(given)}]"} if self.averaged else {})}

    def scratch(self) -> list[str]:
        """Arrays of one number a lane that last for one step."""
        reads = [f"_{product}" for product in self.lane_reads()]
        writes = [f"by_{p}_{v}" for v, parts in self.stored_writes().items() for p in parts]
        return reads + writes + self.trace_scratch()

    def trace_scratch(self) -> list[str]:
        """Those of the traces."""
        before = [f"_before_{product}" for product in self.before]
        moved = [f"{a}_{z}" for z in self.law.traces for a in ("decay", "scale")]
        return (before + moved) * self.traced


def multiples(law: Law) -> str:
    """What the law's update returns, by names: the multiple of each part in each vector."""
    names = ([f"{v}_by_{part}" for part in parts] for v, parts in law.writes.items())
    return ", ".join(f"({', '.join(some)})" if len(some) > 1 else some[0] for some in names)


class Loop(Parts):
    """Writes the body of `advance` line by line."""

    head: ClassVar[str] = HEADER

    def __init__(self, law: Law, traced: bool, averaged: bool) -> None:
        super().__init__(law, traced, averaged)
        self.single = False  # writing the path of few lanes
        self.lines: list[str] = []

    def add(self, depth: int, *lines: str) -> None:
        """Write lines, `depth` levels below the function's own."""
        self.lines += ["    " * (depth + 1) + line for line in lines]

    def module(self, path: str, shown: int) -> str:
        """The source of the whole module: the loop, and how the driver comes in."""
        given, scratch = ", ".join(self.arrays().values()), len(self.scratch())
        entry = ENTRY.format(shown=shown, arrays=given, scratch=scratch)
        return self.header(path) + self.body() + entry

    def header(self, path: str) -> str:
        """The module up to the body of the loop."""
        name = file_name(self.law.name)  # the user's, and part of a program here
        return self.head.format(name=name, path=path, arrays=", ".join(self.arrays()))

    def body(self) -> str:
        """The body of `advance`."""
        used = self.law.asked | set(self.carried.values()) | {"rho"}
        self.prepare()
        self.add(0, *(f"{n} = carry[{i}]" for i, n in enumerate(CARRIED) if n in self.carried))
        self.add(0, "for t in range(begin, end):")
        self.add(1, "e = np.uintp(event[t])")
        self.add(1, *(f"{f} = facts[e, {i}]" for i, f in enumerate(STEP_FACTS) if f in used))
        self.memory()
        depth = 1
        if self.law.idle_at_rho_zero and not self.traced:
            self.add(1, "if rho != 0.0:")
            depth = 2
        self.locate(depth)
        self.step(depth)
        self.average()
        self.add(1, *(f"{now} = {then}" for now, then in self.carried.items()))
        self.leave()
        self.add(0, "if begin < end:", "    e = np.uintp(event[end - 1])")
        for i, then in enumerate(CARRIED.values()):
            self.add(1, f"carry[{i}] = facts[e, {STEP_FACTS.index(then)}]")
        self.finish()
        return "\n".join(self.lines) + "\n"

    def step(self, depth: int) -> None:
        """Traces, then learning: few lanes one by one, more of them side by side."""
        self.feature_products(depth)
        self.add(depth, f"if lanes < {FEW}:", "    for j in range(lanes):")
        self.single = True
        self.trace(depth + 2)
        self.learn(depth + 2)
        self.single = False
        self.add(depth, "else:")
        self.trace(depth + 1)
        self.learn(depth + 1)

    def learn(self, depth: int) -> None:
        """What a step changes, once traces and memory have moved on."""
        self.read(depth, self.lane_reads())
        self.apply(depth)
        self.write(depth)
        self.map(depth)

    def prepare(self) -> None:
        """What comes before the first step."""
        self.add(0, "features, lanes = V_w.shape")
        for name, (param, more) in self.law.windows.items():
            self.add(0, f"window_{name} = int(_{param}[0]) + {more}")

    def leave(self) -> None:
        """Where the loop may end before its last step."""

    def finish(self) -> None:
        """What comes after the last step."""

    def argument(self, name: str) -> str:
        """What a law's argument is called in the loop, for lane j."""
        law = self.law
        if name == "alpha":
            return "_alpha[j] * factor[t]"
        if name in law.params or name in law.memory:
            return f"_{name}[j]"
        if name not in law.products:
            return name
        left, right = law.products[name]
        if self.traced or not {left, right} & set(law.traces):
            return name if left in FEATURES else self.slot(f"_{name}")
        scales = [f"scale_{part}" for part in (left, right) if part in law.traces]
        inner = f"{self.untraced(left)}_{self.untraced(right)}"
        return " * ".join([*scales, inner if left in law.traces else self.slot(f"_{inner}")])

    def call(self, function: Function, name: str, **other: str) -> str:
        """A call of one of the law's functions with the arguments that it names, for lane j."""
        given = (other.get(a) or self.argument(a) for a in arguments(function))
        return f"{name}({', '.join(given)})"

    def memory(self) -> None:
        """Move the memory on."""
        for m, function in self.law.memory.items():
            if function is not None:
                self.add(1, "for j in range(lanes):")
                if m in self.law.windows:
                    self.memory_window(m, function)
                else:
                    self.add(2, f"_{m}[j] = {self.call(function, f'memory_{m}')}")

    def memory_window(self, m: str, function: Function) -> None:
        """Move on a memory that looks back n steps: from itself without its oldest step."""
        self.add(2, f"for age in range(window_{m} - 1):")
        younger = {m: f"_{m}[(age + 1) * lanes + j]"}
        self.add(3, f"_{m}[age * lanes + j] = {self.call(function, f'memory_{m}', **younger)}")
        nothing = self.call(function, f"memory_{m}", **{m: "0.0"})
        self.add(2, f"_{m}[(window_{m} - 1) * lanes + j] = {nothing}")

    def locate(self, depth: int) -> None:
        """Where the active features of x and x_next stand in the feature table."""
        for name, rows in (("x", "row"), ("x_next", "row_next")):
            self.add(depth, f"at = np.uintp({rows}[e])")
            self.add(depth, f"first_{name} = first[at]", f"last_{name} = first[at] + length[at]")
            self.add(depth, f"shift_{name} = offset[at]")

    def over_features(self, depth: int, basis: str) -> int:
        """Open a loop over the active features of a basis; `k` is the feature, `x_k` its value."""
        if basis in FEATURES:
            self.add(depth, f"for q in range(first_{basis}, last_{basis}):")
            self.look_up(depth + 1, basis, "q", "k", "x_k")
        else:
            self.add(depth, "for k in range(features):")
        return depth + 1

    def entry(self, name: str) -> str:
        """Entry k of a vector or trace in lane j, or of the features."""
        if name in FEATURES:
            return "x_k"
        return f"Z_{name}[k, j]" if name in self.law.traces else f"V_{name}[k, j]"

    def look_up(self, depth: int, basis: str, q: str, k: str, x_k: str) -> None:
        """One entry of the feature table. An unsigned index needs no test for counting back."""
        self.add(depth, f"{k} = np.uintp(feature[np.uintp({q} - shift_{basis})])")
        self.add(depth, f"{x_k} = value[np.uintp({q})]")

    def slot(self, name: str) -> str:
        """A lane's number of this step: in a scratch array, or in a register."""
        return f"{name}_j" if self.single else f"{name}[j]"

    def over_lanes(self, depth: int) -> int:
        """Open a loop over the lanes j, unless it is open."""
        if self.single:
            return depth
        self.add(depth, "for j in range(lanes):")
        return depth + 1

    def trace(self, depth: int) -> None:
        """Move the traces on, where there are trace vectors."""
        if not self.traced:
            return
        self.trace_factors(depth)
        plain = [z for z in self.law.traces if z not in self.law.windows]
        for z in plain:
            inner = self.over_lanes(self.over_features(depth, z))
            self.add(inner, f"Z_{z}[k, j] = {self.slot(f'decay_{z}')} * Z_{z}[k, j]")
        if plain:
            inner = self.over_lanes(self.over_features(depth, "x"))
        for z in plain:
            self.add(inner, f"Z_{z}[k, j] += {self.slot(f'scale_{z}')} * x_k")
        for z in self.law.traces:
            if z in self.law.windows:
                self.trace_window(depth, z)

    def trace_factors(self, depth: int) -> None:
        """By what the traces decay, and how much of x they get."""
        self.read(depth, {f"before_{product}": pair for product, pair in self.before.items()})
        inner = self.over_lanes(depth)
        for z, function in self.law.traces.items():
            pair = f"{self.slot(f'decay_{z}')}, {self.slot(f'scale_{z}')}"
            self.add(inner, f"{pair} = {self.call_trace(z, function)}")

    def trace_window(self, depth: int, z: str) -> None:
        """Move on a trace that looks back n steps: from itself without its oldest step."""
        start = f"(window_{z} - 1) * features"
        self.add(depth, f"for k in range({start}):")
        inner = self.over_lanes(depth + 1)
        self.add(inner, f"Z_{z}[k, j] = {self.slot(f'decay_{z}')} * Z_{z}[k + features, j]")
        self.add(depth, f"for k in range({start}, window_{z} * features):")
        self.add(self.over_lanes(depth + 1), f"Z_{z}[k, j] = 0.0")
        self.add(depth, f"for age in range(window_{z}):")
        self.add(depth + 1, "begin_k = np.uintp(age * features)")
        inner = self.over_lanes(self.over_features(depth + 1, "x"))
        self.add(inner, f"Z_{z}[begin_k + k, j] += {self.slot(f'scale_{z}')} * x_k")

    def call_trace(self, z: str, function: Function) -> str:
        """A call of a trace's function, with inner products from before it moves on."""
        before = {n: self.slot(f"_before_{n}") if self.traced else "0.0" for n in self.before}
        return self.call(function, f"trace_{z}", **before)

    def read(self, depth: int, reads: dict[str, tuple[str, str]]) -> None:
        """Inner products, each under its name."""
        if reads:
            inner = self.over_lanes(depth)
            self.add(inner, *(f"{self.slot(f'_{product}')} = 0.0" for product in reads))
        for basis in (*self.law.bases, *self.law.vectors):
            wanted = {n: v for n, (v, b) in reads.items() if b == basis}
            if wanted and basis in FEATURES and not self.single:
                self.read_pairs(depth, basis, wanted)
            elif wanted:
                inner = self.over_lanes(self.over_features(depth, basis))
                by = self.entry(basis)
                for n, v in wanted.items():
                    self.add(inner, f"{self.slot(f'_{n}')} += {self.entry(v)} * {by}")

    def read_pairs(self, depth: int, basis: str, wanted: dict[str, str]) -> None:
        """Add two features at a time to the sums, in the same order: half the loads and stores."""
        self.add(depth, f"for q in range(first_{basis}, last_{basis} - 1, 2):")
        self.look_up(depth + 1, basis, "q", "k", "x_k")
        self.look_up(depth + 1, basis, "(q + 1)", "k_2", "x_k_2")
        inner = self.over_lanes(depth + 1)
        for n, v in wanted.items():
            one, two = self.entry(v), self.entry(v).replace("[k,", "[k_2,")
            self.add(inner, f"_{n}[j] = (_{n}[j] + {one} * x_k) + {two} * x_k_2")
        self.add(depth, f"if (last_{basis} - first_{basis}) % 2 == 1:")
        self.look_up(depth + 1, basis, f"(last_{basis} - 1)", "k", "x_k")
        inner = self.over_lanes(depth + 1)
        self.add(inner, *(f"_{n}[j] += {self.entry(v)} * x_k" for n, v in wanted.items()))

    def feature_products(self, depth: int) -> None:
        """Inner products of the features with each other."""
        for name, (left, right) in self.reads.items():
            if left in FEATURES:
                self.feature_product(depth, name, left, right)

    def feature_product(self, depth: int, name: str, left: str, right: str) -> None:
        """An inner product of two rows of the feature table: walk along both, in order."""
        self.add(depth, f"{name} = 0.0", f"p = first_{left}", f"q = first_{right}")
        self.add(depth, f"while p < last_{left} and q < last_{right}:")
        self.add(depth + 1, f"k_p = feature[p - shift_{left}]", f"k_q = feature[q - shift_{right}]")
        self.add(depth + 1, "if k_p == k_q:", f"    {name} += value[p] * value[q]")
        self.add(depth + 1, "p += k_p <= k_q", "q += k_q <= k_p") if left != right else self.add(
            depth + 1, "p += 1", "q += 1"
        )

    def apply(self, depth: int) -> None:
        """Call the law, and fold the multiples of a trace into those of x where z is not stored."""
        law = self.law
        inner = self.over_lanes(depth)
        if not self.traced:
            for z, function in law.traces.items():
                self.add(inner, f"_, scale_{z} = {self.call_trace(z, function)}")
        self.add(inner, f"{multiples(law)} = {self.call(law.update, 'update')}")
        for vector, stored in self.stored_writes().items():
            for target in stored:
                terms = []
                for part in law.writes[vector]:
                    if part == target:
                        terms.append(f"{vector}_by_{part}")
                    elif not self.traced and target == "x" and part in law.traces:
                        terms.append(f"{vector}_by_{part} * scale_{part}")
                self.add(inner, f"{self.slot(f'by_{target}_{vector}')} = {' + '.join(terms)}")
        written = [m for m in law.memory if m in law.writes]
        self.add(inner, *(f"_{m}[j] = {m}_by_value" for m in written))

    def write(self, depth: int) -> None:
        """Add the multiples: of whole vectors first, while they are the old ones, then the rest."""
        stored = self.stored_writes()
        whole = [b for b in self.law.vectors if any(b in parts for parts in stored.values())]
        if whole:
            inner = self.over_lanes(self.over_features(depth, whole[0]))
            self.add(inner, *(f"old_{b} = V_{b}[k, j]" for b in whole))
            for v, parts in stored.items():
                # v itself first, so that -1 of v and 1 of another vector make a copy of that one
                added = [b for b in dict.fromkeys((v, *whole)) if b in parts]
                for b in added:
                    self.add(inner, f"V_{v}[k, j] += {self.slot(f'by_{b}_{v}')} * old_{b}")
        for basis in (*self.law.traces, *FEATURES):
            wanted = [v for v, parts in stored.items() if basis in parts]
            if wanted:
                inner = self.over_lanes(self.over_features(depth, basis))
                by = self.entry(basis)
                for v in wanted:
                    self.add(inner, f"V_{v}[k, j] += {self.slot(f'by_{basis}_{v}')} * {by}")

    def map(self, depth: int) -> None:
        """Apply the law's maps to every entry of a vector."""
        for vector, function in self.law.maps.items():
            inner = self.over_lanes(self.over_features(depth, vector))
            call = self.call(function, f"map_{vector}", value=self.entry(vector))
            self.add(inner, f"{self.entry(vector)} = {call}")

    def average(self) -> None:
        """The running mean of w over all steps, idle ones included."""
        if self.averaged:
            self.add(1, "share = 1.0 / (first_step + t + 1)")
            inner = self.over_lanes(self.over_features(1, "average"))
            self.add(inner, "average[k, j] += (V_w[k, j] - average[k, j]) * share")
