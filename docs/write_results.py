"""Write docs/results/NAME.md and its figures from results/NAME/report; `make results` runs it.

Every number and sentence of these pages comes from `steadytd report`. Pages of studies that are not
there are left as they are.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent / "results"
RESULTS = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "results"
STUDIES = ("collision", "rooms", "high_variance_rooms", "paper_stepsizes")


def number(value: float | None, stderr: float | None = None) -> str:
    """A number to four digits, with its standard error if there is one."""
    if value is None:
        return ""
    return f"{value:.4g}" if stderr is None else f"{value:.4g} ± {stderr:.2g}"


def best_table(best: list[dict[str, Any]]) -> list[str]:
    """The learners at their best, in order."""
    lines = [
        "| place | learner | at its best | mean error | final error | predicted | diverged |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in best:
        settings = row["run"].partition(":")[2].replace(",", ", ")
        lines.append(
            f"| {row['rank']} | {row['algorithm']} | {settings} "
            f"| {number(row['measured']['value'], row['measured']['stderr'])} "
            f"| {number(row['final']['value'], row['final']['stderr'])} "
            f"| {number(row['predicted_asymptote'])} "
            f"| {row['configurations'] - row['never_diverged']} of {row['configurations']} |"
        )
    return lines


def penalty_table(penalty: dict[str, Any]) -> list[str]:
    """Perturbed TD by eta, with TD in the first row."""
    lines = [
        "| eta | least mean error on the grid | predicted, there | diverged |",
        "|---|---|---|---|",
    ]
    for row in penalty["by_eta"]:
        gone = row["configurations"] - row["never_diverged"]
        lines.append(
            f"| {'td' if row['eta'] is None else number(row['eta'])} "
            f"| {number(row['least_grid_error'])} | {number(row['predicted_asymptote'])} "
            f"| {gone} of {row['configurations']} |"
        )
    return lines


def page(name: str, found: dict[str, Any], figures: Path) -> str:
    """The page of a study; its figures are copied beside it."""
    lines = [f"# {found['title']}", "", found["size"], ""]
    lines += [
        "```",
        f"steadytd study studies/{name}.toml",
        f"steadytd report results/{name}",
        "```",
    ]
    for problem in found["problems"]:
        label = problem["problem"]
        lines += ["", f"## {label}", ""]
        lines += [
            f"- **{x['topic']}.** {x['text']}".replace("\u00a0", " ") for x in problem["summary"]
        ]
        lines += [f"- **Caveat.** {text}" for text in problem["caveats"]]
        lines += ["", *best_table(problem["best"]), ""]
        lines += [
            "Mean error: over the run; both errors on fresh seeds with their standard errors. "
            "Predicted: the error of the fixed point, by the certificate. Diverged: configurations "
            "of the grid with a diverged run."
        ]
        if problem.get("penalty"):
            lines += ["", "What the penalty does:", "", *penalty_table(problem["penalty"])]
        for kind in ("overview", "curves", "sensitivity_perturbed_td"):
            picture = figures / f"{label}_{kind}.svg"
            if picture.exists():
                copy = f"{name}_{picture.name}" if len(found["problems"]) > 1 else picture.name
                shutil.copyfile(picture, DOCS / copy)
                lines += ["", f"![{label}: {kind.replace('_', ' ')}]({copy})"]
    return "\n".join(lines) + "\n"


def overview(pages: dict[str, dict[str, Any]]) -> list[str]:
    """One row per problem: does TD need a penalty, and what does perturbed TD make of it?"""
    lines = [
        "| problem | td, by the certificate | td, measured | perturbed_td, measured | at the top |",
        "|---|---|---|---|---|",
    ]
    for name, found in pages.items():
        for problem in found["problems"]:
            rows = {row["algorithm"]: row for row in problem["best"]}
            td, perturbed = (rows[key]["measured"] for key in ("td", "perturbed_td"))
            stable = problem["penalty"]["by_eta"][0]["predicted_stable_share"] == 1.0
            lines.append(
                f"| [{problem['problem']}]({name}.md) | {'stable' if stable else 'unstable'} "
                f"| {number(td['value'], td['stderr'])} "
                f"| {number(perturbed['value'], perturbed['stderr'])} "
                f"| {', '.join(problem['ranking'][0])} |"
            )
    return lines


DOCS.mkdir(exist_ok=True)
pages: dict[str, dict[str, Any]] = {}
for name in STUDIES:
    source = RESULTS / name / "report" / "summary.json"
    if source.exists():
        found = json.loads(source.read_text(encoding="utf-8"))
        pages[name] = found
        (DOCS / f"{name}.md").write_text(page(name, found, source.parent), encoding="utf-8")
        print(f"docs/results/{name}.md")
if len(pages) == len(STUDIES):
    index = DOCS / "index.md"
    before, begin, rest = index.read_text(encoding="utf-8").partition("<!-- table -->\n")
    _, end, after = rest.partition("<!-- end of table -->\n")
    table = "\n".join(overview(pages)) + "\n"
    index.write_text(before + begin + table + end + after, encoding="utf-8")
    print("docs/results/index.md")
