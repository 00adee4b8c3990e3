"""How results show themselves: `print`, notebooks, `plot`, `report`, `to_csv` of every one of them.

One entry per kind: its words (those of the command line, from the same functions), its chart, its
page, its main table. `base.display` sends results here.
"""

from __future__ import annotations

import html as markup
import io
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from rich.markup import escape

from steadytd.base.errors import InputError
from steadytd.base.files import output_directory, write_whole
from steadytd.base.wording import count, visible
from steadytd.engine.online import OnlineLearner
from steadytd.evaluation.result import Evaluation
from steadytd.report import online
from steadytd.report.certificate.figures import path_chart
from steadytd.report.certificate.page import findings, verdict, write_certificate
from steadytd.report.evaluation.page import write_evaluation
from steadytd.report.evaluation.tables import POLICY_COLUMNS, policy_rows
from steadytd.report.evaluation.values import targets_chart, values_chart
from steadytd.report.evaluation.words import closing_lines, decision_texts
from steadytd.report.figures import save_figure, styled
from steadytd.report.live import live
from steadytd.report.pages import page
from steadytd.report.run import words as run_words
from steadytd.report.run.figures import run_chart
from steadytd.report.run.page import write_run
from steadytd.report.study import words as study_words
from steadytd.report.study.figures import curves_chart
from steadytd.report.study.page import write_study_report
from steadytd.report.text import rendered, table
from steadytd.runs.result import Result
from steadytd.studies.analysis.reading import read_study
from steadytd.studies.analysis.summary import MEASURES
from steadytd.studies.results import StudyResults
from steadytd.studies.study import Study
from steadytd.theory.certificate import Certificate


class Showing(NamedTuple):
    """How one kind of result is shown; `page` writes into a directory and returns the page."""

    text: Callable[[Any], str]
    chart: Callable[[Any], Any]
    page: Callable[[Any, Path], Path]
    frame: Callable[[Any], Any]


def _showing(shown: object) -> Showing:
    found = next((one for kind, one in SHOWINGS.items() if isinstance(shown, kind)), None)
    if found is None:
        raise InputError(f"a {type(shown).__name__} has no words, no chart and no page.")
    return found


def text(shown: object) -> str:
    """What `print` shows."""
    return visible(_showing(shown).text(shown), lines=True)


def chart(shown: object) -> Any:
    """An Altair chart without what only a whole figure may have, so it can stand beside others."""
    import altair as alt
    from altair.utils.schemapi import debug_mode

    with debug_mode(False):  # Altair would check every dot
        made = _showing(shown).chart(shown).copy()
    made.config = made.usermeta = alt.Undefined
    return made


def html(shown: object) -> str:
    """A notebook's view: the words, and the picture as SVG, which needs no network."""
    words = f"<pre>{markup.escape(text(shown))}</pre>"
    try:
        picture = _svg(chart(shown))
    except InputError:  # a study that has not run yet has no picture
        picture = ""
    return f"<div>{words}{picture}</div>"


def _svg(made: Any) -> str:
    with tempfile.TemporaryDirectory() as place:
        return save_figure(styled(made), Path(place), "picture")


def write_page(shown: object, path: Path) -> Path:
    """Write the page to `path`, or, if that is no .html, into a directory as the command line does.

    The pictures are in the page. Files that it offers for download stand beside it, in NAME_files.
    """
    write = _showing(shown).page
    if path.suffix.lower() not in (".html", ".htm"):
        return write(shown, path)
    output_directory(path.parent)
    with tempfile.TemporaryDirectory() as place:
        made = write(shown, Path(place) / "page")
        content = made.read_text(encoding="utf-8")
        beside = path.with_name(f"{path.stem}_files")
        for file in sorted(made.parent.iterdir()):
            link = f'href="{file.name}"'
            if link in content:
                content = content.replace(link, f'href="{beside.name}/{file.name}"')
                output_directory(beside)
                shutil.copyfile(file, beside / file.name)
    return write_whole(path, content)


def write_csv(shown: object, path: Path) -> Path:
    """Write the main table as CSV. Lists, which CSV has not, are left out.

    A spreadsheet would run a text that begins like a formula: it gets an apostrophe before it.
    """
    import polars as pl
    import polars.selectors as cs

    frame: pl.DataFrame = _showing(shown).frame(shown)
    content = io.BytesIO()
    texts = cs.string().str.replace(r"^([=+@\t\r-])", "'$1")
    pl.DataFrame(frame).select(~cs.nested()).with_columns(texts).write_csv(content)
    return write_whole(path, content.getvalue())


# Runs


def _run_text(r: Result) -> str:
    lines = [(escape(row["learner"]), row["mean"], row["final"], row["ended"])
             for row in run_words.rows(r)]  # fmt: skip
    said = run_words.sentences(r)
    return rendered(
        table(escape(run_words.title(r)), run_words.COLUMNS, lines), *([*said, ""] if said else [])
    )


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
    rows = [[escape(row[key]) for key in POLICY_COLUMNS] for row in policy_rows(e)]
    columns = tuple(POLICY_COLUMNS.values())
    closing = [f"{name}: {text}" for name, text in closing_lines(e)]
    return rendered(*decision_texts(e), table("", columns, rows), *closing)


def _evaluation_chart(e: Evaluation) -> Any:
    return targets_chart(e) if len(e.targets) > 1 else values_chart(e, e.targets[0])


# Studies


def _study_text(s: Study) -> str:
    spec = s.spec
    size = f"{count(spec.runs, 'configuration')}, {count(spec.file.seeds, 'seed')}"
    title = f": {spec.file.title}" if spec.file.title else ""
    lines = [f"{s.name}{title}", f"{size}, {spec.updates:,} updates"]
    for task in spec.tasks:
        names = dict.fromkeys(learner.name for learner in task.learners)
        lines.append(f"{task.label}: {task.steps:,} steps of {', '.join(names)}")
    return "\n".join(lines)


def _results_text(results: StudyResults) -> str:
    title, columns, rows = study_words.best_table(results)
    return rendered(table(title, columns, rows))


def _results_chart(results: StudyResults) -> Any:
    """The curves of every problem, one below the other."""
    import altair as alt

    reading = read_study(results.directory)
    what = MEASURES[results.spec.file.confirm.measure]
    drawn = [curves_chart(chapter, what) for chapter in reading.chapters]
    parts = [one for one in drawn if one is not None]
    if not parts:
        raise InputError(f"no learner of '{results.directory}' has a curve without overflow.")
    for one in parts:
        one.config = one.usermeta = alt.Undefined
    if len(parts) == 1:
        return parts[0]
    own: Any = dict.fromkeys(("color", "strokeDash", "x", "y"), "independent")
    return alt.vconcat(*parts).resolve_scale(**own)


def _results_page(results: StudyResults, place: Path) -> Path:
    """The report is written beside the results, as by `steadytd report`, and copied."""
    made, _ = write_study_report(results.directory)
    shutil.copytree(made.parent, place, dirs_exist_ok=True)
    return place / made.name


# Online learners


def _online_page(a: OnlineLearner, place: Path) -> Path:
    words = online.online_words(a)
    output_directory(place)
    content = page(
        "object.html",
        title=str(a.learner),
        words=words,
        picture=live("weights", styled(chart(a)), files=False),
    )
    return write_whole(place / "learner.html", content)


def _online_frame(a: OnlineLearner) -> Any:
    import polars as pl

    return pl.DataFrame({"feature": range(a.n_features), "weight": a.w})


SHOWINGS: dict[type, Showing] = {
    Result: Showing(_run_text, run_chart, write_run, lambda r: r.summary),
    Certificate: Showing(
        _certificate_text, path_chart, write_certificate,
        _certificate_frame,
    ),
    Evaluation: Showing(
        _evaluation_text, _evaluation_chart, write_evaluation,
        lambda e: e.values,
    ),
    StudyResults: Showing(_results_text, _results_chart, _results_page, lambda s: s.summary),
    Study: Showing(
        _study_text,
        lambda s: _results_chart(s.results()),
        lambda s, place: _results_page(s.results(), place),
        lambda s: s.results().summary,
    ),
    OnlineLearner: Showing(
        lambda a: "\n".join(online.online_words(a)), online.online_chart, _online_page,
        _online_frame,
    ),
}  # fmt: skip
