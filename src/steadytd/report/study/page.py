"""The report of a study: tables, figures, and one page that begins with the findings in words."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadytd.base.files import file_name, filling, write_frame, write_whole
from steadytd.base.json import json_text
from steadytd.report.figures import described, save_figures
from steadytd.report.live import Live, live, untitled
from steadytd.report.pages import page
from steadytd.report.study import text
from steadytd.report.study.figures import (
    best_chart,
    curves_chart,
    curves_drawn,
    leaders_chart,
    leaders_text,
    overview_chart,
    sensitivity_chart,
)
from steadytd.runs.outcome import MEANING, ended, worst
from steadytd.studies.analysis import summary as words
from steadytd.studies.analysis.penalty import Penalty, by_lam, penalties
from steadytd.studies.analysis.reading import Chapter, Reading, read_study
from steadytd.studies.analysis.tables import LEVELS, Best, reach_text, resolution
from steadytd.studies.results import StudyResults

if TYPE_CHECKING:
    import polars as pl

Say = Callable[[str], None]
FILES = (
    ("summary.parquet", "best configurations"),
    ("configurations.parquet", "all configurations"),
    ("summary.json", "what this page says"),
)


def study_document(reading: Reading) -> dict[str, Any]:
    """Everything the report says, as data: what `steadytd report --json` prints."""
    spec = reading.results.spec
    what = words.criterion(spec.file.confirm)
    return {
        "study": spec.name,
        "title": spec.file.title,
        "complete": reading.results.complete,
        "share": reading.share,
        "criterion": what,
        "configurations": spec.runs,
        "seeds": spec.file.seeds,
        "learner_updates": spec.updates,
        "size": words.size(reading),
        "headline": _leading(reading, what),
        "problems": [_chapter_document(reading, chapter, what) for chapter in reading.chapters],
    }


def _chapter_document(reading: Reading, chapter: Chapter, what: str) -> dict[str, Any]:
    references, task = _references(chapter), chapter.task
    return {
        "problem": chapter.label,
        "steps": task.steps,
        "recorded": resolution(task.every, task.per_decade),
        "error_at_w0": chapter.start,
        "fresh_seeds": chapter.fresh,
        "summary": [
            {"topic": topic, "text": said} for topic, said in words.sentences(chapter, what)
        ],
        "caveats": words.caveats(reading, chapter),
        "ranking": chapter.groups,
        "failed": chapter.failed,
        "best": [_best_document(chapter, b) for b in chapter.best],
        "paired": [p._asdict() for name in references for p in chapter.against(name)],
        "comparisons": next((p.comparisons for p in chapter.pairs.values()), 0),
        "same_update": sorted(sorted(pair) for pair in chapter.same),
        "penalties": [_penalty_document(found) for found in penalties(chapter)],
    }


def _references(chapter: Chapter) -> list[str]:
    """Whom the others are compared with: the best learner, and those with a penalty."""
    names = [b.algorithm for b in chapter.best]
    wanted = [found.penalised for found in penalties(chapter)]
    return list(dict.fromkeys([*names[:1], *(n for n in names if n in wanted)]))


def _beside(chapter: Chapter) -> str | None:
    """Whom the figure compares with: the study's first learner with a penalty, or the best one."""
    names = [b.algorithm for b in chapter.best]
    wanted = [found.penalised for found in penalties(chapter) if found.penalised in names]
    return next(iter([*wanted, *names]), None)


def _best_document(chapter: Chapter, b: Best) -> dict[str, Any]:
    seen = chapter.theory.get(b.algorithm)
    place = next(i for i, group in enumerate(chapter.groups) if b.algorithm in group)
    return {
        "algorithm": b.algorithm,
        "run": b.run,
        "rank": 1 + sum(len(group) for group in chapter.groups[:place]),
        "settings": dict(b.params),
        "grid": b.grid._asdict(),
        "measured": b.measured._asdict(),
        "fresh": b.fresh,
        "fresh_minus_grid": b.bias,
        "fresh_minus_grid_stderr": b.bias_stderr,
        "final": b.final._asdict(),
        "steps_to": {
            name: x._asdict() | {"shown": reach_text(x, chapter.task.steps)}
            for name, x in zip(LEVELS, chapter.reach[b.algorithm], strict=True)
        },
        "predicted_stable_share": seen and seen.stable,
        "predicted_asymptote": seen and seen.asymptote,
        "predicted_final_of_mean_dynamics": seen and seen.last,
        "configurations": b.configurations,
        "never_diverged": b.never_diverged,
        "better_than_w0": b.useful,
        "outcome": worst(b.outcomes),
        "ended": ended(b.outcomes),
        "diverges_from": words.diverges_from(chapter, b.algorithm),
        "at_the_edge_of_the_grid": [f"{side} {name}" for name, side in b.edges],
    }


def _penalty_document(found: Penalty) -> dict[str, Any]:
    return {
        "plain": found.plain,
        "penalised": found.penalised,
        "by_eta": [
            {
                "eta": row.eta,
                "configurations": row.configurations,
                "never_diverged": row.never_diverged,
                "better_than_w0": row.useful,
                "least_grid_error": row.error,
                "settings": row.settings,
                "predicted_stable_share": row.prediction and row.prediction.stable,
                "predicted_asymptote": row.prediction and row.prediction.asymptote,
            }
            for row in found.rows
        ],
        "step_sizes": found.step_sizes,
        "plain_steady": found.plain_steady,
        "penalised_steady": found.penalised_steady,
        "plain_better_than_w0": found.plain_useful,
        "penalised_better_than_w0": found.penalised_useful,
    }


def summary_table(document: Mapping[str, Any]) -> pl.DataFrame:
    """One row per problem and learner: its best configuration in numbers."""
    import polars as pl

    rows = []
    for problem in document["problems"]:
        for b in problem["best"]:
            flat = {k: v for k, v in b.items() if not isinstance(v, dict | list)}
            for part in ("grid", "measured", "final"):
                flat |= {f"{part}_{key}": value for key, value in b[part].items()}
            for name, reach in b["steps_to"].items():
                key = f"steps_to_{name.replace(' ', '_')}"
                flat |= {key: reach["step"], f"{key}_reached": reach["reached"]}
            flat["settings"] = ", ".join(f"{k}={v}" for k, v in b["settings"].items())
            rows.append({"problem": problem["problem"], **flat})
    return pl.DataFrame(rows, infer_schema_length=None)


def write_study_report(
    given: str | Path | StudyResults, say: Say = lambda text: None, *, pictures: bool = True
) -> tuple[Path, dict[str, Any]]:
    """Write DIR/report: the page, figures (SVG, PNG, PDF) and tables. Return page and document.

    Without `pictures` the figures are in the page only.
    """
    say("reading")
    reading = read_study(given)
    document = study_document(reading)
    place = reading.results.directory / "report"
    with filling(place) as made:
        html, figures = _html(reading, document, say, pictures)
        say("drawing")
        save_figures(figures if pictures else {}, made)
        write_whole(made / "summary.json", json_text(document))
        write_frame(made / "summary.parquet", summary_table(document))
        write_frame(made / "configurations.parquet", _configurations(reading))
        write_whole(made / "report.html", html)
    return place / "report.html", document


def study_figures(directory: str | Path) -> dict[str, Any]:
    """The descriptions (Vega-Lite) of a report's figures, by the names of their files."""
    reading = read_study(directory)
    return _html(reading, study_document(reading), lambda text: None, False)[1]


def _html(
    reading: Reading, document: Mapping[str, Any], say: Say, files: bool
) -> tuple[str, dict[str, Any]]:
    """The page, and the descriptions of its figures by their names."""
    from altair.utils.schemapi import debug_mode

    spec, directory = reading.results.spec, reading.results.directory
    what = words.criterion(spec.file.confirm)
    measure = words.MEASURES[spec.file.confirm.measure]
    labels = [chapter.label for chapter in reading.chapters]
    shown: list[dict[str, Any]] = []
    drawn: dict[str, Any] = {}
    with debug_mode(False):  # Altair would check every dot of every figure
        for chapter, content in zip(reading.chapters, document["problems"], strict=True):
            say(f"describing {chapter.label}")
            charts = _charts(chapter, file_name(chapter.label, labels), (what, measure))
            drawn |= {name: spec for (_, name), spec in charts.items()}
            link = f"problem-{len(shown) + 1}"
            shown.append({"key": link, **_shown(chapter, content, charts, what, files)})
        leaders = leaders_chart(reading.chapters, what) if len(shown) > 1 else None
    name = file_name("leaders", [*labels, "leaders"])
    if leaders is not None:
        drawn[name] = described(leaders)
    first = untitled(live(name, drawn[name], files)) if name in drawn else None
    html = page(
        "study.html",
        title=spec.file.title or spec.name,
        about=spec.file.about.strip(),
        document=document,
        what=what,
        leading=document["headline"],
        first=first,
        files=FILES,
        chapters=shown,
        meaning=MEANING,
        study_file=spec.text,
        command=_command(directory),
        provenance=_provenance(directory),
    )
    return html, drawn


def _command(directory: Path) -> str:
    """What runs the study again, or goes on with it, from where the report was asked for."""
    there = shlex.quote(directory.as_posix())
    file = shlex.quote((directory / "study.toml").as_posix())
    return f"steadytd study {file} --out {there} && steadytd report {there}"


def _leading(reading: Reading, what: str) -> str:
    """The sentence that stands first: of one problem its headline, of several who leads where."""
    if len(reading.chapters) > 1:
        return leaders_text(reading.chapters, what)
    found = (said for chapter in reading.chapters for _, said in words.sentences(chapter, what))
    return next(found, "")


def _charts(
    chapter: Chapter, key: str, named: tuple[str, str]
) -> dict[tuple[str, str], dict[str, Any]]:
    """The descriptions of a chapter's figures, by their kind and the names of their files."""
    what, measure = named
    names = [*(b.algorithm for b in chapter.best), *chapter.failed]
    charts = {
        ("curves", f"{key}_curves"): curves_chart(chapter, measure),
        ("best", f"{key}_best"): best_chart(chapter, what, _beside(chapter)),
        ("overview", f"{key}_overview"): overview_chart(chapter, what),
    }
    for name in names:
        file = f"{key}_sensitivity_{file_name(name, names)}"
        charts["sensitivity", file] = sensitivity_chart(chapter, name, what)
    return {key: described(chart) for key, chart in charts.items() if chart is not None}


def _shown(
    chapter: Chapter,
    content: Mapping[str, Any],
    charts: Mapping[tuple[str, str], Any],
    what: str,
    files: bool,
) -> dict[str, Any]:
    """One chapter of the page."""
    figures: dict[str, list[Live]] = {}
    for (kind, name), spec in charts.items():
        figures.setdefault(kind, []).append(live(name, spec, files))
    first = {kind: untitled(found[0]) for kind, found in figures.items()}
    lams, rows = by_lam(chapter)
    paired = {name: chapter.against(name) for name in _references(chapter)}
    return {
        "family": chapter.task.family,
        "about": chapter.task.problem.summary,
        "content": content,
        "best": text.best_of(content, what),
        "reach": text.reach_of(content),
        "theory": text.theory_table(content, chapter.theory)
        if any(chapter.theory.values())
        else None,
        "paired": [text.paired_table(name, found) for name, found in paired.items() if found],
        "penalties": [text.penalty_table(found) for found in penalties(chapter)],
        "by_lam": text.lam_table(lams, rows) if rows else None,
        "left_out": left_out(chapter),
        "sensitivity": figures.get("sensitivity", []),
        **{kind: first.get(kind) for kind in ("curves", "overview")},
        "best_picture": first.get("best"),
    }


def left_out(chapter: Chapter) -> list[str]:
    """The learners whose curves are not drawn."""
    drawn = curves_drawn(chapter)
    return [b.algorithm for b in chapter.best if b.algorithm not in drawn]


def _configurations(reading: Reading) -> pl.DataFrame:
    import polars as pl

    return pl.concat([c.configurations for c in reading.chapters], how="diagonal_relaxed")


def _provenance(directory: Path) -> dict[str, str]:
    try:
        found = json.loads((directory / "provenance.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}
