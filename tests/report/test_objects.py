"""Results show themselves: repr, print, notebooks, charts, pages, files."""

from __future__ import annotations

import json
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import steadytd as st
from steadytd.base.display import Displayable
from steadytd.evaluation.monitor import Monitor
from steadytd.report import run as run_report
from steadytd.report.certificate.page import findings, verdict
from steadytd.report.evaluation.text import closing_lines, decision_lines
from steadytd.report.figures import data_of, described, interval_ends
from steadytd.report.live import live
from steadytd.report.palette import look
from steadytd.report.run import run_chart
from tests.support.commands import call
from tests.support.light_pages import no_pictures

LEARNERS = ["td:alpha=0.0001", "perturbed_td:alpha=0.0001,eta=1", "perturbed_td:alpha=0.0001,eta=2",
            "etd:alpha=0.5"]  # fmt: skip
STUDY = {
    "problem": "three_state", "steps": 300, "seeds": 2, "title": "Tiny",
    "learners": [{"name": "td", "alpha": [0.001, 0.01]}, {"name": "tdc", "alpha": 0.01}],
}  # fmt: skip


@st.law(writes={"w": "x"})
def own(reward, alpha):  # type: ignore[no-untyped-def]
    """Adds up rewards."""
    return alpha * reward


@cache
def result() -> st.Result:
    return st.run("baird", LEARNERS, steps=2000, seeds=3, points=41)


@cache
def certificate() -> st.Certificate:
    return st.certify("three_state")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = st.sample_log(tmp_path_factory.mktemp("log") / "log.parquet")
    return st.write_log(path, pl.read_parquet(path).filter(pl.col("episode_id") < 120))


@pytest.fixture(scope="module")
def evaluation(log: Path) -> st.Evaluation:
    return st.evaluate(log, discount=0.95, features="onehot", learners=["lstd", "drl"])


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> st.StudyResults:
    return st.study(STUDY, name="tiny").run(out=tmp_path_factory.mktemp("study") / "tiny")


def online() -> st.OnlineLearner:
    a = st.learner("td", alpha=0.5).start(n_features=2)
    a.update([1, 0], reward=1.0, x_next=[0, 1], rho=1.0, gamma=0.9)
    return a


def monitor() -> st.Monitor:
    m = st.monitor(reward_range=(0, 1))
    for begin in (0, 40):
        frame = {"episode_id": begin + np.arange(40), "t": 0, "obs_0": 1.0, "reward": 0.5,
                 "terminated": True, "behavior_prob": 0.5, "target_prob_new": 0.5}  # fmt: skip
        m.add(pl.DataFrame(frame))
    return m


@pytest.fixture(params=["result", "certificate", "evaluation", "study", "online", "monitor"])
def thing(request: pytest.FixtureRequest, evaluation: st.Evaluation, study: st.StudyResults) -> Any:
    made: dict[str, Any] = {"result": result, "certificate": certificate, "online": online,
                            "monitor": monitor}  # fmt: skip
    kept = {"evaluation": evaluation, "study": study}
    return kept[request.param] if request.param in kept else made[request.param]()


class Page(HTMLParser):
    """Whether every tag is closed, and what is linked."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [str(value) for name, value in attrs if name in ("href", "src") and value]


def test_everything_shows_itself(
    thing: Displayable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not isinstance(thing, st.OnlineLearner):  # of one kind the pictures are drawn, too
        no_pictures(monkeypatch)
    assert len(repr(thing)) < 200 and repr(thing).count("\n") < 3 and repr(thing)[0] == "<"
    text = str(thing)
    assert len(text) > 40 and str(thing) == f"{thing}" == text
    html = thing._repr_html_()
    assert "<table" in html or isinstance(thing, st.OnlineLearner | Monitor)
    assert html.count("<svg") == 1 and "<script" not in html and "http" not in _bare(html)
    spec = thing.plot().properties(title="mine").to_dict(validate=False)
    assert spec["title"] == "mine" and "config" not in _own(spec)
    page = thing.report(tmp_path / "new" / "out.html")
    assert page == tmp_path / "new" / "out.html"
    content = page.read_text(encoding="utf-8")
    seen = Page()
    seen.feed(content)
    beside = [link for link in seen.links if not link.startswith(("#", "data:", "http"))]
    assert all((page.parent / link).is_file() for link in beside)
    assert content.count('<figure class="live"') >= 1
    table = pl.read_csv(thing.to_csv(tmp_path / "table.csv"))
    assert len(table) > 0


def test_a_table_for_a_spreadsheet_has_no_formulas(tmp_path: Path) -> None:
    columns = {
        "episode_id": np.arange(40) // 4, "t": np.arange(40) % 4, "obs": np.ones(40),
        "reward": -np.ones(40), "terminated": np.arange(40) % 4 == 3,
        "behavior_prob": np.full(40, 0.5),
    }  # fmt: skip
    columns |= {f"target_prob_{sign}1": np.full(40, 0.5) for sign in "=+-@"}
    found = st.evaluate(pl.DataFrame(columns), discount=0.9, learners=["lstd"])
    table = pl.read_csv(found.to_csv(tmp_path / "table.csv"))
    assert set(table["target"]) == {"'=1", "'+1", "'-1", "'@1"}
    assert table["value"].to_list() == found.values["value"].to_list()
    assert float(str(table["value"].max())) < 0.0  # a number stays one


def test_a_chart_is_shown_without_a_network() -> None:
    """Altair's own way loads a script from a server; changed copies are shown as the chart is."""
    for made in (certificate().plot(), certificate().plot().properties(width=300)):
        bundle = made._repr_mimebundle_()
        assert bundle["image/svg+xml"].startswith("<svg") and "text/html" not in bundle


@pytest.mark.parametrize("thing", [st.problem("three_state"), st.learner("td", alpha=0.1)])
def test_problems_and_learners_are_tables_in_notebooks(thing: Any) -> None:
    html = thing._repr_html_()
    assert html.count("<table") == 1 and "<script" not in html
    assert ("<svg" in html) is isinstance(thing, st.Problem)
    known = {"largest ratio", "2"} if isinstance(thing, st.Problem) else {"alpha", "0.1", "lam"}
    assert known <= set(re.findall("<td[^>]*>([^<]*)</td>", html))


def _bare(html: str) -> str:
    return re.sub(r'xmlns(:\w+)?="http://www.w3.org/[^"]*"', "", html)


def _own(spec: dict[str, Any]) -> set[str]:
    """What the chart says beyond Altair's own theme."""
    config = spec.get("config", {})
    return {"config"} if set(config) - {"view"} else set()


def test_charts_can_stand_beside_each_other() -> None:
    both = (result().plot() | certificate().plot()).to_dict()
    assert len(both["hconcat"]) == 2


def unfolded(text: str) -> str:
    """Printed text without its line ends, which depend on the terminal."""
    return " ".join(text.split())


def test_the_words_are_those_of_the_command_line(
    evaluation: st.Evaluation,
    log: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    size = ["--steps", "2000", "--seeds", "3", "--points", "41"]
    assert call(monkeypatch, "run", "baird", *LEARNERS, *size, "--full") == 0
    printed = unfolded(capsys.readouterr().out)
    assert unfolded(str(result()).splitlines()[0]) == printed[: len(str(result()).splitlines()[0])]
    for text in run_report.sentences(result()):
        assert text in str(result()).splitlines() and text in printed
    assert call(monkeypatch, "certify", "three_state", "--full") == 0
    printed = unfolded(capsys.readouterr().out)
    assert str(certificate()).splitlines()[0] == verdict(certificate())
    assert printed.startswith(verdict(certificate()))
    for finding in findings(certificate()):
        assert f"{finding.code}: {finding.text}" in str(certificate()).splitlines()
        assert f"{finding.code}: {finding.text}" in printed
    how = ["--discount", "0.95", "--features", "onehot", "--learner", "lstd", "--learner", "drl"]
    assert call(monkeypatch, "evaluate", str(log), *how) == 0
    printed = unfolded(capsys.readouterr().out)
    closing = [line.text for line in closing_lines(evaluation)]
    for text in (*(line.text for line in decision_lines(evaluation)), *closing):
        assert text in printed and text in str(evaluation)
    assert evaluation.best.text in printed and evaluation.best.text in str(evaluation)


def test_a_run_in_eighty_columns() -> None:
    text = str(result().summary)
    assert repr(result().summary) == text
    table = [line for line in text.splitlines() if line.startswith(" ")]
    assert max(map(len, table)) <= 80
    for row in run_report.rows(result()):
        assert row["mean"] in text and row["final"] in text and row["ended"] in text
    for name in result().summary.columns:
        assert name in text
    assert isinstance(result().summary.head(2), pl.DataFrame)
    assert "shape: (2," in str(pl.DataFrame(result().summary).head(2))


def test_the_chart_of_a_run_has_the_means_and_a_line_per_learner() -> None:
    spec = result().plot().to_dict(validate=False)
    names = spec["layer"][1]["encoding"]["color"]["scale"]["domain"]
    assert names == LEARNERS
    assert spec["layer"][1]["encoding"]["y"]["scale"]["type"] == "log"
    data = spec["datasets"][spec["layer"][1]["data"]["name"]]
    rows = pl.DataFrame(data).filter(pl.col("learner") == LEARNERS[1])
    errors = result().errors[1]
    assert rows["step"].to_list() == result().steps.tolist()
    assert rows["mean"].to_numpy() == pytest.approx(errors.mean(axis=0))
    half = 4.302652729911275 * errors.std(axis=0, ddof=1) / np.sqrt(3)  # t(0.975, 2)
    ends = errors.mean(axis=0) * np.exp(np.outer([-1, 1], half / errors.mean(axis=0)))
    assert rows["low"].to_numpy() == pytest.approx(ends[0], rel=2e-5)  # of the logarithm
    assert rows["high"].to_numpy() == pytest.approx(ends[1], rel=2e-5)


def test_a_learner_has_one_colour() -> None:
    scale = result().plot().to_dict(validate=False)["layer"][0]["encoding"]["color"]["scale"]
    assert (
        dict(zip(scale["domain"], scale["range"], strict=True))[LEARNERS[1]]
        == look("perturbed_td").colour
    )


def test_saved_and_read_again(study: st.StudyResults, tmp_path: Path) -> None:
    r = result()
    r.save(tmp_path / "run")
    again = st.load_result(tmp_path / "run")
    for name in ("errors", "final_weights", "first_divergence", "steps"):
        assert np.array_equal(getattr(again, name), getattr(r, name))
    assert (str(again), repr(again), again.asked) == (str(r), repr(r), r.asked)
    assert again.curves.equals(r.curves) and not again.errors.flags.writeable
    c = certificate()
    kept = c.save(tmp_path / "c.npz")
    assert str(st.load_certificate(kept)) == str(c)
    assert st.load_problem(kept).name == "three_state"
    assert str(st.load_study(study.directory)) == str(study)
    s = st.study(STUDY, name="tiny")
    assert st.study(s.save(tmp_path / "tiny.toml")).spec.file == s.spec.file
    with pytest.raises(st.InputError, match="there is no file"):
        st.load_result(tmp_path / "nothing")
    with pytest.raises(st.InputError, match="holds no study"):
        st.load_study(tmp_path)


def test_an_evaluation_is_read_again(
    evaluation: st.Evaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = evaluation.save(tmp_path / "e.npz")
    again = st.load_evaluation(kept)
    assert again.to_dict() == evaluation.to_dict()
    assert (str(again), repr(again)) == (str(evaluation), repr(evaluation))
    one, other = (e.value_function("forward").predict([[1.0], [3.0]]) for e in (evaluation, again))
    assert np.array_equal(one, other)
    assert again.compare("forward") == evaluation.compare("forward")
    no_pictures(monkeypatch)
    pages = [e.report(tmp_path / "page.html").read_text() for e in (evaluation, again)]
    assert pages[0] == pages[1]
    with np.load(kept) as file:
        content = {name: file[name] for name in file.files}
    bad = str(content["content"]).replace("steadytd.evaluation.result:Evaluation", "os:system")
    np.savez(tmp_path / "bad.npz", **{**content, "content": np.array(bad)})
    with pytest.raises(st.InputError, match="'os:system' is not a record of an evaluation"):
        st.load_evaluation(tmp_path / "bad.npz")


def test_a_run_with_a_law_of_ones_own_is_read_with_it(tmp_path: Path) -> None:
    r = st.run("three_state", [own_learner := st.learner(own, alpha=0.1)], steps=10)
    r.save(tmp_path / "run")
    with pytest.raises(st.InputError, match="unknown learner 'own'"):
        st.load_result(tmp_path / "run")
    assert st.load_result(tmp_path / "run", laws=[own]).learners == [own_learner]


def test_a_study_that_has_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    s = st.study(STUDY, name="tiny")
    first, *_, last = str(s).splitlines()
    assert first == "tiny: Tiny (3 configurations, 2 seeds, 1,800 updates)"
    assert last.split() == ["three_state", "300", "td,", "tdc"]
    assert "<svg" not in s._repr_html_()
    with pytest.raises(st.InputError, match="holds no study"):
        s.plot()


def test_an_overflowed_online_learner_says_so() -> None:
    a = st.learner("td", alpha=1e200).start(n_features=1)
    for _ in range(4):
        a.update([1.0], reward=1.0, x_next=[1.0], rho=1.0, gamma=0.5)
    assert "overflowed" in repr(a) and "It overflowed at update" in str(a)
    assert a.plot().to_dict()["mark"]["type"] == "bar"


def test_the_headline_of_a_run_names_every_learner_once() -> None:
    """Under the word of its table row; by its name alone only where no other has it."""
    for r in (result(), st.run("three_state", ["td:alpha=0.1", "lstd"], steps=3000, seeds=2)):
        found: dict[str, list[str]] = {}
        for sentence in run_report.headline(r).removesuffix(".").split(". "):
            word, _, names = sentence.partition(": ")
            found[word[0].lower() + word[1:]] = names.split(", ")
        laws = [learner.name for learner in r.learners]
        wanted: dict[str, list[str]] = {}
        for law, row in zip(laws, run_report.rows(r), strict=True):
            name = law if laws.count(law) == 1 else row["learner"]
            wanted.setdefault(row["ended"], []).append(name)
        assert found == wanted
        assert "settled" not in found or next(iter(found)) == "settled"


def test_a_band_on_a_logarithmic_axis_stays_above_zero() -> None:
    """Also where one run in three decides the mean."""
    mean, half = np.array([1.0, 1e-9, 0.0]), np.array([5.0, 1e-8, 0.0])
    low, high = interval_ends(mean, half, log=True)
    assert (low[:2] > 0.0).all() and (low <= mean).all() and (high >= mean).all()
    assert low * high == pytest.approx(mean**2)


def test_the_legend_of_a_page_has_the_dashes_of_the_lines() -> None:
    """`lstd` has the colour of `td`, and other dashes: in the buttons, too."""
    r = st.run("three_state", ["td:alpha=0.01", "lstd"], steps=100, seeds=2)
    first, second = live("curves", run_chart(r)).legend
    assert (first["colour"], first["dash"]) == (look("td").colour, "1 0")
    assert second["colour"] == first["colour"]
    assert second["dash"] == " ".join(map(str, look("lstd").dash)) != "1 0"


def test_a_text_is_the_same_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rich, asked whether this is one, would show a table there instead of returning it."""
    before = str(result()), str(certificate())
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert (str(result()), str(certificate())) == before


def test_tables_of_a_page_stand_in_the_order_of_their_layers_and_are_safe_to_draw() -> None:
    """The order was that of a set, another in every process; NUL ends the process that draws."""
    import altair as alt

    layers = [alt.Chart(data_of([{"x": i, "name": "a\x00b"}])).mark_point() for i in range(8)]
    spec = described(alt.layer(*(layer.encode(x="x:Q") for layer in layers)))
    assert "\\u0000" not in json.dumps(spec)
    (view,) = json.loads(live("many", spec).data)["views"]
    assert list(view["tables"]) == [layer["data"]["name"] for layer in view["spec"]["layer"]]
