"""Which kind of block serves some learners: the law's own, with scaled traces, or the plain one."""

from __future__ import annotations

from collections.abc import Sequence

from steadytd.base.arrays import Floats
from steadytd.engine.block import Block
from steadytd.engine.scaled_block import ScaledBlock, is_scaled
from steadytd.engine.settings import Settings


def make_block(learners: Sequence[Settings], w0: Floats) -> Block:
    """A block of the kind that the learners' law and the number of features ask for."""
    scaled = is_scaled(learners[0], len(w0))
    block: Block = (learners[0].law.block or (ScaledBlock if scaled else Block))(learners, w0)
    return block
