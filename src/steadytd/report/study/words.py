"""A study's best configurations in rows: what the terminal and `print` share."""

from __future__ import annotations

from rich.markup import escape

from steadytd.base.wording import figures
from steadytd.studies.results import StudyResults, best_rows

COLUMNS = ("problem", "run", ">of", ">mean", ">final", "ended")


def best_table(results: StudyResults) -> tuple[str, tuple[str, ...], list[list[str]]]:
    """Title, columns and rows, best first; texts are escaped for Rich."""
    rows = [
        [
            escape(row["problem"]),
            escape(row["run"]),
            f"{row['configurations']:,}",
            figures(row["auc"], row["auc_stderr"]),
            figures(row["final"], row["final_stderr"]),
            str(row["ended"]),
        ]
        for row in best_rows(results)
    ]
    where = "on fresh seeds" if results.confirmation is not None else "on the grid"
    measure = results.spec.file.confirm.measure
    return (
        f"Best configuration of each learner, {where} ({measure}); of: number tried",
        COLUMNS,
        rows,
    )
