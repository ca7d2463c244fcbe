"""The commands of ``stretto``, made from the command line itself: ``:::{commands}``."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import typer
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

import stretto.cli


def commands() -> Iterator[tuple[str, Any]]:
    """All commands with what one types for them, in the order of the alphabet."""
    app = typer.Typer()
    for found in pkgutil.iter_modules(stretto.cli.__path__):
        register = getattr(import_module(f"stretto.cli.{found.name}"), "register", None)
        if register is not None:
            register(app)
    yield from _inside("stretto", typer.main.get_command(app))


def _inside(typed: str, group: Any) -> Iterator[tuple[str, Any]]:
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            yield from _inside(f"{typed} {name}", command)
        else:
            yield f"{typed} {name}", command


class Commands(SphinxDirective):
    """A section for each command: how it is called, what it does, its arguments and options."""

    def run(self) -> list[nodes.Node]:
        return [self._section(typed, command) for typed, command in commands()]

    def _section(self, typed: str, command: Any) -> nodes.section:
        section = nodes.section(ids=[nodes.make_id(typed)])
        section += nodes.title("", typed)
        arguments = [one for one in command.params if one.param_type_name == "argument"]
        options = [one for one in command.params if one.param_type_name == "option"]
        usage = " ".join([typed, *("[OPTIONS]",) * bool(options), *(_called(one) for one in arguments)])
        section += nodes.literal_block(usage, usage, language="sh")
        for text in (command.help or "").strip().split("\n\n"):
            section += nodes.paragraph("", " ".join(text.split()))
        described = nodes.definition_list()
        for one in (*arguments, *options):
            called = _name(one) if one in arguments else ", ".join((*one.opts, *one.secondary_opts))
            text = " ".join((getattr(one, "help", None) or "").split())
            described += nodes.definition_list_item(
                "", nodes.term("", "", nodes.literal(text=called)), nodes.definition("", nodes.paragraph("", text))
            )
        section += described
        return section


def _called(argument: Any) -> str:
    """An argument in a line of usage: in brackets where it may be left out, with dots where there may be several."""
    name = _name(argument) if argument.required else f"[{_name(argument)}]"
    return f"{name}..." if argument.nargs == -1 else name


def _name(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
