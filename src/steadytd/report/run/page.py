"""A run as one page: the curves, the table and what is to be said of it."""

from __future__ import annotations

from pathlib import Path

from steadytd.base.files import filling, write_whole
from steadytd.report.figures import save_figure, styled
from steadytd.report.pages import page
from steadytd.report.run import words
from steadytd.report.run.figures import run_chart
from steadytd.runs.result import Result


def write_run(r: Result, out: str | Path) -> Path:
    """Write `run.html`, its picture (SVG, PNG, PDF) and what `Result.save` writes; the page's path.

    All of them appear together, or none does.
    """
    with filling(out) as made:
        picture = save_figure(styled(run_chart(r)), made, "curves")
        r.write(made)
        html = page(
            "run.html",
            r=r,
            title=words.title(r),
            rows=words.rows(r),
            sentences=words.sentences(r),
            meaning=words.MEANING,
            picture=picture,
            learners=" ".join(r.asked),
        )
        write_whole(made / "run.html", html)
    return Path(out) / "run.html"
