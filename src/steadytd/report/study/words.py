"""A study's best configurations in rows: what the terminal and `print` share."""

from __future__ import annotations

from rich.markup import escape

from steadytd.base.wording import figures
from steadytd.studies.analysis.tables import short
from steadytd.studies.results import StudyResults, best_rows

COLUMNS = ("problem", "run", ">of", ">mean", ">final", "=ended")


def brief(run: str) -> str:
    """A configuration for reading: powers of two as such.

    >>> brief("perturbed_td:alpha=0.00048828125,eta=0.5,penalty=outside")
    'perturbed_td:alpha=2⁻¹¹,eta=0.5,penalty=outside'
    """
    name, colon, rest = run.partition(":")
    parts = [part.partition("=") for part in rest.split(",") if part]
    return name + colon + ",".join(f"{key}={_value(value)}" for key, _, value in parts)


def _value(text: str) -> str:
    try:
        return short(float(text))
    except ValueError:
        return text


def best_table(results: StudyResults) -> tuple[str, tuple[str, ...], list[list[str]]]:
    """Title, columns and rows, best first; texts are escaped for Rich."""
    rows = [
        [
            escape(row["problem"]),
            escape(brief(row["run"])),
            f"{row['configurations']:,}",
            figures(row["auc"], row["auc_stderr"]),
            figures(row["final"], row["final_stderr"]),
            str(row["ended"]),
        ]
        for row in best_rows(results)
    ]
    where = "on fresh seeds" if results.stage == "confirm" else "on the grid"
    measure = results.spec.file.confirm.measure
    return (
        f"Best configuration of each learner, {where} ({measure}); of: number tried",
        COLUMNS,
        rows,
    )
