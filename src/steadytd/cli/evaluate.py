"""`steadytd evaluate`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadytd.base.errors import Faults, InputError, unknown
from steadytd.cli.console import (
    WHOLE,
    Full,
    Json,
    Open,
    Threads,
    command_line,
    err,
    out,
    print_answer,
    print_json,
    print_page,
    require_page,
    say,
)

if TYPE_CHECKING:
    from steadytd.evaluation.gate import Gate, Requirement
    from steadytd.evaluation.result import Evaluation
    from steadytd.logs.log import Log

Discount = Annotated[
    float | None,
    typer.Option("--discount", help="Discount in [0, 1]; needed unless the log has it."),
]
AverageReward = Annotated[
    bool,
    typer.Option(
        "--average-reward", help="In place of a discount: reward per step, of a log without end."
    ),
]
Target = Annotated[
    list[str] | None, typer.Option("--target", help="Only this target, or name=column; repeatable.")
]
PICKLES = (".joblib", ".pkl", ".pickle", ".pt", ".pth", ".sav")  # of models in files
FEATURES = typer.Option(help="auto, raw, poly:K, rbf:N, fourier:K, tiles:NxM or onehot.")
Map = Annotated[
    list[str] | None,
    typer.Option("--map", help="Your column names: obs=state,reward=r, or obs=x+v."),
]
Unit = Annotated[
    str | None,
    typer.Option("--unit", help="Column of users, patients, ...: their episodes belong together."),
]
Reward = Annotated[
    list[str] | None,
    typer.Option("--reward", help="COLUMN:+, COLUMN:- or NAME:COLUMN=WEIGHT,...; repeatable."),
]
By = Annotated[
    str | None, typer.Option("--by", help="Column of segments: values and decisions for each.")
]
Obs = Annotated[
    list[str] | None,
    typer.Option("--obs", help="Columns of any kind that are the observation: segment,basket."),
]
Estimate = Annotated[
    bool,
    typer.Option("--estimate-behavior", help="Estimate the behaviour policy from the log."),
]


def evaluate(
    logs: Annotated[
        list[str] | None, typer.Argument(help="Parquet or CSV files, globs, a directory.")
    ] = None,
    discount: Discount = None,
    average_reward: AverageReward = False,
    target: Target = None,
    features: Annotated[str, FEATURES] = "auto",
    learner: Annotated[
        list[str] | None, typer.Option("--learner", help="name:key=value,...; repeatable.")
    ] = None,
    columns: Map = None,
    unit: Unit = None,
    reward: Reward = None,
    by: By = None,
    obs: Obs = None,
    estimate: Estimate = False,
    reward_range: Annotated[
        str | None,
        typer.Option("--reward-range", metavar="LO,HI", help="Least and largest reward of a step."),
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(help="With --reward-range: the most steps of an episode.")
    ] = None,
    nothing_hidden: Annotated[
        bool,
        typer.Option(
            "--nothing-hidden",
            help="With --estimate-behavior: the policy saw nothing but the logged observations.",
        ),
    ] = False,
    engine: Annotated[str, typer.Option(help="local or dask.")] = "local",
    address: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler; default: threads here.")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="With dask: keep finished parts here, to continue later.")
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option("--out", help="Write evaluation.html, its JSON and value functions here."),
    ] = None,
    figures: Annotated[
        bool, typer.Option("--figures", help="With --out: pictures as files, too.")
    ] = False,
    seed: Annotated[int, typer.Option(**WHOLE, help="Seed of the bootstrap and of features.")] = 0,
    threads: Threads = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="Evaluate a small log that comes with the package.")
    ] = False,
    full: Full = False,
    require: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT:TARGET",
            help="better:NAME or not-worse:NAME. Exit codes: 0 met, 3 worse, 4 cannot be told, "
            "5 not trusted.",
        ),
    ] = None,
    margin: Annotated[
        float | None, typer.Option(help="With --require: better by this, or not worse by this.")
    ] = None,
    line: Annotated[
        bool,
        typer.Option(
            "--json-line", help="With --require: print that result only, as a line of JSON."
        ),
    ] = False,
    show_page: Open = False,
    no_figures: Annotated[bool, typer.Option("--no-figures", hidden=True)] = False,
    as_json: Json = False,
) -> None:
    """What is a new policy worth, from the log of another? And can you trust the answer?

    Examples:
      steadytd evaluate --sample

      steadytd evaluate log.parquet --discount 0.99 --full

      steadytd evaluate 'logs/*.parquet' --discount 0.99 --target soft5 --out results/soft5

      steadytd evaluate log.parquet --discount 0.99 --reward-range -6,1

      steadytd evaluate log.parquet --discount 0.99 --unit user_id

      steadytd evaluate server.parquet --average-reward

      steadytd evaluate log.parquet --discount 0.99 --reward revenue:+ --reward churn:- --by segment

      steadytd evaluate log.csv --discount 0.95 --map obs=state,behavior_prob=p --json

      steadytd evaluate logs/ --discount 0.99 --engine dask --checkpoint parts

      steadytd evaluate log.parquet --discount 0.99 --require better:soft5 --margin 0.02
    """
    from steadytd.base.files import require_writable
    from steadytd.base.progress import reporting
    from steadytd.evaluation.evaluate import evaluate as do
    from steadytd.logs.rewards import read_rewards

    if engine != "dask" and (address is not None or checkpoint is not None):
        given = "--address" if address is not None else "--checkpoint"
        raise InputError(f"{given} needs the engine dask, got '{engine}'; add --engine dask.")
    require_page(show_page, directory)
    if no_figures:
        say("--no-figures is the default now; pictures as files come with --figures.")
    if sample and average_reward:
        raise InputError("the episodes of --sample end; leave out --average-reward.")
    if sample:
        logs, discount = _sample(logs, discount)
    if not logs:
        raise InputError("give a log, for instance log.parquet; or --sample, to try one.")
    faults, required, extent = Faults(logs[0]), None, None
    with faults.caught():
        required = _requirement(require, margin, line)
    with faults.caught():
        extent = ranged(reward_range)
    rewards = read_rewards(reward or [], faults) or None
    if reward and not rewards:
        faults.check()  # without any reward the log would look as if it lacked one
    own = 1.0 if average_reward else discount
    log = opened(logs, own, target, columns, estimate, faults, unit, obs, rewards, by)
    if required is not None and required.target not in log.targets:
        raise unknown("target", required.target, log.targets)
    if directory is not None:
        require_writable(directory)
    for note in log.notes if as_json or line else ():
        say(note)
    with _unused(checkpoint), reporting(None, "reading") as update:
        e = do(
            log, discount=discount, average_reward=average_reward, features=features,
            learners=learner, rewards=rewards, by=by,
            behavior="estimate" if estimate else None, reward_range=extent,
            horizon=horizon, nothing_hidden=nothing_hidden, engine=engine, address=address,
            checkpoint=checkpoint, threads=threads, seed=seed, progress=update,
        )  # fmt: skip
    page = None
    if directory is not None:
        from steadytd.report.evaluation.page import write_evaluation

        with err.status("drawing"):
            page = write_evaluation(e, directory, files=log.files, command=command_line(),
                                    pictures=figures)  # fmt: skip
    gate = None if required is None else required.judge(e.compare(required.target))
    _print(e, gate, full, as_json, line)
    print_page(page, show_page, as_json or line)
    if gate is not None:
        raise typer.Exit(gate.exit_code)


def _print(e: Evaluation, gate: Gate | None, full: bool, as_json: bool, line: bool) -> None:
    """The answer, and whether it meets what is required."""
    from steadytd.report.evaluation.text import answer, rest

    if gate is not None and line:
        out.print(json.dumps(gate.to_dict()), markup=False, highlight=False, soft_wrap=True)
    elif as_json:
        print_json(e.to_dict() | ({} if gate is None else {"required": gate.to_dict()}))
    else:
        print_answer(answer(e, full=full), rest(e) if full else [], full)
        if gate is not None:
            out.print(f"\n{gate.text}", markup=False, highlight=False)


def _requirement(text: str | None, margin: float | None, line: bool) -> Requirement | None:
    """What `--require` and `--margin` say."""
    from steadytd.evaluation.gate import Requirement

    if text is not None:
        return Requirement.of(text, margin or 0.0)
    if margin is not None or line:
        given = "--json-line" if line else "--margin"
        raise InputError(f"{given} needs --require better:NAME or --require not-worse:NAME.")
    return None


def _sample(logs: list[str] | None, discount: float | None) -> tuple[list[str], float]:
    """Write the sample log, say where it is, and with which discount it is read."""
    from steadytd.base.files import made_cache_directory, output_directory
    from steadytd.logs.example import DISCOUNT, sample_log

    if logs:
        raise InputError(f"--sample has a log of its own; leave out '{logs[0]}', or --sample.")
    path = sample_log(output_directory(made_cache_directory() / "sample") / "log.parquet")
    discount = DISCOUNT if discount is None else discount
    say(f"steadytd evaluate {path} --discount {discount:g}")
    return [str(path)], discount


def opened(
    logs: list[str],
    discount: float | None,
    targets: list[str] | None,
    columns: list[str] | None,
    estimate: bool,
    faults: Faults,
    unit: str | None = None,
    obs: list[str] | None = None,
    rewards: dict[str, Any] | None = None,
    by: str | None = None,
) -> Log:
    """The log, with its behaviour probabilities or the wish to estimate them.

    Its faults are raised together with those of the other options.
    """
    from steadytd.logs.log import open_log

    chosen: list[str] | dict[str, str] | None = []
    with faults.caught():
        chosen = _targets(targets or [])
    names = [name for text in obs or [] for name in text.split(",") if name]
    with faults.caught():
        log = open_log(
            logs[0] if len(logs) == 1 else logs, discount=discount, targets=chosen,
            columns=mapped(columns, faults), unit=unit, obs=names or None, rewards=rewards,
            needs=["action" if estimate else "behavior_prob", *([] if by is None else [by])],
        )  # fmt: skip
    faults.check()
    return log


def _targets(given: list[str]) -> list[str] | dict[str, str] | None:
    """The targets of `--target name` and `--target name=column`; models in files are refused."""
    pairs = [text.partition("=") for text in given]
    names = [name for name, _, _ in pairs]
    for name, _, column in pairs:
        if names.count(name) > 1:
            raise InputError(f"the target '{name}' is given twice; leave one out.")
        if Path(column).suffix.lower() in PICKLES:
            raise InputError(
                f"--target {name}={column}: such a file is a pickle, and opening one can run any "
                "code, so it is not read here. Write the column in Python, where you trust the "
                f"model: st.write_log('log.parquet', st.with_policy(frame, '{name}', model)), and "
                f"say --target {name}."
            )
    if not any(column for _, _, column in pairs):
        return names or None
    return {name: column or name for name, _, column in pairs}


def ranged(given: str | None) -> tuple[float, float] | None:
    """Two numbers from their text form.

    >>> ranged("-6,1.5"), ranged(None)
    ((-6.0, 1.5), None)
    """
    if given is None:
        return None
    try:
        lo, hi = (float(part) for part in given.split(","))
    except ValueError:
        raise InputError(
            f"--reward-range must be two numbers LO,HI, for instance -1,10, got '{given}'."
        ) from None
    return lo, hi


def mapped(given: list[str] | None, faults: Faults) -> dict[str, str | list[str]] | None:
    """The column map from its text form: name=column, name=first+second, comma in between.

    >>> mapped(["obs=x+v,reward=r", "t=step", "discount="], Faults("a.csv"))
    {'obs': ['x', 'v'], 'reward': 'r', 't': 'step', 'discount': ''}
    """
    from steadytd.logs.columns import several

    found: dict[str, str | list[str]] = {}
    for piece in (part.strip() for text in given or [] for part in text.split(",")):
        name, equals, column = (word.strip() for word in piece.partition("="))
        if not (name and equals):
            faults.add(f"--map must be name=column,name=column, got '{piece}'")
        elif name in found:
            faults.add(f"--map gives '{name}' twice; leave one out")
        else:
            many = column.split("+") if several(name) else [column]
            found[name] = many if len(many) > 1 else column
    return found or None


@contextmanager
def _unused(checkpoint: Path | None) -> Iterator[None]:
    """After bad input no empty directory is left behind."""
    new = checkpoint is not None and not checkpoint.exists()
    try:
        yield
    except BaseException:
        if checkpoint is not None and new and checkpoint.is_dir() and not any(checkpoint.iterdir()):
            checkpoint.rmdir()
        raise
