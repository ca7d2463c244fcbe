"""Pictures of a grammar, made from the file that the parser reads: ``:::{railroads} ceql``, or with names of rules only these."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.resources import files
from typing import Any

import railroad as r
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

#: Terminals that are words of a kind, and what a picture calls them; keywords and signs are read from their expressions.
KINDS = {
    "NUMBER": "number",
    "INTEGER": "integer",
    "STRING": "'text'",
    "QUOTED": "`name`",
    "DURATION": "number unit",
    "TIME": "number unit",
    "PERCENTAGE": "number%",
    "COMPARE": "= != < <= > >=",
    "EQUAL": "=",
    "AFTER_MATCH": "AFTER MATCH",
    "TRIPLE": '"""text"""',
    "RAW": "raw text",
    "SINGLE": "'text'",
}
#: Terminals that differ from others in what stands around them only.
LIKE = {
    "WITHIN_ALL": "WITHIN",
    "WITHIN_THIS": "WITHIN",
    "DANGLING_AS": "AS",
    "NESTED": "SEQ",
    "KEEP": "KEEP",
    "AFTER": "AFTER",
    "GAP": "GAP",
    "CASE": "CASE",
    "TRAILING": ";",
}

_TOKEN = re.compile(
    r'\s*(?:(?P<word>\w+)|(?P<text>"(?:\\.|[^"\\])*"i?)|(?P<sign>[()\[\]|?*+])|(?P<range>~\s*\d+(?:\.\.\d+)?))'
)


class Grammar:
    """The rules and terminals of a language, by name."""

    def __init__(self, name: str) -> None:
        parser = import_module(f"stretto.languages.{name}.parser")
        shared = next(one.shared for one in vars(parser).values() if hasattr(one, "forms") and hasattr(one, "shared"))
        sources = [files(f"stretto.languages.{name}").joinpath("grammar.lark")]
        sources += [files("stretto.languages.expressions").joinpath(one) for one in shared]
        self.rules: dict[str, str] = {}
        self.terminals: dict[str, str] = {}
        for source in sources:
            text = re.sub(r"^\s*//.*$", "", source.read_text(encoding="utf-8"), flags=re.MULTILINE)
            for found, body in re.findall(r"^[?!]?(\w+)(?:\.\d+)?:((?:.|\n(?=\s+\|))*)$", text, flags=re.MULTILINE):
                if found.strip("_").islower():
                    self.rules.setdefault(found, re.sub(r"->\s*\w+", "", body).strip())
                else:
                    self.terminals.setdefault(found, body.strip())

    def pictures(self, names: Sequence[str]) -> Iterator[tuple[str, str]]:
        """The rules with these names, or all, each with its SVG."""
        for name in names or self.rules:
            drawn = io.StringIO()
            r.Diagram(_Body(self, self.rules[name]).whole(), css=None).writeSvg(drawn.write)
            yield name.strip("_"), drawn.getvalue()

    def leaf(self, name: str) -> Any:
        """A rule by its name, or a terminal as it is written."""
        if name in self.rules:
            return r.NonTerminal(name.strip("_").replace("_", " "))
        if name in LIKE:
            return r.Terminal(LIKE[name])
        if name in KINDS:
            return r.NonTerminal(KINDS[name])
        body = self.terminals[name]
        if body.startswith('"'):
            return r.Terminal(body.strip("i").strip('"'))
        words = re.match(r"/(?:\(\?a:[a-z_|]+\)(?:\\s\+)?)+|/[a-z]+(?=\(\?)", body)
        if words is None:
            return r.NonTerminal(name.lower().replace("_", " "))
        keywords = re.findall(r"\(\?a:([a-z_|]+)\)", words[0])
        if not keywords:
            return r.Terminal(words[0][1:])
        if len(keywords) > 1 or "|" not in keywords[0]:
            return r.Terminal(" ".join(keywords).upper())
        return r.Choice(0, *map(r.Terminal, keywords[0].upper().split("|")))


class _Body:
    """The right side of a rule, read from left to right."""

    def __init__(self, grammar: Grammar, text: str) -> None:
        self.grammar = grammar
        self.tokens = [found for found in _TOKEN.finditer(text) if found[0].strip()]
        self.at = 0

    def whole(self) -> Any:
        found = self.choice()
        if self.at < len(self.tokens):
            raise ValueError(f"the grammar has something that no picture is known for: {self.tokens[self.at][0]!r}")
        return found

    def peek(self) -> str:
        return self.tokens[self.at][0].strip() if self.at < len(self.tokens) else ""

    def choice(self) -> Any:
        found = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            found.append(self.sequence())
        return found[0] if len(found) == 1 else r.Choice(0, *found)

    def sequence(self) -> Any:
        found = []
        while self.peek() not in ("", "|", ")", "]"):
            found.append(self.repeated())
        return found[0] if len(found) == 1 else r.Sequence(*found) if found else r.Skip()

    def repeated(self) -> Any:
        one = self.item()
        while self.peek() in ("?", "*", "+"):
            sign = self.peek()
            one = {"?": r.Optional, "*": r.ZeroOrMore, "+": r.OneOrMore}[sign](one)
            self.at += 1
        return one

    def item(self) -> Any:
        token = self.tokens[self.at]
        self.at += 1
        if token["sign"] in ("(", "["):
            inner = self.choice()
            self.at += 1
            return inner if token["sign"] == "(" else r.Optional(inner)
        if token["text"]:
            return r.Terminal(token["text"].strip("i").strip('"'))
        return self.grammar.leaf(token["word"])


class Railroads(SphinxDirective):
    """The rules of a language as pictures, one under the other."""

    has_content = True
    required_arguments = 1
    optional_arguments = 100

    def run(self) -> list[nodes.Node]:
        language, *names = self.arguments
        grammar = Grammar(language)
        self.env.note_dependency(str(files(f"stretto.languages.{language}").joinpath("grammar.lark")))
        found: list[nodes.Node] = []
        for name, picture in grammar.pictures(names):
            found.append(nodes.paragraph("", "", nodes.literal(text=name)))
            found.append(nodes.raw("", f'<div class="railroad">{picture}</div>', format="html"))
        return found


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_directive("railroads", Railroads)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
