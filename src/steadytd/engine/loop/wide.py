"""Writes the loop of a law for many lanes and dense features: sums stay in registers.

The plain loop (`write`) goes over the features, and for each over all lanes: its sums live in
memory, and every feature reads and writes them. With dense features the loops can change places:
GROUP lanes at a time go over all features with their sums in registers, x and x_next in one go. A
sum has the same order of additions and a weight the same order of changes, each of them rounded, so
both loops give the same bits, and which one runs is free. `docs/engine.md` has what limits it.

The lanes must be a multiple of GROUP, and every row of the feature table must hold all features.
"""

from __future__ import annotations

from collections.abc import Mapping

from steadytd.base.arrays import LANES
from steadytd.engine.law import Law
from steadytd.engine.loop.parts import FEATURES
from steadytd.engine.loop.write import Loop

PARTS = 2  # vectors of eight per number of a lane: enough sums side by side to hide their latency
GROUP = PARTS * LANES
SUMS = 2  # inner products that are read together: their sums fill half of the registers of AVX2


def can_be_wide(law: Law) -> bool:
    """Whether a law has such a loop: what looks back n steps has another layout."""
    from steadytd.base.numba_parts import used  # late: Numba takes half a second

    return law.block is None and not law.windows and used("vectors")


def wide_source(law: Law, traced: bool, averaged: bool = False) -> str:
    """The source of the module that runs `law` on dense features; see `write.loop_source`."""
    path = f"{'with' if traced else 'without'} trace vectors, for dense features"
    return WideLoop(law, traced, averaged).module(path, shown=len(law.vectors) if averaged else 0)


class WideLoop(Loop):
    """As `Loop`, with groups of lanes outside and features inside."""

    def step(self, depth: int) -> None:
        """Traces, then learning."""
        self.feature_products(depth)
        self.trace(depth)
        self.learn(depth)

    def array(self, name: str) -> str:
        """The array of a vector or trace."""
        return f"Z_{name}" if name in self.law.traces else f"V_{name}"

    def groups(self, depth: int, *lines: str) -> None:
        """Open the loop over groups of lanes; what comes before the features, for each part."""
        self.add(depth, f"for g in range(0, lanes, {GROUP}):")
        for i in range(PARTS):
            self.add(depth + 1, *(line.format(i=i, at=f"g + {i * LANES}") for line in lines))

    def features(self, depth: int, used: set[str], *lines: str) -> None:
        """The loop over the features `used`; then the lines, for each part of the group."""
        self.add(depth, "place = g", "for k in range(features):")
        for name in FEATURES:
            if name in used:
                self.add(depth + 1, f"{name}_k = same(value, first_{name} + k)")
        for i in range(PARTS):
            there = f"place + {i * LANES}"
            self.add(depth + 1, *(line.format(i=i, at=there) for line in lines))
        self.add(depth + 1, "place += lanes")

    def load(self, names: Mapping[str, None]) -> list[str]:
        """Entries k of vectors and traces."""
        return [f"{n}_k = eight({self.array(n)}, {{at}})" for n in names if n not in FEATURES]

    def trace(self, depth: int) -> None:
        """Move the traces on, where there are trace vectors."""
        if not self.traced:
            return
        self.trace_factors(depth)
        traces = list(self.law.traces)
        factors = [f"{a}_{z}" for z in traces for a in ("decay", "scale")]
        self.groups(depth, *(f"{name}_{{i}} = eight({name}, {{at}})" for name in factors))
        moved = "product(decay_{z}_{{i}}, eight(Z_{z}, {{at}}))"
        line = f"put(Z_{{z}}, {{{{at}}}}, add_product({moved}, scale_{{z}}_{{{{i}}}}, x_k))"
        self.features(depth + 1, {"x"}, *(line.format(z=z) for z in traces))

    def read(self, depth: int, reads: dict[str, tuple[str, str]]) -> None:
        """Inner products, each under its name."""
        names = sorted(reads, key=lambda name: reads[name][0], reverse=True)
        for begin in range(0, len(names), SUMS):
            some = {name: reads[name] for name in names[begin : begin + SUMS]}
            needed = dict.fromkeys(part for pair in some.values() for part in pair)
            self.groups(depth, *(f"sum_{n}_{{i}} = spread(0.0)" for n in some))
            sums = (
                f"sum_{n}_{{i}} = add_product(sum_{n}_{{i}}, {left}_k, {right}_k)"
                for n, (left, right) in some.items()
            )
            self.features(depth + 1, set(needed), *self.load(needed), *sums)
            for i in range(PARTS):
                places = (f"put(_{n}, g + {i * LANES}, sum_{n}_{i})" for n in some)
                self.add(depth + 1, *places)

    def write(self, depth: int) -> None:
        """Add the multiples, those of a whole vector first: the order of `Loop.write`.

        Vector by vector, to have registers for all multiples, unless one is added to another.
        """
        stored = {v: parts for v, parts in self.stored_writes().items() if parts}
        whole = [b for b in self.law.vectors if any(b in parts for parts in stored.values())]
        for some in [stored] if whole else [{v: parts} for v, parts in stored.items()]:
            needed = dict.fromkeys((*some, *(b for parts in some.values() for b in parts)))
            changes, multiples = [], []
            for v, parts in some.items():
                changes.append(f"new_{v} = {v}_k")
                for b in dict.fromkeys((v, *whole, *self.law.traces, *FEATURES)):
                    if b in parts:
                        multiples.append(f"by_{b}_{v}_{{i}} = eight(by_{b}_{v}, {{at}})")
                        changes.append(f"new_{v} = add_product(new_{v}, by_{b}_{v}_{{i}}, {b}_k)")
            changes += [f"put(V_{v}, {{at}}, new_{v})" for v in some]
            self.groups(depth, *multiples)
            self.features(depth + 1, set(needed), *self.load(needed), *changes)
