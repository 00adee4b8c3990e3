"""What the loop of a Horde keeps for a law: which arrays, in which order."""

from __future__ import annotations

from dataclasses import dataclass, field

from steadytd.engine.facts import CARRIED
from steadytd.engine.law import Law, arguments
from steadytd.engine.step.program import lane_params

SLOTS = 8  # generations of a trace's entries; see `traces`
NONE = SLOTS  # the slot of a feature that is in no generation: its entry is 0
# lanes of a block; fewer make more of them, each with a copy of the traces that it needs
LANES = {"float64": 96, "float32": 96}


@dataclass(frozen=True)
class LoopShape:
    """What the loop of a law keeps, in the order of the arrays' rows."""

    law: Law
    traced: bool
    vectors: tuple[str, ...] = field(init=False)
    traces: tuple[str, ...] = field(init=False)
    along: tuple[tuple[str, str], ...] = field(init=False)  # (vector, trace that writes it)
    carried: tuple[str, ...] = field(init=False)
    factors: tuple[str, ...] = field(init=False)  # vectors with a factor f
    lane_products: tuple[tuple[str, str], ...] = field(init=False)  # h.z
    group_products: tuple[tuple[str, str], ...] = field(init=False)  # z.y

    def __post_init__(self) -> None:
        law, put = self.law, object.__setattr__
        traces = tuple(law.traces) if self.traced else ()
        put(self, "vectors", law.vectors)
        put(self, "traces", traces)
        put(self, "along", tuple((v, z) for v in law.vectors for z in traces if z in law.writes[v]))
        put(self, "carried", tuple(now for now in CARRIED if now in law.asked))
        put(self, "factors", tuple(v for v in law.vectors if v in law.writes[v]))
        asked = [law.products[name] for name in law.products if name in law.asked]
        lanes = [(v, z) for v, z in asked if v in law.vectors and z in traces]
        groups = [(z, y) for z, y in asked if z in traces and y in traces]
        groups += [(z, y) for v, z in lanes for y in traces if y in law.writes[v]]
        put(self, "lane_products", tuple(dict.fromkeys(lanes)))
        put(self, "group_products", tuple(dict.fromkeys(groups)))

    @property
    def lane_rows(self) -> tuple[str, ...]:
        """One number per prediction that lasts from step to step."""
        memory = [f"_{m}" for m in self.law.memory]
        products = [f"kept_{v}_{z}" for v, z in self.lane_products]
        return (*memory, *(f"last_{c}" for c in self.carried), *products,
                *(f"f_{v}" for v in self.factors))  # fmt: skip

    @property
    def group_rows(self) -> tuple[str, ...]:
        """One number per group that lasts from step to step."""
        return tuple(f"kept_{z}_{y}" for z, y in self.group_products)

    @property
    def params(self) -> tuple[str, ...]:
        """The hyper-parameters, one row each."""
        return tuple(f"_{name}" for name in lane_params(self.law))


def fits(law: Law, traced: bool, averaged: bool) -> bool:
    """Whether a law can be written so that a step costs O(active features).

    Not where a step changes all features at once: maps, whole other vectors, windows, averages,
    solved systems.
    """
    vectors = set(law.vectors)
    if law.block is not None or law.maps or law.windows or averaged:
        return False
    whole = any(set(law.writes[v]) & (vectors - {v}) for v in vectors)
    both = any(set(law.products[name]) <= vectors for name in law.products if name in law.asked)
    return not (whole or both)


def asked_by_traces(law: Law) -> set[str]:
    """All that decides a trace: what its function asks for, and the memory that it asks for."""
    asked: set[str] = set()
    waiting = [name for f in law.traces.values() for name in arguments(f)]
    while waiting:
        name = waiting.pop()
        if name not in asked:
            asked.add(name)
            function = law.memory.get(name)
            waiting += arguments(function) if function is not None else ()
    return asked


def fits_pieces(law: Law, traced: bool, dtype: str) -> bool:
    """Whether a law has such a loop: one trace, which no weight decides; numbers of eight bytes."""
    from steadytd.base.numba_parts import used  # late: Numba takes half a second

    known = traced and len(law.traces) == 1 and not trace_asks_for_weights(law)
    return known and dtype == "float64" and used("vectors")


def trace_asks_for_weights(law: Law) -> bool:
    """Whether every prediction has a trace of its own."""
    asked = asked_by_traces(law)
    own = any(
        (name in law.memory and law.memory[name] is None) or set(law.vectors) & set(pair)
        for name, pair in ((n, law.products.get(n, ())) for n in asked)
    )
    return own or any(m in law.writes for m in asked)
