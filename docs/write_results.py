"""Write the pages docs/results/*.md from the studies' reports; `make results` runs it.

    python docs/write_results.py [RESULTS]

Where RESULTS/NAME/report is there (default: results), its summary.json becomes
docs/results/NAME.json and its figures are copied, with their descriptions, which make them live
in the site (`living.py`). The pages are then made from these JSON files
alone, so that a test can hold every number and sentence of a page against them. A study without a
JSON file keeps its page, which says what it is from.
"""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from steadytd.base.errors import listed
from steadytd.report.figures import drawn
from steadytd.report.live import as_json
from steadytd.report.study.figures import settings as varied
from steadytd.report.study.page import study_figures
from steadytd.studies.analysis.tables import SUPERSCRIPTS, short

sys.path.insert(0, str(Path(__file__).parent))

from leading import ALT, leaders, leading, placed
from living import compact, described_for_pages

DOCS = Path(__file__).parent / "results"
STUDIES = ("paper_stepsizes", "collision", "rooms", "high_variance_rooms", "rooms_penalty", "cures")
LEVELS = ("a tenth", "a hundredth", "a millionth")
LARGEST = 1_200_000  # characters of a figure that lives: a page has one such and 1 MB of script
KEEP = "\x00"  # becomes a blank at which no line breaks
CHOSEN = ("the certificate's choice", "the certificate's choice of all cures",
          "perturbed_td (eta=auto)")  # fmt: skip
LEAST = 1e-12  # smaller errors are rounding
NOTE = (
    "Best of: the number of configurations that the learner was tried with. {errors} {seeds} with "
    "standard errors. Predicted: the error of the fixed point, by the certificate. Overflowed: "
    "configurations of the grid with a run that left the finite range."
)
SPEED = (
    "The step by which half of the seeds had been below a tenth, a hundredth and a millionth of "
    "the error at w0 ({start}; > says that they had not by the end), in brackets how many seeds "
    "ever were if not all; the error is recorded {recorded}:"
)
INDEX = """The paper closes with "further empirical analysis is needed to compare" perturbed TD with
the other off-policy algorithms. These studies do that. Each is a file in `studies/`, and all are
made by

```
make results
```

[Is the certificate right?](certificate.md) holds what it says before any run against the runs.

Each learner is shown at its best: the setting with the least error on the grid's seeds (the mean
over the run; in the study of all cures the error at the last step), measured again on fresh seeds,
with standard errors. The column "best of" is the number of settings that were tried. Two learners
are called different only if a paired test on the fresh seeds says so after Holm's correction for
all pairs of learners of the problem.
"""
FIRST = """Learners in one place cannot be told apart from the first of them, whose error, on fresh
seeds, is shown. The page of a study has every learner, with differences and their p-values.
"""
FIRST_HEAD = ("problem", "learners", "first place", "its error", "next")
GRID = """The least error on the grid, without a penalty and with one, and at how many of the values
of eta that were tried the penalty does better than none.
"""
GRID_HEAD = ("problem", "learner", "without", "with", "better at")
PENALTY = """
A penalty changes the fixed point. That can cost a lot, and it can help, also where TD is stable:

- On kolter TD is stable, and its fixed point has error 2.717. With eta = 1.918e-4 the error is
  0.000447. That is a knife edge: with eta = 1e-4 the error is 0.543, with 3.8e-4 it is 0.423.
- On feature map 29 of Collision TD is stable with error 0.701; eta = 0.355 gives 0.673. Of the
  first 40 maps it is the only one on which some penalty gives a better fixed point than no penalty.

So there is no general rule: ask the certificate, and compare the numbers.
"""


def number(value: float | None, stderr: float | None = None) -> str:
    """A number to four digits, with its standard error if there is one."""
    if value is None:
        return ""
    if 0.0 <= value < LEAST:
        return "0" if value == 0.0 else f"<{KEEP}{number(LEAST)}"
    shown = [(value, 4)] if stderr is None else [(value, 4), (stderr, 2)]
    text = " ± ".join(f"{float(f'{x:.{digits}g}'):g}" for x, digits in shown)
    return re.sub(r"e([+-]\d+)", _power, text)


def _power(found: re.Match[str]) -> str:
    return f"\u00d710{str(int(found[1])).translate(SUPERSCRIPTS)}"


def table(head: tuple[str, ...], rows: list[list[str]]) -> list[str]:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def mean(found: dict[str, Any]) -> str:
    """A mean error with its standard error."""
    if found["diverged"]:
        return f"overflowed on {found['diverged']} of {found['seeds']}"
    return number(found["value"], found["stderr"])


def settings(run: str) -> str:
    """The hyper-parameters of a configuration, powers of two as such; each stays in one piece."""
    return ", ".join(part.replace(" ", KEEP) for part in varied(run).split(", "))


def steps_to(found: dict[str, Any], steps: int) -> str:
    """The step by which half of the seeds were there, and how many ever were if not all."""
    text = f">{KEEP}{steps:,}" if found["step"] is None else f"{found['step']:,}"
    some = 0 < found["reached"] < found["seeds"]
    return text + (f" ({found['reached']} of {found['seeds']})".replace(" of ", f"{KEEP}of{KEEP}")
                   if some else "")  # fmt: skip


def best_table(best: list[dict[str, Any]], over_run: bool) -> list[str]:
    """The learners at their best, in order."""
    errors = {"mean error": "measured"} if over_run else {}
    errors["final error"] = "final"
    rows = []
    for row in best:
        gone = row["configurations"] - row["never_diverged"]
        stable = row["predicted_stable_share"]
        rows.append([
            str(row["rank"]), row["algorithm"], settings(row["run"]),
            f"{row['configurations']:,}", *(mean(row[key]) for key in errors.values()),
            "unstable" if stable == 0.0 else number(row["predicted_asymptote"]),
            f"{gone:,}",
        ])  # fmt: skip
    head = ("place", "learner", "at its best", "best of", *errors, "predicted", "overflowed")
    return table(head, rows)


def speed_table(best: list[dict[str, Any]], steps: int) -> list[str]:
    """How soon the error of the learners at their best was small."""
    rows = [
        [row["algorithm"], *(steps_to(row["steps_to"][name], steps) for name in LEVELS)]
        for row in best
    ]
    return table(("learner", *LEVELS), rows)


def penalty_table(penalty: dict[str, Any]) -> list[str]:
    """A learner by eta, without a penalty in the first row."""
    rows = []
    for row in penalty["by_eta"]:
        gone = row["configurations"] - row["never_diverged"]
        stable = row["predicted_stable_share"]
        rows.append([
            f"none ({penalty['plain']})" if row["eta"] is None else short(row["eta"]),
            number(row["least_grid_error"]) or "overflowed", row["settings"],
            "unstable" if stable == 0.0 else number(row["predicted_asymptote"]),
            f"{gone:,} of {row['configurations']:,}",
        ])  # fmt: skip
    return table(("eta", "least error on the grid", "at", "predicted, there", "overflowed"), rows)


def page(name: str, found: dict[str, Any], folder: Path = DOCS) -> str:
    """The page of a study, from its JSON document; figures are shown where they are in `folder`."""
    problems = found["problems"]
    alone = problems[0]["problem"] if len(problems) == 1 else None
    path = folder / f"{name}_wins.json"
    won = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    lines = [f"# {found['title']}", "", f"**{wins_sentence(won) if won else leading(found)}**"]
    lines += shown(folder, name, alone or name, "curves" if alone else "leaders")
    lines += ["", leading(found)] if won else []
    lines += ["", found["size"], ""]
    lines += [
        "```",
        f"steadytd study studies/{name}.toml",
        f"steadytd report results/{name}",
        *([f"python docs/cure_wins.py results/{name}"] if won else []),
        "```",
    ]
    if won:
        lines += ["", "## Which cure wins how often", "", *wins(won)]
    for problem in problems:
        label = problem["problem"]
        lines += ["", f"## {'In words and numbers' if alone else label}", ""]
        first, *others = problem["summary"]
        drawn = {kind: shown(folder, name, label, kind) for kind in kinds(problem)}
        curves = drawn.pop("curves")
        if not alone:  # else they stand at the top
            lines += [f"**{first['topic']}.** {first['text']}", *curves, ""]
        lines += [f"- **{x['topic']}.** {x['text']}" for x in others]
        lines += [f"- **Caveat.** {text}" for text in problem["caveats"]]
        over_run = "over the run" in found["criterion"]
        note = NOTE.format(
            errors="Mean error: over the run; both errors" if over_run else "Final error:",
            seeds="on fresh seeds" if problem["fresh_seeds"] else "on the grid's seeds",
        )
        speed = SPEED.format(start=number(problem["error_at_w0"]), recorded=problem["recorded"])
        lines += ["", *best_table(problem["best"], over_run), "", note]
        if any(row["steps_to"][level]["reached"] for row in problem["best"] for level in LEVELS):
            lines += ["", speed, "", *speed_table(problem["best"], problem["steps"])]
        for penalty in problem["penalties"]:
            lines += ["", f"The penalty of {penalty['penalised']}:", "", *penalty_table(penalty)]
        lines += [line for found in drawn.values() for line in found]
    return tidy(lines)


def tidy(lines: list[str]) -> str:
    """The text of a page: lines break anywhere but inside a number with its standard error."""
    text = "\n".join(lines).replace("\u00a0", " ").rstrip() + "\n"
    text = re.sub(r"(?<=\d) %|(?<=p) ([<=]) (?=\d)", lambda x: x[0].replace(" ", KEEP), text)
    return text.replace(" ± ", "\u00a0±\u00a0").replace(KEEP, "\u00a0")


def shown(folder: Path, name: str, label: str, kind: str) -> list[str]:
    """A figure, if it is there."""
    picture = f"{name}_{kind}.svg" if kind == "leaders" else picture_name(name, label, kind)
    there = (folder / picture).exists()
    return ["", f"![{ALT[kind.partition('_')[0]].format(label)}]({picture})"] if there else []


def wins(found: dict[str, Any]) -> list[str]:
    """Which learner comes first on how many drawn problems; made by docs/cure_wins.py."""
    count, right = found["instances"], found["right"]
    long = ("problem", "TD's mean update", "rate of its mode", "steps",
            "time constants at the smallest alpha", "at the largest")  # fmt: skip
    lengths = [
        [h["problem"], "stable" if h["stable"] else "unstable", number(h["rate"]),
         f"{h['steps']:,}", *(f"{float(f'{h[k]:.2g}'):,g}" for k in ("smallest", "largest"))]
        for h in found["horizons"]
    ]  # fmt: skip
    head = ("learner", "at", "final error", "error / best", "within a tenth of the best", "wins",
            "overflowed", "predicted", "stable on", "finite variance on",
            "long enough on")  # fmt: skip
    cells = [
        [r["learner"], settings(r["run"]) if r["run"] else "its own alpha",
         number(r["median_error"]) if r["overflowed"] <= count / 2 else "overflowed",
         number(r["median_ratio"]) if r["overflowed"] <= count / 2 else "",
         *(str(r[k]) for k in ("within_a_tenth", "wins", "overflowed")),
         number(r["predicted"]) or "unstable", *(str(r[k]) for k in ("stable", "finite", "long"))]
        for r in found["rows"]
    ]  # fmt: skip

    short_ones = [r["learner"] for r in found["rows"] if 2 * r["long"] < count]

    def of(case: str) -> str:
        agree, runs = right[case]
        return f"{agree:,} of {runs:,}"

    return [
        "### How long the runs are",
        "",
        "A run must be long beside the modes that it is to show. The rate is that of TD's fastest "
        "growing mode or, where TD is stable, of its slowest one (median over the instances of a "
        "family); a time constant multiplies it by e, or divides it. docs/cure_wins.py refuses a "
        "study with fewer than five time constants of an unstable mode.",
        "",
        *table(long, lengths),
        "",
        "### Every learner on the drawn problems",
        "",
        "There is one run for each setting and instance. A learner is shown at the one setting "
        "with the least median final error over all instances; with eta=auto and ratio=auto the "
        "amount is chosen for the instance, the step size for all. The certificate's choice is "
        "what `steadytd certify` recommends for the instance before any run, with the step size "
        f"that it recommends ({_counted(found['chosen'])}); of all cures: with `--cures` "
        f"({_counted(found['chosen_of_cures'])}). Errors and ratios are medians over instances. "
        "Predicted: the error of the fixed point, the median over the instances on which the mean "
        "update is stable. Long enough: on how many instances a run has five time constants of the "
        "learner's own fastest growing or slowest mode.",
        "",
        *table(head, cells),
        "",
        "### Where the certificate is right, and where it is not",
        "",
        "Each row of the table has one run on each instance.",
        "",
        f"- Predicted unstable, and long enough: {of('unstable')} runs end with an error larger "
        f"than that of predicting zero. Not long enough: {of('unstable_slow')}.",
        f"- Predicted stable with finite variance, and long enough: {of('stable')} runs end within "
        "a quarter of the error of the fixed point. What is missing is the noise of a constant "
        f"step size, of which the fixed point knows nothing. Not long enough: {of('stable_slow')}.",
        f"- Predicted stable, but with infinite variance: {of('infinite')} runs end within a "
        "quarter of the error of the fixed point.",
        "- The certificate knows the model, and with it the true values; the other rows know "
        "neither. That it does well shows that its numbers are right, not that a learner could "
        "choose so well from data.",
        f"- Runs of {listed(short_ones)} are not long enough on most problems: what is unstable "
        "among them will still grow, and what is stable is not yet at its fixed point.",
    ]


def _counted(chosen: dict[str, int]) -> str:
    """How often each learner was taken."""
    return ", ".join(f"{name} on {times}" for name, times in chosen.items())


def wins_sentence(found: dict[str, Any]) -> str:
    """The finding, for the page and the README; a row of too short runs has no place in it."""
    count, rows = found["instances"], {row["learner"]: row for row in found["rows"]}
    mine, of_all, auto = (rows[name] for name in CHOSEN)
    others = [r for r in found["rows"] if r["learner"] not in CHOSEN and 2 * r["long"] >= count]
    growth = next(h["smallest"] for h in found["horizons"] if h["steps"] == found["steps"])
    text = (
        f"On {count} drawn problems on which TD is unstable, after {found['steps']:,} steps (TD's "
        f"unstable mode grows by e^{growth:.0f} or more on the median one), TD's median error is "
        f"{number(found['td'])}, and that of predicting zero {number(found['zero'])}. What the "
        f"certificate, which knows the model, recommends has {number(mine['median_error'])}, and "
        f"{number(of_all['median_error'])} if it chooses among all cures; perturbed_td with "
        f"eta=auto has {number(auto['median_error'])}. They are within a tenth of the best on "
        f"{mine['within_a_tenth']}, {of_all['within_a_tenth']} and {auto['within_a_tenth']} "
        "problems."
    )
    if not others:
        return text
    first = min(others, key=lambda r: r["median_error"])
    most = max(others, key=lambda r: r["wins"])
    return text + (
        f" With one setting for all problems {first['learner']} has the least error, "
        f"{number(first['median_error'])}, within a tenth on {first['within_a_tenth']}, and "
        f"{most['learner']} wins most often, {most['wins']} times."
    )


def picture_name(name: str, label: str, kind: str) -> str:
    """The file of a figure in the documentation."""
    return f"{name}_{kind}.svg" if label == name else f"{name}_{label}_{kind}.svg"


def kinds(problem: dict[str, Any]) -> list[str]:
    """The figures of a problem that its page shows."""
    penalised = [p["penalised"] for p in problem["penalties"]][:1]
    return ["overview", "curves", *(f"sensitivity_{name}" for name in penalised)]


def index(pages: dict[str, dict[str, Any]], folder: Path = DOCS) -> str:
    """The overview: a table, the first places, the penalties, all from the JSON documents."""
    head = ("problem", "plain, by the certificate", "plain, measured", "penalised, measured")
    rows, first, by_penalty = [], [], []
    for name, found in pages.items():
        for problem in found["problems"]:
            link = f"[{problem['problem']}]({name}.md)"
            rows += penalty_rows(link, problem)
            first.append([link, *first_place(problem)])
            by_penalty += [[link, *penalty_cells(p)] for p in problem["penalties"]]
    lines = ["# Results", "", f"**{placed(pages)}**"]
    lines += [
        *shown(folder, "index", "every problem", "leaders"),
        "",
        INDEX,
        *table(head, rows),
        "",
    ]
    old = [name for name in STUDIES if name not in pages and (DOCS / f"{name}.md").exists()]
    if old:
        links = ", ".join(f"[{name}]({name}.md)" for name in old)
        lines += [
            f"Not run again for this version, and left out of this page: {links}. Their pages are "
            "from an earlier grid, with no penalty below 1/16 and without the correction for the "
            "number of comparisons.",
            "",
        ]
    lines += ["## Which learners come first", "", FIRST, *table(FIRST_HEAD, first), ""]
    lines += ["## What a penalty adds, and what it costs", "", GRID, *table(GRID_HEAD, by_penalty)]
    lines += [PENALTY]
    return tidy(lines)


def penalty_rows(link: str, problem: dict[str, Any]) -> list[list[str]]:
    """For each learner with a penalty: without it, by the certificate and measured, and with it."""
    best = {row["algorithm"]: row for row in problem["best"]}
    words = {1.0: "stable", 0.0: "unstable", None: ""}
    rows = []
    for p in problem["penalties"]:
        cells = []
        for name in (p["plain"], p["penalised"]):
            row = best.get(name)
            cells.append(f"{name}: {mean(row['measured']) if row else 'always overflowed'}")
        share = best.get(p["plain"], {}).get("predicted_stable_share")
        stable = words.get(share) if share in words else f"stable in {share:.0%} of the instances"
        rows.append([link, stable or "", *cells])
    return rows


def first_place(problem: dict[str, Any]) -> list[str]:
    """How many learners there are, who leads with which error, and who comes next."""
    learners = len(problem["best"]) + len(problem["failed"])
    top, *below = problem["ranking"]
    least = next(row["measured"] for row in problem["best"] if row["algorithm"] == top[0])
    return [str(learners), some(top), mean(least), some(below[0]) if below else ""]


def some(names: list[str]) -> str:
    """Learners that cannot be told apart, three of them by name."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def penalty_cells(penalty: dict[str, Any]) -> list[str]:
    """What the grid says about the size of the penalty."""
    without, *tried = penalty["by_eta"]
    errors = [row["least_grid_error"] for row in tried if row["least_grid_error"] is not None]
    plain = without["least_grid_error"]
    better = [e for e in errors if plain is None or e < plain]
    least = min(errors, default=None)
    at = next((row["eta"] for row in tried if row["least_grid_error"] == least), None)
    return [
        penalty["penalised"],
        f"{number(plain) or 'overflowed'}{KEEP}({penalty['plain']})",
        f"{number(least)} at eta{KEEP}{short(at) if at is not None else ''}",
        f"{len(better)} of {len(tried)} ({short(tried[0]['eta'])} to {short(tried[-1]['eta'])})",
    ]


def take(name: str, report: Path) -> None:
    """Copy a report's document and figures to the documentation."""
    found = json.loads((report / "summary.json").read_text(encoding="utf-8"))
    drawn = study_figures(report.parent)
    for old in DOCS.glob(f"{name}_*.svg"):
        if not any(old.name.startswith(f"{other}_") for other in STUDIES if len(other) > len(name)):
            old.unlink()
            old.with_suffix(".json").unlink(missing_ok=True)
    for problem in found["problems"]:
        for kind in kinds(problem):
            key = re.sub(r"[^A-Za-z0-9_-]+", "_", problem["problem"])
            picture = report / f"{key}_{kind}.svg"
            if picture.exists():
                to = DOCS / picture_name(name, problem["problem"], kind)
                shutil.copyfile(picture, to)
                text = as_json(compact(described_for_pages(drawn[picture.stem])))
                if len(text) <= LARGEST:
                    to.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
    text = json.dumps(found, separators=(",", ":"), ensure_ascii=False)
    (DOCS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def documents() -> dict[str, dict[str, Any]]:
    """The JSON documents that the pages are made from, by study."""
    paths = {name: DOCS / f"{name}.json" for name in STUDIES}
    return {n: json.loads(p.read_text(encoding="utf-8")) for n, p in paths.items() if p.exists()}


def main(results: Path) -> None:
    """Take the reports that are there, then write all pages."""
    for name in STUDIES:
        if (results / name / "report" / "summary.json").exists():
            take(name, results / name / "report")
    pages = documents()
    described = {name: as_json(described_for_pages(x)) for name, x in leaders(pages).items()}
    for name, text in described.items():
        (DOCS / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        (DOCS / f"{name}.svg").write_bytes(drawn(text)["svg"])
    for name, found in pages.items():
        (DOCS / f"{name}.md").write_text(page(name, found), encoding="utf-8")
        print(f"docs/results/{name}.md")
    (DOCS / "index.md").write_text(index(pages), encoding="utf-8")
    print("docs/results/index.md")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "results")
