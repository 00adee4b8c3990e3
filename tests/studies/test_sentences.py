"""Every sentence of a study's summary is true of drawn results: a table from sentence to check.

The checks read the numbers out of the sentence and hold them against plain NumPy and SciPy on the
drawn errors, curves and configurations; Holm's method is written out as its definition has it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import scipy.stats

from steadytd.base.errors import listed
from steadytd.base.numbers import interval, number, ordinal, percent, rounded, with_error
from steadytd.learners import learner as make_learner
from steadytd.studies.analysis import summary as words
from steadytd.studies.analysis.reading import Chapter, Prediction
from steadytd.studies.analysis.tables import Best, at_the_edge, axes_of, mean_of
from steadytd.studies.spec import Task, parse_spec
from tests.support.draws import examples

STUDY = """
problem = "three_state"
steps = 1_000
seeds = 6
every = 100
per_decade = {dense}
[[learners]]
name = "td"
alpha = [0.001, 0.01, 0.1]
lam = [0, 0.5]
[[learners]]
name = "perturbed_td"
alpha = [0.001, 0.01, 0.1]
eta = {eta}
[[learners]]
name = "tree_backup"
alpha = [0.001, 0.01]
[[learners]]
name = "vtrace"
alpha = [0.001, 0.01]
[[learners]]
name = "etd"
alpha = [0.01]
"""
WHAT = "error"
DRAWS = examples(50, 200)
ENDS = ["settled", "growing", "not settled"]
SHARES = {"a tenth": 0.1, "a hundredth": 0.01, "a millionth": 1e-6}


def draw(seed: int) -> Chapter:
    """A study's chapter with random numbers in it: ties, twins, divergence, fast and slow runs."""
    rng = np.random.default_rng(seed)
    eta = "[0.5]" if rng.random() < 0.3 else "[0.015625, 0.5, 1]"
    text = STUDY.format(dense=int(rng.choice([0, 5])), eta=eta)
    (task,) = parse_spec(text, "drawn").tasks
    start, seeds = 10.0, list(range(1_000_000, 1_000_000 + int(rng.choice([4, 9]))))
    table = _configurations(rng, task)
    fresh = bool(rng.random() < 0.8)
    best: list[Best] = []
    errors: dict[str, dict[int, float]] = {}
    curves: dict[str, np.ndarray] = {}
    theory: dict[str, Prediction | None] = {}
    base, chance = rng.lognormal(0.0, 0.3, len(seeds)), rng.random()
    twins, wild = rng.random() < 0.5, rng.random() < 0.1
    for name in dict.fromkeys(x.name for x in task.learners):
        own = table.filter(pl.col("algorithm") == name).sort("error")
        if not np.isfinite(own["error"][0]):
            continue
        values = rng.choice([1.0, 1.02, 2.0]) * base + 0.05 * rng.normal(size=len(seeds)) ** 2
        if name == "vtrace" and twins and "tree_backup" in errors:
            values = np.array(list(errors["tree_backup"].values()))
        elif wild or rng.random() < 0.15 * chance:
            values = np.where(rng.random(len(seeds)) < 0.4, np.inf, values)
            values[0] = np.inf
        errors[name] = dict(zip(seeds, values.tolist(), strict=True))
        curves[name] = _curves(rng, task, start, len(seeds))
        steady = rng.random()
        fixed = (
            float(values.mean() * rng.choice([1.0, 0.5, 1.5])) if np.isfinite(values).all() else 1.0
        )
        theory[name] = Prediction(1.0, fixed, None) if steady < 0.8 else Prediction(0.0, None, None)
        best.append(_best(rng, own, values, fresh, start))
    best.sort(key=lambda b: (b.measured.value, b.measured.diverged, b.grid.value))
    failed = [n for n in dict.fromkeys(x.name for x in task.learners) if n not in errors]
    pair = frozenset(("tree_backup", "vtrace"))
    same = frozenset([pair]) if twins and pair <= errors.keys() else frozenset()
    return Chapter(
        task, table, start, best, failed, errors, task.points, curves, theory, same,
        far=int(rng.integers(0, 4)),
    )  # fmt: skip


def _configurations(rng: np.random.Generator, task: Task) -> pl.DataFrame:
    lost = {x.name: rng.random() for x in task.learners}
    if rng.random() < 0.05:
        lost = dict.fromkeys(lost, 1.0)
    rows: list[dict[str, Any]] = []
    for x in task.learners:
        gone = rng.random() < lost[x.name] ** 2
        rows.append({
            "problem": task.label, "run": str(x), "algorithm": x.name,
            **{k: x.values.get(k) for k in ("alpha", "lam", "eta")},
            "error": np.inf if gone else 10.0 * rng.lognormal(0.0, 1.0),
            "stderr": 0.1, "diverged_share": 0.5 if gone else 0.0, "seeds": 6,
        })  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def _curves(rng: np.random.Generator, task: Task, start: float, seeds: int) -> np.ndarray:
    """Errors that fall by some factor over the run, at a rate of their own for each seed."""
    depth = rng.choice([0.5, 3.0, 9.0]) * rng.uniform(0.5, 1.5, (seeds, 1))
    return np.asarray(start * 10.0 ** (-depth * task.points / task.steps))


def _best(
    rng: np.random.Generator, own: pl.DataFrame, values: np.ndarray, fresh: bool, start: float
) -> Best:
    learner = make_learner(own["run"][0])
    axes = axes_of(own.drop("error", "stderr", "diverged_share", "seeds"))
    measured = mean_of(values)
    grid = measured if not fresh else mean_of(own["error"][0] + 0.1 * rng.normal(size=6))
    return Best(
        algorithm=learner.name, run=str(learner),
        params={k: learner[k] for k in axes}, grid=grid, measured=measured, final=measured,
        fresh=fresh, configurations=len(own),
        never_diverged=int((own["diverged_share"] == 0.0).sum()),
        useful=int((own["error"] < start).sum()),
        edges=at_the_edge(axes, learner.values),
        outcomes=tuple(rng.choice(ENDS, len(values), p=[0.7, 0.2, 0.1]).tolist()),
    )  # fmt: skip


def values_of(c: Chapter, name: str) -> np.ndarray:
    return np.array(list(c.errors[name].values()))


def different(c: Chapter) -> set[frozenset[str]]:
    """The pairs that Holm's method calls different: reject the least p while p <= 0.05 / left."""
    p = {}
    for a, b in itertools.combinations(c.errors, 2):
        x, y = values_of(c, a), values_of(c, b)
        pair = frozenset((a, b))
        if pair not in c.same and np.isfinite(x).all() and np.isfinite(y).all():
            p[pair] = float(scipy.stats.ttest_rel(x, y).pvalue)
    found: set[frozenset[str]] = set()
    for left, pair in zip(range(len(p), 0, -1), sorted(p, key=p.__getitem__), strict=True):
        if p[pair] > 0.05 / left:
            break
        found.add(pair)
    return found


def comparisons(c: Chapter) -> int:
    finite = [n for n in c.errors if np.isfinite(values_of(c, n)).all()]
    pairs = [frozenset(pair) for pair in itertools.combinations(finite, 2)]
    return sum(pair not in c.same for pair in pairs)


def groups(c: Chapter) -> list[list[str]]:
    apart = different(c)
    found: list[list[str]] = []
    for b in c.best:
        first = found[-1][0] if found else None
        lost = {n: int(np.isinf(values_of(c, n)).sum()) for n in (b.algorithm, first) if n}
        tied = first is not None and (
            frozenset((b.algorithm, first)) not in apart
            if not any(lost.values())
            else lost[b.algorithm] <= lost[first]
        )
        if tied:
            found[-1].append(b.algorithm)
        else:
            found.append([b.algorithm])
    return found


def check_difference(text: str, c: Chapter, a: str, b: str) -> None:
    """Difference, interval, comparisons and verdict of one bracket."""
    x, y = values_of(c, a), values_of(c, b)
    test = scipy.stats.ttest_rel(x, y)
    low, high = test.confidence_interval(0.95)
    assert (
        f"(paired difference {rounded(float(np.mean(x - y)), (high - low) / 2.0)}, 95 % interval "
        f"{interval(low, high)}, p "
    ) in text
    assert f"after Holm's correction for {comparisons(c)} comparison" in text
    p = re.search(r"p ([=<]) ([0-9.e-]+) after", text)
    assert p is not None
    assert (float(p[2]) < 0.05) == (frozenset((a, b)) in different(c))
    assert float(p[2]) >= 0.99 * min(float(test.pvalue), 1e-4)


def check_headline(text: str, c: Chapter) -> None:
    if not c.errors:
        assert text == "Every configuration of every learner on three_state overflowed in some run."
        assert not np.isfinite(c.configurations["error"].to_numpy()).any()
        return
    lost = {name: int(np.isinf(values_of(c, name)).sum()) for name in c.errors}
    if min(lost.values()):
        first = min(lost, key=lost.__getitem__)
        assert "overflowed on some of the" in text
        assert lost[first] == lost[re.search(r"seeds, (\w+) on", text)[1]]  # type: ignore[index]
        return
    means = {n: values_of(c, n).mean() for n in c.errors}
    first = min(means, key=means.__getitem__)
    tied = groups(c)
    assert means[tied[0][0]] == means[first]
    assert with_error(float(means[first]), float(scipy.stats.sem(values_of(c, first)))) in text
    count = len(c.configurations.filter(pl.col("algorithm") == tied[0][0]))
    assert f"best of {count} configuration" in text
    assert ("fresh seeds" in text) == c.best[0].fresh
    twins = len(tied[0]) == 2 and frozenset(tied[0]) in c.same
    assert ("are the same update here and have the least" in text) == twins
    assert ("cannot be told apart at the top" in text) == (len(tied[0]) > 1 and not twins)
    if len(tied) > 1:
        second = tied[1][0]
        if lost[second]:
            assert f"while {second} overflowed on {lost[second]} of {len(c.errors[second])}" in text
        else:
            less = float(np.mean(values_of(c, second) - values_of(c, tied[0][0])))
            assert f"{percent(less / means[second])} less than {second} (" in text
            check_difference(text, c, second, tied[0][0])
    else:
        assert "less than" not in text


def check_order(text: str, c: Chapter) -> None:
    place, rest = 1, text
    for group in groups(c):
        part, _, rest = rest.partition("; ")
        assert part.startswith(f"{place}. ")
        named = re.findall(r"[a-z]+_?[a-z]*", part.split(" (=: cannot")[0])
        assert [n for n in named if n in c.errors] == sorted(group, key=named.index)
        assert set(group) <= set(named)
        place += len(group)
    assert ("the same update here" in text) == bool(c.same)


def check_speed(text: str, c: Chapter) -> None:
    points = c.points.tolist()
    for i, (name, share) in enumerate(SHARES.items()):
        found = re.search(rf"Below {name}(?: of the error at w0)?: ([^.]*)\.", text)
        below = {n: c.curves[n] < share * c.curves[n][:, :1] for n in c.errors}
        ever = {n: b.any(axis=1).mean() >= 0.5 for n, b in below.items()}
        if found is None:
            assert i and not any(ever.values())
            continue
        if "no learner" in found[1]:
            assert not any(ever.values())
            assert f"in {c.task.steps:,} steps" in found[1]
            continue
        listed_steps = re.findall(r"(\w+) by step ([\d,]+)", found[1].split(" more by")[0])
        for learner, step in listed_steps:
            if learner not in below:
                continue
            at = points.index(int(step.replace(",", "")))
            assert below[learner][:, : at + 1].any(axis=1).mean() >= 0.5
            assert below[learner][:, :at].any(axis=1).mean() < 0.5
        more = re.search(r"(\d+) more by step ([\d,]+)", found[1])
        assert (int(more[1]) if more else 0) == max(0, sum(ever.values()) - 3)
        if more:
            last = points.index(int(more[2].replace(",", "")))
            early, late = (
                sum(b[:, : at + 1].any(axis=1).mean() >= 0.5 for b in below.values())
                for at in (last - 1, last)
            )
            assert early < late == sum(ever.values())
        rest = re.search(rf"(\d+) of {len(c.errors)} learners? not in 1,000 steps", found[1])
        assert (int(rest[1]) if rest else 0) == sum(not e for e in ever.values())
    per = "at 5 steps per decade and " if c.task.per_decade else ""
    assert text.endswith(f"the error is recorded {per}every 100 steps.)")


def check_penalty(text: str, c: Chapter) -> None:
    table = c.configurations
    td, penalised = (table.filter(pl.col("algorithm") == n) for n in ("td", "perturbed_td"))
    least = dict(penalised.group_by("eta").agg(pl.col("error").min()).iter_rows())
    plain = float(td["error"].to_numpy().min())
    helped = sum(e < plain for e in least.values())
    lowest = min(least.values())
    shown = "overflowed" if np.isinf(lowest) else number(lowest)
    if len(least) == 1:
        side = "below" if helped else "not below"
        assert f"with eta 0.5 is {shown}, {side} that without (td: {number(plain)})." in text
    else:
        assert f"On the grid, {helped} of 3 values of eta (from 2⁻⁶ to 1) have a smaller" in text
        assert f"than without (td: {number(plain)}). The least of all is {shown}, at eta" in text
    counts = []
    for good in (pl.col("error") < c.start, pl.col("diverged_share") == 0.0):
        counts += [x.filter(good)["alpha"].n_unique() for x in (td, penalised)]
    assert (
        f"Both share 3 step sizes. td improves on w0 at {counts[0]} of them, perturbed_td (with "
        f"its best penalty) at {counts[1]}; {counts[2]} and {counts[3]} of them never overflow."
    ) in text
    if "perturbed_td" in c.errors and "td" not in c.errors:
        assert "Every configuration of td overflowed; perturbed_td has some that do not." in text
        assert np.isinf(plain) and np.isfinite(lowest)
    if not {"td", "perturbed_td"} <= c.errors.keys():
        return
    means = [b.measured.value for b in c.best]
    own, other = values_of(c, "perturbed_td"), values_of(c, "td")
    place = [b.algorithm for b in c.best].index("perturbed_td") + 1
    assert means == sorted(means)
    assert f"perturbed_td comes {ordinal(place)} of {len(c.errors)} with " in text
    assert f"(best of {len(penalised)} configurations)" in text
    for name in ("td", "perturbed_td"):
        seen = c.theory[name]
        assert seen is not None
        said = (
            f"the mean update of {name} is unstable"
            if seen.asymptote is None
            else f"the fixed point of {name} has error {number(seen.asymptote)}"
        )
        assert said in text
    if np.isinf(own).any() or np.isinf(other).any():
        assert f"overflowed {np.isinf(own).sum()} and {np.isinf(other).sum()} times" in text
        return
    check_difference(text, c, "perturbed_td", "td")
    apart = frozenset(("td", "perturbed_td")) in different(c)
    assert ("it cannot be told apart from td at its best (" in text) == (not apart)
    if apart:
        side = "below" if own.mean() < other.mean() else "above"
        share = percent(abs(own.mean() - other.mean()) / other.mean())
        assert f"its error is {share} {side} that of td at its best, of {len(td)} config" in text


def check_overflow(text: str, c: Chapter) -> None:
    table = c.configurations
    far = re.search(
        r"(\d+) configurations? without overflow ended some run with more than 10 t", text
    )
    assert (int(far[1]) if far else 0) == c.far
    for word in ENDS[1:]:
        ends = re.search(rf"{word.capitalize()} at its best setting: ([^.]*)\.", text)
        said = re.findall(r"(\w+) in (\d+) of (\d+) run", ends[1]) if ends else []
        counts = {b.algorithm: (b.outcomes.count(word), len(b.outcomes)) for b in c.best}
        got = {n: (int(a), int(b)) for n, a, b in said}
        assert got == {n: x for n, x in counts.items() if x[0]}
    lost = table.filter(pl.col("diverged_share") > 0.0)
    if not len(lost):
        assert text.startswith("No run of the grid overflowed.")  # fresh seeds may overflow
        return
    assert text.startswith(f"{len(lost)} of {len(table)} configurations of the grid overflowed")
    shares = {
        n: len(lost.filter(pl.col("algorithm") == n)) / len(table.filter(pl.col("algorithm") == n))
        for n in table["algorithm"].unique()
    }
    ends = re.search(r"from (\S+)\s%.of (\w+)'s to (\S+)\s%.of (\w+)'s", text)
    if ends:
        assert shares[ends[2]] == min(shares.values())
        assert shares[ends[4]] == max(shares.values())
        assert text.count(percent(shares[ends[2]])) and text.count(percent(shares[ends[4]]))
    else:
        assert len(set(shares.values())) == 1
    assert (f"so did every configuration of {listed(c.failed)}" in text) == bool(c.failed)
    never = re.search(r"no run of (.*) did\.", text)
    named = set(re.findall(r"\w+", never[1])) - {"and"} if never else set()
    free = {n for n, share in shares.items() if share == 0.0}
    assert named == (free if max(shares.values()) > 0.0 else set())


def check_theory(text: str, c: Chapter) -> None:
    stable = {n: t for n, t in c.theory.items() if t is not None and t.stable == 1.0}
    found = re.search(r"For (\d+) of the (\d+) learners?", text)
    assert found is not None
    near = 0
    for name, seen in stable.items():
        fixed, values = float(seen.asymptote or 0.0), values_of(c, name)
        off = values.mean() - fixed
        spread = 0.0 if np.isinf(values).any() else float(scipy.stats.sem(values))
        close = abs(off) <= max(0.1 * fixed, min(2.0 * spread, 0.2 * fixed), 1e-6 * c.start)
        near += close
        assert close or re.search(rf"\b{name}\b[^;]* ends? {'above' if off > 0 else 'below'}", text)
    assert (int(found[1]), int(found[2])) == (near, len(stable))


def check_bias(text: str, c: Chapter) -> None:
    finite = [b for b in c.best if np.isfinite(b.measured.value)]
    shares = [(b.measured.value - b.grid.value) / b.grid.value for b in finite]
    z = [
        abs(b.measured.value - b.grid.value) / np.hypot(b.grid.stderr or 0, b.measured.stderr or 0)
        for b in finite
    ]
    middle = float(np.median(shares))
    side = "above" if middle > 0.0 else "below"
    some = f" of the {len(finite)} that can be compared" if len(finite) < len(c.best) else ""
    assert f"median learner{some} is {percent(abs(middle))} {side} its error on" in text
    assert f"none moved by more than {max(z):.2g} standard errors" in text


CHECKS: dict[str, Callable[[str, Chapter], None]] = {
    "Least error": check_headline,
    "Order": check_order,
    "Speed": check_speed,
    "Penalty of perturbed_td": check_penalty,
    "Overflow": check_overflow,
    "Theory": check_theory,
    "Fresh seeds": check_bias,
}
VARIANTS = {  # of each template, what at least one of the drawn sentences must say
    "Least error": ("has the least", "cannot be told apart", "are the same update", "while",
                    "Every learner at its best overflowed", "Every configuration"),
    "Order": ("(=: cannot", "the same update here"),
    "Speed": ("no learner in", "more by step", "not in", "per decade"),
    "Penalty of perturbed_td": ("Every configuration of td", "cannot be told apart", "above that",
                                "below that", "times.", "not below", "values of eta", "unstable"),
    "Overflow": ("no run of", "so did every configuration", "from"),
    "Theory": ("above it", "below it"),
    "Fresh seeds": ("above its", "below its", "that can be compared"),
}  # fmt: skip


def test_every_sentence_is_true_of_drawn_results() -> None:
    said: dict[str, list[str]] = {topic: [] for topic in CHECKS}
    for seed in range(DRAWS):
        chapter = draw(seed)
        for topic, text in words.sentences(chapter, WHAT):
            CHECKS[topic](text, chapter)
            said[topic].append(text)
    for topic, variants in VARIANTS.items():
        for variant in variants:
            assert any(variant in text for text in said[topic]), (topic, variant)


CAVEATS: dict[str, Callable[[str, Chapter], bool]] = {
    "Some best values lie at the edge": lambda text, c: all(
        (f"{side} {name}" in text) and b.algorithm in text for b in c.best for name, side in b.edges
    ),
    "no complete rerun on fresh seeds": lambda text, c: not any(b.fresh for b in c.best),
    "Only some of the": lambda text, c: False,  # all of them have all their seeds
    "configurations are there": lambda text, c: False,  # and all of them are there
}


def test_every_caveat_is_true_of_drawn_results() -> None:
    seen = set()
    for seed in range(DRAWS):
        chapter = draw(seed)
        results = SimpleNamespace(spec=SimpleNamespace(file=SimpleNamespace(seeds=6)))
        for text in words.caveats(SimpleNamespace(results=results), chapter):  # type: ignore[arg-type]
            (start,) = [start for start in CAVEATS if start in text]
            assert CAVEATS[start](text, chapter), text
            seen.add(start)
    assert seen == set(list(CAVEATS)[:2])
