"""The evaluation as one page, with its pictures, its JSON and the value functions."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steadytd.base.errors import InputError
from steadytd.base.files import output_directory, write_whole
from steadytd.base.json import json_text
from steadytd.evaluation.result import Evaluation
from steadytd.report.evaluation import words
from steadytd.report.evaluation.agreement import agreement_chart
from steadytd.report.evaluation.figures import overlap_chart, path_chart
from steadytd.report.evaluation.values import values_chart
from steadytd.report.figures import save_figure
from steadytd.report.pages import page

NAME = re.compile(r"[^A-Za-z0-9_.-]+")


def write_evaluation(
    e: Evaluation, out: str | Path, *, files: Sequence[str] = (), command: str = ""
) -> Path:
    """Write `evaluation.html`, `evaluation.json`, pictures and value functions; the page's path.

    Everything is made elsewhere first: the directory appears, or changes, when all is ready.
    """
    with tempfile.TemporaryDirectory(prefix="steadytd-") as name:
        made = Path(name)
        charts = {"values": values_chart, "overlap": overlap_chart, "path": path_chart}
        if len(e.agreement):
            charts["agreement"] = agreement_chart
        pictures = {key: save_figure(draw(e), made, key) for key, draw in charts.items()}
        models = _save_models(e, made)
        (made / "evaluation.json").write_text(json_text(e.to_dict()), encoding="utf-8")
        html = _html(e, pictures, models, files, command)
        (made / "evaluation.html").write_text(html, encoding="utf-8")
        contents = {path.name: path.read_bytes() for path in sorted(made.iterdir())}
    directory = output_directory(out)
    for file, content in contents.items():
        write_whole(directory / file, content)
    return directory / "evaluation.html"


def _save_models(e: Evaluation, where: Path) -> list[dict[str, str]]:
    """One file per target that has a value function: target, learner, file."""
    rows: list[dict[str, str]] = []
    taken: set[str] = set()
    for name in e.targets:
        try:
            value_function = e.value_function(name)
        except InputError as error:  # importance sampling alone, or a learner that diverged
            rows.append({"target": name, "learner": "", "file": "", "why": str(error)})
            continue
        file = file_name(name, taken)
        taken.add(file.lower())
        value_function.save(where / file)
        row = {"target": name, "learner": value_function.learner, "file": file, "why": ""}
        rows.append(row)
    return rows


def file_name(target: str, taken: set[str]) -> str:
    """A file for a target's value function; `taken` in small letters, as some systems compare.

    >>> file_name("soft5", set()), file_name("<b>/..", set()), file_name("A", {"value_a.npz"})
    ('value_soft5.npz', 'value_b_...npz', 'value_A_2.npz')
    """
    stem = "value_" + (NAME.sub("_", target).strip("_")[:80] or "target")
    file, count = f"{stem}.npz", 1
    while file.lower() in taken:
        count += 1
        file = f"{stem}_{count}.npz"
    return file


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
