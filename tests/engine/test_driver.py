"""The driver: one for all laws, which gets the address of a loop."""

from __future__ import annotations

import numpy as np
import pytest

import steadytd as st
from steadytd.engine.block import Block
from steadytd.engine.step import driver
from tests.support.cases import RandomStream

STEPS = 300


def advanced(block: Block) -> tuple[bytes, list[int]]:
    stream = RandomStream(seed=3, steps=STEPS)
    factor = np.ones(STEPS)
    block.advance(stream.events, factor, stream.transitions, stream.rows)
    return block.V.tobytes(), block.diverged.tolist()


def fresh(*learners: str) -> Block:
    return Block([st.learner(text) for text in learners], RandomStream(seed=3, steps=STEPS).w0)


def test_a_new_law_does_not_compile_the_driver_again() -> None:
    advanced(fresh("td:alpha=0.01"))
    before = len(driver.run.signatures)  # type: ignore[attr-defined]
    advanced(fresh("tdc:alpha=0.01,ratio=1"))
    assert len(driver.run.signatures) == before  # type: ignore[attr-defined]


def test_machine_code_is_entered_with_its_own_types_only() -> None:
    """Another type of array would be read as something that it is not."""
    block = fresh("td:alpha=0.01")
    stream = RandomStream(seed=3, steps=STEPS)
    wrong = stream.events.astype(np.int64)
    with pytest.raises(Exception, match=r"AssertionError|Tuple"):
        block.advance(wrong, np.ones(STEPS), stream.transitions, stream.rows)  # type: ignore[arg-type]
