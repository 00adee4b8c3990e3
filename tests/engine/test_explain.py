"""A user's law that cannot be compiled: one sentence, not the compiler's output."""

from __future__ import annotations

import numpy as np
import pytest

import steadytd as st
from steadytd.engine.law import Law
from tests.support.draws import thinned


@st.law(writes={"w": "x"})
def no_return(reward, alpha):  # type: ignore[no-untyped-def]
    """Nothing comes back."""
    delta = reward * alpha  # noqa: F841


@st.law(writes={"w": "x"})
def an_array(alpha):  # type: ignore[no-untyped-def]
    """A vector comes back."""
    return alpha * np.ones(3)


@st.law(writes={"w": "x"})
def slip(reward, w_x, alpha):  # type: ignore[no-untyped-def]
    """A slip of the pen."""
    return alpha * (reward + gama * w_x)  # type: ignore[name-defined]  # noqa: F821


@st.law(writes={"w": "x"})
def hidden(rho, alpha):  # type: ignore[no-untyped-def]
    """Where plain Python does not go."""
    if rho > 1e9:
        return qqqq  # type: ignore[name-defined]  # noqa: F821
    return alpha


@st.law(writes={"w": ("x", "x_next")})
def too_few(alpha):  # type: ignore[no-untyped-def]
    """One number for two vectors."""
    return alpha


@st.law(writes={"w": "x"})
def strange(alpha):  # type: ignore[no-untyped-def]
    """What the compiler cannot do."""
    return alpha * len(str(open))


@st.law(writes={"w": "x"})
def text(alpha):  # type: ignore[no-untyped-def]
    """A number by way of a text."""
    return float(str(alpha))


SAID = {
    no_return: r"^law no_return returns nothing; it must return one number.* `return` missing\?$",
    an_array: r"^law an_array returns an array of shape \(3,\); it must return one number.*w: x",
    slip: r"^law slip uses 'gama', which is not defined; did you mean 'gamma', as an argument",
    hidden: r"^law hidden uses 'qqqq', which is not defined; define it\.$",
    too_few: r"^law too_few returns 1; it must return 2 numbers.*\(w: x and x_next\)\.$",
    strange: r"^law strange uses 'open', which cannot be compiled; a law works with numbers",
    text: r"^law text cannot be compiled: ",
}


@pytest.mark.parametrize("law", thinned(SAID, 2), ids=lambda law: law.name)
def test_one_sentence(law: Law) -> None:
    with pytest.raises(st.InputError, match=SAID[law]) as said:
        st.learner(law, alpha=0.1).start(n_features=2).update([1, 0], 1.0, [0, 1], 1.0, 0.9)
    assert "\n" not in str(said.value) and len(str(said.value)) < 300
