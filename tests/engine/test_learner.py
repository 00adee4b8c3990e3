from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from numba import njit

from steadytd import InputError, Law, Learner, Param, law, learner, learners
from steadytd.engine.settings import plain
from steadytd.learners import algorithm


@law(writes={"w": "x"}, params={"kappa": Param("a weight", default=2.0, low=1.0, high=4.0)})
def weighted_td(
    reward: float, rho: float, gamma_next: float, w_x: float, w_x_next: float, alpha: float,
    kappa: float,
) -> float:  # fmt: skip
    """TD with its step times kappa.

    More text.
    """
    return kappa * alpha * rho * (reward + gamma_next * w_x_next - w_x)


def values_for(name: str) -> dict[str, float]:
    """A value for every hyper-parameter of an algorithm that has no default."""
    return {n: 0.5 for n, p in algorithm(name).all_params.items() if p.default is None}


# Text


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (learner("td", alpha=0.1), "td:alpha=0.1"),
        (learner("td", alpha=1), "td:alpha=1"),
        (learner("perturbed_td", alpha=1e-4, eta=1.0), "perturbed_td:alpha=0.0001,eta=1"),
        (learner("perturbed_td", eta=0, alpha=1e-5), "perturbed_td:alpha=1e-5,eta=0"),
        (learner("td:alpha=0.5,lam=0"), "td:alpha=0.5"),
        (learner("td:alpha=0.5", lam=0.25), "td:alpha=0.5,lam=0.25"),
        (learner("tdc:ratio=10,alpha=2e-7"), "tdc:alpha=2e-7"),
        (learner("tdc:ratio=1e3,alpha=2e-7"), "tdc:alpha=2e-7,ratio=1000"),
        (learner("td:alpha=1,power=0.75,delay=100"), "td:alpha=1,power=0.75,delay=100"),
        (
            learner("perturbed_td:alpha=1,eta=1,penalty=scaled"),
            "perturbed_td:alpha=1,eta=1",
        ),
        (
            learner("perturbed_td", alpha=1, eta=1, penalty="outside"),
            "perturbed_td:alpha=1,eta=1,penalty=outside",
        ),
        (learner(weighted_td, alpha=0.1), "weighted_td:alpha=0.1"),
        (learner(weighted_td, alpha=0.1, kappa=3), "weighted_td:alpha=0.1,kappa=3"),
    ],
)
def test_text_form(made: Learner, text: str) -> None:
    assert str(made) == text
    assert repr(made) == f"<learner {text}>"


@pytest.mark.parametrize(
    "text",
    [
        "perturbed_td:alpha=1e-4,eta=1",
        "perturbed_td:eta=1,alpha=1e-4",
        " perturbed_td : alpha = 1e-4 , eta = 1.0 ",
        "perturbed_td:alpha=0.0001,eta=1,lam=0,power=0,delay=1,penalty=scaled",
        "perturbed_td:,alpha=1e-4,,eta=1,",
    ],
)
def test_equal_texts(text: str) -> None:
    expected = learner("perturbed_td", alpha=1e-4, eta=1)
    made = learner(text)
    assert made == expected
    assert hash(made) == hash(expected)
    assert str(made) == str(expected)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    alpha=some.floats(0, 1e300, exclude_min=True),
    eta=some.floats(0, 1e300),
    lam=some.floats(0, 1),
    penalty=some.sampled_from(["scaled", "outside"]),
)
def test_text_reads_back_the_same(alpha: float, eta: float, lam: float, penalty: str) -> None:
    """Bit for bit: every number is written with all the digits that it needs."""
    made = learner("perturbed_td", alpha=alpha, eta=eta, lam=lam, penalty=penalty)
    again = learner(str(made))
    assert again == made
    assert str(again) == str(made)
    assert dict(again.values) == {**made.values}


@pytest.mark.parametrize("name", sorted(learners()))
def test_every_algorithm_reads_back_the_same(name: str) -> None:
    made = learner(name, **values_for(name))
    assert learner(str(made)) == made
    every = {n: plain(value) for n, value in made.values.items()}
    assert learner(name, **every) == made


# Values


def test_numbers_of_other_kinds_are_floats() -> None:
    made = learner("td", alpha=np.float32(0.5), lam=np.int64(1), power="0.25")
    assert made == learner("td:alpha=0.5,lam=1,power=0.25")
    assert all(type(value) is float for value in made.values.values())


def test_traces_only_where_lam_is_not_zero() -> None:
    assert not learner("td:alpha=1").traced
    assert learner("td:alpha=1,lam=1e-9").traced
    assert not learner(weighted_td, alpha=1).traced


def test_variants() -> None:
    scaled, outside = (
        learner(f"perturbed_td:alpha=1,eta=1,penalty={name}") for name in ("scaled", "outside")
    )
    assert scaled.law is scaled.algorithm
    assert outside.law is not outside.algorithm
    assert outside.law.writes == {"w": ("z", "x")}
    assert outside.algorithm is scaled.algorithm
    assert outside != scaled
    assert outside.name == "perturbed_td"


def test_replace() -> None:
    made = learner("perturbed_td:alpha=0.1,eta=1,penalty=outside")
    changed = made.replace(alpha=0.2, lam=0.5)
    assert str(changed) == "perturbed_td:alpha=0.2,eta=1,lam=0.5,penalty=outside"
    assert str(made) == "perturbed_td:alpha=0.1,eta=1,penalty=outside"
    with pytest.raises(InputError) as caught:
        made.replace(eta=-1)
    assert str(caught.value) == "perturbed_td: eta (penalty) must be >= 0, or auto, got -1."


def test_equality() -> None:
    made = learner("td:alpha=0.1")
    assert made == learner("td", alpha=0.1)
    assert made != learner("td", alpha=0.2)
    assert made != learner("etd", alpha=0.1)
    assert made != "td:alpha=0.1"
    assert len({made, learner("td", alpha=0.1), learner("td:alpha=0.10"), "other"}) == 2


def test_immutable() -> None:
    made = learner("td:alpha=0.1")
    for name in ("values", "law", "algorithm", "alpha", "_text"):
        with pytest.raises(
            AttributeError, match=rf"^a learner is immutable; use replace\({name}=\.\.\.\)$"
        ):
            setattr(made, name, 1.0)
    with pytest.raises(TypeError, match="does not support item assignment"):
        made.values["alpha"] = 1.0  # type: ignore[index]
    given_ones = {"alpha": 0.5}
    own = Learner(algorithm("td"), given_ones)
    given_ones["alpha"] = 0.75
    assert own["alpha"] == 0.5


# Errors


def refused(*args: Any, **params: Any) -> str:
    with pytest.raises(InputError) as caught:
        learner(*args, **params)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("perturbed", "; did you mean 'perturbed_td'?"),
        ("preturbed_td:alpha=1,eta=1", "; did you mean 'perturbed_td'?"),
        ("tdc_as_publishd:alpha=1", "; did you mean 'tdc_as_published'?"),
        ("nothing:alpha=1", "."),
        ("", "."),
    ],
)
def test_unknown_learner(text: str, hint: str) -> None:
    name = text.partition(":")[0]
    known = ", ".join(sorted(learners()))
    own = "A law of your own: the law itself in Python, or its file, my.py:my_law."
    assert refused(text) == f"unknown learner '{name}'{hint} Known: {known}. {own}"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            "td:alpa=0.1",
            "unknown parameter of td: 'alpa'; did you mean 'alpha'? "
            "Known: alpha, average, delay, lam, power.",
        ),
        (
            "perturbed_td:alpha=1,eta=1,penalty=outsid",
            "unknown penalty of perturbed_td: 'outsid'; did you mean 'outside'? "
            "Known: outside, scaled.",
        ),
        ("td", "td needs alpha (step size, > 0); write for instance 'td:alpha=...'."),
        (
            "perturbed_td:alpha=0.1",
            "perturbed_td needs eta (penalty, >= 0, or auto); write for instance "
            "'perturbed_td:eta=...'.",
        ),
        ("td:alpha=-0.1", "td: alpha (step size) must be > 0, got -0.1."),
        ("td:alpha=nan", "td: alpha (step size) must be > 0, got nan."),
        ("td:alpha=1,lam=1.5", "td: lam (trace decay) must be >= 0 and <= 1, got 1.5."),
        ("td:alpha=1;lam=1", "td: alpha must be a number, got '1;lam=1'."),
        ("td:alpha=1,alpha=2", "td: alpha is given twice."),
        ("td:alpha", "td: expected key=value, got 'alpha'."),
        ("td:=1", "td: expected key=value, got '=1'."),
    ],
)
def test_bad_text(args: str, message: str) -> None:
    assert refused(args).startswith(message)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"alpha": None}, "td needs alpha (step size, > 0);"),
        ({"alpha": [0.1]}, "td: alpha must be a number, got [0.1]."),
        ({"alpha": 1j}, "td: alpha must be a number, got 1j."),
        ({"alpha": 1, "lambda_": 0.5}, "unknown parameter of td: 'lambda_'; did you mean 'lam'?"),
        ({"alpha": math.nan}, "td: alpha (step size) must be > 0, got nan."),
    ],
)
def test_bad_arguments(params: dict[str, Any], message: str) -> None:
    assert refused("td", **params).startswith(message)


def test_text_and_argument() -> None:
    message = refused("td:alpha=1", alpha=2)
    assert message == "td: alpha is given in the text and as an argument."


def test_errors_of_own_laws() -> None:
    assert refused(weighted_td, alpha=1, kappa=5) == (
        "weighted_td: kappa (a weight) must be >= 1 and <= 4, got 5."
    )
    assert refused(weighted_td, alpha=1, kapa=2).startswith(
        "unknown parameter of weighted_td: 'kapa'; did you mean 'kappa'?"
    )


# Laws


def test_own_law_declares_itself() -> None:
    assert isinstance(weighted_td, Law)
    assert weighted_td.name == "weighted_td"
    assert weighted_td.summary == "TD with its step times kappa."
    assert weighted_td.vectors == ("w",)
    assert weighted_td.bases == ("x", "x_next")
    assert not weighted_td.needs_policies
    assert not algorithm("tdc_as_published").needs_policies
    assert learner("tdc_as_published:alpha=1,weight=pi").law.needs_policies


def test_own_law_has_the_name_it_is_given() -> None:
    @law(name="mine", writes={"w": ("x", "x_next")})
    def update(alpha: float, w_x: float) -> tuple[float, float]:
        return alpha * w_x, alpha

    assert str(learner(update, alpha=0.5)) == "mine:alpha=0.5"
    assert dict(update.writes) == {"w": ("x", "x_next")}


def declare(**changes: Any) -> Law:
    def update(reward: float, alpha: float) -> float:
        return alpha * reward

    arguments: dict[str, Any] = {"name": "mine", "writes": {"w": "x"}, "update": update, **changes}
    function = arguments.pop("update")
    return law(**arguments)(function)


def refuses(reward: float, alpha: float) -> float:
    if reward < 0.0:
        raise ValueError("negative")
    return alpha


@njit()
def asserted(number: float) -> float:
    assert number > 0.0
    return number


def asks(reward: float, alpha: float) -> float:
    return alpha * asserted(reward)


def with_argument(name: str) -> Any:
    """A function of one argument with the given name."""
    scope: dict[str, Any] = {}
    exec(f"def f({name}): return {name}", scope)
    return scope["f"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"writes": {"h": "x"}}, "law mine: the first vector in `writes` must be 'w'."),
        (
            {"writes": {"w": "x_nxt"}},
            "unknown vector in writes['w'] of law mine: 'x_nxt'; did you mean 'x_next'? "
            "Known: w, x, x_next.",
        ),
        (
            {"writes": {"w": ("x", "z")}},
            "unknown vector in writes['w'] of law mine: 'z'. Known: w, x, x_next.",
        ),
        (
            {"update": with_argument("gama_next")},
            "unknown argument of law mine: 'gama_next'; did you mean 'gamma_next'? Known: ",
        ),
        (
            {"update": with_argument("kapa"), "params": {"kappa": Param("a weight")}},
            "unknown argument of law mine: 'kapa'; did you mean 'kappa'? Known: ",
        ),
        ({"update": with_argument("h_x")}, "unknown argument of law mine: 'h_x'; did you mean "),
        # memory comes before the inner products, so it cannot ask for them (traces may)
        ({"memory": {"F": with_argument("w_x")}}, "unknown argument of law mine: 'w_x'"),
        (
            {"writes": {"w": "x", "F": "x"}, "memory": {"F": None}},
            "unknown vector in writes['F'] of law mine: 'x'. Known: 1, value.",
        ),
        (
            {"writes": {"w": "x", "F": "value"}, "memory": {"F": None}, "idle_at_rho_zero": True},
            "law mine writes memory: leave out idle_at_rho_zero.",
        ),
        (
            {"maps": {"h": with_argument("value")}},
            "unknown vector in maps of law mine: 'h'. Known: w.",
        ),
        ({"maps": {"w": with_argument("reward")}}, "unknown argument of law mine: 'reward'"),
        (
            {"writes": {"w": "x", "h": "x"}, "starts": {"w": "kappa"}},
            "unknown vector in starts of law mine: 'w'. Known: h.",
        ),
        (
            {
                "writes": {"w": "x", "h": "x"},
                "starts": {"h": "kapa"},
                "params": {"kappa": Param("a weight")},
            },
            "unknown hyper-parameter in starts of law mine: 'kapa'; did you mean 'kappa'?",
        ),
        (
            {"writes": {"w": "x", "F": "1"}, "memory": {"F": with_argument("rho")}},
            "unknown vector in writes['F'] of law mine: '1'. Known: value.",
        ),
        ({"writes": {"w": ("x", "1")}}, "unknown vector in writes['w'] of law mine: '1'. Known: "),
        ({"name": 3}, "the name of a law must be a printable string, got 3."),
        ({"name": "a\x1b[31m"}, "the name of a law must be a printable string, got 'a\\x1b[31m'."),
        ({"name": "\ud800"}, "the name of a law must be a printable string, got '\\ud800'."),
        ({"writes": None}, "law mine: the first vector in `writes` must be 'w'."),
        ({"writes": "wx"}, "law mine: `writes` must be a dictionary by name, got 'wx'."),
        ({"writes": {"w": ()}}, "unknown vector in writes['w'] of law mine: ''. Known: w, x"),
        ({"writes": {"w": "x", "a b": "x"}}, "law mine: a name in `writes` must be letters, digi"),
        ({"params": 3}, "law mine: `params` must be a dictionary by name, got 3."),
        ({"params": {"a": 3}}, "law mine: a must be a st.Param, got 3."),
        ({"params": {"class": Param("c", 1.0)}}, "law mine: a name in `params` must be letters"),
        ({"traces": {"z": 3}}, "law mine: only a function written with def can be compiled"),
        ({"update": max}, "law mine: only a function written with def can be compiled"),
        ({"update": partial(max, 1)}, "law mine: only a function written with def can be comp"),
        ({"update": refuses}, "law mine: refuses has a `raise` or `assert`, which compiled code"),
        ({"update": asks}, "law mine: asserted has a `raise` or `assert`, which compiled code"),
    ],
)
def test_declaration_errors(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        declare(**changes)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"traces": {"z": with_argument("rho")}}, "w_z"),
        ({"writes": {"w": "x", "h": "x"}}, "h_x_next"),
        ({"memory": {"F": with_argument("F")}}, "F"),
        ({"params": {"kappa": Param("a weight")}}, "kappa"),
        ({}, "interest"),
        ({}, "mu_prev"),
        ({}, "delay"),
    ],
)
def test_what_a_law_may_ask_for(changes: dict[str, Any], argument: str) -> None:
    made = declare(update=with_argument(argument), **changes)
    assert made.needs_policies == (argument == "mu_prev")


@pytest.mark.parametrize(
    ("param", "rule"),
    [
        (Param("x"), "a finite number"),
        (Param("x", low=0.0), ">= 0"),
        (Param("x", low=0.0, above=True), "> 0"),
        (Param("x", low=0.0, high=1.0), ">= 0 and <= 1"),
        (Param("x", low=-1.0, high=0.5, above=True), "> -1 and <= 0.5"),
        (Param("x", low=0.0, auto=True), ">= 0, or auto"),
    ],
)
def test_rules_in_words(param: Param, rule: str) -> None:
    assert param.rule == rule
    with pytest.raises(InputError) as caught:
        param.check("law", "x", math.nan)
    assert str(caught.value) == f"law: x (x) must be {rule}, got nan."
