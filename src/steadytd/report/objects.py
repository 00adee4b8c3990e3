"""How results display themselves: `print`, notebooks, `plot`, `report`, `to_csv` of all of them.

`VIEWS` has one entry per kind of result: its text (that of the command line, from the same
functions), its chart, its page, its main table. `base.display` sends results here.
"""

from __future__ import annotations

import io
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steadytd.base.errors import InputError, visible
from steadytd.base.files import output_directory, write_whole
from steadytd.base.numbers import count, number
from steadytd.engine.learner import Learner, OnlineLearner
from steadytd.evaluation.monitor import Monitor
from steadytd.evaluation.result import Evaluation
from steadytd.mdp.problem import Problem
from steadytd.report import learning_curve, run
from steadytd.report.certificate import average
from steadytd.report.certificate import page as certificate
from steadytd.report.certificate.cures import cures_chart
from steadytd.report.certificate.figures import path_chart
from steadytd.report.evaluation.figures import decisions_chart, values_chart
from steadytd.report.evaluation.page import write_evaluation
from steadytd.report.evaluation.text import answer
from steadytd.report.figures import alt, described, drawn, heading, marks, styled
from steadytd.report.learner_pages import param_rows
from steadytd.report.live import live
from steadytd.report.monitor import monitor_chart, monitor_parts, write_monitor
from steadytd.report.pages import notebook, page
from steadytd.report.palette import HUES, look
from steadytd.report.paper import Chosen, for_print, known_names, some_learners
from steadytd.report.study.figures import curves_chart, curves_drawn
from steadytd.report.study.page import write_study_report
from steadytd.report.study.text import best_table
from steadytd.report.text import Line, Table, rendered
from steadytd.runs.result import Result
from steadytd.studies.analysis.reading import read_study
from steadytd.studies.analysis.summary import MEASURES
from steadytd.studies.results import StudyResults
from steadytd.studies.study import Study
from steadytd.theory.average import AverageCertificate
from steadytd.theory.certificate import Certificate
from steadytd.theory.learning_curve import LearningCurve
from steadytd.theory.verdicts import Verdicts

SMALL = {"width": 420, "height": 200}  # pixels of a chart in a notebook
Parts = Sequence[Line | Table | str]


class View(NamedTuple):
    """How one kind of thing is displayed; `page` writes into a directory and returns the page."""

    parts: Callable[[Any], Parts]
    chart: Callable[..., Any] | None = None
    page: Callable[[Any, Path], Path] | None = None
    frame: Callable[[Any], Any] | None = None
    options: tuple[str, ...] = ()  # of the chart


def _view(result: object) -> View:
    return next(view for kind, view in VIEWS.items() if isinstance(result, kind))


def text(result: object) -> str:
    """What `print` shows."""
    return visible(rendered(*_view(result).parts(result)), lines=True)


def chart(
    result: object,
    width: float | None = None,
    font_size: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """An Altair chart without what only a whole figure may have, so it can stand beside others.

    With a font size it is a whole figure.
    """
    from altair.utils.schemapi import debug_mode

    view = _view(result)
    given = {name: value for name, value in (options or {}).items() if value is not None}
    for name in given.keys() - set(view.options):
        raise InputError(f"this picture has no option {name}; leave it out.")
    with debug_mode(False):  # Altair would check every dot
        assert view.chart is not None
        made = view.chart(result, **given).copy()
        made.config = made.usermeta = alt.Undefined
        for_paper = width is not None or font_size is not None
        return offline(for_print(made, width, font_size) if for_paper else made)


class Offline:
    """A chart that a notebook shows as SVG: Altair's own way needs a network."""

    def _repr_mimebundle_(self, *_: Any, **__: Any) -> dict[str, Any]:
        made: Any = self
        whole = made if made.config is not alt.Undefined else styled(made)
        svg = drawn(json.dumps(described(whole)), ("svg",))["svg"].decode()
        return {"image/svg+xml": svg, "text/plain": repr(self)}


def offline(made: Any) -> Any:
    """The same chart, of a class that is displayed without a network, and its copies too."""
    kind = type(made)
    object.__setattr__(made, "__class__", type(kind.__name__, (Offline, kind), {}))
    return made


def html(result: object) -> str:
    """A notebook's view: sentences, tables and a small chart, without a script or a network."""
    view, picture = _view(result), ""
    if view.chart is not None:
        with suppress(InputError):  # a study that has not run yet has no picture
            small = chart(result)
            if not isinstance(small, alt.ConcatChart):
                small = small.properties(**SMALL)
            picture = drawn(json.dumps(described(styled(small))), ("svg",))["svg"].decode()
    return notebook(view.parts(result), picture)


def write_page(result: object, path: Path) -> Path:
    """Write the page to `path`, or, if that is no .html, into a directory as the command line does.

    The pictures are in the page. Files that it offers for download stand beside it, in NAME_files.
    """
    write = _view(result).page
    assert write is not None
    if path.suffix.lower() not in (".html", ".htm"):
        return write(result, path)
    output_directory(path.parent)
    with tempfile.TemporaryDirectory() as place:
        made = write(result, Path(place) / "page")
        content = made.read_text(encoding="utf-8")
        beside = path.with_name(f"{path.stem}_files")
        for file in sorted(made.parent.iterdir()):
            link = f'href="{file.name}"'
            if link in content:
                content = content.replace(link, f'href="{beside.name}/{file.name}"')
                output_directory(beside)
                shutil.copyfile(file, beside / file.name)
    return write_whole(path, content)


def write_csv(result: object, path: Path) -> Path:
    """Write the main table as CSV. Lists, which CSV has not, are left out.

    A spreadsheet would run a text that begins like a formula: it gets an apostrophe before it.
    """
    import polars as pl
    import polars.selectors as cs

    frame = _view(result).frame
    assert frame is not None
    content = io.BytesIO()
    texts = cs.string().str.replace(r"^([=+@\t\r-])", "'$1")
    pl.DataFrame(frame(result)).select(~cs.nested()).with_columns(texts).write_csv(content)
    return write_whole(path, content.getvalue())


# Problems and learners


def problem_parts(p: Problem) -> Parts:
    """What a problem is, and its size."""
    facts = [
        ("states", p.n_states), ("actions", p.n_actions), ("features", p.n_features),
        ("rank of features", int(np.linalg.matrix_rank(p.moments().Phi))),
        ("target policies", p.n_policies), ("discount", f"{float(np.max(p.gamma)):g}"),
        ("largest ratio", number(max(m.max_ratio for m in map(p.moments, range(p.n_policies))))),
    ]  # fmt: skip
    return [Line(p.summary, head=p.name), Table("", ("quantity", ">value"), facts)]


def _problem_chart(p: Problem) -> Any:
    """The true value of every state."""
    rows = [{"state": i, "value": float(v)} for i, v in enumerate(p.moments().v_pi)]
    return _bars(rows, "state", "value", HUES[2], heading(p.name, "true values"))


def learner_parts(learner: Learner) -> Parts:
    """What a learner is, and its settings."""
    rows = [
        (row["name"], learner.values.get(row["name"], row["default"]), row["meaning"])
        for row in param_rows(learner.algorithm)
    ]
    first = Line(learner.algorithm.summary, head=learner.name)
    return [first, Table(str(learner), ("name", ">value", "meaning"), rows)]


def _run_chart(r: Result, learners: Chosen | None = None, expected: bool = False) -> Any:
    some, names = (r, []) if learners is None else some_learners(r, learners)
    return run.run_chart(some, names, expected)


# Certificates


def _certificate_frame(c: Verdicts) -> Any:
    import polars as pl

    rows = [{**row, **row.get("params", {})} for row in c.learners]
    return pl.DataFrame([{k: v for k, v in row.items() if k != "params"} for row in rows],
                        infer_schema_length=None)  # fmt: skip


# Evaluations


def _evaluation_chart(e: Evaluation) -> Any:
    return decisions_chart(e) if len(e.targets) > 1 else values_chart(e, e.targets[0])


# Studies

STUDY_OPTIONS = ("learners", "problems", "columns")


def _study_parts(s: Study) -> Parts:
    spec = s.spec
    size = (
        f"{count(spec.runs, 'configuration')}, {count(spec.file.seeds, 'seed')}, "
        f"{count(spec.updates, 'update')}"
    )
    rows = [
        (task.label, f"{task.steps:,}", ", ".join(dict.fromkeys(x.name for x in task.learners)))
        for task in spec.tasks
    ]
    first = Line(f"{spec.file.title} ({size})" if spec.file.title else size, head=s.name)
    return [first, Table("", ("problem", ">steps", "learners"), rows)]


def _results_chart(
    results: StudyResults,
    learners: Chosen | None = None,
    problems: Chosen | None = None,
    columns: int | None = None,
) -> Any:
    """The curves of every problem, one below the other or in columns."""
    chapters = {chapter.label: chapter for chapter in read_study(results).chapters}
    known = dict.fromkeys(name for chapter in chapters.values() for name in chapter.curves)
    lines = None if learners is None else known_names("learner of this study:", learners, [*known])
    panels = known_names("problem of this study:", problems or [*chapters], [*chapters])
    what = MEASURES[results.spec.file.confirm.measure]
    parts = []
    for label, shown in panels.items():
        if (part := curves_chart(chapters[label], what, lines)) is not None:
            part.config = part.usermeta = alt.Undefined
            part.title = part.title if shown == label else heading(shown, [])
            parts.append(part)
    if not parts:
        raise InputError(f"no learner of '{results.directory}' has a curve without overflow.")
    if len(parts) == 1:
        return parts[0]
    own: Any = dict.fromkeys(("x", "y"), "independent")
    if len({tuple(curves_drawn(chapters[label], lines)) for label in panels}) > 1:
        own |= dict.fromkeys(("color", "strokeDash"), "independent")  # each has its own legend
    return alt.concat(*parts, columns=columns or 1).resolve_scale(**own)


def _results_page(results: StudyResults, place: Path) -> Path:
    """The report is written beside the results, as by `steadytd report`, and copied."""
    made, _ = write_study_report(results)
    shutil.copytree(made.parent, place, dirs_exist_ok=True)
    return place / made.name


# Online learners

BARS = 60  # numbers beyond which they are drawn as a line


def _online_parts(a: OnlineLearner) -> Parts:
    first = f"{a.learner}: {count(a.step, 'update')} on {count(a.n_features, 'feature')}."
    first += "".join(f" Its {name} is {number(value)}." for name, value in a.scalars.items())
    if a.diverged:
        at = int(a.block.diverged[0])
        return [first, f"It overflowed at update {at:,}: a weight left the finite range."]
    low, high = number(float(a.w.min())), number(float(a.w.max()))
    return [first, f"Its weights lie between {low} and {high}."]


def _online_chart(a: OnlineLearner) -> Any:
    """The weights by feature, in the learner's colour."""
    rows = [
        {"feature": i, "weight": float(w) if np.isfinite(w) else 0.0} for i, w in enumerate(a.w)
    ]
    title = heading(str(a.learner), count(a.step, "update"))
    return _bars(rows, "feature", "weight", look(a.learner.name).colour, title)


def _bars(rows: list[dict[str, Any]], along: str, up: str, colour: str, title: Any) -> Any:
    """Numbers by place: bars, or of many a line."""
    few = len(rows) <= BARS
    x = alt.X(f"{along}:O" if few else f"{along}:Q")
    places = {"x": x, "y": f"{up}:Q", "tooltip": [f"{along}:Q", f"{up}:Q"]}
    drawn = marks("bar" if few else "line", rows, places, color=colour)
    return drawn.properties(width=620, height=240, title=title)


def _online_page(a: OnlineLearner, place: Path) -> Path:
    content = page(
        "object.html",
        title=str(a.learner),
        words=_online_parts(a),
        picture=live("weights", styled(chart(a)), files=False),
    )
    return write_whole(output_directory(place) / "learner.html", content)


def _online_frame(a: OnlineLearner) -> Any:
    import polars as pl

    return pl.DataFrame({"feature": range(a.n_features), "weight": a.w})


VIEWS: dict[type, View] = {
    Result: View(
        run.answer, _run_chart, run.write_run, lambda r: r.summary, ("learners", "expected")
    ),
    Certificate: View(
        lambda c: [*certificate.answer(c), *certificate.finding_lines(c)],
        path_chart, certificate.write_certificate, _certificate_frame,
    ),
    LearningCurve: View(
        learning_curve.parts, learning_curve.learning_curve_chart,
        learning_curve.write_learning_curve, lambda curve: curve.table,
    ),
    AverageCertificate: View(
        lambda c: [*average.answer(c), *average.rest(c)],
        cures_chart, average.write_certificate, _certificate_frame,
    ),
    Evaluation: View(answer, _evaluation_chart, write_evaluation, lambda e: e.values),
    Monitor: View(monitor_parts, monitor_chart, write_monitor, lambda m: m.history),
    StudyResults: View(
        lambda s: [best_table(s)], _results_chart, _results_page, lambda s: s.summary, STUDY_OPTIONS
    ),
    Study: View(
        _study_parts,
        lambda s, **options: _results_chart(s.results(), **options),
        lambda s, place: _results_page(s.results(), place),
        lambda s: s.results().summary,
        STUDY_OPTIONS,
    ),
    OnlineLearner: View(_online_parts, _online_chart, _online_page, _online_frame),
    Problem: View(problem_parts, _problem_chart),
    Learner: View(learner_parts),
}  # fmt: skip
