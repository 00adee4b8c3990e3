"""The committed pages of docs/results say what the committed numbers say."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import steadytd as st
from steadytd.learners import algorithm
from steadytd.report.live import live
from steadytd.studies.analysis.tables import short

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def writer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_results", DOCS / "write_results.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_are_made_from_the_committed_numbers(writer: ModuleType) -> None:
    pages = writer.documents()
    assert {"paper_stepsizes", "collision"} <= pages.keys()
    for name, found in pages.items():
        assert (DOCS / "results" / f"{name}.md").read_text() == writer.page(name, found)
    assert (DOCS / "results" / "index.md").read_text() == writer.index(pages)


def test_every_study_has_a_page_that_says_where_it_is_from(writer: ModuleType) -> None:
    shipped = {path.stem for path in (DOCS.parent / "studies").glob("*.toml")} - {"quick"}
    assert shipped == set(writer.STUDIES)
    for name in shipped - writer.documents().keys():
        assert "**From an earlier version.**" in (DOCS / "results" / f"{name}.md").read_text()


def told_sizes() -> dict[str, int]:
    """How many configurations docs/studies.md says that each study has."""
    rows = re.findall(r"^\| (`.*\.toml`) \| ([\d,]+)", (DOCS / "studies.md").read_text(), re.M)
    return {
        name: int(size.replace(",", ""))
        for files, size in rows
        for name in re.findall(r"`(\w+)\.toml`", files)
    }


def test_committed_numbers_are_those_of_the_shipped_grids(writer: ModuleType) -> None:
    told = told_sizes()
    assert set(told) == {path.stem for path in (DOCS.parent / "studies").glob("*.toml")}
    for name, found in writer.documents().items():
        spec = st.study(DOCS.parent / "studies" / f"{name}.toml").spec
        assert found["complete"]
        assert found["configurations"] == spec.runs == told[name]
        for task, problem in zip(spec.tasks, found["problems"], strict=True):
            assert (problem["problem"], problem["steps"]) == (task.label, task.steps)
            tried = {b["algorithm"]: b["configurations"] for b in problem["best"]}
            names = [x.name for x in task.learners]
            assert tried == {n: names.count(n) for n in tried}
            assert set(names) == {*tried, *problem["failed"]}


def test_a_page_with_other_numbers_is_noticed(writer: ModuleType) -> None:
    name, found = next(iter(writer.documents().items()))
    changed = json.loads(json.dumps(found))
    changed["problems"][0]["best"][0]["measured"]["value"] *= 1.01
    assert writer.page(name, changed) != writer.page(name, found)


def tables(name: str) -> list[dict[str, list[dict[str, Any]]]]:
    """The rows of a committed figure, by table, for each of its views: what its page has."""
    spec = json.loads((DOCS / "results" / f"{name}.json").read_text(encoding="utf-8"))
    views = json.loads(live(name, spec).data)["views"]
    return [
        {key: [dict(zip(t["names"], row, strict=True)) for row in t["rows"]]
         for key, t in view["tables"].items()}
        for view in views
    ]  # fmt: skip


def test_every_picture_lives() -> None:
    """A picture has its description beside it, with the numbers that its marks are drawn from."""
    for path in (DOCS / "results").glob("*.svg"):
        for view in tables(path.stem):
            assert all(rows and all(rows) for rows in view.values()), path.stem


def test_figures_show_the_committed_numbers(writer: ModuleType) -> None:
    seen = 0
    for name, found in writer.documents().items():
        for problem in found["problems"]:
            drawn = writer.picture_name(name, problem["problem"], "overview").removesuffix(".svg")
            dots = max((t for v in tables(drawn) for t in v.values()), key=len)
            for best in problem["best"]:
                own = [dot for dot in dots if dot["learner"] == best["algorithm"]]
                lost = sum(dot.get("diverged") is not None for dot in own)
                assert len(own) == best["configurations"], (drawn, best["algorithm"])
                assert lost == best["configurations"] - best["never_diverged"]
            for penalty in problem["penalties"][:1]:
                kind = f"sensitivity_{penalty['penalised']}"
                drawn = writer.picture_name(name, problem["problem"], kind).removesuffix(".svg")
                least = {
                    short(row["eta"]): row["least_grid_error"]
                    for row in penalty["by_eta"]
                    if row["eta"] is not None
                }
                (by_eta,) = (
                    lines
                    for view in tables(drawn)
                    for lines in view.values()
                    if len(lines) > 1 and {x.get("line") for x in lines} & {*least} - {"1"}
                    and "error" in lines[0] and {x["line"] for x in lines} <= {*least}
                )  # fmt: skip
                for eta, error in least.items():
                    line = [x["error"] for x in by_eta if x["line"] == eta]
                    told: list[float] = [x for x in line if x is not None]
                    if told:  # else it lies above the scale
                        assert min(told) == pytest.approx(error, rel=1e-4), (drawn, eta)
                        seen += 1
    assert seen > 80


@pytest.mark.slow
def test_only_one_of_forty_maps_gains_by_a_penalty() -> None:
    found = [st.certify(st.problem("collision", seed=seed)) for seed in range(40)]
    assert all(x.td_stable for x in found)
    assert np.flatnonzero([x.best_eta > 0.0 for x in found]).tolist() == [29]


def test_facts_about_penalties_where_td_is_stable(writer: ModuleType) -> None:
    kolter = st.problem("kolter")
    c = st.certify(kolter)
    text = re.sub(r"\s+", " ", writer.PENALTY)
    assert c.td_stable
    errors = [
        float(kolter.error(c.fixed_point("perturbed_td", eta=eta)))
        for eta in (0.0, 1.918e-4, 1e-4, 3.8e-4)
    ]
    for shown, error in zip(("2.717", "0.000447", "0.543", "0.423"), errors, strict=True):
        assert shown in text
        assert float(shown) == pytest.approx(error, rel=2e-3)
    map_29 = st.problem("collision", seed=29)
    best = st.certify(map_29)
    assert best.td_stable and best.best_eta > 0.0
    for eta, shown in ((0.0, "0.701"), (0.355, "0.673")):
        assert shown in text
        assert float(map_29.error(best.fixed_point("perturbed_td", eta=eta))) == pytest.approx(
            float(shown), abs=6e-4
        )


def test_the_wins_of_cures_add_up_and_the_readme_has_their_sentence(writer: ModuleType) -> None:
    found = json.loads((DOCS / "results" / "cures_wins.json").read_text())
    assert sum(row["wins"] for row in found["rows"]) == found["instances"] == 100
    assert found["rows"][0]["median_ratio"] == min(row["median_ratio"] for row in found["rows"])
    runs = sum(runs for _, runs in found["right"].values())
    assert runs == len(found["rows"]) * found["instances"]
    readme = re.sub(r"\s+", " ", (DOCS.parent / "README.md").read_text())
    assert writer.wins_sentence(found) in readme


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cure_wins() -> ModuleType:
    return script("cure_wins")


def test_the_page_on_the_certificate_is_made_from_its_counts() -> None:
    made = script("certificate_right")
    found = json.loads((DOCS / "results" / "certificate.json").read_text())
    assert (DOCS / "results" / "certificate.md").read_text() == made.page(found)
    assert {*made.SINGLE, *made.ROOMS, "collision", "unstable_mdp"} == set(found["problems"])
    for kind in found["problems"].values():
        assert made.FEWEST <= min(kind["steps"]) <= max(kind["steps"]) <= made.MOST
        for choice in kind["choices"].values():
            assert sum(choice["chosen"].values()) == kind["instances"] >= choice["close"]
        for cases in kind["right"].values():
            assert all(agree <= every for agree, every in cases.values())
            by_step = [cases.get(made.BY_STEP.format(a), [0, 0]) for a in (*made.ALPHAS, None)]
            assert made.added(by_step) == cases.get("unknown", [0, 0])


def test_what_the_certificate_said_is_held_against_the_run() -> None:
    made = script("certificate_right")
    said = {"learner": "a", "alpha": 1.0, "run": "a:alpha=1", "stable": True, "bounded": True,
            "predicted": 2.0, "long": True, "forgets": None, "learns": False}  # fmt: skip
    unstable = {**said, "learner": "b", "run": "b:alpha=1", "stable": False}
    unbounded = {**said, "bounded": False}
    learned = {**said, "bounded": None, "learns": True}
    errors = (("bounded", said, 2.4, True), ("bounded", said, 2.6, False),
              ("bounded", said, 1.5, False), ("bounded", said, np.inf, False),
              ("unstable", unstable, 11.0, True), ("unstable", unstable, 9.0, False),
              ("unstable", unstable, np.inf, True), ("unbounded", unbounded, 11.0, True),
              ("unbounded", unbounded, 2.0, False), ("learned", learned, 2.4, True),
              ("learned_unstable", {**learned, "stable": False}, 9.0, False))  # fmt: skip
    for case, row, error, right in errors:
        assert made.verdicts({**row, "error": error}, 10.0) == {case: right}
    for forgets, closer, case in ((True, True, "forgets"), (False, True, "strays")):
        row = {**unbounded, "error": 2.0, "forgets": forgets, "closer": closer}
        found = made.verdicts(row, 10.0)
        assert found[case] is (forgets == closer)
        assert ("unbounded" in found) is not forgets  # of runs that settle no error is said
    rows = [{**said, "error": 2.4}, {**unstable, "error": 9.0}, {**said, "error": 9, "long": False}]
    rows[2]["alpha"] = 0.5
    both = {"choice": ["a:alpha=1", 2.9], "of all cures": ["b:alpha=1", 3.1]}
    found = made.counts([{"zero": 10.0, "steps": 7, "rows": rows, "choices": both}])
    assert found["right"] == {"a": {"bounded": [1, 1]}, "b": {"unstable": [0, 1]}}
    assert (found["short"], found["best"], found["steps"]) == (1, 2.4, [7, 7])
    assert found["choices"]["choice"]["close"] == 1
    assert found["choices"]["of all cures"]["beaten_by"] == {"a": 1}
    assert found["learners"]["a"] == {"alpha": 1.0, "error": 2.4, "close": 1}


def test_what_is_said_beforehand_is_that_of_the_certificate() -> None:
    """TD is unstable on the three states, with any step size; so is what overshoots."""
    made, c = script("certificate_right"), st.certify("three_state")
    rows = {row["run"]: row for row in made.rows_of(c, made.FEWEST)}
    assert not any(rows[f"td:alpha={a:g}"]["stable"] for a in made.ALPHAS)
    best = next(row for run, row in rows.items() if run.startswith("perturbed_td:alpha=0.01,"))
    square = c.mean_square("perturbed_td", eta=c.best_eta)
    assert square is not None and best["stable"] and best["bounded"] and best["long"]
    error = c.error(c.fixed_point("perturbed_td", eta=c.best_eta))
    assert best["predicted"] == pytest.approx(np.hypot(error, square.spread(0.01)))
    assert {row["learner"] for row in rows.values() if row["learns"]} == {
        "autostep", "swift_td", "tidbd", "wis_td",
    }  # fmt: skip
    assert rows["etd:alpha=0.01"]["forgets"] is True  # its trace has infinite variance


def test_most_learners_get_ten_time_constants_at_the_middle_step_size() -> None:
    made, c = script("certificate_right"), st.certify("nonmonotone")
    steps = made.steps_of(c, (1, 10**9))
    rates = [made.rate(c, c.resolved(row["learner"], **row["params"])) for row in c.learners
             if "alpha" in algorithm(row["learner"]).all_params]  # fmt: skip
    long = np.array(rates) * 0.01 * steps >= 10.0
    assert 0.7 <= long.mean() <= 0.8
    assert made.steps_of(c, (10, 20)) == 20


def test_a_target_policy_of_rooms_is_a_problem() -> None:
    made = script("certificate_right")
    rooms, alone = st.problem("rooms"), made.instances_of("rooms")
    assert len(alone) == rooms.n_policies == 8
    for k, p in enumerate(alone.values()):
        np.testing.assert_array_equal(p.v_pi, rooms.v_pi[k])
        np.testing.assert_array_equal(p.error_weights(), rooms.error_weights(k))


def test_the_runs_of_the_study_of_cures_are_long_enough() -> None:
    """Five time constants of what is unstable, in the file and in the page; shorter is refused."""
    made, spec = cure_wins(), st.study(DOCS.parent / "studies" / "cures.toml").spec
    found = made.horizons(spec, 20)  # of the family, twenty instances
    made.require_long_runs(found)
    assert {h.problem for h in found if h.stable} == {"kolter", "nonmonotone"}
    (drawn,) = [h for h in found if h.problem == "unstable_mdp"]
    rates = [-np.linalg.eigvals(st.problem("unstable_mdp", seed=s).moments().A()).real.min()
             for s in range(20)]  # fmt: skip
    assert drawn.rate == pytest.approx(np.median(rates), rel=1e-9)
    assert drawn.smallest == pytest.approx(drawn.steps * 2.0**-10 * drawn.rate, rel=1e-12)
    with pytest.raises(SystemExit, match=r"unstable_mdp: at the smallest step size 10,000 steps"):
        made.require_long_runs([drawn._replace(steps=10_000, smallest=drawn.smallest / 100)])
    shown = json.loads((DOCS / "results" / "cures_wins.json").read_text())["horizons"]
    assert [h["steps"] for h in shown] == [task.steps for task in spec.tasks]
    assert all(h["stable"] or h["smallest"] >= 5.0 for h in shown)


@pytest.mark.slow
def test_what_is_chosen_for_an_instance_runs_on_the_stream_of_the_study() -> None:
    """A drawn problem with one of its grid's settings: the same bits as in the study."""
    file = {"problem": "unstable_mdp", "steps": 2000, "seeds": 3, "confirm": {"seeds": 0},
            "learners": ["td:alpha=0.0625"]}  # fmt: skip
    task = st.study(file).spec.tasks[0]
    rows = cure_wins()._chosen(task, 2, [0.0625])
    assert [row["learner"] for row in rows] == [
        "perturbed_td (eta=auto)", "tdc (ratio=auto)",
        "the certificate's choice", "the certificate's choice of all cures",
    ]  # fmt: skip
    r = st.run("unstable_mdp", rows[0]["numbers"], steps=2000, seeds=[2])
    assert r.errors[0, 0, -1] == rows[0]["error"]


def test_the_overview_counts_who_is_first(writer: ModuleType) -> None:
    pages = writer.documents()
    text = writer.placed(pages)
    groups = [p["ranking"][0] for found in pages.values() for p in found["problems"]]
    said = re.findall(r"(\w+) in (\d+) of (\d+)", text)
    assert f"In {len(groups)} comparisons" in text and len(said) >= 5
    for name, times, _ in said:
        assert sum(name in group for group in groups) == int(times)
    least = min(int(times) for _, times, _ in said)
    others = {name for group in groups for name in group} - {name for name, _, _ in said}
    assert all(sum(name in group for group in groups) < least for name in others)


@pytest.mark.parametrize("name", ["paper_stepsizes", "rooms", "collision", "cures"])
def test_curves_that_live_end_where_the_table_says(writer: ModuleType, name: str) -> None:
    for problem in writer.documents()[name]["problems"]:
        drawn = writer.picture_name(name, problem["problem"], "curves").removesuffix(".svg")
        rows = next(iter(tables(drawn)[0].values()))
        last = {row["learner"]: row["mean"] for row in rows}  # the last step of each
        best = {row["algorithm"]: row["final"]["value"] for row in problem["best"]}
        assert len(last) >= 10
        for learner, end in last.items():
            assert end == pytest.approx(best[learner], rel=2e-4, abs=1e-12)


def test_a_problem_leads_with_one_sentence_and_its_curves(writer: ModuleType) -> None:
    for name, found in writer.documents().items():
        text = writer.page(name, found)
        problems = found["problems"]
        sentence, picture = text.split("\n\n")[1:3]
        won = DOCS / "results" / f"{name}_wins.json"
        lead = writer.wins_sentence(json.loads(won.read_text())) if won.exists() else ""
        assert sentence == writer.tidy([f"**{lead or writer.leading(found)}**"]).strip()
        assert picture.startswith("![") and (DOCS / "results" / picture.split("(")[1][:-1]).exists()
        for problem in problems if len(problems) > 1 else []:
            part = text.split(f"\n## {problem['problem']}\n")[1].split("\n## ")[0].strip()
            sentence, picture, *_ = part.split("\n\n")
            assert sentence.startswith("**Least error.** ") and "\n" not in sentence
            assert picture.startswith(f"![{problem['problem']}: error of each learner")
