"""Which kind of block serves some learners: the law's own, at active features, or the plain one."""

from __future__ import annotations

from collections.abc import Sequence

from steadytd.base.arrays import Floats
from steadytd.engine.active import ActiveBlock, is_active
from steadytd.engine.block import Block
from steadytd.engine.law import Law
from steadytd.engine.settings import Settings
from steadytd.engine.step.program import Program, at_active_features


def make_block(learners: Sequence[Settings], w0: Floats, features: int = 0) -> Block:
    """A block of the kind that the learners' law and the number of features ask for.

    `features` is that number where w0 leaves out those that never occur; see `leaves_unused`.
    """
    active = is_active(learners[0], features or len(w0))
    block: Block = (learners[0].law.block or (ActiveBlock if active else Block))(learners, w0)
    return block


def leaves_unused(learner: Settings) -> bool:
    """Whether a weight that starts at 0 and whose feature never occurs stays 0 and changes nothing.

    Then the learner may run without that feature, to the same bits. It may not where a vector is
    changed as a whole (mapped, or added to itself), or where a system is solved.
    """
    law = learner.law
    whole = any(part in law.vectors for v in law.vectors for part in law.writes[v])
    return law.block is None and not law.maps and not whole


def programs(law: Law) -> dict[str, Program]:
    """What one step of a law does on each of its paths, by what the path is called."""
    kind = law.block or Block
    found = {"without trace vectors": kind.program(law, False, False)}
    if law.traces:
        found = {"with trace vectors": kind.program(law, True, False)} | found
    if law.traces and at_active_features(law):
        found["with traces at the active features alone"] = ActiveBlock.program(law, True, False)
    return found
