"""The command line: one file for each command, heavy imports only inside the commands.

Bad input ends with one message on standard error and exit code 2, never with a traceback; Ctrl-C
ends with one line and exit code 130.
"""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from seedless import __version__
from seedless.cli import (
    attribute,
    bench,
    bundle,
    card,
    churn,
    compare,
    data,
    demo,
    diff,
    env,
    evaluate,
    export,
    init,
    order,
    portable,
    report,
    robustness,
    sign,
    study,
    train,
    verify,
)
from seedless.cli.options import STOPPED
from seedless.core.errors import SeedlessError
from seedless.numerics.determinism import set_environment_variables

# Panels of `seedless --help`, and the commands in each, in the order in which they are shown.
COMMANDS: dict[str, dict[str, Any]] = {
    "Make and prove": {
        "demo": demo.demo,
        "train": train.train,
        "resume": train.resume,
        "verify": verify.verify,
        "diff": diff.diff,
        "sign": sign.sign,
    },
    "Analyse": {
        "evaluate": evaluate.evaluate,
        "compare": compare.compare,
        "churn": churn.churn,
        "robustness": robustness.robustness,
        "attribute": attribute.attribute,
    },
    "Share": {
        "report": report.report,
        "bundle": bundle.bundle,
        "card": card.card,
        "export": export.export,
    },
    "Inspect": {
        "data": data.app,
        "init": init.app,
        "order": order.app,
        "env": env.show,
        "portable": portable.app,
        "bench": bench.bench,
    },
    "Studies": {"study": study.app},
}


class _Commands(TyperGroup):
    """The commands in the order of `COMMANDS`. Ctrl-C ends each of them with one line."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for panel in COMMANDS.values() for name in panel]

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("stopped by Ctrl-C", err=True)
            sys.exit(STOPPED)


app = typer.Typer(
    cls=_Commands,
    help="Train a network twice and get the same bits, without a seed, and hand anyone the proof.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _panel, _commands in COMMANDS.items():
    for _name, _command in _commands.items():
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name=_name, rich_help_panel=_panel)
        else:
            app.command(_name, rich_help_panel=_panel)(_command)


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    if version:
        typer.echo(f"seedless {__version__}")
        raise typer.Exit()


def main() -> None:
    """Run the program."""
    set_environment_variables()
    try:
        app()
    except SeedlessError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
