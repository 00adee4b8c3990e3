"""What a study's findings are computed from: recording points, step counts, Holm, equal updates."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import steadytd
import steadytd as st
from steadytd.engine.law import Param, law
from steadytd.learners import algorithm, learner
from steadytd.problems import problem
from steadytd.studies.analysis.penalty import _plain_forms, penalties
from steadytd.studies.analysis.reading import read_study
from steadytd.studies.analysis.tables import LEVELS, compare, holm, reach_text, reaches
from steadytd.studies.spec import Task, parse_spec
from steadytd.studies.study import Study
from steadytd.theory.same import same_update

DENSE = """
problem = "baird"
steps = 2_000
seeds = 3
every = 500
per_decade = 4
[[learners]]
name = "perturbed_td"
alpha = 0.01
eta = [0.5, 1]
[[learners]]
name = "lstd"
"""


def task(text: str = DENSE) -> Task:
    (found,) = parse_spec(text, "s").tasks
    return found


def test_recording_points_are_even_and_per_decade() -> None:
    early = [1, 2, 3, 6, 10, 18, 32, 56, 100, 178, 316, 562, 1000, 1778]
    assert task().points.tolist() == sorted({0, 500, 1000, 1500, 2000, *early})
    even = task(DENSE.replace("per_decade = 4", ""))
    assert even.points.tolist() == [0, 500, 1000, 1500, 2000]
    own = DENSE.replace('problem = "baird"\n', "").replace("per_decade = 4", "")
    own += '[[problems]]\nname = "baird"\nper_decade = 1\n'
    assert task(own).points.tolist() == [0, 1, 10, 100, 500, 1000, 1500, 2000]
    with pytest.raises(
        st.InputError, match=r"per_decade must be a whole number >= 0 and <= 1000, got -1"
    ):
        task(DENSE.replace("per_decade = 4", "per_decade = -1"))


def test_the_mean_over_the_run_weighs_points_by_their_distance() -> None:
    dense = task()
    line = 3.0 - dense.points / 1000.0  # the trapezoid rule is exact for a line: its mean is 2
    np.testing.assert_allclose(dense.mean(np.stack([line, 0.0 * line])), [2.0, 0.0], atol=1e-15)
    even = task(DENSE.replace("per_decade = 4", ""))
    errors = np.random.default_rng(0).random((2, 3, 5))
    np.testing.assert_array_equal(even.mean(errors), errors.mean(axis=-1))
    errors[0, 0, 3:] = np.inf
    assert np.isinf(even.mean(errors)[0, 0])
    assert np.isinf(dense.mean(np.where(dense.points > 500, np.inf, 1.0)))


def test_the_mean_is_no_longer_that_of_w0_over_the_number_of_points(tmp_path: Path) -> None:
    """Baird's star is solved within the first hundreds of steps; a slow loop gives its mean."""
    Study(parse_spec(DENSE, "s")).run(out=tmp_path / "out", threads=1)
    (chapter,) = read_study(tmp_path / "out").chapters
    best = chapter.of("perturbed_td")
    assert best is not None
    steps = chapter.task.steps
    run = st.run("baird", [best.run], steps=steps, seeds=3, points=steps + 1)
    exact = run.errors[0].mean()
    assert best.grid.value == pytest.approx(exact, rel=0.05)
    assert abs(best.grid.value - exact) < 0.1 * abs(chapter.start / 5 - exact)
    files = sorted((tmp_path / "out" / "grid").glob("*.parquet"))
    rows = [row for f in files for row in pq.read_table(f).to_pylist() if row["run"] == best.run]
    for seed, row in enumerate(rows):
        curve = np.array(row["curve_value"])
        np.testing.assert_allclose(curve, run.errors[0, seed, chapter.points], rtol=1e-6)
        trapezoid = np.trapezoid(curve, chapter.points) / steps
        assert row["auc_value"] == pytest.approx(float(trapezoid), rel=1e-6)
    with pytest.raises(st.InputError, match="per_decade on baird was 4 and is 5"):
        text = DENSE.replace("per_decade = 4", "per_decade = 5")
        Study(parse_spec(text, "s")).run(out=tmp_path / "out")


def test_step_counts_are_those_of_a_loop() -> None:
    rng = np.random.default_rng(1)
    points = np.array([0, 1, 2, 5, 10, 20, 50])
    for _ in range(300):
        seeds = int(rng.integers(1, 8))
        curves = 10.0 ** -rng.uniform(0.0, rng.choice([1.0, 3.0, 9.0]), (seeds, 7))
        curves[:, 0] = rng.choice([1.0, 3.0])
        for found, share in zip(reaches(points, curves), LEVELS.values(), strict=True):
            first = []
            for curve in curves:
                below = [t for t, e in zip(points, curve, strict=True) if e < share * curve[0]]
                first.append(below[0] if below else np.inf)
            assert found.reached == sum(np.isfinite(first))
            half = -(-seeds // 2)
            expected = sorted(first)[half - 1]
            assert found.step == (None if np.isinf(expected) else expected)
            if found.step is None:
                assert reach_text(found, 50).startswith("not in 50")
            else:
                assert sum(t <= found.step for t in first) >= half
                assert found.after is not None
                assert sum(t <= found.after for t in first) < half
                assert points.tolist().index(found.step) == points.tolist().index(found.after) + 1


def test_holm_rejects_as_its_definition_says() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        p = rng.random(int(rng.integers(1, 9))) ** rng.choice([1.0, 4.0])
        rejected, left = set(), len(p)
        for i in np.argsort(p):
            if p[i] > 0.05 / left:
                break
            rejected.add(int(i))
            left -= 1
        assert {i for i, q in enumerate(holm(p.tolist())) if q <= 0.05} == rejected


@pytest.mark.slow
def test_of_equal_learners_hardly_any_pair_is_called_different() -> None:
    """Without a correction some pair of ten equal learners differs in most studies."""
    rng, wrong, plain = np.random.default_rng(3), 0, 0
    for _ in range(200):
        errors = {str(k): dict(enumerate(rng.normal(1.0, 0.1, 20).tolist())) for k in range(10)}
        pairs = compare(errors)
        wrong += any(p.verdict in ("better", "worse") for p in pairs.values())
        plain += any(p.low is not None and p.high is not None and (p.low > 0.0 or p.high < 0.0)
                     for p in pairs.values())  # fmt: skip
    assert wrong <= 0.08 * 200
    assert plain > 0.5 * 200


def test_the_rounding_of_solvers_is_no_difference() -> None:
    rng = np.random.default_rng(4)
    base = rng.random(20)
    values = {"one": base, "other": base + 1e-10 + 1e-12 * rng.random(20)}
    errors = {name: dict(enumerate(x.tolist())) for name, x in values.items()}
    assert compare(errors)["other", "one"].verdict == "worse"
    assert compare(errors, zero=1e-9)["other", "one"][6:] == (1.0, 1, "same")


def test_the_same_update_is_found() -> None:
    collision, rooms = problem("collision"), problem("high_variance_rooms")
    baird = problem("baird")
    for p, one, other, same in (
        (collision, "tree_backup:alpha=0.03,lam=0.9", "vtrace:alpha=0.03,lam=0.9", True),
        (rooms, "vtrace:alpha=0.015625,lam=1", "abtd:alpha=0.015625,zeta=0.75", True),
        (baird, "td:alpha=0.01,lam=0.5", "perturbed_td:alpha=0.01,lam=0.5,eta=0", True),
        (baird, "td:alpha=0.01,lam=0.5", "vtrace:alpha=0.01,lam=0.5", False),
        (baird, "td:alpha=0.01", "td:alpha=0.02", False),
    ):
        assert same_update(p, learner(one), learner(other)) == same


SAME = """
steps = 400
seeds = 4
problem = "collision"
[[learners]]
name = "vtrace"
alpha = 0.03
lam = 0.9
[[learners]]
name = "tree_backup"
alpha = 0.03
lam = 0.9
[[learners]]
name = "td"
alpha = 0.03
lam = 0.9
"""


def test_a_study_says_that_two_learners_are_the_same_update(tmp_path: Path) -> None:
    Study(parse_spec(SAME, "s")).run(out=tmp_path / "out", threads=1)
    (chapter,) = read_study(tmp_path / "out").chapters
    assert chapter.same == {frozenset(("vtrace", "tree_backup"))}
    pair = chapter.pairs["vtrace", "tree_backup"]
    assert (pair.verdict, pair.p, pair.comparisons) == ("identical", None, 2)
    assert pair.difference == 0.0


@law(
    name="mine", params={"eta": Param("a penalty", low=0.0)},
    writes={"w": "x"}, idle_at_rho_zero=True,
)  # fmt: skip
def mine(reward, rho, gamma_next, w_x, w_x_next, alpha, eta):  # type: ignore[no-untyped-def]
    """TD with a penalty of another form: eta times the cube of the value."""
    return alpha * rho * (reward + gamma_next * w_x_next - w_x - eta * w_x * w_x * w_x)


def test_penalised_learners_are_found_by_their_law_not_by_their_name() -> None:
    names = ("vtrace", "td", "etd_beta", "perturbed_td", "perturbed_etd", "lstd", "perturbed_lstd")
    laws = {name: algorithm(name) for name in names}
    three_state = problem("three_state")
    for name, plain in (
        ("perturbed_td", "td"), ("perturbed_etd", "etd_beta"), ("perturbed_lstd", "lstd"),
    ):  # fmt: skip
        assert _plain_forms(three_state, laws[name], laws) == [plain]
    assert _plain_forms(three_state, mine, laws) == ["vtrace", "td"]  # the same without a trace
    del laws["td"]
    assert _plain_forms(three_state, laws["perturbed_td"], laws) == []


def test_a_study_without_a_plain_form_has_no_penalty_section(tmp_path: Path) -> None:
    text = SAME + '[[learners]]\nname = "perturbed_td"\nalpha = 0.03\neta = [0.1, 0.5]\n'
    Study(parse_spec(text.replace('name = "td"', 'name = "etd"'), "s")).run(out=tmp_path / "out")
    (chapter,) = read_study(tmp_path / "out").chapters
    assert penalties(chapter) == []


def test_no_room_of_studies_knows_a_learner_by_name() -> None:
    """In the strings of the code and the text of the page; documentation may give examples."""
    rooms = Path(steadytd.__file__).parent
    files = [*(rooms / "studies").rglob("*.py"), *(rooms / "report" / "study").rglob("*.py")]
    names = re.compile(rf"\b({'|'.join(st.learners())})\b")
    assert len(files) > 15
    for path in files:
        tree = ast.parse(path.read_text())
        docs = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and isinstance(node.body[0], ast.Expr)
        }
        texts = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in docs]
        assert not [n.value for n in texts if isinstance(n.value, str) and names.search(n.value)]
    page = (rooms / "report" / "templates" / "study.html").read_text()
    body = page.partition("{% block body %}")[2]
    shown = re.sub(r"\{[{%].*?[%}]\}|<[^>]*>", "", body)
    assert not names.findall(shown)
