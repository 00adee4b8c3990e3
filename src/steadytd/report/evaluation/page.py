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
    lam_chart,
    overlap_chart,
    path_chart,
    targets_chart,
    values_chart,
    values_words,
    visits_chart,
    visits_words,
)
from steadytd.report.evaluation.several import answers, forest_chart, segment_table
from steadytd.report.evaluation.text import NAMED, selection_text, telling
from steadytd.report.figures import descriptions, save_figures
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


FIGURES = ("targets", "calibration", "segments", *BY_TARGET)


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
        stems = file_names(e.targets)
        drawn = _drawn(e, stems)
        save_figures(dict(drawn.values()) if pictures else {}, made)
        models = _save_models(e, made, stems)
        write_whole(made / "evaluation.json", json_text(e.to_dict()))
        shown = _shown(drawn, pictures)
        write_whole(made / "evaluation.html", _html(e, shown, models, files, command))
    return Path(out) / "evaluation.html"


def evaluation_page(e: Evaluation, *, files: Sequence[str] = (), command: str = "") -> str:
    """The page alone, without files beside it."""
    stems = file_names(e.targets)
    return _html(e, _shown(_drawn(e, stems), False), [], files, command)


def _drawn(
    e: Evaluation, stems: dict[str, str]
) -> dict[tuple[str, str], tuple[str, dict[str, Any]]]:
    """By kind and target ("" where they concern all): the name of a picture, its description."""
    from altair.utils.schemapi import debug_mode

    with debug_mode(False):  # Altair would check every dot
        charts: dict[tuple[str, str], Any] = {
            ("targets", ""): targets_chart(e),
            ("calibration", ""): calibration_chart(e.calibration),
        }
        charts |= {("segments", one.reward): forest_chart(one) for one in answers(e)}
        for kind, draw in BY_TARGET.items():
            charts |= {(kind, name): draw(e, name) for name in telling(e, DRAWN)}
        found = descriptions(charts)
    stems = stems | file_names([one.reward for one in answers(e)])
    names = {
        (kind, target): f"{kind}_{stems[target]}" if target else kind for kind, target in found
    }
    return {key: (names[key], spec) for key, spec in found.items()}


def _shown(
    drawn: dict[tuple[str, str], tuple[str, dict[str, Any]]], files: bool
) -> dict[str, dict[str, Live]]:
    """The figures of the page, by kind and target."""
    found: dict[str, dict[str, Live]] = {k: {} for k in FIGURES}
    for (kind, target), (name, spec) in drawn.items():
        found[kind][target] = live(name, spec, files)
    return found


def _save_models(e: Evaluation, where: Path, stems: dict[str, str]) -> list[dict[str, str]]:
    """One file per target that has a value function: target, learner, file."""
    rows: list[dict[str, str]] = []
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
    pictures: dict[str, dict[str, Live]],
    models: list[dict[str, str]],
    files: Sequence[str],
    command: str,
) -> str:
    warnings, notes = text.findings_by_level(e)
    named = set(telling(e))
    return page(
        "evaluation.html",
        e=e,
        size=text.size_text(e),
        closing=text.closing_lines(e),
        drawn=telling(e, DRAWN),
        drawn_words=selection_text(e, DRAWN, "Pictures"),
        named_words=selection_text(e, NAMED, "Decisions"),
        decisions=[
            line for one in answers(e) for line in text.decision_lines(one) if line.target in named
        ],
        policies=text.policy_rows(e),
        answers=[(one, text.policy_rows(one), segment_table(one)[1:]) for one in answers(e)],
        values_words=values_words(e),
        values=text.recommended_first(text.value_rows(e)),
        reasons={r.target: r.reason for r in e.recommended.values()},
        overlap=text.overlap_rows(e),
        stability=text.stability_rows(e),
        calibration=text.calibration_rows(e),
        calibration_words=calibration_words(e.calibration),
        visits_words={name: visits_words(e, name) for name in telling(e, DRAWN)},
        sensitivity=text.sensitivity_rows(e),
        off_by=text.OFF_BY,
        spreads=text.spread_rows(e),
        spread_names=text.spread_names(e),
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


def _facts(e: Evaluation, files: Sequence[str]) -> list[tuple[str, str]]:
    """Settings and provenance, in the order in which people ask."""
    f, s = e.log, e.settings
    shown: list[tuple[str, Any]] = [
        ("files", ", ".join(files[:5]) + (f" and {len(files) - 5} more" if len(files) > 5 else "")),
        ("rows", f"{f.rows:,}"),
        ("rows left out", f"{f.left_out:,}" if f.left_out else ""),
        ("episodes", f"{f.episodes:,}, of which {f.truncated:,} truncated"),
        ("units of the intervals", f"{f.units:,}"),
        ("discount", "the log's own column" if s["discount"] is None else f"{s['discount']:g}"),
        ("features", f"{s['features']} ({s['n_features']} numbers)"),
        ("learners", ", ".join(s["learners"])),
        ("behaviour policy", "estimated from the log" if f.behavior_estimated else "as logged"),
        ("engine", f"{s['engine']}, {s['parts']} parts"),
        ("rewards, as stated", _range(f)),
        ("seed", s["seed"]),
    ]
    return [(name, str(fact)) for name, fact in shown if fact != ""]
