"""What the pages of results begin with: one sentence and one picture, from the JSON documents."""

from __future__ import annotations

import math
from collections import Counter
from types import SimpleNamespace
from typing import Any

from steadytd.report.study.figures import leaders_chart, leaders_text
from steadytd.studies.analysis.tables import short

ALT = {
    "leaders": "Each learner's error at its best, on every problem",
    "curves": "{}: error of each learner at its best over the steps",
    "overview": "{}: the error of every configuration of every learner",
    "sensitivity": "{}: error of the learner with a penalty over its step size",
}


def leading(found: dict[str, Any]) -> str:
    """The sentence that a page begins with."""
    if len(found["problems"]) == 1:
        return str(found["problems"][0]["summary"][0]["text"])
    return leaders_text(chapters(found), found["criterion"])


def chapters(found: dict[str, Any], suffix: str = "") -> list[Any]:
    """What the picture of the leaders asks of a study's chapters, from its JSON document."""
    return [
        SimpleNamespace(
            label=problem["problem"] + suffix,
            start=problem["error_at_w0"],
            groups=problem["ranking"],
            best=[
                SimpleNamespace(
                    algorithm=row["algorithm"],
                    settings=", ".join(f"{k} {short(v)}" for k, v in row["settings"].items()),
                    measured=SimpleNamespace(value=_finite(row["measured"])),
                )
                for row in problem["best"]
            ],
        )
        for problem in found["problems"]
    ]


def _finite(found: dict[str, Any]) -> float:
    return math.inf if found["value"] is None else float(found["value"])


def leaders(pages: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The first pictures of the pages of several problems, and of the overview, by their names."""
    drawn = {}
    every = []
    for name, found in pages.items():
        every += chapters(found, f" ({name})" if len(found["problems"]) > 1 else "")
        if len(found["problems"]) > 1:
            drawn[f"{name}_leaders"] = leaders_chart(chapters(found), found["criterion"])
    count = Counter(b.algorithm for chapter in every for b in chapter.best)
    for chapter in every:  # the overview has those that most comparisons have
        chapter.best = [b for b in chapter.best if count[b.algorithm] >= len(every) / 2]
    return drawn | {"index_leaders": leaders_chart(every, "error")}


def placed(pages: dict[str, dict[str, Any]]) -> str:
    """How often learners are in the leading group, in one sentence."""
    problems = [problem for found in pages.values() for problem in found["problems"]]
    met = Counter(row["algorithm"] for problem in problems for row in problem["best"])
    met.update(name for problem in problems for name in problem["failed"])
    won = Counter(name for problem in problems for name in problem["ranking"][0])
    least = min(times for _, times in won.most_common(5))  # whoever has won as often is named, too
    told = [f"{n} in {times} of {met[n]}" for n, times in won.most_common() if times >= least]
    none = "No learner is best everywhere. " if max(won.values()) < len(problems) else ""
    return (
        f"{none}In {len(problems)} comparisons, each a problem of a study, with every learner at "
        f"its best, these are most often among the first, which cannot be told apart: "
        f"{', '.join(told)} that they took part in."
    )
