"""The evaluation as one page, with its pictures, its JSON and the value functions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steadytd.base.errors import InputError
from steadytd.base.files import file_name, filling, write_whole
from steadytd.base.json import json_text
from steadytd.evaluation.result import Evaluation
from steadytd.report.evaluation import words
from steadytd.report.evaluation.agreement import agreement_chart
from steadytd.report.evaluation.figures import overlap_chart, path_chart
from steadytd.report.evaluation.values import values_chart
from steadytd.report.figures import save_figure
from steadytd.report.pages import page


def write_evaluation(
    e: Evaluation, out: str | Path, *, files: Sequence[str] = (), command: str = ""
) -> Path:
    """Write `evaluation.html`, `evaluation.json`, pictures and value functions; the page's path.

    All of them appear together, or none does.
    """
    charts = {"values": values_chart, "overlap": overlap_chart, "path": path_chart}
    if len(e.agreement):
        charts["agreement"] = agreement_chart
    with filling(out) as made:
        pictures = {key: save_figure(draw(e), made, key) for key, draw in charts.items()}
        models = _save_models(e, made)
        write_whole(made / "evaluation.json", json_text(e.to_dict()))
        write_whole(made / "evaluation.html", _html(e, pictures, models, files, command))
    return Path(out) / "evaluation.html"


def _save_models(e: Evaluation, where: Path) -> list[dict[str, str]]:
    """One file per target that has a value function: target, learner, file."""
    rows: list[dict[str, str]] = []
    for name in e.targets:
        try:
            value_function = e.value_function(name)
        except InputError as error:  # importance sampling alone, or a learner that diverged
            rows.append({"target": name, "learner": "", "file": "", "why": str(error)})
            continue
        file = f"value_{file_name(name, e.targets)}.npz"
        value_function.save(where / file)
        row = {"target": name, "learner": value_function.learner, "file": file, "why": ""}
        rows.append(row)
    return rows


def _html(
    e: Evaluation,
    pictures: dict[str, str],
    models: list[dict[str, str]],
    files: Sequence[str],
    command: str,
) -> str:
    warnings, notes = words.by_level(e)
    lines = words.verdicts(e)
    return page(
        "evaluation.html",
        e=e,
        verdicts=lines,
        worst="mixed" if any(line.grade != "good" for line in lines) else "",
        values=words.value_rows(e),
        reasons={r.target: r.reason for r in e.recommended.values()},
        overlap=words.overlap_rows(e),
        stability=words.stability_rows(e),
        calibration=words.calibration_rows(e),
        warnings=words.grouped(warnings),
        notes=words.grouped(notes),
        covers=e.notes,
        pictures=pictures,
        models=models,
        facts=_facts(e, files),
        command=command,
    )


def _facts(e: Evaluation, files: Sequence[str]) -> list[tuple[str, str]]:
    """Settings and provenance, in the order in which people ask."""
    f, s = e.log, e.settings
    shown: list[tuple[str, Any]] = [
        ("files", ", ".join(files[:5]) + (f" and {len(files) - 5} more" if len(files) > 5 else "")),
        ("rows", f"{f.rows:,}"),
        ("rows left out", f"{f.left_out:,}" if f.left_out else ""),
        ("episodes", f"{f.episodes:,}, of which {f.truncated:,} truncated"),
        ("units of the bootstrap", f"{f.units:,}"),
        ("discount", "the log's own column" if s["discount"] is None else f"{s['discount']:g}"),
        ("features", f"{s['features']} ({s['n_features']} numbers)"),
        ("learners", ", ".join(s["learners"])),
        ("behaviour policy", "estimated from the log" if f.behavior_estimated else "as logged"),
        ("engine", f"{s['engine']}, {s['parts']} parts"),
        ("seed", s["seed"]),
    ]
    return [(name, str(text)) for name, text in shown if text != ""]
