"""A run as one page: the curves, the table and what is to be said of it."""

from __future__ import annotations

from pathlib import Path

from steadytd.base.files import filling, write_whole
from steadytd.report.figures import save_figures, styled
from steadytd.report.live import live, untitled
from steadytd.report.pages import page
from steadytd.report.run import words
from steadytd.report.run.figures import run_chart
from steadytd.runs.outcome import MEANING
from steadytd.runs.result import Result

FILES = (("curves.parquet", "every error"), ("summary.parquet", "the table below"))


def write_run(r: Result, out: str | Path, *, command: str = "", pictures: bool = True) -> Path:
    """Write `run.html`, its picture (SVG, PNG, PDF) and what `Result.save` writes; the page's path.

    All of them appear together, or none does. Without `pictures` the picture is in the page only.
    """
    with filling(out) as made:
        chart = styled(run_chart(r))
        save_figures({"curves": chart} if pictures else {}, made)
        r.write(made)
        html = page(
            "run.html",
            r=r,
            title=words.title(r),
            rows=words.rows(r),
            headline=words.headline(r),
            sentences=words.sentences(r),
            meaning=MEANING,
            curves=untitled(live("curves", chart, pictures)),
            command=command,
            files=FILES,
        )
        write_whole(made / "run.html", html)
    return Path(out) / "run.html"
