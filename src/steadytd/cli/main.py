"""`steadytd`: the commands, thin wrappers around the library."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import warnings
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from steadytd.base.errors import InputError, unknown
from steadytd.cli import browse, certify, evaluate, experiments, fault, lab, monitor, study
from steadytd.cli.console import err, plain, say

INTERRUPTED = 130  # what Typer makes of Ctrl-C


class Plain:
    """Help names what is to be given, and not its type in Python; a fault is one sentence."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options and arguments."""
        return _named(super().get_params(ctx))  # type: ignore[misc]

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Read them; one sentence where one is missing, unknown or cannot be understood."""
        try:
            return super().parse_args(ctx, args)  # type: ignore[misc]
        except Exception as error:
            fault = _understood(ctx.command, ctx, error)
            if fault is None:
                raise
            raise fault from None


class Command(Plain, TyperCommand):
    """One of the commands."""


class Commands(Plain, TyperGroup):
    """`steadytd` itself."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is named first."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            raise unknown("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)


def _understood(command: Any, ctx: Any, error: Exception) -> InputError | None:
    """What is wrong with the words of a command; None if it is not that."""
    kind = type(error).__name__  # Typer brings its own Click
    if kind == "MissingParameter":
        missing = next(x for x in command.params if x.required and not ctx.params.get(x.name))
        example = re.search(rf"steadytd {command.name} [^\n]+", command.help or "")
        shown = f" For instance: {example[0].strip()}" if example else ""
        what = re.sub(r"\s+", " ", getattr(missing, "help", None) or "").strip()
        return InputError(f"{missing.metavar} is missing. {what}{shown}")
    if kind == "NoSuchOption":
        known = [x for one in command.get_params(ctx) for x in one.opts if x.startswith("--")]
        return unknown("option", getattr(error, "option_name", ""), known)
    if hasattr(error, "format_message") and not kind.startswith("NoArgs"):  # that one prints help
        said = error.format_message().rstrip(".")
        return InputError(f"{said}. `{ctx.command_path} --help` lists what can be given.")
    return None


def _named(params: list[Any]) -> list[Any]:
    """`--engine ENGINE` in the place of `--engine <str>`; a flag has no value."""
    for one in params:
        if getattr(one, "is_flag", False):
            one.metavar = ""
        elif one.metavar is None:
            one.metavar = one.name.upper()
        if one.param_type_name == "argument":
            one.display_type_rich = lambda ctx: None
    return params


app = typer.Typer(
    name="steadytd",
    cls=Commands,
    help="Off-policy TD learning: run, certify and compare learners, and value policies from logs.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.command("reproduce", cls=Command)(experiments.reproduce)
app.command("run", cls=Command)(experiments.run)
app.command("study", cls=Command)(study.study)
app.command("report", cls=Command)(study.report)
app.command("certify", cls=Command)(certify.certify)
app.command("verify", cls=Command)(certify.verify)
app.command("evaluate", cls=Command)(evaluate.evaluate)
app.command("monitor", cls=Command)(monitor.monitor)
app.command("lab", cls=Command)(lab.lab)
app.command("list", cls=Command)(browse.list_names)
app.command("show", cls=Command)(browse.show)


@app.callback(invoke_without_command=True)
def options(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    """Off-policy TD learning: run, certify and compare learners, and value policies from logs."""
    if version:
        from steadytd import __version__

        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Run a command.

    Exit code 2 and one message for bad input, and for files that cannot be read or written (a full
    disk, a directory that is not yours); 130 when interrupted. Exit code 1 is a mistake of our own:
    one sentence, and a file with the details.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: say(str(message))
            _command()
    except InputError as error:
        _fail(str(error))
    except OSError as error:
        _fail(_refused(error))
    except MemoryError:
        _fail("there is not enough memory for this; ask for less, or use a larger machine.")
    except Exception as error:
        _fail(fault.sentence(error), code=1)
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            err.print("interrupted; every file written so far is complete.", highlight=False)
        raise


def _command() -> None:
    """Run it; whatever an interruption became on its way is one."""
    try:
        app(standalone_mode=True)
    except Exception:
        if fault.interruptions:
            sys.exit(INTERRUPTED)
        raise


def _fail(sentence: str, code: int = 2) -> NoReturn:
    with contextlib.suppress(OSError):
        whole = not err.is_terminal  # a terminal would break lines inside of words
        err.print(
            f"[bold red]error:[/] {plain(sentence, lines=True)}", highlight=False, soft_wrap=whole
        )
    _give_up_full_output()
    sys.exit(code)


def _refused(error: OSError) -> str:
    """What the operating system refused, in one sentence."""
    from steadytd.base.files import reason

    if error.filename is not None:
        return f"cannot use '{os.fsdecode(error.filename)}': {reason(error)}; name another place."
    return f"cannot write: {reason(error)}; make room, or name another place, and start again."


def _give_up_full_output() -> None:
    """Python writes what is left of the output when it ends, and would fail once more."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
