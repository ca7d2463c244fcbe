"""The grammar that docs/ceql.md shows, made from the grammar that the parser reads: ``python -m tests.languages.grammar_shown``."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["shown"]

ROOT = Path(__file__).parents[2] / "src/stretto/languages"
SOURCES = [
    ROOT / "ceql/grammar.lark",
    *(ROOT / f"expressions/{name}.lark" for name in ("totals", "predicates", "values")),
]

#: Terminals that are words of a kind, and what the page calls them.
KINDS = {
    "NAME": "word",
    "ATTRIBUTE": "word",
    "CALLED": "word",
    "COLUMN": "word",
    "MODE": "word",
    "CHOICE": "word",
    "KEYED": "name",
    "FUNCTION": "word",
    "UNIT": "word",
}
KINDS |= {"NUMBER": "number", "STRING": "'text'", "QUOTED": "`name`"}
#: Terminals whose regular expressions look ahead, and what they read.
READ = {
    "DURATION": "(number unit)+",
    "CASE": "CASE",
    "DANGLING_AS": "AS",
    "AFTER": "AFTER",
    "GAP": "GAP",
    "WITHIN_ALL": "WITHIN",
    "WITHIN_THIS": "WITHIN",
    "KEEP": "KEEP",
    "GROUP": "GROUP",
    "ORDER": "ORDER",
    "EVERY": "EVERY",
    "SAMPLE": "SAMPLE",
    "CAST": "CAST",
    "DISTINCT": "DISTINCT",
    "AFTER_MATCH": "AFTER MATCH",
    "TRAILING": '";"',
    "EQUAL": '("=" | "==")',
    "COMPARE": '"=" | "==" | "!=" | "<>" | "<" | "<=" | ">="',
}
WIDTH = 100


def shown() -> str:
    """Rules in order, without names of callbacks, with keywords as they are written."""
    text = "\n".join(source.read_text(encoding="utf-8") for source in SOURCES)
    text = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"->\s*\w+", "", text)
    terminals = {**READ, **KINDS}
    rules: dict[str, list[str]] = {}
    for name, body in re.findall(r"^\??(\w+)(?:\.\d+)?: ?((?:.|\n(?=\s+\|))*)$", text, flags=re.MULTILINE):
        if name.islower():
            rules[name] = [" ".join(one.split()) for one in re.split(r"\s\|\s(?![^(]*\))", f" {body.strip()}")]
        elif name not in terminals:
            terminals[name] = _terminal(body.strip())
    width = max(map(len, rules))
    lines = []
    for name, alternatives in rules.items():
        told = (re.sub(r"\b[A-Z_]+\b", lambda word: terminals[word[0]], one) for one in alternatives)
        written = list(dict.fromkeys(told))
        head = f"{name:<{width}} ::= "
        line = head + " | ".join(written)
        lines.append(line if len(line) <= WIDTH else head + f"\n{'':<{width}}   | ".join(written))
    return "\n".join(lines) + "\n"


def _terminal(body: str) -> str:
    """A keyword in capitals, a sign in double quotes."""
    words = re.fullmatch(r"/\(\?a:([a-z|]+)\)\(\?!\\w\)/i", body)
    if words is None:
        return body
    return words[1].upper() if "|" not in words[1] else "(" + " | ".join(words[1].upper().split("|")) + ")"


if __name__ == "__main__":
    print(shown(), end="")
