"""`steadytd`: the commands, thin wrappers around the library."""

from __future__ import annotations

import sys

import typer

from steadytd.base.errors import InputError
from steadytd.cli import browse, certify, evaluate, experiments, lab, report, study, verify
from steadytd.cli.console import err

INTERRUPTED = 130  # what Typer makes of Ctrl-C

app = typer.Typer(
    name="steadytd",
    help="Off-policy TD learning: run, certify and compare learners, and value policies from logs.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("reproduce")(experiments.reproduce)
app.command("run")(experiments.run)
app.command("study")(study.study)
app.command("report")(report.report)
app.command("certify")(certify.certify)
app.command("verify")(verify.verify)
app.command("evaluate")(evaluate.evaluate)
app.command("lab")(lab.lab)
app.command("list")(browse.list_names)
app.command("show")(browse.show)


@app.callback(invoke_without_command=True)
def options(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    """Off-policy TD learning: run, certify and compare learners, and value policies from logs."""
    if version:
        from steadytd import __version__

        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Run a command: exit code 2 and one message for bad input, 130 when interrupted."""
    try:
        app(standalone_mode=True)
    except InputError as error:
        err.print(f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            err.print("interrupted; every file written so far is complete.", highlight=False)
        raise


def escape(text: str) -> str:
    """Text as it is, not as Rich markup."""
    from rich.markup import escape as rich_escape

    return rich_escape(text)
