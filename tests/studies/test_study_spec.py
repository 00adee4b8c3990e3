"""Study files: grids, conditions, and mistakes that are named with their line."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import steadytd as st
from steadytd.studies import grid, spec
from steadytd.studies.grid import Condition, axis_values, points
from steadytd.studies.spec import line_of, load_spec, parse_spec, studies

STUDIES = Path(__file__).parents[2] / "studies"
TEXT = """
title = "a study"
problem = "three_state"
steps = 1000
seeds = 3

[[learners]]
name = "td"
alpha = { log2 = [-3, 0] }

[[learners]]
name = "perturbed_td"
alpha = { log2 = [-3, 0] }
eta = [0.5, 1]
lam = [0, 0.9]

[[learners.when]]
if = { lam = 0.9 }
penalty = ["scaled", "outside"]
"""


def test_axes() -> None:
    assert axis_values({"log2": [-18, 0]}) == [2.0**k for k in range(-18, 1)]
    assert axis_values({"log2": [-6, 8, 2]}) == [2.0**k for k in range(-6, 9, 2)]
    assert axis_values({"linear": [0, 1, 6]}) == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert axis_values("outside") == ["outside"]


def test_the_grid_is_the_product_with_conditions() -> None:
    condition = Condition.model_validate({"if": {"a": [2]}, "c": [5, 6]})
    found = list(points({"a": [1, 2], "b": [3, 4]}, [condition]))
    assert found == [
        {"a": 1, "b": 3},
        {"a": 1, "b": 4},
        {"a": 2, "b": 3, "c": 5},
        {"a": 2, "b": 3, "c": 6},
        {"a": 2, "b": 4, "c": 5},
        {"a": 2, "b": 4, "c": 6},
    ]


def test_configurations_of_a_study() -> None:
    spec = parse_spec(TEXT, "s")
    texts = [str(learner) for learner in spec.tasks[0].learners]
    assert len(texts) == len(set(texts)) == spec.runs == 4 + 4 * 2 * (1 + 2)
    assert "perturbed_td:alpha=0.125,eta=1,lam=0.9,penalty=outside" in texts
    assert spec.updates == spec.runs * 1000 * 3


def test_whole_numbers_may_be_written_as_a_user_does() -> None:
    text = TEXT.replace("steps = 1000", "steps = 1e3\nevery = 1e1").replace(
        "seeds = 3", "seeds = 3.0"
    )
    (task,) = parse_spec(text, "s").tasks
    assert (task.steps, task.every, parse_spec(text, "s").file.seeds) == (1000, 10, 3)
    assert all(type(n) is int for n in (task.steps, task.every, parse_spec(text, "s").file.seeds))


def test_the_same_configuration_twice_runs_once() -> None:
    twice = TEXT + '\n[[learners]]\nname = "td"\nalpha = [0.5, 3]\n'
    assert parse_spec(twice, "s").runs == parse_spec(TEXT, "s").runs + 1


def test_auto_becomes_the_number_that_is_used() -> None:
    spec = parse_spec(TEXT.replace("[0.5, 1]", '"auto"').replace("[0, 0.9]", "0"), "s")
    etas = [learner["eta"] for learner in spec.tasks[0].learners if learner.name != "td"]
    assert etas == pytest.approx([0.5142857] * 4, abs=1e-6)


def test_several_problems_with_their_own_steps_and_learners() -> None:
    spec = parse_spec(
        """
        steps = 100
        seeds = 1
        [[problems]]
        name = "baird"
        [[problems]]
        name = "random_mdp"
        label = "small"
        steps = 50
        every = 7
        options = { seed = 3, states = 6, actions = 2, features = 2 }
        [[learners]]
        name = "td"
        alpha = 0.1
        [[learners]]
        name = "etd"
        alpha = 0.1
        on = ["small"]
        """,
        "s",
    )
    assert [(t.label, t.steps, len(t.learners)) for t in spec.tasks] == [
        ("baird", 100, 1),
        ("small", 50, 2),
    ]
    expected = st.problem("random_mdp", seed=3, states=6, actions=2, features=2)
    np.testing.assert_array_equal(spec.tasks[1].problem.P, expected.P)


def test_names_and_texts_stand_for_tables() -> None:
    short = parse_spec(
        """
        problems = ["baird", { name = "three_state", steps = 20 }]
        steps = 100
        seeds = 1
        learners = ["td:alpha=0.1", { name = "perturbed_td", alpha = [0.1, 0.2], eta = 1 }]
        """,
        "s",
    )
    assert [(t.label, t.steps) for t in short.tasks] == [("baird", 100), ("three_state", 20)]
    texts = ["td:alpha=0.1", *(f"perturbed_td:alpha={a},eta=1" for a in (0.1, 0.2))]
    assert [[str(x) for x in t.learners] for t in short.tasks] == [texts, texts]


LISTS = [
    ('problems = "baird"', r"line 1, problems: must be a list; .*\[\[problems\]\].*got 'baird'"),
    ('problems = ["bairt"]', r"line 1, problems\[0\]: unknown problem 'bairt'; did you mean"),
    ("problems = [3]", r"line 1, problems\[0\]: must be a table of keys \(.* string\), got 3"),
    ('problem = ["baird"]', r"line 1, problem: must be a string, got \['baird'\]"),
    ('learners = ["td:alpha"]', r"learners\[0\]: td: expected key=value, got 'alpha'"),
    ('learners = ["td:alpa=1"]', r"learners\[0\].alpa: unknown parameter .*'alpha'"),
    ("learners = { td = 1 }", r"learners: must be a list; tables stand under \[\[learners\]\]"),
    ("learners = []", r"learners: must be a list of at least one, got \[\]"),
    ('confirm = { by = "x" }', r"confirm.by: must be 'auc' or 'final', got 'x'"),
]


@pytest.mark.parametrize(("line", "message"), LISTS)
def test_what_is_no_list_or_table_is_said_in_plain_words(line: str, message: str) -> None:
    key = line.partition(" ")[0]
    others = {"problem": 'problem = "baird"', "learners": 'learners = ["td:alpha=1"]'}
    rest = "\n".join(v for k, v in others.items() if not key.startswith(k))
    with pytest.raises(st.InputError, match=message):
        parse_spec(f"{line}\n{rest}\nsteps = 10\nseeds = 1\n", "s")


MISTAKES = [
    ("steps = 1000", "stebs = 1000", r"line 4, stebs: unknown key .* did you mean 'steps'"),
    ("seeds = 3", "seeds = 0", r"line 5, seeds: seeds must be a whole number >= 1 .*, got 0"),
    ("seeds = 3", "seeds = 2.5", r"line 5, seeds: seeds must be a whole number .*, got 2.5"),
    (
        "steps = 1000",
        "steps = 1e-3",
        r"line 4, steps: steps must be a whole number >= 1, got 0.001",
    ),
    (
        "steps = 1000",
        'steps = "1e3"',
        r"line 4, steps: steps must be a whole number >= 1, got '1e3'",
    ),
    ("seeds = 3", "seeds = 2_000_000", r"line 5, .* >= 1 and <= 1000000, got 2000000"),
    ("seeds = 3", "", r"seeds: seeds is missing"),
    ("steps = 1000", "", r"line 3, problem: steps is missing"),
    ('"td"', '"tdd"', r"line 8, learners\[0\].name: unknown learner 'tdd'; did you mean 'td'"),
    ("log2 = [-3, 0] }", "log3 = [-3, 0] }", r"line 9, .*alpha: an axis must .*got \{'log3'"),
    ("log2 = [-3, 0] }", "log2 = [3, 0] }", r"line 9, .*low <= high.*\[3, 0\]"),
    ("log2 = [-3, 0] }", "log2 = [0.5, 3] }", r"line 9, .*whole exponents"),
    ("log2 = [-3, 0] }", "log2 = 3 }", r"line 9, .*\[low, high, step\]"),
    ("alpha = {", "alpa = {", r"line 9, .*did you mean 'alpha'"),
    ("eta = [0.5, 1]", "eta = [0.5, -1]", r"line 14, .*eta .*must be >= 0.*got -1"),
    ("eta = [0.5, 1]", "eta = []", r"line 14, .*a list of at least one of them.*got \[\]"),
    ("eta = [0.5, 1]", "eta = true", r"line 14, .*must be a number.*got True"),
    ("if = { lam", "if = { lm", r"line 17, .*unknown axis in `if`.*did you mean 'lam'"),
    ("if = { lam = 0.9 }", "", r"line 17, learners\[1\].when\[0\].if: if is missing"),
    ("penalty = [", "eta = [", r"line 17, .*eta is already an axis"),
    ('"three_state"', '"three_stat"', r"line 3, problem: .*did you mean 'three_state'"),
    ('title = "a study"', 'errors = ["val"]', r"line 2, errors: .*did you mean 'value'"),
    ('title = "a study"', 'errors = ["value", "value"]', r"line 2, errors.*twice"),
    ('title = "a study"', 'confirm = { by = "median" }', r"line 2, confirm.*'auc' or 'final'"),
    ('title = "a study"', 'confirm = { bye = "auc" }', r"line 2, confirm.*did you mean 'by'"),
    ("[[learners]]", "[[learners", r"not valid TOML.*line 7"),
    ('name = "td"', 'name = "td"\non = ["baird"]', r"line 9, .*on: unknown problem.*'baird'"),
]


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES)
def test_mistakes_are_named_with_their_line(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(st.InputError, match=rf"(?s)my\.toml.*{message}"):
        parse_spec(TEXT.replace(old, new, 1), "my", "my.toml")


def test_problem_or_problems() -> None:
    with pytest.raises(st.InputError, match="not both"):
        parse_spec(TEXT + '\n[[problems]]\nname = "baird"\n', "s")
    with pytest.raises(st.InputError, match="name what to run on"):
        parse_spec(TEXT.replace('problem = "three_state"', ""), "s")


def test_a_measure_to_choose_by_must_be_recorded() -> None:
    changed = TEXT.replace('title = "a study"', 'confirm = { measure = "projected_bellman" }')
    with pytest.raises(st.InputError, match=r"line 2, confirm.measure: the study records value"):
        parse_spec(changed, "s")


def test_lines_of_nested_tables() -> None:
    text = "a = 1\n[b]\nc.d = 2\n[[e]]\nf = 3\n[[e]]\ng = 4\n[[e.h]]\ni = 5\n"
    wanted = {
        ("a",): 1, ("b",): 2, ("b", "c", "d"): 3, ("e", 0, "f"): 5, ("e", 1, "g"): 7,
        ("e", 1, "h", 0, "i"): 9, ("e", 1, "nothing"): 6,
    }  # fmt: skip
    assert {path: line_of(text, path) for path in wanted} == wanted
    assert line_of(text, ("z",)) is None


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(st.InputError, match="there is no study file"):
        load_spec(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(st.InputError, match="cannot read the study file"):
        load_spec(tmp_path / "bad.toml")


SHIPPED = sorted((Path(__file__).parents[2] / "studies").glob("*.toml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_studies_are_valid(path: Path) -> None:
    assert load_spec(path).runs > 10


def test_shipped_studies_hold_the_published_grids() -> None:
    """51 combinations per lam and step size, without those that this project adds."""
    sizes = {"collision": [0.1, 0.2, 0.3], "rooms": [0.1, 0.2, 0.3, 0.5, 0.75, 0.875, 0.9375]}
    sizes["rooms"] += [0.96875, 0.984375, 1.0]
    sizes["high_variance_rooms"] = sizes["rooms"]
    for name, lams in sizes.items():
        (path,) = [path for path in SHIPPED if path.stem == name]
        learners = load_spec(path).tasks[0].learners
        decay = [x.values["zeta" if x.name == "abtd" else "lam"] for x in learners]
        published = [
            x for x, lam in zip(learners, decay, strict=True)
            if x.name != "perturbed_td" and lam in lams
        ]  # fmt: skip
        assert len(published) == 51 * 19 * len(lams)
        assert {x["alpha"] for x in published} == {2.0**k for k in range(-18, 1)}


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ("{ linear = [0, 1, 1e8] }", "at least 100,000,000 points, more than 1,000,000"),
        ("{ linear = [0, 1, 1e12] }", "at least 1,000,000,000,000 points"),
        ("{ log2 = [2000, 2001] }", "whole exponents from -1000 to 1000"),
        ("{ log2 = [-1000000000, 0] }", "whole exponents from -1000 to 1000"),
        ("{ linear = [0, inf, 3] }", "with finite numbers, low <= high"),
    ],
)
def test_a_grid_is_counted_before_it_is_built(axis: str, message: str) -> None:
    text = (
        f"problem = 'three_state'\nsteps = 10\nseeds = 1\n[[learners]]\nname = 'td'\nalpha={axis}"
    )
    with pytest.raises(st.InputError, match=message):
        parse_spec(text, "x")


def test_points_of_a_curve_are_counted() -> None:
    text = "problem='three_state'\nsteps=1e15\nevery=1\nseeds=1\n[[learners]]\nname='td'\nalpha=1"
    with pytest.raises(st.InputError, match=r"a curve would have 1,000,000,000,000,000 points"):
        parse_spec(text, "x")


def test_conditional_axes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "MOST", 100)
    text = (
        "problem='three_state'\nsteps=10\nseeds=1\n[[learners]]\nname='td'\n"
        "alpha={ linear=[0.1, 1, 20] }\n[[learners.when]]\n"
        "if = { alpha = { linear = [0.1, 1, 20] } }\nlam={ linear=[0, 1, 6] }"
    )
    with pytest.raises(st.InputError, match=r"at least 101 points, more than 100"):
        parse_spec(text, "x")
    assert parse_spec(text.replace("1, 6]", "1, 5]"), "x").runs == 100


def test_the_configurations_of_a_study_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spec, "MOST_RUNS", 3)
    text = "problem='three_state'\nsteps=10\nseeds=1\n[[learners]]\nname='td'\nalpha=[1, 2, 3, 4]"
    with pytest.raises(st.InputError, match=r"at least 4 configurations, more than 3"):
        parse_spec(text, "x")


def test_a_dictionary_is_as_good_as_a_file(tmp_path: Path) -> None:
    text = """
        title = "It's \\"mine\\""
        seeds = 3
        errors = ["value"]
        problems = [{name = "random_mdp", options = {states = 7, seed = 2}, steps = 100}]
        [confirm]
        by = "final"
        [[learners]]
        name = "perturbed_td"
        alpha = {log2 = [-3, -1]}
        eta = [0.5, "auto"]
        """
    (tmp_path / "mine.toml").write_text(text)
    made = st.study(tomllib.loads(text), name="mine")
    read = st.study(tmp_path / "mine.toml")
    assert (made.name, made.spec.file) == (read.name, read.spec.file) == ("mine", read.spec.file)
    assert tomllib.loads(made.spec.text) == tomllib.loads(text)
    assert {str(x) for x in made.spec.tasks[0].learners} == {
        str(x) for x in read.spec.tasks[0].learners
    }


def test_arrays_and_numbers_of_numpy_in_a_dictionary() -> None:
    grid = {"name": "td", "alpha": np.array([0.25, 0.5]), "lam": np.float64(0.5)}
    made = st.study({"problem": "baird", "steps": np.int64(10), "seeds": 1, "learners": [grid]})
    assert [str(x) for x in made.spec.tasks[0].learners] == [
        "td:alpha=0.25,lam=0.5", "td:alpha=0.5,lam=0.5"
    ]  # fmt: skip


BAD_DICTIONARIES = {
    "seeds is missing; a study needs it": {"problem": "baird", "steps": 9, "learners": []},
    "values numbers, strings, lists": {"learners": [{"name": "td", "alpha": object()}]},
    "a study's keys must be strings": {3: 4},
    "unknown key 'sedes'; did you mean 'seeds'": {"problem": "baird", "sedes": 2, "steps": 9,
                                                  "learners": [{"name": "td", "alpha": 1}],
                                                  "seeds": 1},
}  # fmt: skip


@pytest.mark.parametrize("message", BAD_DICTIONARIES)
def test_mistakes_in_a_dictionary(message: str) -> None:
    with pytest.raises(st.InputError, match=re.escape(message)):
        st.study(BAD_DICTIONARIES[message])  # type: ignore[arg-type]


def test_studies_of_the_package_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert st.study("quick").spec.text == (STUDIES / "quick.toml").read_text(encoding="utf-8")
    assert set(studies()) == {path.stem for path in STUDIES.glob("*.toml")}
    (tmp_path / "quick").write_text('problem = "baird"\nsteps = 5\nseeds = 1\n[[learners]]\n'
                                    'name = "td"\nalpha = 0.5\n')  # fmt: skip
    assert st.study("quick").spec.runs == 1  # a file of this name comes first


def test_a_grid_in_python() -> None:
    found = st.grid("perturbed_td", alpha=np.array([0.25, 0.5]), eta=[1, "auto"], lam=0)
    slow = [
        st.learner("perturbed_td", alpha=alpha, eta=eta)
        for alpha in (0.25, 0.5)
        for eta in (1, "auto")
    ]
    assert found == slow
    assert len(st.grid("td", alpha={"log2": [-18, 0]}, lam=range(2))) == 38
    with pytest.raises(st.InputError, match=r"alpha: an axis must be .*got \[\]"):
        st.grid("td", alpha=[])
    with pytest.raises(st.InputError, match="did you mean 'alpha'"):
        st.grid("td", alpa=[0.1])
