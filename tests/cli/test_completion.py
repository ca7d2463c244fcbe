"""What a shell completes."""

from __future__ import annotations

import importlib

import pytest

from stretto.cli import main


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("stretto wh", {"why-not"}),
        ("stretto match --lang", {"--language"}),
        ("stretto match --language ", {"ceql", "sase", "eql"}),
        ("stretto explain --time-unit ", {"s", "ms", "us", "ns"}),
        ("stretto match query.ceql ", set()),  # what is no option is a file, which the shell completes itself
    ],
)
def test_bash(line: str, wanted: set[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["stretto"])
    monkeypatch.setenv("_STRETTO_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    with pytest.raises(SystemExit):
        main()
    assert set(capsys.readouterr().out.split()) == wanted


def test_the_script_falls_back_on_names_of_files(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["stretto"])
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    program = importlib.import_module("stretto.cli.main")._program
    program.cache_clear()  # Typer looks at the variable when it makes the commands
    with pytest.raises(SystemExit):
        main(["--show-completion", "bash"])
    program.cache_clear()
    assert "complete -o default -F _stretto_completion stretto" in capsys.readouterr().out
