"""A law, a problem and learners of one's own: in studies, runs and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import steadytd as st
from steadytd.mdp.problem import Problem
from steadytd.report.study.page import write_study_report
from steadytd.studies.blocks import grid_blocks
from steadytd.studies.results import StudyResults
from tests.support.commands import call

LAW = """
import steadytd as st

@st.law(
    params={{"ceiling": st.Param("largest ratio used", default=1.0, low=0.0, above=True)}},
    writes={{"w": "x"}},
    idle_at_rho_zero=True,
)
def clipped_td(reward, rho, gamma_next, w_x, w_x_next, alpha, ceiling):
    '''TD with clipped importance ratios.'''
    delta = reward + gamma_next * w_x_next - w_x
    return alpha * min(rho, {factor} * ceiling) * delta
"""
FILE = """
steps = 40
seeds = 2
problem = "mine.npz"
learners = ["my.py:clipped_td:alpha=0.01,ceiling=2", "TD:alpha=0.01"]
"""


@st.law(
    params={"ceiling": st.Param("largest ratio used", default=1.0, low=0.0, above=True)},
    writes={"w": "x"},
    idle_at_rho_zero=True,
)
def clipped_td(reward, rho, gamma_next, w_x, w_x_next, alpha, ceiling):  # type: ignore[no-untyped-def]
    """TD with clipped importance ratios."""
    delta = reward + gamma_next * w_x_next - w_x
    return alpha * min(rho, ceiling) * delta


def hers(shift: float = 0.1) -> Problem:
    p = st.problem("three_state")
    return st.Problem(
        name="hers", P=p.P, r=p.r, gamma=p.gamma, mu=p.mu, pi=p.pi, Phi=p.Phi + shift, w0=p.w0
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a law, a problem and a study, which is not the current one."""
    place = tmp_path / "mine"
    place.mkdir()
    (place / "my.py").write_text(LAW.format(factor="1.0"))
    (place / "study.toml").write_text(FILE)
    hers().save(place / "mine.npz")
    monkeypatch.chdir(tmp_path)
    return place


def own_study(**changes: object) -> st.Study:
    learners = [*st.grid(clipped_td, alpha=[0.01, 0.02], ceiling=[1, 2]), "TD:alpha=0.01"]
    content = {"problems": [hers()], "learners": learners, "steps": 40, "seeds": 2}
    return st.study(content | changes)


def tree(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in directory.rglob("*.parquet")}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> StudyResults:
    return own_study().run(out=tmp_path_factory.mktemp("own") / "out", threads=1)


def test_the_numbers_are_those_of_a_run(done: StudyResults) -> None:
    learner = st.learner(clipped_td, alpha=0.02, ceiling=2)
    run = st.run(hers(), learner, steps=40, seeds=2, points=41)
    assert [path.name for path in (done.directory / "problems").iterdir()] == ["hers.npz"]
    found = done.rows().filter(run=str(learner), problem="hers").sort("seed")
    np.testing.assert_array_equal(found["final_value"], run.errors[0, :, -1])


def test_results_are_read_back_with_the_law_and_not_without(done: StudyResults) -> None:
    read = st.load_study(done.directory, laws=[clipped_td])
    assert read.summary.equals(done.summary)
    with pytest.raises(st.InputError, match=r"results hold no code.*laws=\[clipped_td\]"):
        st.load_study(done.directory)


def test_text_page_and_picture_know_them(done: StudyResults) -> None:
    assert "clipped_td:alpha" in str(done)
    page, document = write_study_report(done, pictures=False)
    assert "clipped_td" in page.read_text(encoding="utf-8")
    assert document["problems"][0]["problem"] == "hers"
    assert "clipped_td" in str(done.plot().to_dict(validate=False))


def test_a_cluster_gets_law_and_problem(done: StudyResults, tmp_path: Path) -> None:
    from distributed import Client, LocalCluster

    cluster = LocalCluster(processes=False, n_workers=1, dashboard_address="127.0.0.1:0")
    client = Client(cluster)
    try:
        own_study().run(out=tmp_path / "dask", engine="dask", address=client)
    finally:
        client.close()
        cluster.close()
    found = {name: x for name, x in tree(done.directory).items() if "report" not in name}
    assert tree(tmp_path / "dask") == found


@pytest.mark.slow
def test_other_processes_get_law_and_problem(done: StudyResults, tmp_path: Path) -> None:
    own_study().run(out=tmp_path / "dask", engine="dask", threads=1)
    found = {name: x for name, x in tree(done.directory).items() if "report" not in name}
    assert tree(tmp_path / "dask") == found


def fingerprints(study: st.Study) -> set[str]:
    return {block.fingerprint for block in grid_blocks(study.spec)}


def test_a_change_of_problem_or_law_is_a_change_of_the_blocks(folder: Path) -> None:
    def now() -> set[str]:
        return fingerprints(st.study(folder / "study.toml"))

    before = now()
    assert before == now()
    hers(shift=0.2).save(folder / "mine.npz")
    assert not before & now()
    hers().save(folder / "mine.npz")
    (folder / "my.py").write_text(LAW.format(factor="0.9"))
    assert len(before & now()) == 1  # td's
    (folder / "my.py").write_text("# a remark\n" + LAW.format(factor="1.0"))
    assert before == now()


def test_a_study_file_names_them_by_their_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "study", "mine/study.toml", "--out", "out") == 0
    assert "next: steadytd report out --law mine/my.py" in capsys.readouterr().out
    (folder / "mine.npz").unlink()  # results hold the problem
    marker = folder / "was_run"
    (folder / "my.py").write_text(
        f"import os\nos.mkdir({str(marker)!r})\n{LAW.format(factor='1.0')}"
    )
    assert call(monkeypatch, "report", "out", "--no-figures") == 2
    error = capsys.readouterr().err
    assert "steadytd report DIR --law my.py" in error and not marker.exists()
    assert call(monkeypatch, "report", "out", "--no-figures", "--law", "mine/my.py") == 0
    assert marker.exists() and "clipped_td" in capsys.readouterr().out


def test_what_a_file_of_results_says_is_not_run(folder: Path) -> None:
    learner = st.learner("mine/my.py:clipped_td:alpha=0.1").start(n_features=2)
    saved = learner.save(folder / "a.npz")
    with np.load(saved) as content:
        arrays = dict(content)
    arrays["settings"] = np.array('{"learner": "mine/my.py:clipped_td:alpha=0.1", "step": 0}')
    np.savez(saved, **arrays)
    with pytest.raises(st.InputError, match=r"unknown learner 'mine/my\.py'"):
        st.load_learner(saved)


def test_texts_of_the_command_line_in_python(folder: Path) -> None:
    assert st.certify("random_mdp:states=10,seed=1").problem.n_states == 10
    assert (
        st.run("mine/mine.npz", "mine/my.py:clipped_td:alpha=0.1", steps=9).problem.name == "hers"
    )
    text = st.run("random_mdp:states=6,seed=3", "td:alpha=0.1", steps=50)
    made = st.run(st.problem("random_mdp", states=6, seed=3), "td:alpha=0.1", steps=50)
    np.testing.assert_array_equal(text.errors, made.errors)
    assert st.check("mine/my.py:clipped_td").passed
    one = st.run("collision:seed=7", "td:alpha=0.1", steps=9, seeds=2)
    assert one.family == "" and one.problem.name == "collision"


def test_command_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    law = "mine/my.py:clipped_td"
    assert call(monkeypatch, "show", law) == 0
    assert "TD with clipped importance ratios" in capsys.readouterr().out
    assert call(monkeypatch, "run", "mine/mine.npz", f"{law}:alpha=0.1", "--steps", "50") == 0
    assert "clipped_td:alpha=0.1" in capsys.readouterr().out
    assert call(monkeypatch, "certify", "three_state", "--json",
                "--learner", f"{law}:ceiling=2", "--learner", "lstd") == 0  # fmt: skip
    asked, solved = json.loads(capsys.readouterr().out)["asked"]
    c, learner = st.certify("three_state"), st.learner(clipped_td, alpha=1, ceiling=2)
    assert asked["stable"] and asked["error"] == pytest.approx(c.error(c.fixed_point(learner)))
    assert asked["largest_alpha"] == pytest.approx(c.largest_alpha(learner))
    assert solved["stable"] and solved["largest_alpha"] is None
    assert call(monkeypatch, "certify", "three_state", "--learner", f"{law}:ceiling=2") == 0
    row = next(x for x in capsys.readouterr().out.splitlines() if "clipped_td" in x)
    assert row.split()[1:3] == ["stable", "3.333"]
    for text, message in (
        ("mine/my.py:clip:alpha=1", "Known: clipped_td. Write for instance mine/my.py:clipped_td."),
        ("other.py:clip:alpha=1", "there is no Python file 'other.py'"),
        ("clipped_td:alpha=1", "A law of your own: the law itself in Python, or its file, my.py"),
    ):
        assert call(monkeypatch, "run", "baird", text) == 2
        assert message in capsys.readouterr().err


def test_a_file_of_laws_may_import_what_stands_beside_it(folder: Path) -> None:
    (folder / "beside_my.py").write_text("FACTOR = 0.5\n")
    text = "import beside_my\n" + LAW.format(factor=0.5)
    (folder / "my.py").write_text(text.replace("0.5 * ceiling", "beside_my.FACTOR * ceiling"))
    assert st.learner("mine/my.py:clipped_td:alpha=1").name == "clipped_td"


def test_names_do_not_depend_on_capital_letters() -> None:
    assert str(st.learner("Perturbed_TD:alpha=0.1,eta=1")) == "perturbed_td:alpha=0.1,eta=1"
    assert st.problem("Baird").name == "baird"
    result = st.run("Three_State", "TD:alpha=0.1", steps=9)
    np.testing.assert_array_equal(result.weights("Td:alpha=0.1"), result.weights("td:alpha=0.1"))
    study = st.study({"problem": "Baird", "learners": ["TD:alpha=1"], "steps": 9, "seeds": 1})
    assert [task.label for task in study.spec.tasks] == ["baird"]


def test_beta_of_a_paper_is_led_to_ratio() -> None:
    with pytest.raises(st.InputError, match=r"write ratio = beta/alpha\.$"):
        st.learner("tdc", alpha=0.1, beta=0.2)
    with pytest.raises(st.InputError, match=r"lam, power\.$"):  # td has one vector
        st.learner("td", alpha=0.1, beta=0.2)


def renamed(name: str) -> st.Law:
    return st.law(writes={"w": "x"}, name=name)(lambda reward, alpha: alpha * reward)


MISTAKES: dict[str, dict[str, object]] = {
    "a law of your own has the name 'td' of a registered one": {
        "learners": [st.learner(renamed("td"), alpha=1)]
    },
    "two laws of this study are called 'a'": {
        "learners": [st.learner(renamed("a"), alpha=1), st.learner(renamed("a"), alpha=2)]
    },
    "two problems are called 'hers'; give one a label": {"problems": [hers(), hers(0.3)]},
    "there is no file 'gone.npz'": {"problems": ["gone.npz"]},
    "must be strings, its values numbers, strings, lists, dictionaries, problems, laws": {
        "problems": [object()]
    },
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes(message: str) -> None:
    with pytest.raises(st.InputError, match=message):
        own_study(**MISTAKES[message])


def test_tables_hold_them_too() -> None:
    study = own_study(
        problems=[{"name": hers(), "label": "short", "steps": 20}, hers()],
        learners=[{"name": clipped_td, "alpha": [0.1, 0.2], "on": ["short"]}, "td:alpha=1"],
    )
    assert [(t.label, t.steps, len(t.learners)) for t in study.spec.tasks] == [
        ("short", 20, 3), ("hers", 40, 1)
    ]  # fmt: skip


def test_one_problem_and_one_learner(folder: Path) -> None:
    learner = st.learner(clipped_td, alpha=0.1)
    alone = st.study({"problem": hers(), "learner": learner, "steps": 9, "seeds": 1})
    assert alone.spec.runs == 1
    alone = st.study({"problem": "baird", "learner": learner, "steps": 9, "seeds": 1})
    assert not (alone.run(out="plain", threads=1).directory / "problems").exists()
    text = 'problem = "mine.npz"\nlearner = "my.py:clipped_td:alpha=0.1"\nsteps = 9\nseeds = 1'
    (folder / "one.toml").write_text(text)
    assert st.study(folder / "one.toml").spec.runs == 1


def test_saving_a_study_with_a_problem(tmp_path: Path) -> None:
    study = own_study(learners=["td:alpha=0.1"])
    again = st.study(study.save(tmp_path / "s.toml"))
    assert fingerprints(again) == fingerprints(study)
    with pytest.raises(st.InputError, match="'clipped_td' is in no file that a study file could"):
        own_study().save(tmp_path / "t.toml")
    assert not (tmp_path / "t.toml").exists()
