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
from steadytd.cli import browse, certify, evaluate, experiments, fault, lab, report, study
from steadytd.cli.console import err, plain, say

INTERRUPTED = 130  # what Typer makes of Ctrl-C


class Command(TyperCommand):
    """A command whose help names what is to be given, and not its type in Python."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options and arguments."""
        return _named(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read them; where one is missing, say what it is and show the command in use."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if type(error).__name__ != "MissingParameter":  # Typer brings its own Click
                raise
            missing = next(x for x in self.params if x.required and not ctx.params.get(x.name))
            example = re.search(rf"steadytd {self.name} [^\n]+", self.help or "")
            shown = f" For instance: {example[0].strip()}" if example else ""
            what = re.sub(r"\s+", " ", getattr(missing, "help", None) or "").strip()
            raise InputError(f"{missing.metavar} is missing. {what}{shown}") from None


class Commands(TyperGroup):
    """As `Command`, for `steadytd` itself."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options."""
        return _named(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is named first."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            raise unknown("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)


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
app.command("report", cls=Command)(report.report)
app.command("certify", cls=Command)(certify.certify)
app.command("verify", cls=Command)(certify.verify)
app.command("evaluate", cls=Command)(evaluate.evaluate)
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
            app(standalone_mode=True)
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


def _fail(sentence: str, code: int = 2) -> NoReturn:
    with contextlib.suppress(OSError):
        err.print(f"[bold red]error:[/] {plain(sentence)}", highlight=False, soft_wrap=True)
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
