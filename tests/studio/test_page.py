"""The page that the repository keeps, and every installation has, is the one that its source gives."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from stretto.languages.ceql.parser import CEQL
from stretto.languages.eql.parser import EQL
from stretto.languages.expressions.reading import Language, parser
from stretto.languages.sase.parser import SASE
from stretto.studio.page import FILES, STATIC

SOURCE = Path(__file__).parents[2] / "studio"


def test_the_page_is_that_of_its_source(tmp_path: Path) -> None:
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("Node, which builds the page, is not installed")
    source = tmp_path / "studio"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("node_modules"))
    for command in ([npm, "ci", "--no-audit", "--no-fund"], [node, "build.mjs", str(tmp_path / "static")]):
        done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    built = {path.name: path.read_bytes() for path in (tmp_path / "static").iterdir()}
    kept = {path.name: path.read_bytes() for path in STATIC.iterdir()}
    assert built.keys() == kept.keys() >= {"index.html", *FILES}
    differing = [name for name in built if built[name] != kept[name]]
    assert differing == [], "run 'make studio', and commit what it builds"


#: Words that mean something at some places, without a terminal of their own.
_NAMES = {
    "ceql": {"any", "events", "none"},
    "sase": {"skip_till_next_match", "skip_till_any_match", "strict_contiguity", "partition_contiguity"},
    "eql": set(),
}


@pytest.mark.parametrize("language", [CEQL, SASE, EQL], ids=str)
def test_the_page_knows_the_keywords_of_the_grammars(language: Language) -> None:
    """Those of all terminals, as words that ignore case or, in EQL, as they are."""
    name = language.package.rpartition(".")[2]
    patterns = [t.pattern.value for start in language.forms for t in parser(language, start, trees=True).terminals]
    ignoring = [
        word for one in patterns for group in re.findall(r"\(\?a:([a-z_|]+)\)", one) for word in group.split("|")
    ]
    exact = [found[1] for one in patterns if (found := re.match(r"([a-z]+)(?:\(\?!\[\\w@\]|\(\?:~)", one))]
    source = (SOURCE / "src" / "keywords.js").read_text(encoding="utf-8")
    written = re.search(rf'^  {name}:((?:\s+"[^"]*"(?: \+)?)+),$', source, re.M)
    assert written is not None
    words = "".join(re.findall(r'"([^"]*)"', written[1])).split()
    assert sorted(map(str.lower, words)) == sorted({*ignoring, *exact} | _NAMES[name])


def test_the_page_has_no_words_of_python() -> None:
    """What people read in the page is that of JSON and of the queries."""
    for path in (SOURCE / "src").iterdir():
        shown = re.findall(r"[\"`']([^\"`'\n]*)[\"`']", path.read_text(encoding="utf-8"))
        assert [one for one in shown if re.search(r"\b(None|True|False|kwargs)\b|\b(list|dict|tuple)\[", one)] == [], (
            path.name
        )
