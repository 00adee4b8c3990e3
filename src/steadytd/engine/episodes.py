"""Steps of a chunk in which episodes may be cut off.

A step that *ends* an episode has discount 0, and the engine needs nothing else: traces decay by the
discount that the previous step carried over, so the next episode starts with none. A step at which
an episode is *cut off* (truncated) bootstraps: its discount is not 0, and the carried discount
would let the old episode's trace, and ETD's follow-on trace, leak into the next. So the chunk is
divided there, and the carried discount set to 0 before the new episode's first step. That is what
a termination would have carried; the update of the last step itself is not touched, nor are the
count of steps, the step sizes or the averages, as they would be by a made-up step in between.
"""

from __future__ import annotations

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.engine.block import NO_GOAL, Block, Goal, Transitions
from steadytd.engine.law import CARRIED
from steadytd.engine.rows import Rows

GAMMA = list(CARRIED).index("gamma")


def advance_episodes(
    block: Block,
    restarts: Longs,
    factor: Floats,
    transitions: Transitions,
    rows: Rows,
    points: Longs | None = None,
    goal: Goal = NO_GOAL,
) -> Floats:
    """Take every transition once, in order; as `Block.advance`, with episodes cut off.

    `restarts` are the positions, ascending, of steps before which an episode was cut off; 0 means
    that this happened at the end of the chunk before.
    """
    n = len(transitions.row)
    events = np.arange(n, dtype=np.int32)
    wanted = np.zeros(0, dtype=np.int64) if points is None else points
    begins = restarts.tolist()
    if not begins or begins[0] > 0:
        begins = [0, *begins]
    cut_at_start = len(restarts) > 0 and restarts[0] == 0
    parts: list[Floats] = []
    for i, begin in enumerate(begins):
        end = begins[i + 1] if i + 1 < len(begins) else n
        if i > 0 or cut_at_start:
            block.carry[GAMMA] = 0.0
        last = len(wanted) if end == n else int(np.searchsorted(wanted, block.step + end - begin))
        here, wanted = wanted[:last], wanted[last:]
        part = block.advance(events[begin:end], factor[begin:end], transitions, rows, here, goal)
        parts.append(part)
    return np.concatenate(parts)
