"""What is no problem, learner, study, policy or penalty gets a sentence, not a traceback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import steadytd as st
from steadytd.evaluation.closed_form import fixed_point

ODD: tuple[Any, ...] = (None, 3, [], object(), b"td", 1j)


@pytest.mark.parametrize("given", ODD)
@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (st.certify, "needs a problem or the name of one"),
        (st.learner, "a learner is a string such as"),
        (lambda x: st.grid(x, alpha=[0.1]), "a learner is a string such as"),
        (lambda x: st.run("three_state", x, steps=9), "at least one learner|a learner is a string"),
        (lambda x: st.learner("td", alpha=1).start(x), "n_features must be a whole number >= 1"),
        (st.study, "a study is the path of a file"),
        (lambda x: st.certify("three_state").path([x]), r"eta must be a finite number >= 0"),
    ],
)
def test_what_is_not_one(ask: Callable[[Any], Any], said: str, given: Any) -> None:
    if given == 3 and ("eta" in said or "n_features" in said):
        given = "3"
    with pytest.raises(st.InputError, match=said):
        ask(given)


@pytest.mark.parametrize("peaks", [3, (0.5,), (0.9, 0.1), (0.1, "x"), (-0.5, 1.0), "ab"])
def test_peaks(peaks: Any) -> None:
    online = st.learner("td", alpha=0.1).start(2)
    with pytest.raises(st.InputError, match="peaks must be two finite numbers >= 0, the least"):
        online.update([1, 0], 1.0, [0, 1], rho=1.0, gamma=0.9, peaks=peaks)
    assert online.step == 0


def test_numbers_beyond_all_doubles() -> None:
    with pytest.raises(st.InputError, match=r"alpha.* must be a number"):
        st.grid("td", alpha=[0.1, 10**400])


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


@pytest.mark.parametrize("key", ["problems", "learners"])
def test_entries_of_studies(key: str) -> None:
    given = {"steps": 10, "seeds": 1, "problems": [{"name": "three_state"}]}
    given["learners"] = [{"name": "td", "alpha": 0.1}]
    with pytest.raises(st.InputError, match="must be a table of keys"):
        st.study({**given, key: [3]})


def fails(m: Any, values: Any) -> Any:
    raise KeyError("no")


@pytest.mark.parametrize(
    ("expectation", "said"),
    [
        (fails, r"the closed form of mine failed: KeyError \('no'\)\."),
        (lambda m, v: None, "the closed form of mine failed: TypeError"),
        (lambda m, v: (1j * m.G, m.b()), "the closed form of mine failed: TypeError"),
        (lambda m, v: ("M", "g"), "the closed form of mine failed: TypeError"),
        (lambda m, v: (m.G, m.b()[:1]), r"must give M \[2, 2\] and g \[2\] .* \(2, 2\) and \(1,\)"),
        (lambda m, v: (m.G * float("nan"), m.b()), "closed form of mine must give finite numbers"),
    ],
)
def test_closed_forms_of_own_laws(expectation: Any, said: str) -> None:
    @st.law(name="mine", writes={"w": "x"}, expectation=expectation)
    def update(reward: float, alpha: float) -> float:
        return alpha * reward

    made = st.learner(update, alpha=0.1)
    with pytest.raises(st.InputError, match=said):
        st.certify("three_state").fixed_point(made)
    assert fixed_point(made) is None  # an evaluation follows it along the log instead
