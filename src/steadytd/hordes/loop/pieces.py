"""Writes the loop of a Horde for many steps at once: eight predictions at a time, in cache.

A block of 96 predictions is too large for a core's own cache, so each of its steps fetches the
active rows from the cache that all cores share. Eight predictions are small enough. So a block is
taken in *pieces* of eight that share a trace: each is copied to a table of its own, taken through
all steps, and copied back. What a trace does is the same for all pieces, and does not depend on
the weights. So it is worked out first, once for each group, and kept in a log, with the number t of
the step in the place of the number g of the group (`Lead`); a piece then reads the log (`Learn`).
An entry that stays in its generation is logged as 0, so that no loop over rows has to ask.

Every number is made as in `write`, in the same order: the bits are the same.
"""

from __future__ import annotations

from steadytd.base.files import file_name
from steadytd.engine.law import Law
from steadytd.hordes.loop.lead import Lead, logged_slots, logged_small
from steadytd.hordes.loop.learn import AHEAD, PIECE, Learn
from steadytd.hordes.loop.names import HEADER, PLACES, TABLES
from steadytd.hordes.loop.shape import SLOTS

ROOM = 4  # entries that are written out, per feature, in one go through the steps

FUNCTION = """

@njit(nogil=True, error_model="numpy", **disjoint,
      no_cpython_wrapper=True, no_cfunc_wrapper=True)
def {name}({arguments}):
"""
COPIES = """    for k in range(len(own)):
        for v in range(parts):
            ask(table[min(k + {ahead}, len(own) - 1)], v * {size} + at)
            put(own[k], v * {piece}, eight(table[k], v * {size} + at))
""", """    for k in range(len(own)):
        for v in range(parts):
            ask(table[min(k + {ahead}, len(own) - 1)], v * {size} + at)
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
    log_slots = np.zeros(({log_slots}, widest, steps, {slots}))
    log_small = np.zeros(({log_small}, widest, steps))
    log_live = np.zeros((widest, steps, {slots}), dtype=np.uint8)
    log_head, log_began = np.zeros((2, widest, steps), dtype=np.int64)
    log_gone = np.zeros((widest, steps + 1), dtype=np.int64)
    row_e, row_z = np.empty((widest, active), np.uint8), np.empty((widest, active))
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
        text += body.format(piece=PIECE, size=size, ahead=AHEAD)
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
