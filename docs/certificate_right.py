"""Is the certificate right, and how good is its choice? Every learner beside what was said of it.

    python docs/certificate_right.py [--drawn 200] [--collision 20]

On each problem every learner of the certificate's table, those that learn step sizes, and what the
certificate recommends run with three step sizes, on the same streams. A problem gets
as many steps as most of its learners need (`steps_of`). A run ends with an error, the root mean
square over its last tenth and its seeds, which is compared with what was known before: stable or
not, second moments bounded or not, the error that they add up to, and whether single runs forget
where they began. Instances that are finished are kept in results/certificate. The counts are
written to docs/results/certificate.json, and docs/results/certificate.md is made from them.
"""

import argparse
import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import steadytd as st
from steadytd.learners import algorithm, names
from steadytd.mdp.problem import Problem
from steadytd.theory.certificate import Certificate
from steadytd.theory.dynamics import decay_rates

DOCS = Path(__file__).parent
SINGLE = ("theta2theta", "baird", "three_state", "kolter", "nonmonotone")
ROOMS = ("rooms", "high_variance_rooms")  # an instance for each of their target policies
ALPHAS = (0.1, 0.01, 0.001)
POINTS = 201
LONG_ENOUGH = 10.0  # time constants of a learner's slowest or growing mode: e^-10 = 1 / 22,000
MIDDLE, SHARE = 0.01, 0.75  # at this step size this share of the learners gets them, within limits
FEWEST, MOST, SEEDS = 200_000, 2_000_000, 2  # steps, at least and at most
MOST_DRAWN, SEEDS_DRAWN = 500_000, 1  # of unstable_mdp, of which there are many instances
CLOSE = 1.25  # a measured error within a quarter of the predicted one agrees with it
ROUNDING = 1e-4  # and so does one below this share of the errors of w0 and of zero
ABOVE = ("unstable", "unbounded", "learned_unstable")  # what should end above those errors
CASES = {
    "unstable": "The mean update is unstable: the run ends above the errors of w0 and of zero",
    "bounded": "Stable, second moments bounded: the run ends within a quarter of the predicted "
    "error, noise of the step size included",
    "unknown": "Stable, second moments not known (traces, memory, many states): within a quarter "
    "of the error of the fixed point",
    "unbounded": "Stable in the mean, second moments unbounded at this step size, and single runs "
    "not known to settle: the run ends above the errors of w0 and of zero",
    "forgets": "Second moments not bounded, but single runs settle: two runs on the same data from "
    "different first weights come closer",
    "strays": "Stable in the mean, but single runs grow: two such runs move apart",
    "learned": "Learned step sizes where TD is stable: within a quarter of TD's fixed point",
    "learned_unstable": "Learned step sizes where TD is unstable: the run ends above the errors "
    "of w0 and of zero",
}
BY_STEP = "unknown at {}"  # a step size, or None for what is solved
Row = dict[str, Any]


def instances_of(text: str) -> dict[str, Problem]:
    """A problem by its name; where it has several target policies, one with each of them."""
    p = st.problem(text)
    if p.n_policies == 1:
        return {text: p}
    each = {"pi": p.pi, "r": p.r, "gamma": np.asarray(p.gamma), "interest": p.interest,
            "active": p.active}  # fmt: skip
    return {f"{text}:policy={k}": changed(p, **{name: a[k] for name, a in each.items()})
            for k in range(p.n_policies)}  # fmt: skip


def changed(p: Problem, **what: Any) -> Problem:
    """The same problem, but for what is given."""
    parts = ("P", "r", "gamma", "mu", "pi", "Phi", "w0", "start", "interest", "active", "name")
    return Problem(**{name: getattr(p, name) for name in parts} | what)


def rate(c: Certificate, learner: Any) -> float:
    """Of a learner's slowest mode or, if one grows, of the one that grows fastest."""
    return abs(float(decay_rates(c.problem, learner, c.policy).real.min()))


def steps_of(c: Certificate, limits: tuple[int, int]) -> int:
    """So many that most learners are long enough at the middle step size, within limits."""
    table = [c.resolved(row["learner"], **row["params"]) for row in c.learners]
    rates = [rate(c, learner) for learner in table if "alpha" in learner.law.all_params]
    needed = LONG_ENOUGH / (MIDDLE * max(float(np.quantile(rates, 1.0 - SHARE)), 1e-300))
    return int(np.clip(float(f"{needed:.1e}"), *limits))


def rows_of(c: Certificate, steps: int) -> list[Row]:
    """Every learner and step size, with what the certificate says before any run."""
    found, td = [], c.resolved("td", alpha=1.0)
    of_td = {"stable": c.td_stable, "bounded": None, "predicted": c.error(c.fixed_point(td))}
    params = {row["learner"]: row["params"] for row in c.learners}
    for alpha in ALPHAS:
        for row in c.at_alpha(alpha).to_dicts():
            name = row["learner"]
            step = {"alpha": alpha} if "alpha" in algorithm(name).all_params else {}
            if not step and alpha != ALPHAS[0]:
                continue
            learner = st.learner(name, **step, **params[name])
            stable = row["stable"] and not (step and (row["largest_alpha"] or np.inf) <= alpha)
            known = stable and step and not row["bounded"]  # else it follows, or is not known
            known = known and (row["bounded"] is False or not c.variance(learner).finite)
            single = c.almost_sure(learner, alpha=alpha) if known else None
            if single and (single.stable is None or abs(single.exponent) * steps < LONG_ENOUGH):
                single = None
            found.append({
                "learner": name, "alpha": alpha if step else None, "run": str(learner),
                "stable": bool(stable), "bounded": row["bounded"] if step else None,
                "predicted": float(np.hypot(row["error"] or 0.0, row["spread"] or 0.0)),
                "long": not step or bool(alpha * rate(c, learner) * steps >= LONG_ENOUGH),
                "forgets": None if single is None else single.stable, "learns": False,
            })  # fmt: skip
        for law in map(algorithm, names()):
            if law.adapts:
                long = bool(alpha * rate(c, td) * steps >= LONG_ENOUGH)
                found.append({"learner": law.name, "alpha": alpha, "long": long, **of_td,
                              "run": str(st.learner(law, alpha=alpha)), "forgets": None,
                              "learns": True})  # fmt: skip
    return found


def instance(problem: Problem, limits: tuple[int, int], seeds: int) -> Row:
    """One problem: every row with its measured error, and the certificate's two choices."""
    c = st.certify(problem)
    steps = steps_of(c, limits)
    rows, choices = rows_of(c, steps), {}
    for cures in (False, True):
        use = c.recommended(cures=cures)
        assert use is not None
        n = use.numbers
        step = {} if n["instead_of"] else {"alpha": n["alpha"]}
        choices["of all cures" if cures else "choice"] = str(
            st.learner(n["learner"], **step, **n["params"])
        )
    texts = list(dict.fromkeys([*(row["run"] for row in rows), *choices.values()]))
    run = partial(st.run, steps=steps, seeds=seeds, points=POINTS, threads=1)
    r = run(problem, texts)
    with np.errstate(over="ignore", invalid="ignore"):
        ends = np.sqrt((r.errors[:, :, -POINTS // 10 :] ** 2).mean(axis=(1, 2)))
    ends = np.where((r.first_divergence >= 0).any(axis=1), np.inf, ends)
    measured = dict(zip(texts, ends.tolist(), strict=True))
    for row in rows:
        row["error"] = measured[row["run"]]
    single = [row for row in rows if row["forgets"] is not None]
    if single:
        other = changed(problem, w0=problem.w0 + 1.0)
        again = run(other, [row["run"] for row in single])
        began = size(problem, other.w0 - problem.w0)
        for row, weights in zip(single, again.final_weights, strict=True):
            apart = size(problem, weights - r.final_weights[texts.index(row["run"])])
            row["closer"] = bool((apart < began).all())
    zero = max(c.error(np.zeros(problem.n_features)), c.error(problem.w0))
    ended = {name: [text, measured[text]] for name, text in choices.items()}
    return {"zero": zero, "steps": steps, "rows": rows, "choices": ended}


def size(problem: Problem, w: Any) -> Any:
    """How far apart values are whose weights differ by w; infinite if w is not finite."""
    weights = problem.error_weights()
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.sqrt((w @ problem.Phi.T) ** 2 @ weights)
    return np.where(np.isfinite(found), found, np.inf)


def verdicts(row: Row, zero: float) -> dict[str, bool]:
    """What was said of a run that is long enough, and whether it ended so."""
    said: dict[str, bool] = {}
    if row["long"]:
        case = {True: "bounded", False: "unbounded", None: "unknown"}[row["bounded"]]
        if row["learns"]:
            case = "learned" if row["stable"] else "learned_unstable"
        elif not row["stable"]:
            case = "unstable"
        low, high = row["predicted"] / CLOSE, row["predicted"] * CLOSE
        near = low <= row["error"] <= max(high, ROUNDING * zero)
        if case != "unbounded" or not row["forgets"]:
            said[case] = bool(row["error"] > zero if case in ABOVE else near)
        if case == "unknown":
            said[BY_STEP.format(row["alpha"])] = said[case]
    if row["forgets"] is not None:
        said["forgets" if row["forgets"] else "strays"] = bool(row["closer"] == row["forgets"])
    return said


def counts(instances: list[Row]) -> Row:
    """The counts of one kind of problem."""
    right: dict[str, dict[str, list[int]]] = {}
    for found in instances:
        for row in found["rows"]:
            for case, well in verdicts(row, found["zero"]).items():
                both = right.setdefault(row["learner"], {}).setdefault(case, [0, 0])
                both[0] += well
                both[1] += 1
    floors = [ROUNDING * x["zero"] for x in instances]
    least = [max(min(row["error"] for row in x["rows"]), f)
             for x, f in zip(instances, floors, strict=True)]  # fmt: skip
    settings: dict[tuple[str, float | None], list[float]] = {}
    for found in instances:
        for row in found["rows"]:
            settings.setdefault((row["learner"], row["alpha"]), []).append(row["error"])
    learners: Row = {}
    for (name, alpha), errors in settings.items():
        close = int((np.maximum(errors, floors) <= CLOSE * np.array(least)).sum())
        mine = {"alpha": alpha, "error": float(np.median(errors)), "close": close}
        if len(errors) == len(instances):
            learners[name] = min(learners.get(name, mine), mine, key=lambda x: x["error"])
    choices = {}
    for name in ("choice", "of all cures"):
        errors = [x["choices"][name][1] for x in instances]
        ratios = np.maximum(errors, floors) / least
        best = [min(x["rows"], key=lambda row: row["error"])["learner"] for x in instances]
        choices[name] = {
            "error": float(np.median(errors)), "ratio": float(np.median(ratios)),
            "close": int((ratios <= CLOSE).sum()),
            "chosen": often(x["choices"][name][0].partition(":")[0] for x in instances),
            "beaten_by": often(b for b, q in zip(best, ratios, strict=True) if q > CLOSE),
        }  # fmt: skip
    return {
        "instances": len(instances),
        "steps": [f([x["steps"] for x in instances]) for f in (min, max)],
        "zero": float(np.median([x["zero"] for x in instances])),
        "short": sum(not row["long"] for x in instances for row in x["rows"]),
        "best": float(np.median(least)),
        "choices": choices,
        "learners": learners,
        "right": right,
    }


def often(found: Any) -> dict[str, int]:
    """How often each comes, the most frequent first."""
    return dict(Counter(found).most_common())


def number(value: float) -> str:
    """A number to three digits; one that only tells that a run grew, or vanished, as such."""
    if not np.isfinite(value):
        return "overflowed"
    return "> 1e6" if value > 1e6 else "< 1e-6" if value < 1e-6 else f"{float(f'{value:.3g}'):g}"


def table(head: tuple[str, ...], rows: list[list[str]]) -> list[str]:
    """A table in Markdown."""
    return [f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *rows]]


def added(found: list[list[int]]) -> list[int]:
    """Two numbers each, added."""
    return [sum(both[i] for both in found) for i in (0, 1)]


def of(both: list[int]) -> str:
    """How many of how many agree."""
    return f"{both[0]:,} of {both[1]:,}" if both[1] else ""


def steps(ends: list[int]) -> str:
    """The smallest and the largest number of steps."""
    return " to ".join(f"{n:,}" for n in dict.fromkeys(ends))


def named(found: dict[str, int], many: int = 3) -> str:
    """The most frequent ones, with how often they come."""
    return ", ".join(f"{name} {times}" for name, times in [*found.items()][:many])


def page(found: Row) -> str:
    """The page, from the counts."""
    kinds: dict[str, Row] = found["problems"]

    def right(case: str, kind: str = "", learner: str = "") -> list[int]:
        """Over all kinds and learners, but where one is asked for."""
        return added([cases[case] for k, x in kinds.items() for name, cases in x["right"].items()
                      if case in cases and kind in ("", k) and learner in ("", name)])  # fmt: skip

    learners = sorted({name for k in kinds.values() for name in k["learners"]})
    wrong = {case: Counter({x: right(case, "", x)[1] - right(case, "", x)[0] for x in learners})
             for case in CASES}  # fmt: skip
    said = {case: of(right(case)) for case in CASES}
    every = sum(k["instances"] for k in kinds.values())
    near = {name: f"{sum(k['choices'][name]['close'] for k in kinds.values()):,} of {every:,}"
            for name in ("choice", "of all cures")}  # fmt: skip
    lost = [
        f"- On {kind} the choice ({named(k['choices'][name]['chosen'])}) is close on "
        f"{k['choices'][name]['close']} of {k['instances']}, and with all cures on "
        f"{k['choices']['of all cures']['close']}; what is better is most often "
        f"{next(iter(k['choices'][name]['beaten_by']))}."
        for kind, k in kinds.items()
        for name in ["choice"] if 2 * k["choices"][name]["close"] < k["instances"]
    ]  # fmt: skip
    drawn, maps = (kinds.get(name, {"instances": 0})["instances"]
                   for name in ("unstable_mdp", "collision"))  # fmt: skip
    return "\n".join([
        "# Is the certificate right?",
        "",
        f"**On {every} problems, {said['unstable']} long enough runs of learners that the "
        "certificate calls unstable end above the errors of w0 and of zero. Of stable ones whose "
        f"second moments it knows to be bounded, {said['bounded']} end within a quarter of the "
        "predicted error. Where it knows the mean only (traces, memory), "
        f"{said['unknown']} do: it leaves out their noise. Its verdict on single runs, where "
        f"second moments are unbounded, holds in {of(added([right('forgets'), right('strays')]))} "
        "runs. The one learner that it recommends, with its step size, is within a quarter of the "
        f"best of all in hindsight on {near['choice']} problems, and on {near['of all cures']} if "
        "it chooses among all cures.**",
        "",
        "On each problem every learner of the certificate's table, and those that learn step "
        f"sizes, run with the step sizes {', '.join(map(str, ALPHAS))} and {SEEDS} seeds (drawn "
        f"problems: {SEEDS_DRAWN}). Other parameters are as in that table: eta=auto and "
        "ratio=auto, else the defaults, lam = 0. There abtd, tree_backup, vtrace and "
        "true_online_td are td, and true_online_etd is etd. The error of a run is the root mean "
        "square over its last tenth. Of Rooms each of the eight target policies is an instance. A "
        "learner of the certificate that is not in the tables is newer than the runs.",
        "",
        f"A run is long enough if it has {LONG_ENOUGH:g} time constants of the learner's own "
        "slowest mode, or of its fastest growing one. A problem gets so many steps that "
        f"{SHARE:.0%} of its learners have them at the step size {MIDDLE:g}, but at least "
        f"{FEWEST:,} and at most {MOST:,} ({MOST_DRAWN:,} where drawn). Shorter runs are counted "
        "apart: they say nothing about stability. An error below "
        f"{ROUNDING:g} of those of w0 and of zero counts as zero: a mode that began there is not "
        "smaller after the time that counts as long.",
        "",
        "```", f"python docs/certificate_right.py --drawn {drawn} --collision {maps}", "```",
        "",
        "## What was said, and what was so",
        "",
        *table(("what was said", "agrees", "most often not"),
               [[text, said[case] or "none", named(dict((+wrong[case]).most_common(3)))]
                for case, text in CASES.items()]),
        "",
        "Where second moments are not known, by step size: noise is what is missing, and a "
        "smaller step has less of it.",
        "",
        *table(("step size", "agrees"),
               [["solved" if alpha is None else str(alpha), of(right(BY_STEP.format(alpha)))]
                for alpha in (*ALPHAS, None)]),
        "",
        "By problem, in the order of the first table:",
        "",
        *table(("problem", "instances", "steps", *CASES, "too short"),
               [[kind, f"{k['instances']}", steps(k["steps"]),
                 *(of(right(case, kind)) for case in CASES), f"{k['short']:,}"]
                for kind, k in kinds.items()]),
        "",
        "By learner, over all problems:",
        "",
        *table(("learner", *CASES),
               [[name, *(of(right(case, "", name)) for case in CASES)] for name in learners]),
        "",
        "## The certificate's choice as a contestant",
        "",
        "The others have three step sizes each, and the best of them all is taken after the runs. "
        "The choice is one learner with one step size, made before; of all cures: with `--cures`. "
        "Errors are medians over instances, the ratio is that of the choice to the best. Close: on "
        "how many instances it is within a quarter of the best.",
        "",
        *table(("problem", "instances", "w0 or zero", "best in hindsight", "the choice", "ratio",
                "close", "chosen", "beaten by", "of all cures", "close", "chosen"),
               [[kind, f"{k['instances']}", number(k["zero"]), number(k["best"]),
                 number(one["error"]), number(one["ratio"]), f"{one['close']}",
                 named(one["chosen"]), named(one["beaten_by"]), number(cures["error"]),
                 f"{cures['close']}", named(cures["chosen"])]
                for kind, k in kinds.items()
                for one, cures in [[k["choices"][n] for n in ("choice", "of all cures")]]]),
        "",
        *lost, *[""] * bool(lost),
        "The choice goes by the error of the fixed point; of learners with traces or memory the "
        "certificate knows the noise from one run only. It knows the model, and no learner does. "
        "So this shows whether its numbers can be trusted, not that one could choose so well from "
        "data.",
        "",
        "## All learners",
        "",
        "The median error at the end, at the one of the step sizes that gives the least median "
        "over the instances of a problem (chosen in hindsight; solvers have none), and in brackets "
        "on how many instances it is within a quarter of the best.",
        "",
        *table(("learner", *kinds),
               [[f"**{name}**", *(f"{number(k['choices'][name]['error'])} "
                                  f"({k['choices'][name]['close']})" for k in kinds.values())]
                for name in ("choice", "of all cures")]
               + [[name, *(f"{number(x['error'])} ({x['close']})" if x else ""
                           for x in (k["learners"].get(name) for k in kinds.values()))]
                  for name in learners]),
        "",
    ])  # fmt: skip


def main() -> None:
    """Run what is not there yet, count, and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--drawn", type=int, default=200, help="instances of unstable_mdp")
    parser.add_argument("--collision", type=int, default=20, help="instances of collision")
    parser.add_argument("--quick", action="store_true", help="two problems, short runs")
    given = parser.parse_args()
    sizes = {"collision": given.collision, "unstable_mdp": given.drawn}
    plan = {name: [name] for name in (*SINGLE, *ROOMS)}
    plan |= {name: [f"{name}:seed={i}" for i in range(size)] for name, size in sizes.items()}
    place = Path("results/certificate")
    if given.quick:
        plan = {"three_state": ["three_state"], "unstable_mdp": ["unstable_mdp:seed=0"]}
        place = Path("results/certificate_quick")
    place.mkdir(parents=True, exist_ok=True)
    found: Row = {"problems": {}}
    for name, texts in plan.items():
        instances, drawn = [], name == "unstable_mdp"
        limits = (400, 400) if given.quick else (FEWEST, MOST_DRAWN if drawn else MOST)
        for text, problem in [one for t in texts for one in instances_of(t).items()]:
            path = place / f"{text.replace(':', '_').replace('=', '_')}.json"
            if not path.exists():
                path.write_text(
                    json.dumps(instance(problem, limits, SEEDS_DRAWN if drawn else SEEDS))
                )
            instances.append(json.loads(path.read_text()))
        found["problems"][name] = counts(instances)
        print(name, len(instances), flush=True)
    (DOCS / "results").mkdir(exist_ok=True)
    (DOCS / "results" / "certificate.json").write_text(
        json.dumps(found, separators=(",", ":")) + "\n"
    )
    (DOCS / "results" / "certificate.md").write_text(page(found))


if __name__ == "__main__":
    main()
