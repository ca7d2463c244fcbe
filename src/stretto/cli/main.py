"""The ``stretto`` command."""

from __future__ import annotations

import sys
import warnings
from functools import cache
from typing import Annotated, Any, TextIO

import typer
from rich.console import Console

from stretto.cli.options import BAD_QUERY, FAILED, MISUSED
from stretto.errors import OptionError, QueryError, StrettoError, StrettoWarning


def _version(asked: bool) -> None:
    if asked:
        import stretto

        typer.echo(f"stretto {stretto.__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; ends the process with an exit code (see the package's docstring)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", StrettoWarning)
            warnings.showwarning = _show_warning
            _program()(args=arguments, prog_name="stretto")
    except QueryError as error:
        _fail("query error", error, BAD_QUERY)
    except OptionError as error:
        _fail("error", error, MISUSED)
    except StrettoError as error:
        _fail("error", error, FAILED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        _fail("error", error, MISUSED)


@cache
def _program() -> Any:
    """The commands; an argument is called by its name in their help, without the type that Python has for it."""
    from stretto.cli import compile, demo, doctor, explain, match, rules, run, sql, studio, why_not

    app = typer.Typer(
        name="stretto",
        help="Find sequences, repetitions and trends in streams of events.",
        no_args_is_help=True,
        add_completion=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    for module in (match, why_not, sql, rules, explain, run, studio, demo, compile, doctor):
        module.register(app)
    program = typer.main.get_command(app)
    waiting = [program]
    while waiting:
        command = waiting.pop()
        waiting += getattr(command, "commands", {}).values()
        for param in command.params:
            if param.param_type_name == "argument":
                setattr(param, "display_type_rich", lambda ctx: None)  # noqa: B010 - a method of newer versions of Typer
    return program


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning of ours as one line; others as Python has them."""
    console = Console(stderr=True)
    if issubclass(category, StrettoWarning):
        console.print("warning: ", style="bold yellow", end="")
        console.print(str(message), markup=False, highlight=False, soft_wrap=True)
    else:
        console.print(
            warnings.formatwarning(message, category, filename, lineno, line),
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


def _fail(kind: str, error: object, code: int) -> None:
    console = Console(stderr=True)
    console.print(f"{kind}: ", style="bold red", end="")
    console.print(str(error), markup=False, highlight=False, soft_wrap=True)
    sys.exit(code)
