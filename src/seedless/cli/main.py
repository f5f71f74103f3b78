"""The command line: one file a verb, heavy imports only inside the verbs.

Bad input ends in one message on standard error and exit code 2, never in a traceback; Ctrl-C in one
line and exit code 130.
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


class _Verbs(TyperGroup):
    """The verbs, ended by Ctrl-C in one line where they have no more to say of it themselves."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("stopped by Ctrl-C", err=True)
            sys.exit(STOPPED)


app = typer.Typer(
    cls=_Verbs,
    help="Train a network twice and get the same bits, without a seed, and hand anyone the proof.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data.app, name="data")
app.add_typer(init.app, name="init")
app.add_typer(order.app, name="order")
app.add_typer(portable.app, name="portable")
app.add_typer(study.app, name="study")
app.command("env")(env.show)
app.command("demo")(demo.demo)
app.command("train")(train.train)
app.command("resume")(train.resume)
app.command("verify")(verify.verify)
app.command("diff")(diff.diff)
app.command("compare")(compare.compare)
app.command("evaluate")(evaluate.evaluate)
app.command("churn")(churn.churn)
app.command("sign")(sign.sign)
app.command("bundle")(bundle.bundle)
app.command("report")(report.report)
app.command("robustness")(robustness.robustness)
app.command("attribute")(attribute.attribute)
app.command("export")(export.export)
app.command("card")(card.card)
app.command("bench")(bench.bench)


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
