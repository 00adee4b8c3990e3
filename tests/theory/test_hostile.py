"""What is no problem, learner, study, policy or penalty gets a sentence, not a traceback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import steadytd as st

ODD: tuple[Any, ...] = (None, 3, [], object(), b"td", 1j)


@pytest.mark.parametrize("given", ODD)
@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (st.certify, "needs a problem or the name of one"),
        (st.learner, "a learner is a text such as"),
        (lambda x: st.grid(x, alpha=[0.1]), "a learner is a text such as"),
        (st.study, "a study is the path of a file"),
        (lambda x: st.certify("three_state").path([x]), r"eta must be a finite number >= 0"),
    ],
)
def test_what_is_not_one(ask: Callable[[Any], Any], said: str, given: Any) -> None:
    if given == 3 and "eta" in said:
        given = "3"
    with pytest.raises(st.InputError, match=said):
        ask(given)


@pytest.mark.parametrize("policy", ["x", None, 1.5, 3, -1])
def test_policies(policy: Any) -> None:
    with pytest.raises(st.InputError, match="policy must be 0"):
        st.certify("three_state", policy)


@pytest.mark.parametrize(
    "eta", ["1e9999999", "1e-9999999", "1/" + "9" * 500, "x", "1/0", "1e", None, float("nan"), 1j]
)
def test_penalties_of_proofs(eta: Any) -> None:
    """Some would have fractions of millions of digits."""
    with pytest.raises(st.InputError, match="eta must be a fraction"):
        st.certify("three_state").proof(eta=eta)


@pytest.mark.parametrize("entry", [3, []])
@pytest.mark.parametrize("key", ["problems", "learners"])
def test_entries_of_studies(key: str, entry: Any) -> None:
    given = {"steps": 10, "seeds": 1, "problems": [{"name": "three_state"}]}
    given["learners"] = [{"name": "td", "alpha": 0.1}]
    with pytest.raises(st.InputError, match="must be a table of keys"):
        st.study({**given, key: [entry]})
