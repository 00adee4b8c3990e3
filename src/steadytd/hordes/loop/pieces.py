"""Writes the loop of a Horde for many steps at once: eight predictions at a time, in cache.

A block of 96 predictions is too large for a core's own cache, so each of its steps fetches the
active rows from the cache that all cores share. Eight predictions are small enough. So a block is
taken in *pieces* of eight that share a trace: each is copied to a table of its own, taken through
all steps, and copied back. What a trace does is the same for all pieces, and does not depend on
the weights. So it is worked out first, once for each group, and kept in a log, with the number t of
the step in the place of the number g of the group (`Lead`); a piece then reads the log (`Learn`).
Entries that move to another generation stand first, so that no loop over rows has to ask.

Every number is made as in `write`, in the same order: the bits are the same.
"""

from __future__ import annotations

from steadytd.base.files import file_name
from steadytd.engine.law import Law
from steadytd.engine.loop.write import FEATURES
from steadytd.hordes.loop.names import HEADER, PLACES, TABLES
from steadytd.hordes.loop.shape import NONE, SLOTS, asked_by_traces
from steadytd.hordes.loop.write import Writer

PIECE = 8  # predictions: as many as `engine.loop.vectors` takes at a time
ROOM = 4  # entries that are written out, per feature, in one go through the steps

TIMED = (*TABLES[:11], "first_x", "first_x_next")  # tables with a row for each step
LISTS = ("log_gone", "gone_k", "gone_e", "gone_z", "log_moved", "row_q", "row_e", "row_z")
LOGS = ("log_slots", "log_small", "log_head", "log_began", "log_live", *LISTS)

FUNCTION = """

@njit(nogil=True, error_model="numpy", pipeline_class=Disjoint,
      no_cpython_wrapper=True, no_cfunc_wrapper=True)
def {name}({arguments}):
"""
COPIES = """    for k in range(len(own)):
        for v in range(parts):
            put(own[k], v * {piece}, eight(table[k], v * {size} + at))
""", """    for k in range(len(own)):
        for v in range(parts):
            if high - low == {piece}:
                put(table[k], v * {size} + at, eight(own[k], v * {piece}))
            else:
                for i in range(low, high):
                    table[k, v * {size} + at + i] = own[k, v * {piece} + i]
"""  # fmt: skip
DRIVER = """

@njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)
def run(V, Z, slots, scales, groups, sums, lanes, params, heads, begins, {places}, {tables},
        out, low, high):
    features, steps, active, widest = V.shape[1], len(first_x) - 1, len(feature_x), 0
    for b in range(low, high):
        widest = max(widest, begins[b + 1] - begins[b])
    room = np.zeros(features * {vectors} * {piece} + 8)
    at = -room.ctypes.data % 64 // 8  # on a cache line
    own_V = room[at : at + features * {vectors} * {piece}].reshape((features, {vectors} * {piece}))
    own_sums, own_lanes = np.zeros(({sums} * {slots}, {piece})), np.zeros(({rows}, {piece}))
    own_params, own_delta = np.zeros(({params}, {piece})), np.zeros((steps, {piece}))
    own_columns = np.zeros((4, {piece}), dtype=np.int64)
    reads, wide = np.zeros(({reads}, {piece})), np.zeros(({wide}, {piece}))
    shift = np.zeros(({sums}, {slots}, {piece}))
    log_slots = np.zeros(({log_slots}, widest, {slots}, steps))
    log_small = np.zeros(({log_small}, widest, steps))
    log_live = np.zeros((widest, {slots}, steps), dtype=np.uint8)
    log_head, log_began = np.zeros((2, widest, steps), dtype=np.int64)
    log_moved, log_gone = np.zeros((2, widest, steps + 1), dtype=np.int64)
    row_q, row_e = np.empty((widest, active), np.int32), np.empty((widest, active), np.uint8)
    row_z = np.empty((widest, active))
    most = {most} * features
    gone_k, gone_e = np.empty((widest, most), np.int32), np.empty((widest, most), np.uint8)
    gone_z = np.empty((widest, most))
    follows = np.zeros(steps + 1, dtype=np.bool_)  # whether x is x_next of the step before
    for t in range(1, steps):
        n, q, last = first_x[t + 1] - first_x[t], first_x[t], first_x_next[t - 1]
        follows[t] = n == first_x_next[t] - last
        for i in range(n if follows[t] else 0):
            follows[t] &= feature_x[q + i] == feature_x_next[last + i]
            follows[t] &= value_x[q + i] == value_x_next[last + i]
    for b in range(low, high):
        count = begins[b + 1] - begins[b]
        zx, small = np.zeros(({zx}, {slots} + 1, count)), np.zeros(({small}, count))
        own_starts = starts[begins[b] + b : begins[b + 1] + b + 1]
        all_sums = sums[b].reshape(({sums} * {slots}, {size}))
        begin, end = 0, steps
        while begin < steps:
            copy = lanes[b].copy()
            end = begin + lead({lead})
            for g in range(count):
                last = np.intp(own_starts[g + 1])
                for lane in range(np.intp(own_starts[g]), last, {piece}):
                    at = min(lane, {size} - {piece})  # neighbours of another trace fill the piece
                    first, beyond = lane - at, min(last - at, {piece})
                    take(V[b], own_V, {vectors}, at)
                    take(all_sums, own_sums, 1, at)
                    take(lanes[b], own_lanes, 1, at)
                    take(params[b], own_params, 1, at)
{columns}
                    learn({learn})
                    give(V[b], own_V, {vectors}, at, first, beyond)
                    give(all_sums, own_sums, 1, at, first, beyond)
                    give(lanes[b], own_lanes, 1, at, first, beyond)
                    for t in range(begin, end):
                        for i in range(first, beyond):
                            out[t, b, at + i] = own_delta[t - begin, i]
            begin, end = end, steps
"""


def source_pieces(law: Law, traced: bool, averaged: bool = False) -> str:
    """The source of the module that runs `law` in pieces."""
    lead, learn = Lead(law, traced, "float64"), Learn(law, traced, "float64")
    size, s = lead.size, lead.shape
    header = HEADER.partition("@njit")[0].rstrip()
    text = header.format(name=file_name(law.name), path="in pieces", dtype="float64")
    text += FUNCTION.format(name="lead", arguments=", ".join(lead.views())) + lead.body()
    text += FUNCTION.format(name="learn", arguments=", ".join(learn.views())) + learn.body()
    for name, body in zip(("take", "give"), COPIES, strict=True):
        more = ", low, high" if name == "give" else ""
        text += FUNCTION.format(name=name, arguments=f"table, own, parts, at{more}")
        text += body.format(piece=PIECE, size=size)
    columns = (f"own_columns[{i}] = {name}[b, at : at + {PIECE}]"
               for i, name in enumerate(PLACES[:4]))  # fmt: skip
    return text + DRIVER.format(
        places=", ".join(PLACES), tables=", ".join(TABLES), piece=PIECE, size=size, slots=SLOTS,
        vectors=len(s.vectors), sums=len(s.along), rows=len(s.lane_rows), params=len(s.params),
        reads=len(learn.read_rows()), wide=len(learn.wide_rows()), zx=len(lead.bucket_rows()),
        small=len(lead.small_rows()), log_slots=len(logged_slots(lead)), most=ROOM,
        log_small=len(logged_small(lead)), lead=", ".join(lead.views().values()),
        learn=", ".join(learn.views().values()), columns="\n".join(" " * 20 + x for x in columns),
    )  # fmt: skip


def logged_slots(loop: Writer) -> list[str]:
    """What is logged for each generation."""
    (z,) = loop.shape.traces
    return [*loop.bucket_rows(), f"c_{z}"]


def logged_small(loop: Writer) -> list[str]:
    """What is logged once per step."""
    return [*loop.small_rows(), *loop.shape.group_rows]


def timed(begin: str) -> dict[str, str]:
    """The tables, from step `begin` to `end`."""
    cut = {name: f"{name}[{begin} : end{' + 1' * name.startswith('first')}]" for name in TIMED}
    return {name: cut.get(name, name) for name in TABLES}


class Lead(Writer):
    """Takes the traces of a block through all steps, and logs what its predictions need."""

    def views(self) -> dict[str, str]:
        """The arguments, and what the driver gives for them."""
        weights = tuple(f"{a}_{v}" for v in self.shape.vectors for a in ("V", "S"))
        state = {n: e for n, e in self.state_views().items() if not n.startswith(weights)}
        state |= {name: f"copy[{i}]" for i, name in enumerate(self.shape.lane_rows)}
        scratch = {"zx": self.bucket_rows(), "small": self.small_rows()}
        named = {n: f"{array}[{i}]" for array, rows in scratch.items() for i, n in enumerate(rows)}
        places = {name: f"{name}[b]" for name in PLACES[:4]} | {"starts": "own_starts"}
        return {**state, **named, **places, **timed("begin"), **{name: name for name in LOGS}}

    def body(self) -> str:
        """Steps, until there is no room for more entries that are written out; how many."""
        (z,) = self.shape.traces
        self.add(0, f"features, size, steps = len(slot_{z}), {self.size}, len(first_x) - 1")
        self.add(0, "count, most = len(starts) - 1, len(gone_k[0])", "log_gone[:, 0] = 0")
        self.add(0, "for t in range(steps):", "    for g in range(count):")
        self.add(2, "if log_gone[g, t] + features > most:", "    return t")
        self.add(2, "log_gone[g, t + 1] = log_gone[g, t]")
        self.clear_buckets(1)
        for basis in FEATURES:
            self.add(1, f"for q in range(first_{basis}[t], first_{basis}[t + 1]):")
            self.active(2, basis)
            self.fill_buckets(2, basis, "k")
        self.remember(1)
        self.move_traces(1)
        self.note(1)
        self.move_rows(1, z)
        self.carry_over(1)
        self.add(0, "return steps")
        return "\n".join(self.lines) + "\n"

    def over_group(self, depth: int, *lines: str) -> None:
        """No prediction is moved here."""

    def remember(self, depth: int) -> None:
        """Move the memory on that the trace asks for."""
        asked = asked_by_traces(self.law)
        for m, function in self.law.memory.items():
            if function is not None and m in asked:
                self.add(depth, "for j in range(size):")
                self.add(depth + 1, f"_{m}[j] = {self.call(function, f'memory_{m}')}")

    def generation(self, depth: int, z: str) -> None:
        """Log whether a generation began (1), and whether all were written out for it (2)."""
        self.add(depth, f"before, every = head_{z}[g], False")
        super().generation(depth, z)
        self.add(depth, f"log_began[g, t] = (1 + every) * (head_{z}[g] != before)")

    def write_out(self, depth: int, z: str) -> None:
        """Log an entry that is written out."""
        self.add(depth, "n = log_gone[g, t + 1]", "log_gone[g, t + 1] = n + 1")
        self.add(depth, "gone_k[g, n], gone_e[g, n], gone_z[g, n] = k, e, z_k")

    def note(self, depth: int) -> None:
        """Log the numbers of all groups."""
        (z,) = self.shape.traces
        self.add(depth, "for g in range(count):", f"    log_head[g, t] = head_{z}[g]")
        for i, name in enumerate(logged_small(self)):
            self.add(depth + 1, f"log_small[{i}, g, t] = {name}[g]")
        self.add(depth + 1, f"for e in range({SLOTS}):")
        self.add(depth + 2, f"live = peak_{z}[e, g] > 0.0 and e != head_{z}[g]")
        self.add(depth + 2, f"log_live[g, e, t] = live and scale_{z}[g] != 0.0")
        for i, name in enumerate(logged_slots(self)):
            self.add(depth + 2, f"log_slots[{i}, g, e, t] = {name}[e, g]")

    def move_rows(self, depth: int, z: str) -> None:
        """The entries of the active features move on and grow; those that move stand first.

        Without a branch: which entries move is as good as drawn.
        """
        self.add(
            depth, "for g in range(count):", f"    p, fresh = np.uintp(head_{z}[g]), fresh_{z}[g]"
        )
        inner = depth + 1
        self.add(inner, f"ratio_{z}[p, g] = ratio_{z}[{NONE}, g] = 1.0")
        self.add(inner, "front, back = np.uintp(first_x[t]), np.uintp(first_x[t + 1])")
        self.add(
            inner, f"if scale_{z}[g] != 0.0:", "    for q in range(first_x[t], first_x[t + 1]):"
        )
        self.active(inner + 2, "x")
        self.add(inner + 2, f"e, entry = np.uintp(slot_{z}[k, g]), Z_{z}[k, g]")
        self.add(inner + 2, f"moves = np.uintp((e != p) & (e < {SLOTS}))")
        self.add(inner + 2, "stays = np.uintp(1) - moves", "back -= stays")
        self.add(inner + 2, "row_q[g, front * moves + back * stays] = q")
        self.add(inner + 2, "row_e[g, front], row_z[g, front] = e, entry", "front += moves")
        self.add(inner + 2, f"Z_{z}[k, g] = entry * ratio_{z}[e, g] + fresh * np.float64(x_k)")
        self.add(inner + 2, f"slot_{z}[k, g] = p")
        self.add(inner, "else:", "    for q in range(first_x[t], first_x[t + 1]):")
        self.add(inner + 2, "row_q[g, q] = q")
        self.add(inner, "log_moved[g, t] = front")


class Learn(Writer):
    """Takes eight predictions of one trace through all steps, with its log."""

    groups, group = "range(t, t + 1)", "t"

    def __init__(self, law: Law, traced: bool, dtype: str) -> None:
        super().__init__(law, traced, dtype)
        self.size = PIECE

    def views(self) -> dict[str, str]:
        """The arguments, and what the driver gives for them."""
        (z,) = self.shape.traces
        views = {f"V_{v}": "own_V" for v in self.shape.vectors}
        for i, (v, _) in enumerate(self.shape.along):
            rows = f"{i * SLOTS} : {(i + 1) * SLOTS}"
            views |= {f"S_{v}_{z}": f"own_sums[{rows}]", f"shift_{v}_{z}": f"shift[{i}]"}
        tables = {
            "own_lanes[{}]": self.shape.lane_rows, "own_params[{}]": self.shape.params,
            "reads[{}]": self.read_rows(), "wide[{}]": self.wide_rows(),
            "own_columns[{}]": PLACES[:4], "log_slots[{}, g]": logged_slots(self),
            "log_small[{}, g]": logged_small(self),
        }  # fmt: skip
        for place, names in tables.items():
            views |= {name: place.format(i) for i, name in enumerate(names)}
        views |= {f"head_{z}": "log_head[g]", "began": "log_began[g]", "live": "log_live[g]"}
        views |= {name: f"{name}[g]" for name in LISTS}
        return {**views, "delta": "own_delta", "follows": "follows[begin:]", **timed("begin")}

    def body(self) -> str:
        """The body of `learn`."""
        (z,) = self.shape.traces
        self.sizes()
        width = len(self.shape.vectors) * PIECE
        self.add(0, f"width = np.uintp({width})")
        self.add(0, *(f"flat_{v} = V_{v}.reshape(V_{v}.size)" for v in self.shape.vectors))
        flat = "flat_{0} = {0}.reshape({0}.size)"
        self.add(0, *(flat.format(f"shift_{v}_{z}") for v in self.vectors_along(z)))
        self.add(0, "ready = False", "for t in range(len(first_x) - 1):")
        self.read_all(1)
        self.combine(1)
        self.remember(1)
        self.add(1, "g = t")
        moved = "kept_{v}_{z}[j] = decay_{z}[g] * kept_{v}_{z}[j] + scale_{z}[g] * {v}_x[j]"
        self.over_group(1, *(moved.format(v=v, z=z) for v, z in self.shape.lane_products))
        self.generation(1, z)
        self.apply(1)
        self.sum_up(1)
        self.write_rows(1)
        self.carry_over(1)
        return "\n".join(self.lines) + "\n"

    def over_group(self, depth: int, *lines: str) -> None:
        """Lines for every prediction j of the piece."""
        if lines:
            self.add(depth, "for j in range(size):")
            self.add(depth + 1, *lines)

    def rows_of(self, depth: int, basis: str, logged: str = "") -> None:
        """The loop over rows of a basis, or over those of a log: where each begins; its value."""
        rows = logged or f"first_{basis}[t], first_{basis}[t + 1]"
        self.add(depth, f"for n in range({rows}):", "    i = np.uintp(n)")
        self.add(depth + 1, f"q = {'np.uintp(row_q[i])' if logged else 'i'}")
        self.add(
            depth + 1, f"k, x_k = np.uintp(feature_{basis}[q]) * width, same(value_{basis}, q)"
        )

    def read_all(self, depth: int) -> None:
        """Sums over rows of weights; those of x may have been taken when they were written."""
        self.add(depth, "if not ready:")
        self.sums(depth + 1, "x")
        self.sums(depth, "x_next")

    def sums(self, depth: int, basis: str, change: str = "") -> None:
        """Sums over the rows of a basis, each after a change."""
        name = "x_next" if change else basis
        wanted = [v for v, b in self.rows if b == basis]
        self.add(depth, *(f"sum_{v} = spread(0.0)" for v in wanted))
        self.rows_of(depth, name)
        for v in wanted:
            self.add(depth + 1, f"new = eight(flat_{v}, k + at_{v})")
            if change and v in self.at_next:
                self.add(depth + 1, f"new = add_product(new, next_{v}, x_k)")
                self.add(depth + 1, f"put(flat_{v}, k + at_{v}, new)")
            self.add(depth + 1, f"sum_{v} = add_product(sum_{v}, new, x_k)")
        self.add(depth, *(f"put(row_{v}_{basis}, 0, sum_{v})" for v in wanted))

    def generation(self, depth: int, z: str) -> None:
        """What `Lead` did, for the predictions."""
        along = self.vectors_along(z)
        self.add(depth, f"p = head_{z}[g]", "if began[g]:")
        inner = depth + 1
        self.add(inner, "for n in range(log_gone[g], log_gone[g + 1]):")
        self.add(inner + 1, "k, e, z_k = np.intp(gone_k[n]), np.intp(gone_e[n]), gone_z[n]")
        self.write_out(inner + 1, z)
        self.add(inner, "if began[g] == 2:", f"    for e in range({SLOTS}):")
        self.over_group(inner + 2, *(f"S_{v}_{z}[e, j] = 0.0" for v in along))
        self.over_group(inner, *(f"S_{v}_{z}[p, j] = 0.0" for v in along))
        self.add(depth, f"for e in range({SLOTS}):", "    if live[e, g]:")
        moved = "shift_{v}_{z}[e, j] = S_{v}_{z}[e, j] - ratio_{z}[e, g] * S_{v}_{z}[p, j]"
        self.over_group(depth + 2, *(moved.format(v=v, z=z) for v in along))

    def write_rows(self, depth: int) -> None:
        """What is added at the active features: entries that move on, x, then x_next."""
        (z,) = self.shape.traces
        along = self.vectors_along(z)
        self.add(depth, *(f"by_{v} = eight(by_x_{v}, 0)" for v in self.at_x))
        self.rows_of(depth, "x", "first_x[t], log_moved[t]")
        self.add(depth + 1, f"z_k, e = same(row_z, i), np.uintp(row_e[i]) * np.uintp({PIECE})")
        for v in self.at_x:
            old = f"eight(flat_{v}, k + at_{v})"
            moved = f"add_product({old}, eight(flat_shift_{v}_{z}, e), z_k)" if v in along else old
            self.add(depth + 1, f"put(flat_{v}, k + at_{v}, add_product({moved}, by_{v}, x_k))")
        self.add(depth, f"if {' and '.join(f'moves_by_x_{v}' for v in self.at_x)}:")
        stay = "log_moved[t], first_x[t + 1]"
        self.rows_of(depth + 1, "x", stay)
        grown = "put(flat_{v}, k + at_{v}, add_product(eight(flat_{v}, k + at_{v}), by_{v}, x_k))"
        self.add(depth + 2, *(grown.format(v=v) for v in self.at_x))
        self.add(depth, "else:")
        for v in self.at_x:
            self.add(depth + 1, f"if moves_by_x_{v}:")
            self.rows_of(depth + 2, "x", stay)
            self.add(depth + 3, grown.format(v=v))
        self.add(depth, "ready = False")
        if self.at_next:
            self.write_next(depth, grown)

    def write_next(self, depth: int, grown: str) -> None:
        """Rows of x_next. Where they are the rows of the next x, they are read in the same go."""
        self.add(depth, *(f"next_{v} = eight(by_x_next_{v}, 0)" for v in self.at_next))
        known = set(self.at_next) <= {v for v, b in self.rows if b == "x"}
        self.add(depth, f"ready = {known} and follows[t + 1]")
        self.add(depth, *(f"ready = ready and moves_by_x_next_{v}" for v in self.at_next))
        self.add(depth, "if ready:")
        self.sums(depth + 1, "x", change="x_next")
        self.add(depth, "else:")
        for v in self.at_next:
            self.add(depth + 1, f"if moves_by_x_next_{v}:")
            self.rows_of(depth + 2, "x_next")
            self.add(depth + 3, grown.format(v=v).replace(f"by_{v}", f"next_{v}"))
