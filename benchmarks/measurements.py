"""The measurements. Each function returns one table."""

from __future__ import annotations

import ctypes
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from benchmarks import cases
from benchmarks.c_loops import LAWS, CLoop
from benchmarks.cases import EngineLoop, Loop, Stream
from benchmarks.figures import Figure, Group, Target
from benchmarks.timing import QUICK, Effort, best_interleaved, race, seconds

import steadytd
from steadytd import Learner
from steadytd.base.arrays import Floats
from steadytd.engine.facts import columns

LANES = (1, 16, 64, 256)
SAME = 1e-9  # relative difference up to which two loops computed the same thing
NANO = 1e9
ACTIVE = (5, 10, 20, 40)

ONE_LANE, MANY_LANES, FAMILY = Target(1.5), Target(1.2), Target(1.3)
OVER_NUMPY = Target(300.0, at_least=True)
TWO_THREADS = Target(1.7, at_least=True)
FLAT, LINEAR, PER_LEARNER = Target(1.2), Target(1.2), Target(1.5)
IMPORT_SECONDS, REPRODUCE_SECONDS, REPRODUCE_MEGABYTES = Target(0.5), Target(8.0), Target(1000.0)


def against_c(library: ctypes.CDLL, effort: Effort) -> Group:
    """Our kernels and the same loops in C, ns per learner-update."""
    group = Group("Against the same loop in C (ns per learner-update)", ("ours", "C", "ours / C"))
    group.notes.append("sparse: 10 active features of 1024; lam = 0 where nothing is said.")
    most = effort.steps[1]
    for stream, active in ((cases.baird(most), 2), (cases.sparse(most), 10)):
        for name in ("perturbed_td", "tdc"):
            for lanes in LANES:
                cut = stream.first(effort.steps_for(lanes, active))
                target = ONE_LANE if lanes == 1 else MANY_LANES
                learners = cases.learners(name, lanes)
                group.figures.append(_side_by_side(library, cut, learners, target, effort))
    return group


def family_against_c(library: ctypes.CDLL, effort: Effort) -> Group:
    """Five laws with and without trace vectors at 64 lanes, ns per learner-update."""
    title = "The family against C, 64 lanes (ns per learner-update)"
    group = Group(title, ("ours", "C", "ours / C"))
    group.notes.append("sparse: 10 active features of 1024; with traces every step costs O(1024).")
    for make, active, features in ((cases.baird, 2, 8), (cases.sparse, 10, 1024)):
        for name in LAWS:
            for lam, touched in ((0.0, active), (0.5, features)):
                steps = max(effort.traced, effort.work / (64 * 2 * touched))
                stream = make(int(min(effort.steps[1], steps)))
                learners = cases.learners(name, 64, lam=lam)
                group.figures.append(_side_by_side(library, stream, learners, FAMILY, effort))
    return group


def _side_by_side(
    library: ctypes.CDLL,
    stream: Stream,
    learners: list[Learner],
    target: Target | None,
    effort: Effort,
) -> Figure:
    makers: list[Callable[[], Loop]] = [
        lambda: EngineLoop(stream, learners),
        lambda: CLoop(library, stream, learners),
    ]
    times, loops = race(makers, effort)
    _same_result(*loops)
    lanes = len(learners)
    ours, c = (t / (len(stream.events) * lanes) * NANO for t in times)
    lam = f", lam = {learners[0]['lam']}" if learners[0].traced else ""
    case = f"{stream.name} {learners[0].name}{lam}, {lanes} {'lanes' if lanes > 1 else 'lane'}"
    return Figure(case, ours, c, ours / c, target)


def _same_result(one: Loop, other: Loop) -> None:
    """A race means something only if both did the same work."""
    a, b = one.vectors(), other.vectors()
    scale = np.max(np.abs(b), axis=(1, 2), keepdims=True)
    difference = float(np.max(np.abs(a - b) / np.where(scale > 0, scale, 1.0)))
    if not difference <= SAME:
        raise RuntimeError(f"the two loops differ by {difference:.1e}, more than {SAME:g}.")


def against_numpy(effort: Effort) -> Group:
    """64 lanes of our kernel and one learner in NumPy, step by step, ns per learner-update."""
    group = Group(
        "Against a loop in NumPy (ns per learner-update; baird perturbed_td, 64 lanes)",
        ("ours", "NumPy", "NumPy / ours"),
    )
    learners = cases.learners("perturbed_td", 64)
    stream, short = cases.baird(effort.steps[1]), cases.baird(10_000)
    loop = EngineLoop(stream, learners)
    loop.go()

    def ours() -> None:
        loop.reset()
        loop.go()

    for case, skip in (("every step", False), ("skips rho = 0", True)):
        in_numpy = partial(numpy_perturbed_td, short, learners[0], skip)
        fast, slow = best_interleaved([ours, in_numpy], effort.repeats)
        a = fast / (len(stream.events) * len(learners)) * NANO
        b = slow / len(short.events) * NANO
        group.figures.append(Figure(f"NumPy {case}", a, b, b / a, OVER_NUMPY))
    check = EngineLoop(short, learners)
    check.go()
    if not np.allclose(check.block.V[0, :, 0], in_numpy(), rtol=SAME, atol=0.0):
        raise RuntimeError("the loop in NumPy computes something else than ours.")
    return group


def numpy_perturbed_td(stream: Stream, learner: Learner, skip: bool) -> Floats:
    """One learner as a researcher would write it down."""
    alpha, eta = float(learner["alpha"]), float(learner["eta"])
    row, row_next, table = stream.transitions
    facts = columns(table, "reward", "gamma_next", "rho")
    features = np.zeros((len(stream.rows.first), len(stream.w0)))
    for i, (first, length) in enumerate(zip(stream.rows.first, stream.rows.length, strict=True)):
        here = slice(first, first + length)
        features[i, stream.rows.feature[here]] = stream.rows.value[here]
    w = stream.w0.copy()
    for e in stream.events:
        reward, gamma, rho = facts[e]
        if skip and rho == 0.0:
            continue
        x, x_next = features[row[e]], features[row_next[e]]
        delta = reward + gamma * (w @ x_next) - (1 + eta) * (w @ x)
        w += alpha * rho * delta * x
    return w


def threads(effort: Effort) -> Group:
    """A run of many seeds on one thread and on two, as a user would start it."""
    group = Group("Two threads over one (seconds)", ("2 threads", "1 thread", "speed-up"))
    group.notes.append("64 learners, 16 seeds. The kernel alone shows what the machine gives now.")
    steps = effort.steps[1] // 2
    many = {name: cases.learners(name, 64) for name in ("perturbed_td", "tdc")}
    loops = [EngineLoop(cases.baird(steps), many["tdc"]) for _ in range(4)]
    works: dict[str, Callable[[int], object]] = {
        f"run: baird {name}": partial(_run, learners, steps) for name, learners in many.items()
    }
    works["kernel alone: baird tdc"] = partial(_kernel_alone, loops)
    times = best_interleaved(
        [partial(work, n) for work in works.values() for n in (2, 1)], effort.repeats
    )
    for case, two, one in zip(works, times[::2], times[1::2], strict=True):
        target = TWO_THREADS if case.startswith("run") else None
        group.figures.append(Figure(case, two, one, one / two, target))
    return group


def _run(learners: list[Learner], steps: int, threads: int) -> None:
    steadytd.run("baird", learners, steps=steps, seeds=16, threads=threads)


def _kernel_alone(loops: list[EngineLoop], threads: int) -> None:
    """Loops without anything between them that would hold Python's lock."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(EngineLoop.go, loops))


def flat_in_steps(effort: Effort) -> Group:
    """The cost of an update after few and after many steps."""
    group = Group(
        "Cost flat in the number of steps (baird perturbed_td, 64 lanes)",
        ("ns per update", "cheapest", "relative"),
    )
    lengths = [effort.steps[1] * tenths // 10 for tenths in (1, 10, 30)]
    stream = cases.baird(lengths[-1])
    learners = cases.learners("perturbed_td", 64)
    makers = [partial(EngineLoop, stream.first(steps), learners) for steps in lengths]
    times, _ = race(makers, effort)
    cost = [t / (n * len(learners)) * NANO for t, n in zip(times, lengths, strict=True)]
    for steps, each in zip(lengths, cost, strict=True):
        low = min(cost)
        group.figures.append(Figure(f"{steps:,} steps", each, low, each / low, FLAT))
    return group


def linear_in_features(effort: Effort) -> Group:
    """The cost of an update per active feature. It falls a little: a step has its own cost."""
    group = Group(
        "Cost linear in active features (1024 features, perturbed_td, 64 lanes)",
        ("ns per update", "per feature", "relative"),
    )
    learners = cases.learners("perturbed_td", 64)
    streams = [cases.sparse(effort.steps_for(64, active), active) for active in ACTIVE]
    times, _ = race([partial(EngineLoop, stream, learners) for stream in streams], effort)
    cost = [
        t / (len(stream.events) * len(learners)) * NANO
        for t, stream in zip(times, streams, strict=True)
    ]
    for active, each in zip(ACTIVE, cost, strict=True):
        relative = (each / active) / (cost[0] / ACTIVE[0])
        target = None if active == ACTIVE[0] else LINEAR
        group.figures.append(Figure(f"{active} active", each, each / active, relative, target))
    return group


def per_learner(effort: Effort) -> Group:
    """What a learner adds to a call of `st.run` before it steps, with few and with many of them."""
    group = Group(
        "Cost of a learner before its first step (microseconds; baird perturbed_td, 1 thread)",
        ("one more learner", "the same given as text", "relative"),
    )
    first = None
    for n in (100, 1_000) if effort is QUICK else (1_000, 100_000):
        learners = cases.learners("perturbed_td", n)
        texts = [str(one) for one in learners]
        works = [partial(_one_step, some) for some in (learners[:1], learners, texts)]
        works[0]()  # compiles
        one, *many = best_interleaved(works, effort.repeats)
        made, read = (1e6 * (taken - one) / (n - 1) for taken in many)
        relative, target = (1.0, None) if first is None else (made / first, PER_LEARNER)
        group.figures.append(Figure(f"{n:,} learners", made, read, relative, target))
        first = first or made
    return group


def _one_step(learners: list[Learner] | list[str]) -> None:
    steadytd.run("baird", learners, steps=1, points=2, threads=1)


def start(effort: Effort) -> Group:
    """What a user waits for: the import, and the whole reproduction with a warm cache."""
    group = Group("Start and reproduction", ("measured", "bare Python", "value"))
    bare, full = (
        partial(subprocess.run, [sys.executable, "-c", code], check=True)
        for code in ("pass", "import steadytd")
    )
    ours, python = best_interleaved([full, bare], effort.repeats)
    group.figures.append(Figure("import steadytd (s)", ours, python, ours, IMPORT_SECONDS))
    command = [sys.executable, "-m", "steadytd", "reproduce"]
    if effort is QUICK:
        command += ["--figure", "1", "--runs", "1", "--no-figures"]
    with tempfile.TemporaryDirectory() as out:
        reproduce = partial(
            subprocess.run, [*command, "--out", out], capture_output=True, check=True
        )
        wall = min(seconds(reproduce) for _ in range(effort.rounds))  # the first one compiles
    group.figures.append(Figure("steadytd reproduce (s)", wall, None, wall, REPRODUCE_SECONDS))
    peak = _peak_megabytes_of_children()
    group.figures.append(
        Figure("steadytd reproduce, peak memory (MB)", peak, None, peak, REPRODUCE_MEGABYTES)
    )
    return group


def _peak_megabytes_of_children() -> float:
    """The largest child so far; the reproduction is by far the largest that we start."""
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)
