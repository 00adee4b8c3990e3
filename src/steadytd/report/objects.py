"""How results display themselves: `print`, notebooks, `plot`, `report`, `to_csv` of all of them.

`VIEWS` has one entry per kind of result: its text (that of the command line, from the same
functions), its chart, its page, its main table. `base.display` sends results here.
"""

from __future__ import annotations

import html as markup
import io
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.markup import escape

from steadytd.base.errors import InputError, visible
from steadytd.base.files import output_directory, write_whole
from steadytd.base.numbers import count, number
from steadytd.engine.learner import OnlineLearner
from steadytd.evaluation.monitor import Monitor
from steadytd.evaluation.result import Evaluation
from steadytd.report import run
from steadytd.report.certificate.figures import path_chart
from steadytd.report.certificate.page import findings, verdict, write_certificate
from steadytd.report.evaluation.figures import targets_chart, values_chart
from steadytd.report.evaluation.page import write_evaluation
from steadytd.report.evaluation.several import answers, segment_table
from steadytd.report.evaluation.text import (
    POLICY_COLUMNS,
    closing_lines,
    decision_texts,
    policy_rows,
)
from steadytd.report.figures import data_of, heading, save_figure, styled
from steadytd.report.live import live
from steadytd.report.monitor import monitor_chart, monitor_text, write_monitor
from steadytd.report.pages import page
from steadytd.report.palette import look
from steadytd.report.paper import Chosen, for_print, known_names, some_learners
from steadytd.report.study.figures import curves_chart, curves_drawn
from steadytd.report.study.page import best_table, write_study_report
from steadytd.report.text import rendered, table
from steadytd.runs.result import Result
from steadytd.studies.analysis.reading import read_study
from steadytd.studies.analysis.summary import MEASURES
from steadytd.studies.results import StudyResults
from steadytd.studies.study import Study
from steadytd.theory.certificate import Certificate


class View(NamedTuple):
    """How one kind of result is displayed; `page` writes into a directory and returns the page."""

    text: Callable[[Any], str]
    chart: Callable[..., Any]
    page: Callable[[Any, Path], Path]
    frame: Callable[[Any], Any]
    options: tuple[str, ...] = ()  # of the chart


def _view(result: object) -> View:
    return next(view for kind, view in VIEWS.items() if isinstance(result, kind))


def text(result: object) -> str:
    """What `print` shows."""
    return visible(_view(result).text(result), lines=True)


def chart(
    result: object,
    width: float | None = None,
    font_size: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """An Altair chart without what only a whole figure may have, so it can stand beside others.

    With a font size it is a whole figure.
    """
    import altair as alt
    from altair.utils.schemapi import debug_mode

    view = _view(result)
    given = {name: value for name, value in (options or {}).items() if value is not None}
    for name in given.keys() - set(view.options):
        raise InputError(f"this picture has no option {name}; leave it out.")
    with debug_mode(False):  # Altair would check every dot
        made = view.chart(result, **given).copy()
        made.config = made.usermeta = alt.Undefined
        for_paper = width is not None or font_size is not None
        return for_print(made, width, font_size) if for_paper else made


def html(result: object) -> str:
    """A notebook's view: the text, and the picture as SVG, which needs no network."""
    try:
        with tempfile.TemporaryDirectory() as place:
            picture = save_figure(styled(chart(result)), Path(place), "picture")
    except InputError:  # a study that has not run yet has no picture
        picture = ""
    return f"<div><pre>{markup.escape(text(result))}</pre>{picture}</div>"


def write_page(result: object, path: Path) -> Path:
    """Write the page to `path`, or, if that is no .html, into a directory as the command line does.

    The pictures are in the page. Files that it offers for download stand beside it, in NAME_files.
    """
    write = _view(result).page
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

    frame: pl.DataFrame = _view(result).frame(result)
    content = io.BytesIO()
    texts = cs.string().str.replace(r"^([=+@\t\r-])", "'$1")
    pl.DataFrame(frame).select(~cs.nested()).with_columns(texts).write_csv(content)
    return write_whole(path, content.getvalue())


# Runs


def _run_text(r: Result) -> str:
    rows = [
        (escape(row["learner"]), row["mean"], row["final"], row["ended"]) for row in run.rows(r)
    ]
    return rendered(table(escape(run.title(r)), run.COLUMNS, rows), *run.sentences(r))


def _run_chart(r: Result, learners: Chosen | None = None) -> Any:
    return run.run_chart(r) if learners is None else run.run_chart(*some_learners(r, learners))


# Certificates


def _certificate_text(c: Certificate) -> str:
    return "\n".join([verdict(c), *(f"{f.code}: {f.text}" for f in findings(c))])


def _certificate_frame(c: Certificate) -> Any:
    import polars as pl

    rows = [{**row, **row.get("params", {})} for row in c.learners]
    return pl.DataFrame([{k: v for k, v in row.items() if k != "params"} for row in rows],
                        infer_schema_length=None)  # fmt: skip


# Evaluations


def _evaluation_text(e: Evaluation) -> str:
    texts = [text for one in answers(e) for text in decision_texts(one)]
    tables = []
    for one in answers(e):
        tables.append(_rows(one.reward_name, POLICY_COLUMNS, policy_rows(one)))
        if one.segments is not None:
            tables += [_rows(*segment_table(one)), one.segments.text]
    return rendered(*texts, *tables, *(f"{name}: {text}" for name, text in closing_lines(e)))


def _rows(title: str, columns: dict[str, str], rows: list[dict[str, str]]) -> Any:
    cells = [[escape(row[key]) for key in columns] for row in rows]
    return table(escape(title), tuple(columns.values()), cells)


def _evaluation_chart(e: Evaluation) -> Any:
    return targets_chart(e) if len(e.targets) > 1 else values_chart(e, e.targets[0])


# Studies

STUDY_OPTIONS = ("learners", "problems", "columns")


def _study_text(s: Study) -> str:
    spec = s.spec
    lines = [
        f"{s.name}: {spec.file.title}" if spec.file.title else s.name,
        f"{count(spec.runs, 'configuration')}, {count(spec.file.seeds, 'seed')}, "
        f"{count(spec.updates, 'update')}",
    ]
    for task in spec.tasks:
        names = dict.fromkeys(learner.name for learner in task.learners)
        lines.append(f"{task.label}: {count(task.steps, 'step')} of {', '.join(names)}")
    return "\n".join(lines)


def _results_text(results: StudyResults) -> str:
    return rendered(table(*best_table(results)))


def _results_chart(
    results: StudyResults,
    learners: Chosen | None = None,
    problems: Chosen | None = None,
    columns: int | None = None,
) -> Any:
    """The curves of every problem, one below the other or in columns."""
    import altair as alt

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

BARS = 60  # features beyond which weights are drawn as a line


def _online_text(a: OnlineLearner) -> str:
    first = f"{a.learner}: {count(a.step, 'update')} on {count(a.n_features, 'feature')}."
    if a.diverged:
        at = int(a.block.diverged[0])
        return f"{first}\nIt overflowed at update {at:,}: a weight left the finite range."
    low, high = number(float(a.w.min())), number(float(a.w.max()))
    return f"{first}\nIts weights lie between {low} and {high}."


def _online_chart(a: OnlineLearner) -> Any:
    """The weights by feature, in the learner's colour."""
    import altair as alt

    rows = [
        {"feature": i, "weight": float(w) if np.isfinite(w) else 0.0} for i, w in enumerate(a.w)
    ]
    few = len(rows) <= BARS
    says = ["feature:Q", "weight:Q"]
    x = alt.X("feature:O" if few else "feature:Q")
    base = alt.Chart(data_of(rows)).encode(x=x, y="weight:Q", tooltip=says)
    drawn = (base.mark_bar if few else base.mark_line)(color=look(a.learner.name).colour)
    title = heading(str(a.learner), count(a.step, "update"))
    return drawn.properties(width=620, height=240, title=title)


def _online_page(a: OnlineLearner, place: Path) -> Path:
    content = page(
        "object.html",
        title=str(a.learner),
        words=_online_text(a).splitlines(),
        picture=live("weights", styled(chart(a)), files=False),
    )
    return write_whole(output_directory(place) / "learner.html", content)


def _online_frame(a: OnlineLearner) -> Any:
    import polars as pl

    return pl.DataFrame({"feature": range(a.n_features), "weight": a.w})


VIEWS: dict[type, View] = {
    Result: View(_run_text, _run_chart, run.write_run, lambda r: r.summary, ("learners",)),
    Certificate: View(_certificate_text, path_chart, write_certificate, _certificate_frame),
    Evaluation: View(_evaluation_text, _evaluation_chart, write_evaluation, lambda e: e.values),
    Monitor: View(monitor_text, monitor_chart, write_monitor, lambda m: m.history),
    StudyResults: View(
        _results_text, _results_chart, _results_page, lambda s: s.summary, STUDY_OPTIONS
    ),
    Study: View(
        _study_text,
        lambda s, **options: _results_chart(s.results(), **options),
        lambda s, place: _results_page(s.results(), place),
        lambda s: s.results().summary,
        STUDY_OPTIONS,
    ),
    OnlineLearner: View(_online_text, _online_chart, _online_page, _online_frame),
}
