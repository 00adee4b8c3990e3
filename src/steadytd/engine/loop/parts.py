"""What the loop of a law works with: inner products, multiples, and the arrays that hold them."""

from __future__ import annotations

from steadytd.engine.facts import CARRIED
from steadytd.engine.law import GENERAL, Law, arguments

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


def lane_params(law: Law) -> tuple[str, ...]:
    """The hyper-parameters that differ from lane to lane, in the order of their rows."""
    return tuple(name for name in law.all_params if name not in GENERAL)


def multiples(law: Law) -> str:
    """What the law's update returns, by names: the multiple of each part in each vector."""
    names = ([f"{v}_by_{part}" for part in parts] for v, parts in law.writes.items())
    return ", ".join(f"({', '.join(some)})" if len(some) > 1 else some[0] for some in names)
