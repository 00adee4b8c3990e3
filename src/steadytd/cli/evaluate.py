"""`steadytd evaluate`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steadytd.cli.console import (
    WHOLE,
    Json,
    NoFigures,
    Open,
    Threads,
    command_line,
    err,
    open_page,
    out,
    print_json,
    print_page,
    progress_bar,
    require_page,
    say,
)

if TYPE_CHECKING:
    from steadytd.logs.log import Log

Discount = Annotated[
    float | None,
    typer.Option("--discount", help="Discount in [0, 1]; needed unless the log has it."),
]
Target = Annotated[
    list[str] | None, typer.Option("--target", help="Only this target; repeatable. Default: all.")
]
Features = Annotated[
    str | None, typer.Option(help="raw, poly:K, rbf:N, fourier:K, tiles:NxM or onehot.")
]
Map = Annotated[
    list[str] | None,
    typer.Option("--map", help="Your column names: obs=state,reward=r, or obs=x+v."),
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
    target: Target = None,
    features: Features = None,
    learner: Annotated[
        list[str] | None, typer.Option("--learner", help="name:key=value,...; repeatable.")
    ] = None,
    columns: Map = None,
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
        typer.Option("--out", help="Write evaluation.html, pictures and value functions here."),
    ] = None,
    seed: Annotated[int, typer.Option(**WHOLE, help="Seed of the bootstrap and of features.")] = 0,
    threads: Threads = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="Evaluate a small log that is made for you.")
    ] = False,
    show_page: Open = False,
    no_figures: NoFigures = False,
    as_json: Json = False,
) -> None:
    """What is a new policy worth, from the log of another? And can you trust the answer?

    Examples:
      steadytd evaluate --sample

      steadytd evaluate log.parquet --discount 0.99 --features rbf:300

      steadytd evaluate 'logs/*.parquet' --discount 0.99 --target soft5 --out results/soft5

      steadytd evaluate log.parquet --discount 0.99 --reward-range -6,1

      steadytd evaluate log.csv --discount 0.95 --map obs=state,behavior_prob=p --json

      steadytd evaluate logs/ --discount 0.99 --engine dask --checkpoint parts
    """
    from steadytd.base.errors import InputError
    from steadytd.base.files import require_writable
    from steadytd.evaluation.evaluate import evaluate as do

    if engine != "dask" and (address is not None or checkpoint is not None):
        given = "--address" if address is not None else "--checkpoint"
        raise InputError(f"{given} needs the engine dask, got '{engine}'; add --engine dask.")
    require_page(show_page, directory)
    if sample:
        logs, discount, features = _sample(logs, discount, features)
    if not logs:
        raise InputError("give a log, for instance log.parquet; or --sample, to try one.")
    log = opened(logs, discount, target, columns, estimate)
    if directory is not None:
        require_writable(directory)
    for note in log.notes:
        say(note)
    bar = progress_bar("reading", unit="rows", then="solving")
    with _unused(checkpoint), bar as update:
        e = do(
            log, discount=discount, features=features or "raw", learners=learner,
            behavior="estimate" if estimate else None, reward_range=ranged(reward_range),
            horizon=horizon, nothing_hidden=nothing_hidden, engine=engine, address=address,
            checkpoint=checkpoint, threads=threads, seed=seed, progress=update,
        )  # fmt: skip
    page = None
    if directory is not None:
        from steadytd.report.evaluation.page import write_evaluation

        with err.status("drawing"):
            page = write_evaluation(e, directory, files=log.files, command=command_line(),
                                    pictures=not no_figures)  # fmt: skip
    if as_json:
        print_json(e.to_dict())
        if page is not None:
            open_page(page, show_page)
        return
    from steadytd.cli.evaluate_page import show

    show(e)
    if page is not None:
        out.print()
        print_page(page, show_page)


def _sample(
    logs: list[str] | None, discount: float | None, features: str | None
) -> tuple[list[str], float, str]:
    """Make the sample log, say where it is, and with which settings it is read."""
    from steadytd.base.errors import InputError
    from steadytd.base.files import made_cache_directory, output_directory
    from steadytd.logs.example import DISCOUNT, FEATURES, sample_log

    if logs:
        raise InputError(f"--sample makes a log of its own; leave out '{logs[0]}', or --sample.")
    path = sample_log(output_directory(made_cache_directory() / "sample") / "log.parquet")
    discount, features = DISCOUNT if discount is None else discount, features or FEATURES
    say(f"steadytd evaluate {path} --discount {discount:g} --features {features}")
    return [str(path)], discount, features


def opened(
    logs: list[str],
    discount: float | None,
    targets: list[str] | None,
    columns: list[str] | None,
    estimate: bool,
) -> Log:
    """The log, with its behaviour probabilities or the wish to estimate them."""
    from steadytd.base.errors import InputError
    from steadytd.evaluation.behavior.opened import require_behavior
    from steadytd.logs.log import open_log

    for i, name in enumerate(targets or []):
        if name in (targets or [])[:i]:
            raise InputError(f"the target '{name}' is given twice; leave one out.")
    source = logs[0] if len(logs) == 1 else logs
    log = open_log(source, discount=discount, targets=targets or None, columns=mapped(columns))
    if not estimate:
        require_behavior(log)
    return log


def ranged(given: str | None) -> tuple[float, float] | None:
    """Two numbers from their text form.

    >>> ranged("-6,1.5"), ranged(None)
    ((-6.0, 1.5), None)
    """
    from steadytd.base.errors import InputError

    if given is None:
        return None
    try:
        lo, hi = (float(part) for part in given.split(","))
    except ValueError:
        raise InputError(
            f"--reward-range must be two numbers LO,HI, for instance -1,10, got '{given}'."
        ) from None
    return lo, hi


def mapped(given: list[str] | None) -> dict[str, str | list[str]] | None:
    """The column map from its text form: name=column, name=first+second, comma in between.

    >>> mapped(["obs=x+v,reward=r", "t=step"])
    {'obs': ['x', 'v'], 'reward': 'r', 't': 'step'}
    """
    from steadytd.base.errors import InputError
    from steadytd.logs.columns import several

    found: dict[str, str | list[str]] = {}
    for piece in (part.strip() for text in given or [] for part in text.split(",")):
        name, equals, column = (word.strip() for word in piece.partition("="))
        if not (name and equals and column):
            raise InputError(f"--map must be name=column,name=column, got '{piece}'.")
        if name in found:
            raise InputError(f"--map gives '{name}' twice; leave one out.")
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
