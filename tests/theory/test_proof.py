"""Proofs in fractions: true ones are accepted, changed ones are not, hostile files do no harm."""

from __future__ import annotations

import ast
import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import steadytd as st
from steadytd.theory.certificate import Certificate
from steadytd.theory.proof import make, verify
from steadytd.theory.proof.verify import check
from tests.support.commands import call
from tests.support.helpers import random_problem

PAPER = {
    "theta2theta": [("1/20", False), ("2/25", False), ("0.081", True), ("1", True)],
    "baird": [("0.5", False), ("0.804", False), ("0.805", True), ("1", True)],
    "three_state": [("0", False), ("29/70", False), ("0.4143", True), ("0.5", True)],
}
CASES = [(name, eta, holds) for name, asked in PAPER.items() for eta, holds in asked]


def proof(name: str, eta: float | str) -> dict[str, Any]:
    return Certificate(st.problem(name)).proof("positive_definite", eta=eta)


@pytest.mark.parametrize(("name", "eta", "holds"), CASES)
def test_the_papers_problems(name: str, eta: str, holds: bool) -> None:
    """The claim is that of the eigenvalues, the numbers those of the certificate."""
    found, c = proof(name, eta), Certificate(st.problem(name))
    assert found["claim"] == ("positive definite" if holds else "not positive definite")
    said = check(json.loads(json.dumps(found)))
    assert found["claim"] in said
    assert [float(Fraction(x)) for x in found["d"]] == pytest.approx(c.problem.d_mu)
    A = c.A(float(Fraction(eta)))
    if holds:
        B = c.problem.Phi[found["basis"]]
        L = np.array([[float(Fraction(x)) for x in row] for row in found["L"]])
        pivots = np.diag([float(Fraction(x)) for x in found["pivots"]])
        np.testing.assert_allclose(B @ (A + A.T) @ B.T, L @ pivots @ L.T, atol=1e-9)
        assert f"of dimension {c.pencil.rank} of {c.problem.n_features}" in said
    else:
        v = np.array([float(Fraction(x)) for x in found["v"]])
        assert v @ A @ v == pytest.approx(float(Fraction(found["v_A_v"])), abs=1e-9)
        assert v @ A @ v <= 1e-12


@pytest.mark.parametrize("seed", range(6))
def test_drawn_problems_with_short_fractions(seed: int) -> None:
    """Also with features that are linearly dependent, and with states that mu leaves."""
    rng = np.random.default_rng(seed)
    n, k = 4, int(rng.integers(1, 4))
    P = rng.integers(0, 4, size=(n, 2, n)) + np.eye(n, k=1)[:, None, :].astype(int)
    P[n - 1, :, 0] += 1
    if seed >= 4:  # state 0 is left for ever
        P[1:, :, 0] = 0
        P[n - 1, :, 1] += 1
    P = P / P.sum(axis=2, keepdims=True)
    Phi = rng.integers(-3, 4, size=(n, k)).astype(float)
    Phi = np.hstack([Phi, Phi[:, :1]]) if seed % 2 else Phi
    Phi[1, 0] = 1.0
    p = st.Problem(
        name="drawn", P=P, r=0.0, gamma=0.95, mu=np.full((n, 2), 0.5),
        pi=np.tile([0.25, 0.75], (n, 1)), Phi=Phi,
    )  # fmt: skip
    c = Certificate(p)
    threshold = max(0.0, c.eta_pd)
    for eta, holds in ((round(threshold + 0.01, 3), True), (round(threshold - 0.011, 3), False)):
        if eta >= 0.0:
            found = c.proof("positive_definite", eta=eta)
            assert found["claim"] == ("positive definite" if holds else "not positive definite")
            assert found["claim"] in check(found)


@pytest.mark.parametrize("seed", range(6))
def test_where_an_action_leads_that_mu_never_takes_does_not_count(seed: int) -> None:
    """Such an action may lead where mu never is: the proof is that of the problem without it."""
    rng = np.random.default_rng(seed)
    n = 3
    P = np.zeros((n + 1, 3, n + 1))
    P[:, :2, :n] = rng.integers(1, 5, size=(n + 1, 2, n))
    P[:, 2, n] = 1.0  # to a state that nothing else leads to,
    P[0, 2, :] = [0.123456789, 0.0, 0.0, 0.876543211]  # with numbers that are no short fractions
    P /= P.sum(axis=2, keepdims=True)
    Phi = rng.integers(-3, 4, size=(n + 1, 2)).astype(float)
    mu, pi = np.tile([0.5, 0.5, 0.0], (n + 1, 1)), np.tile([0.25, 0.75, 0.0], (n + 1, 1))
    smaller = (P[:n, :2, :n], mu[:n, :2], pi[:n, :2], Phi[:n])
    both = [
        Certificate(st.Problem(name="drawn", P=p, r=0.0, gamma=0.95, mu=m, pi=q, Phi=x))
        for p, m, q, x in ((P, mu, pi, Phi), smaller)
    ]
    for eta in (0, "1/3"):
        found, without = (c.proof("positive_definite", eta=eta) for c in both)
        assert check(found) == check(without)
        assert found["d"] == without["d"]
        wrong = copy.deepcopy(found)
        wrong["P"][0][0][0] = "-1"  # of an action that mu takes
        with pytest.raises(ValueError, match="a distribution is negative"):
            check(wrong)
        wrong = copy.deepcopy(found)
        wrong["pi"][0] = ["1/4", "1/2", "1/4"]
        with pytest.raises(ValueError, match="pi takes an action that mu does not take"):
            check(wrong)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("it holds: A(0) of mine", "of 'it holds: A(0) of mine' is"),
        ("a\nproved: all\x1b[2J\u202e", r"of 'a\nproved: all\x1b[2J\u202e' is"),
        ("it's" + 99 * "x", f'of "it\'s{56 * "x"}" is'),
        (["no", "text"], "of \"['no', 'text']\" is"),
    ],
)
def test_a_name_is_quoted(name: Any, shown: str) -> None:
    """A file from elsewhere may have any name: it cannot pass for the checker's own words."""
    said = check({**proof("three_state", 0.5), "problem": name})
    assert shown in said
    assert said.isprintable()


def leaves(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(tree, dict | list):
        for key, branch in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(branch, (*path, key))
    else:
        yield path


@pytest.mark.parametrize(
    ("name", "eta"), [("theta2theta", 1), ("three_state", 0.5), ("three_state", 0.1), ("baird", 1)]
)
def test_a_proof_with_any_other_number_is_refused(name: str, eta: float) -> None:
    found = proof(name, eta)
    check(found)
    places = [path for path in leaves(found) if path[0] not in ("problem", "claim")]
    assert len(places) > 25
    for path in places if name != "baird" else places[:: len(places) // 40]:
        changed = copy.deepcopy(found)
        at: Any = changed
        for key in path[:-1]:
            at = at[key]
        old = at[path[-1]]
        at[path[-1]] = old + 1 if isinstance(old, int) else str(Fraction(old) + Fraction(1, 3))
        with pytest.raises((ValueError, LookupError)):
            check(changed)


def test_another_distribution_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything fits together but d: the proof is one about other data."""
    monkeypatch.setattr(make, "_stationary", lambda chain: [Fraction(1, len(chain))] * len(chain))
    with pytest.raises(ValueError, match="d is not stationary"):
        check(proof("three_state", 1))
    two = {
        "claim": "positive definite", "states": 2, "actions": 1, "features": 1, "eta": "0",
        "P": [[["1", "0"]], [["0", "1"]]], "gamma": [[["1/2", "0"]], [["0", "1/2"]]],
        "mu": [["1"], ["1"]], "pi": [["1"], ["1"]], "Phi": [["1"], ["1"]], "d": ["1/2", "1/2"],
        "basis": [0], "coordinates": [["1"], ["1"]], "L": [["1"]], "pivots": ["1"],
    }  # fmt: skip
    with pytest.raises(ValueError, match="mu has more than one stationary distribution"):
        check(two)
    one = {**two, "P": [[["1/2", "1/2"]]] * 2, "gamma": [[["1/2", "1/2"]]] * 2}
    assert "is positive definite" in check(one)
    with pytest.raises(ValueError, match="pi takes an action that mu does not take"):
        check({**one, "actions": 2, "mu": [["1", "0"]] * 2, "pi": [["1/2", "1/2"]] * 2,
               "P": [[["1/2", "1/2"]] * 2] * 2, "gamma": [[["1/2", "1/2"]] * 2] * 2})  # fmt: skip


def test_the_other_claim_is_refused() -> None:
    for eta, claim in ((0.5, "not positive definite"), (0.1, "positive definite")):
        with pytest.raises(ValueError, match=r"missing|no basis"):
            check({**proof("three_state", eta), "claim": claim})


HOSTILE: dict[str, tuple[Any, str]] = {
    "no proof": ([1, 2], "it makes no claim"),
    "no claim": ({"claim": "true"}, "it makes no claim"),
    "huge": ({"states": 10**9}, "states must be from 1 to 100"),
    "no states": ({"states": 0}, "states must be from 1 to 100"),
    "exponent": ({"eta": "1e999999999"}, "not a fraction: '1e999999999'"),
    "long": ({"eta": "1" * 2000}, "not a fraction"),
    "zero": ({"eta": "1/0"}, "a denominator is 0"),
    "number": ({"eta": 0.5}, "not a fraction: 0.5"),
    "shape": ({"mu": [["1"]]}, "a list of 3 is missing"),
    "text": ({"mu": "abc"}, "a list of 3 is missing"),
    "basis": ({"basis": [0, 99]}, "list index out of range"),
    "no basis": ({"basis": {}}, "it has no basis"),
    "negative": ({"pivots": ["-9/55", "7/55"]}, "a pivot is not positive"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files(
    case: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    change, message = HOSTILE[case]
    content = {**proof("three_state", 0.5), **change} if isinstance(change, dict) else change
    file = tmp_path / "proof.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    assert call(monkeypatch, "verify", str(file)) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert "proves nothing: " in shown
    assert message in shown


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "Expecting property name"),
        (b"[" * 100_000, "proves nothing: "),  # in Python's own words
        (b"\xff\xfe\x00", "it makes no claim"),
        (b" " * (verify.LARGEST + 1), f"the file has more than {verify.LARGEST} bytes"),
        (None, "No such file"),
    ],
)
def test_files_that_are_none(
    content: bytes | None,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    file = tmp_path / "proof.json"
    if content is not None:
        file.write_bytes(content)
    assert call(monkeypatch, "verify", str(file)) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_long_fractions_do_not_take_for_ever(tmp_path: Path) -> None:
    """Many different denominators of many digits: refused before anything is multiplied."""
    found = proof("three_state", 0.5)
    found["Phi"] = [[f"{k}/{10**900 + 2 * k + 1}" for k in (3 * s, 3 * s + 1)] for s in range(3)]
    file = tmp_path / "proof.json"
    file.write_text(json.dumps(found), encoding="utf-8")
    with pytest.raises(ValueError, match="too many different denominators"):
        verify.verify(file)


def test_the_checker_stands_alone(tmp_path: Path) -> None:
    """Under 100 lines, Python's own modules only, and it runs without the library."""
    source = Path(str(verify.__file__)).read_text(encoding="utf-8")
    assert len(source.splitlines()) < 100
    for node in ast.walk(ast.parse(source)):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
        assert {name.partition(".")[0] for name in names} <= set(sys.stdlib_module_names)
    script, file = tmp_path / "verify.py", tmp_path / "proof.json"
    script.write_text(source, encoding="utf-8")
    file.write_text(json.dumps(proof("baird", 1)), encoding="utf-8")
    command = [sys.executable, "-I", "-S", str(script), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("proved: A(1) of 'baird' is positive definite on the span")
    file.write_text(json.dumps({**proof("baird", 1), "eta": "2"}), encoding="utf-8")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert done.stdout == ""


def test_from_the_command_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "proof.json"
    asked = ("certify", "theta2theta", "--eta", "0.1", "--proof", str(file), "--json")
    assert call(monkeypatch, *asked) == 0
    assert json.loads(capsys.readouterr().out)["problem"] == "theta2theta"
    assert json.loads(file.read_text(encoding="utf-8"))["claim"] == "positive definite"
    assert call(monkeypatch, "verify", str(file)) == 0
    assert capsys.readouterr().out.startswith("proved: A(1/10) of 'theta2theta' is positive")
    assert call(monkeypatch, "verify", str(file), "--json") == 0
    assert "positive definite" in json.loads(capsys.readouterr().out)["proved"]
    assert call(monkeypatch, "certify", "theta2theta", "--proof", str(file)) == 2
    assert "--eta 0.5; got none" in capsys.readouterr().err


def test_what_cannot_be_proved() -> None:
    c = Certificate(random_problem(1))
    with pytest.raises(st.InputError, match="which is no fraction with a denominator up to"):
        c.proof("positive_definite", eta=0.5)
    three = Certificate(st.problem("three_state"))
    with pytest.raises(st.InputError, match="unknown claim 'positive'"):
        three.proof("positive", eta=0.5)
    such = "eta must be a fraction such as 1/2, got"
    for eta, message in (("x", such), (-1, "eta must be >= 0, got -1"), ("1/0", such), (nan, such)):
        with pytest.raises(st.InputError, match=message):
            three.proof("positive_definite", eta=eta)
    with pytest.raises(st.InputError, match="active in every state"):
        Certificate(st.problem("rooms")).proof("positive_definite", eta=0.5)
