"""Every command and every option says what it is for, and the README knows every command."""

from __future__ import annotations

import re

import click
import pytest

from pvanalyse import __version__
from pvanalyse.cli import cli, main
from tests.conftest import ROOT

COMMANDS = cli.list_commands(click.Context(cli))


def command(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


def test_the_help_lists_every_command_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    listed = re.findall(r"^  ([a-z-]+)  +[A-Z]\w+ ", capsys.readouterr().out.partition("Commands:")[2], re.MULTILINE)
    assert listed == COMMANDS


def test_the_help_names_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])
    epilogue = " ".join(capsys.readouterr().out.partition("Exit codes:")[2].split())
    assert re.findall(r"\d", epilogue) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(capsys: pytest.CaptureFixture[str], name: str) -> None:
    # GIVEN a command; WHEN asked for its help
    assert main([name, "--help"]) == 0
    out = capsys.readouterr().out
    # THEN it says what it does, in more than its name, and so does each of its options
    text = command(name).help or ""
    first = text.partition("\n\n")[0]
    assert first.endswith(".")
    assert len(first.split()) >= 4
    assert " ".join(first.split()) in " ".join(out.split())
    options = [one for one in command(name).params if isinstance(one, click.Option)]
    assert [one.opts for one in options if not (one.help or "").rstrip().endswith((".", ")"))] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_goes_by_its_name(name: str) -> None:
    assert command(name).name == name


HAVE_NO_ANSWER = {"open", "watch"}  # they go on, and show a page or what other commands answer


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in HAVE_NO_ANSWER])
def test_every_command_has_the_shared_options(name: str) -> None:
    found = command(name)
    options = {word for one in found.params for word in one.opts}
    assert options >= {"--format", "--units", "--quiet", "--force"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_readme_mentions_every_command(name: str) -> None:
    readme = ROOT / "README.md"
    if not readme.is_file():
        pytest.skip("there is no README.md yet")
    assert f"pvanalyse {name}" in readme.read_text("utf-8")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pvanalyse, version {__version__}\n"


@pytest.mark.parametrize(("typed", "hint"), [("sumary", "did you mean 'summary'?"), ("qqq", "there are: ls, ")])
def test_an_unknown_command_is_helped_on(capsys: pytest.CaptureFixture[str], typed: str, hint: str) -> None:
    assert main([typed]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"no such command '{typed}'; {hint}" in err
