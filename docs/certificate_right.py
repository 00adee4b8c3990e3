"""Is the certificate right, and how good is its choice? Every learner beside what was said of it.

    python docs/certificate_right.py [--drawn 200] [--collision 20]

On each problem every learner of the certificate's table runs with three step sizes, 200,000 steps
and two seeds, and what the certificate recommends runs beside them on the same streams. A run ends
with an error, the root mean square over its last tenth and its seeds, which is compared with what
was known before: stable or not, second moments bounded or not, and the error that they add up to.
Instances that are finished are kept in results/certificate. The counts are written to
docs/results/certificate.json, and docs/results/certificate.md is made from them.
"""

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import steadytd as st
from steadytd.learners import algorithm
from steadytd.theory.certificate import Certificate
from steadytd.theory.dynamics import decay_rates

DOCS = Path(__file__).parent
SINGLE = ("theta2theta", "baird", "three_state", "kolter", "nonmonotone")
FAMILIES = ("unstable_mdp", "collision")
ALPHAS = (0.1, 0.01, 0.001)
STEPS, SEEDS, POINTS = 200_000, 2, 201
LONG_ENOUGH = 5.0  # time constants of a learner's slowest or growing mode: a factor e^5 = 148
CLOSE = 1.25  # a measured error within a quarter of the predicted one agrees with it
ROUNDING = 1e-6  # and so does one below this share of the errors of w0 and of zero
CASES = {
    "unstable": "The mean update is unstable: the run ends above the errors of w0 and of zero",
    "bounded": "Stable, second moments bounded: the run ends within a quarter of the predicted "
    "error, noise of the step size included",
    "unknown": "Stable, second moments not known exactly (traces, memory): within a quarter of "
    "the error of the fixed point",
    "unbounded": "Stable in the mean, second moments unbounded at this step size: the run ends "
    "above the errors of w0 and of zero",
}
Row = dict[str, Any]


def rows_of(c: Certificate, steps: int) -> list[Row]:
    """Every learner and step size, with what the certificate says before any run."""
    found = []
    for alpha in ALPHAS:
        params = {row["learner"]: row["params"] for row in c.learners}
        for row in c.at_alpha(alpha).to_dicts():
            name = row["learner"]
            step = {"alpha": alpha} if "alpha" in algorithm(name).all_params else {}
            if not step and alpha != ALPHAS[0]:
                continue
            learner = st.learner(name, **step, **params[name])
            rate = abs(decay_rates(c.problem, learner, c.policy).real.min())
            overshoots = bool(step) and (row["largest_alpha"] or np.inf) <= alpha
            found.append({
                "run": str(learner),
                "stable": bool(row["stable"] and not overshoots),
                "bounded": row["bounded"] if step else None,
                "predicted": float(np.hypot(row["error"] or 0.0, row["spread"] or 0.0)),
                "long": not step or bool(alpha * rate * steps >= LONG_ENOUGH),
            })  # fmt: skip
    return found


def instance(problem: st.Problem, steps: int) -> Row:
    """One problem: every row with its measured error, and the certificate's choice."""
    c = st.certify(problem)
    rows, use = rows_of(c, steps), c.recommended()
    assert use is not None
    n = use.numbers
    choice = str(st.learner(n["learner"], **{} if n["instead_of"] else {"alpha": n["alpha"]},
                            **n["params"]))  # fmt: skip
    texts = list(dict.fromkeys([*(row["run"] for row in rows), choice]))
    r = st.run(problem, texts, steps=steps, seeds=SEEDS, points=POINTS, threads=1)
    last = r.errors[:, :, -POINTS // 10 :]
    with np.errstate(over="ignore", invalid="ignore"):
        ends = np.sqrt((last**2).mean(axis=(1, 2)))
    ends = np.where((r.first_divergence >= 0).any(axis=1), np.inf, ends)
    measured = dict(zip(texts, ends.tolist(), strict=True))
    for row in rows:
        row["error"] = measured[row["run"]]
    zero = max(c.error(np.zeros(problem.n_features)), c.error(problem.w0))
    return {"zero": zero, "rows": rows, "choice": choice, "error": measured[choice]}


def case_of(row: Row) -> str:
    """What was said of a run."""
    if not row["stable"]:
        return "unstable"
    return {True: "bounded", False: "unbounded", None: "unknown"}[row["bounded"]]


def agrees(row: Row, zero: float) -> bool:
    """Whether a run ended as it was said."""
    if case_of(row) in ("unstable", "unbounded"):
        return bool(row["error"] > zero)
    low, high = row["predicted"] / CLOSE, row["predicted"] * CLOSE
    return bool(low <= row["error"] <= max(high, ROUNDING * zero))


def counts(instances: list[Row]) -> Row:
    """The counts of one kind of problem."""
    right: dict[str, list[int]] = {case: [0, 0] for case in CASES}
    wrong: dict[str, Counter[str]] = {case: Counter() for case in CASES}
    short = 0
    for found in instances:
        for row in found["rows"]:
            if not row["long"]:
                short += 1
                continue
            case, well = case_of(row), agrees(row, found["zero"])
            right[case][0] += well
            right[case][1] += 1
            if not well:
                wrong[case][row["run"].partition(":")[0]] += 1
    ratios, beaten = [], Counter[str]()
    for found in instances:
        best = min(found["rows"], key=lambda row: row["error"])
        floor = ROUNDING * found["zero"]
        ratios.append(max(found["error"], floor) / max(best["error"], floor))
        if ratios[-1] > CLOSE:
            beaten[best["run"].partition(":")[0]] += 1
    least = [min(max(row["error"], ROUNDING * x["zero"]) for row in x["rows"]) for x in instances]
    one = Counter[str]()  # how often one setting for all instances is within a quarter of the best
    for found, error in zip(instances, least, strict=True):
        one.update(row["run"] for row in found["rows"] if row["error"] <= CLOSE * error)
    return {
        "instances": len(instances),
        "right": right,
        "wrong": {case: dict(names.most_common(3)) for case, names in wrong.items()},
        "short": short,
        "zero": float(np.median([x["zero"] for x in instances])),
        "choice": float(np.median([x["error"] for x in instances])),
        "best": float(np.median([min(r["error"] for r in x["rows"]) for x in instances])),
        "ratio": float(np.median(ratios)),
        "close": sum(ratio <= CLOSE for ratio in ratios),
        "chosen": dict(Counter(x["choice"].partition(":")[0] for x in instances).most_common()),
        "beaten_by": dict(beaten.most_common(3)),
        "one_for_all": list(one.most_common(1)[0]),
    }


def number(value: float) -> str:
    """A number to three digits."""
    return f"{float(f'{value:.3g}'):g}"


def table(head: tuple[str, ...], rows: list[list[str]]) -> list[str]:
    """A table in Markdown."""
    return [f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *rows]]


def page(found: Row) -> str:
    """The page, from the counts."""
    kinds: dict[str, Row] = found["problems"]
    total = {case: [sum(k["right"][case][i] for k in kinds.values()) for i in (0, 1)]
             for case in CASES}  # fmt: skip
    cases = [[text, *(f"{total[case][0]:,} of {total[case][1]:,}" if total[case][1] else "none",),
              ", ".join(f"{n} {k}" for n, k in wrong_in(kinds.values(), case))]
             for case, text in CASES.items()]  # fmt: skip
    by_problem = [
        [name, f"{k['instances']}",
         *(f"{a:,} of {b:,}" if b else "" for a, b in k["right"].values()), f"{k['short']:,}"]
        for name, k in kinds.items()
    ]  # fmt: skip
    choice = [
        [name, f"{k['instances']}", number(k["zero"]), number(k["best"]), number(k["choice"]),
         number(k["ratio"]), f"{k['close']}",
         f"{k['one_for_all'][1]} (`{k['one_for_all'][0]}`)" if k["instances"] > 1 else "",
         ", ".join(f"{n} {m}" for n, m in k["chosen"].items()),
         ", ".join(f"{n} {m}" for n, m in k["beaten_by"].items())]
        for name, k in kinds.items()
    ]  # fmt: skip
    lost = [
        f"On {name} the choice ({', '.join(k['chosen'])}) is close on {k['close']} of "
        f"{k['instances']}; most often {next(iter(k['beaten_by']))} does better. The choice "
        "goes by the error of the fixed point, and of learners with traces or memory the "
        "certificate does not know the noise."
        for name, k in kinds.items() if k["instances"] > 1 and 2 * k["close"] < k["instances"]
    ]  # fmt: skip
    lost += [""] * bool(lost)
    said = {case: "{:,} of {:,}".format(*both) for case, both in total.items()}
    close = sum(k["close"] for k in kinds.values())
    every = sum(k["instances"] for k in kinds.values())
    drawn, maps = (kinds.get(name, {"instances": 0})["instances"] for name in FAMILIES)
    sizes = f"--drawn {drawn} --collision {maps}"
    return "\n".join([
        "# Is the certificate right?",
        "",
        f"**On {every} problems, {said['unstable']} long enough runs of learners that the "
        "certificate calls unstable end above the errors of w0 and of zero. Of stable ones whose "
        f"second moments it knows to be bounded, {said['bounded']} end within a quarter of the "
        f"predicted error, and where they are unbounded, {said['unbounded']} end above the errors "
        f"of w0 and of zero. Where it knows the mean only, {said['unknown']} are within a quarter: "
        "it leaves out noise. The one "
        "learner that it recommends, with its step size, is within a quarter of the best of all in "
        f"hindsight on {close} of {every}.**",
        "",
        f"On each problem every learner of the certificate's table runs with the step sizes "
        f"{', '.join(map(str, ALPHAS))}, {found['steps']:,} steps and {SEEDS} seeds. The error of "
        "a run is the root mean square over its last tenth. A run is long enough if it has "
        f"{LONG_ENOUGH:g} time constants of the learner's own slowest mode, or of its fastest "
        "growing one. Shorter ones are counted apart: they say nothing about stability.",
        "",
        "```", f"python docs/certificate_right.py {sizes}", "```",
        "",
        "## What was said, and what was so",
        "",
        *table(("what was said", "agrees", "most often not"), cases),
        "",
        "By problem, in the same order, and how many runs were too short:",
        "",
        *table(("problem", "instances", *CASES, "too short"), by_problem),
        "",
        "## The certificate's choice as a contestant",
        "",
        "The others have three step sizes each, and the best of them all is taken after the runs. "
        "The choice is one learner with one step size, made before. Errors are medians over "
        "instances, the ratio is that of the choice to the best; errors below a millionth of those "
        "of w0 and of zero count as equal. Close: on how many instances the choice is "
        "within a quarter of the best; beside it on how many the one setting is that is close most "
        "often, chosen in hindsight.",
        "",
        *table(("problem", "instances", "w0 or zero", "best in hindsight", "choice", "ratio",
                "close", "one setting for all", "chosen", "beaten by"), choice),
        "",
        *lost,
        "The certificate knows the model, and no learner does. So this shows whether its numbers "
        "can be trusted, not that one could choose so well from data.",
        "",
    ])  # fmt: skip


def wrong_in(kinds: Any, case: str) -> list[tuple[str, int]]:
    """The learners of which what was said was wrong most often."""
    found = Counter[str]()
    for kind in kinds:
        found.update(kind["wrong"][case])
    return found.most_common(3)


def main() -> None:
    """Run what is not there yet, count, and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--drawn", type=int, default=200, help="instances of unstable_mdp")
    parser.add_argument("--collision", type=int, default=20, help="instances of collision")
    parser.add_argument("--quick", action="store_true", help="two problems, short runs")
    given = parser.parse_args()
    steps = 400 if given.quick else STEPS
    sizes = {"collision": given.collision, "unstable_mdp": given.drawn}
    plan = {name: [f"{name}:seed={i}" for i in range(size)] for name, size in sizes.items()}
    plan = {name: [name] for name in SINGLE} | plan
    if given.quick:
        plan = {"three_state": ["three_state"], "unstable_mdp": ["unstable_mdp:seed=0"]}
    place = Path("results/certificate")
    place.mkdir(parents=True, exist_ok=True)
    found: Row = {"steps": steps, "problems": {}}
    for name, texts in plan.items():
        instances = []
        for text in texts:
            path = place / f"{text.replace(':seed=', '_')}_{steps}.json"
            if not path.exists():
                path.write_text(json.dumps(instance(st.problem(text), steps)))
            instances.append(json.loads(path.read_text()))
        found["problems"][name] = counts(instances)
        print(name, len(instances), flush=True)
    (DOCS / "results").mkdir(exist_ok=True)
    (DOCS / "results" / "certificate.json").write_text(json.dumps(found, indent=1) + "\n")
    (DOCS / "results" / "certificate.md").write_text(page(found))


if __name__ == "__main__":
    main()
