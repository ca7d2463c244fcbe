"""docs/ceql.md against the grammar: it shows the one that the parser reads, and every rule of it has an example."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any

import pytest

import stretto
from stretto.languages.ceql.parser import CEQL
from stretto.languages.expressions.reading import parser
from tests.languages.grammar_shown import shown
from tests.project.test_docs import ROOT, blocks

PAGE = ROOT / "docs/ceql.md"

#: Rules of the grammar without an example: a variable called as a strategy is, and what is read to be refused with a hint.
LEFT_OUT = {"item_called_as_a_strategy", "negated_condition", "null"}


def test_the_grammar_of_the_page() -> None:
    (written,) = re.findall(r"^```text\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert written == shown(), "python -m tests.languages.grammar_shown"


def test_every_rule_has_an_example(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    match = stretto.match

    def matched(query: str, *rest: Any, **options: Any) -> Any:
        found = match(query, *rest, **options)
        texts.append(query)  # mistakes are no examples
        return found

    monkeypatch.setattr(stretto, "match", matched)
    names: dict[str, Any] = {"__name__": "__docs__"}
    with contextlib.redirect_stdout(io.StringIO()):
        for block in blocks(PAGE):
            exec(compile(block.code, str(PAGE), "exec"), names)
    grammar = parser(CEQL, "query", trees=True)
    trees = [grammar.parse(text) for text in dict.fromkeys(texts) if "SELECT" in text]
    used = {str(tree.data) for one in trees for tree in one.iter_subtrees()}
    names_of = {rule.alias or str(rule.origin.name) for rule in grammar.rules if rule.alias or not rule.options.expand1}
    assert sorted({name for name in names_of if not name.startswith("_")} - used) == sorted(LEFT_OUT)
