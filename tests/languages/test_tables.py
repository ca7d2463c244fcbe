"""Tables of grammars that are kept: parsers of them are those of the grammars."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lark import Lark, UnexpectedInput

from stretto import _jit
from stretto.languages.expressions import reading
from stretto.languages.expressions.reading import Language

LANGUAGES = {language.package.rpartition(".")[2]: language for language in reading.languages()}

#: Texts, right and wrong.
TEXTS = {
    "ceql": [
        "SELECT * FROM S WHERE A AS a ; B+ FILTER a[v > 1.5e3 AND n = 'i''s'] WITHIN 5 minutes",
        "SELECT * FROM S WHERE A ; ; B",
    ],
    "sase": [
        "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { [k] and b[i].v > 1 } WITHIN 9",
        "PATTERN SEQ(A a,, B b)",
    ],
    "eql": ["sequence by k with maxspan=10s [A where true] [B where v > 3]", "sequence by [A where true]"],
    "match_recognize": [
        "MATCH_RECOGNIZE (ORDER BY t PATTERN (A B*) DEFINE B AS v > PREV(v))",
        "MATCH_RECOGNIZE (ORDER t)",
    ],
}


def made(monkeypatch: pytest.MonkeyPatch, language: Language, form: str, folder: Path | None) -> Lark:
    """The parser of a language, of a table that lies in a folder, or anew."""
    monkeypatch.setattr(_jit, "CACHE_DIRECTORY", str(folder or ""))
    monkeypatch.setattr(reading.bundle, "read", lambda folder, name: None)
    return reading.parser.__wrapped__(language, form, trees=True)


def outcome(parser: Lark, text: str) -> object:
    try:
        return parser.parse(text)
    except UnexpectedInput as error:
        return (
            type(error),
            error.pos_in_stream,
            sorted(getattr(error, "accepts", None) or getattr(error, "allowed", None) or ()),
        )


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_table_that_is_kept_reads_what_the_grammar_reads(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    language = LANGUAGES[name]
    for form in language.forms:
        whole = made(monkeypatch, language, form, None)
        first = made(monkeypatch, language, form, tmp_path)
        with monkeypatch.context() as patched:
            patched.setattr(Lark, "__init__", lambda *given, **named: pytest.fail("the table was not taken"))
            kept = made(patched, language, form, tmp_path)
        for text in [*TEXTS.get(name, []), language.forms[form], "", "(", "1 +", "x.y = 'z' and not 3 > 4"]:
            assert outcome(whole, text) == outcome(first, text) == outcome(kept, text)
        assert {one.name for one in whole.terminals} == {one.name for one in kept.terminals}
    assert len(list(tmp_path.rglob("*.json"))) == len(language.forms)


def test_a_table_that_was_cut_off_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    language = LANGUAGES["relational"]
    made(monkeypatch, language, "value", tmp_path)
    (file,) = tmp_path.rglob("*.json")
    right = file.read_bytes()
    file.write_bytes(right[: len(right) // 2])
    parser = made(monkeypatch, language, "value", tmp_path)
    assert parser.parse("cost + 1") == made(monkeypatch, language, "value", None).parse("cost + 1")
    json.loads(file.read_bytes())


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / reading.FOLDER).write_text("a file in the place of the folder")
    assert made(monkeypatch, LANGUAGES["relational"], "value", tmp_path).parse("cost + 1") is not None
