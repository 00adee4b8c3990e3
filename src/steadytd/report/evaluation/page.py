"""The evaluation as one page, with its pictures, its JSON and the value functions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steadytd.base.errors import InputError
from steadytd.base.files import file_names, filling, write_whole
from steadytd.base.json import json_text
from steadytd.evaluation.facts import LogFacts
from steadytd.evaluation.result import Evaluation
from steadytd.report.evaluation import text
from steadytd.report.evaluation.figures import (
    DRAWN,
    agreement_chart,
    calibration_chart,
    calibration_words,
    decisions_chart,
    forest_chart,
    lam_chart,
    overlap_chart,
    path_chart,
    values_chart,
    values_words,
    visits_chart,
    visits_words,
)
from steadytd.report.evaluation.text import NAMED, selection_text, telling
from steadytd.report.figures import described, save_figures
from steadytd.report.live import Live, live
from steadytd.report.pages import page

BY_TARGET = {
    "visits": visits_chart,
    "lam": lam_chart,
    "values": values_chart,
    "agreement": agreement_chart,
    "overlap": overlap_chart,
    "path": path_chart,
}
SHEET = 6  # decisions that stand on the first sheet of paper
Pictures = dict[str, dict[str, Live]]  # by kind and target ("" where they concern all)


FIGURES = ("decisions", "calibration", "segments", *BY_TARGET)


def write_evaluation(
    e: Evaluation,
    out: str | Path,
    *,
    files: Sequence[str] = (),
    command: str = "",
    pictures: bool = True,
) -> Path:
    """Write `evaluation.html`, `evaluation.json`, pictures and value functions; the page's path.

    All of them appear together, or none does. Without `pictures` these are in the page only.
    """
    with filling(out) as made:
        shown, charts = _drawn(e, pictures)
        save_figures(charts if pictures else {}, made)
        models = _save_models(e, made)
        write_whole(made / "evaluation.json", json_text(e.to_dict()))
        write_whole(made / "evaluation.html", _html(e, shown, models, files, command))
    return Path(out) / "evaluation.html"


def evaluation_page(e: Evaluation, *, files: Sequence[str] = (), command: str = "") -> str:
    """The page alone, without files beside it."""
    return _html(e, _drawn(e, False)[0], [], files, command)


def _drawn(e: Evaluation, files: bool) -> tuple[Pictures, dict[str, dict[str, Any]]]:
    """The figures of the page, and the descriptions of all by the names of their files."""
    stems = file_names(e.targets) | file_names([one.reward for one in text.answers(e)])
    shown: Pictures = {kind: {} for kind in FIGURES}
    charts: dict[str, dict[str, Any]] = {}

    def add(kind: str, target: str, chart: Any) -> None:
        if chart is not None:
            name = f"{kind}_{stems[target]}" if target else kind
            charts[name] = described(chart)
            shown[kind][target] = live(name, charts[name], files)

    add("decisions", "", decisions_chart(e))
    add("calibration", "", calibration_chart(e.calibration))
    for one in text.answers(e):
        add("segments", one.reward, forest_chart(one))
    for kind, draw in BY_TARGET.items():
        for name in [] if e.log.average and kind == "path" else telling(e, DRAWN):
            add(kind, name, draw(e, name))
    return shown, charts


def _save_models(e: Evaluation, where: Path) -> list[dict[str, str]]:
    """One file per target that has a value function: target, learner, file."""
    rows: list[dict[str, str]] = []
    stems = file_names(e.targets)
    for name in e.targets:
        try:
            value_function = e.value_function(name)
        except InputError as error:  # importance sampling alone, or a learner that diverged
            rows.append({"target": name, "learner": "", "file": "", "why": str(error)})
            continue
        file = f"value_{stems[name]}.npz"
        value_function.save(where / file)
        row = {"target": name, "learner": value_function.learner, "file": file, "why": ""}
        rows.append(row)
    return rows


def _html(
    e: Evaluation,
    pictures: Pictures,
    models: list[dict[str, str]],
    files: Sequence[str],
    command: str,
) -> str:
    warnings, notes = text.findings_by_level(e)
    named, drawn = telling(e), telling(e, DRAWN)
    answers = text.answers(e)
    return page(
        "evaluation.html",
        e=e,
        size=text.size_text(e),
        closing=[text.grounds_line(e), *text.closing_lines(e)],
        sheet=SHEET,
        best=text.best_line(e),
        drawn=drawn,
        drawn_words=selection_text(e, DRAWN, "Pictures"),
        named_words=selection_text(e, NAMED, "Decisions"),
        decisions=[x for one in answers for x in text.decision_lines(one, named)],
        policies=text.policies_table(e),
        answers=[(x, text.policies_table(x), text.segments_table(x)) for x in answers],
        values_words=values_words(e),
        values=text.values_table(e),
        overlap=text.overlap_table(e),
        stability=text.stability_table(e),
        calibration=text.calibration_table(e),
        calibration_words=calibration_words(e.calibration),
        visits_words={name: visits_words(e, name) for name in drawn},
        sensitivity=text.sensitivity_table(e),
        spreads=text.spread_table(e),
        spread_notes=dict.fromkeys(
            f"Returns: {s.text}" if s.rows else f"{s.target}: {s.text}" for s in e.spreads
        ),
        warnings=text.grouped(warnings),
        notes=text.grouped(notes),
        covers=e.notes,
        pictures=pictures,
        models=models,
        files=_files(models),
        facts=_facts(e, files),
        command=command,
    )


def _files(models: list[dict[str, str]]) -> list[tuple[str, str]]:
    """What stands beside the page, if anything does."""
    values = [(m["file"], f"values of {m['target']}") for m in models if m["file"]]
    return [("evaluation.json", "what this page says"), *values] if models else []


def _range(f: LogFacts) -> str:
    if f.stated is None:
        return ""
    lo, hi, horizon = f.stated
    return f"{lo:g} to {hi:g}" + (f", at most {horizon:,} steps" if horizon else "")


def _discount(settings: dict[str, Any]) -> str:
    if settings["average_reward"]:
        return "none: rewards per step"
    given = settings["discount"]
    return "the log's own column" if given is None else f"{given:g}"


def _facts(e: Evaluation, files: Sequence[str]) -> list[tuple[str, str]]:
    """Settings and provenance, in the order in which people ask."""
    f, s = e.log, e.settings
    shown: list[tuple[str, Any]] = [
        ("files", ", ".join(files[:5]) + (f" and {len(files) - 5} more" if len(files) > 5 else "")),
        ("rows", f"{f.rows:,}"),
        ("rows left out", f"{f.left_out:,}" if f.left_out else ""),
        ("episodes", f"{f.episodes:,}, of which {f.truncated:,} truncated"),
        ("units of the intervals", f"{f.units:,}"),
        ("discount", _discount(s)),
        ("features", f"{s['features']} ({s['n_features']} numbers)"),
        ("learners", ", ".join(s["learners"])),
        ("behaviour policy", "estimated from the log" if f.behavior_estimated else "as logged"),
        ("engine", f"{s['engine']}, {s['parts']} parts"),
        ("rewards, as stated", _range(f)),
        ("seed", s["seed"]),
    ]
    return [(name, str(fact)) for name, fact in shown if fact != ""]
