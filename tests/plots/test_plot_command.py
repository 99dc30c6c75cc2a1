"""``pvanalyse plot``: what it writes, what it refuses, and with which exit code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pvanalyse.cli import main
from pvanalyse.plots import FORMATS, KINDS
from tests.conftest import SAMPLES

REPORT = str(SAMPLES / "pipelined" / "training")
MAGIC = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
Capture = pytest.CaptureFixture[str]


def refusal(capsys: Capture, code: int, *argv: str) -> str:
    assert main(["plot", *argv]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize("file_format", FORMATS)
def test_the_suffix_says_the_format(capsys: Capture, tmp_path: Path, file_format: str) -> None:
    file = tmp_path / f"picture.{file_format.upper()}"
    assert main(["plot", "tile-histogram", REPORT, "-o", str(file)]) == 0
    assert capsys.readouterr() == ("", "")
    assert file.read_bytes().startswith(MAGIC[file_format])
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_a_format_can_be_named(tmp_path: Path) -> None:
    file = tmp_path / "picture"
    assert main(["plot", "tile-histogram", REPORT, "-o", str(file), "--format", "svg"]) == 0
    assert file.read_bytes().startswith(MAGIC["svg"])


@pytest.mark.parametrize(
    "options",
    [
        ["memory-by-tile", "--by", "liveness", "--worst", "10", "--ipu", "0", "--ipu", "1"],
        ["memory-by-tile", "--tiles", "0,5,100-110", "--units", "si"],
        ["categories", "--ipu", "1"],
        ["tile-histogram", "--column", "always_live_bytes"],
        ["tile-map", "--column", "interleaved_including_gaps"],
        ["memory-map", "--tile", "100", "--units", "bytes"],
        ["liveness", "--always-live", "--ipu", "1"],
        ["peak-variables", "--step", "12", "--count", "3"],
        ["lifetimes", "--pattern", "^bert/", "--count", "5"],
    ],
    ids=" ".join,
)
def test_options_change_the_picture(capsys: Capture, tmp_path: Path, options: list[str]) -> None:
    # GIVEN a kind with options and without; WHEN both are drawn; THEN the pictures differ, and nothing is said
    plain, other = tmp_path / "plain.png", tmp_path / "other.png"
    assert main(["plot", options[0], REPORT, "-o", str(plain), "--dpi", "50"]) == 0
    assert main(["plot", *options, REPORT, "-o", str(other), "--dpi", "50"]) == 0
    assert capsys.readouterr() == ("", "")
    assert plain.read_bytes() != other.read_bytes()


def test_the_size_is_as_asked(tmp_path: Path) -> None:
    file = tmp_path / "picture.png"
    assert main(["plot", "liveness", REPORT, "-o", str(file), "--width", "6", "--height", "3", "--dpi", "70"]) == 0
    width, height = (int.from_bytes(file.read_bytes()[at : at + 4]) for at in (16, 20))
    assert (width, height) == (420, 210)


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["tile-map", REPORT, "-o", "x.jpg"], "x.jpg: a picture's name ends in .png, .svg, .pdf"),
        (["tile-map", REPORT, "-o", "x"], "a picture's name ends in"),
        (
            ["tile-map", REPORT, "-o", "x.png", "--by", "region"],
            "--by is not for tile-map, which has: --column, --units",
        ),
        (["lifetimes", REPORT, "-o", "x.png", "--always-live"], "--always-live is not for lifetimes"),
        (["memory-by-tile", REPORT, "-o", "x.png", "--ipu", "0", "--tile", "3"], "--tile is not for memory-by-tile"),
        (["tile-map", REPORT, "-o", "x.png", "--column", "x"], "'x' is not a column of a tile's memory"),
        (["memory-by-tile", REPORT, "-o", "x.png", "--tiles", "5-2"], "counts down"),
        (["memory-map", REPORT, "-o", "x.png", "--tile", "128"], "there is no tile 128"),
        (["liveness", REPORT, "-o", "x.png", "--width", "200", "--dpi", "2400"], "is too large"),
        (["nonsense", REPORT, "-o", "x.png"], "'nonsense' is not one of"),
        (["liveness", REPORT], "Missing option '--output'"),
        (["liveness", REPORT, "-o", "nowhere/x.png"], "there is no directory 'nowhere'"),
    ],
)
def test_wrong_usage(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sentence in refusal(capsys, 2, *argv)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_not_overwritten_unless_forced(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "picture.png"
    file.write_text("precious")
    assert "exists already" in refusal(capsys, 2, "liveness", REPORT, "-o", str(file))
    assert file.read_text() == "precious"
    # AND when drawing fails, force or not, what was there stays
    assert main(["plot", "liveness", REPORT, "-o", str(file), "--force", "--tiles", "9999"]) == 2
    assert file.read_text() == "precious"
    assert main(["plot", "liveness", REPORT, "-o", str(file), "--force"]) == 0
    assert file.read_bytes().startswith(MAGIC["png"])


def test_through_a_link_to_where_it_leads(tmp_path: Path) -> None:
    target, link = tmp_path / "target.bin", tmp_path / "link.png"
    link.symlink_to(target)
    assert main(["plot", "categories", REPORT, "-o", str(link)]) == 0
    assert link.is_symlink()
    assert target.read_bytes().startswith(MAGIC["png"])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk(capsys: Capture) -> None:
    said = refusal(capsys, 3, "categories", REPORT, "-o", "/dev/full", "--format", "png")
    assert said == f"pvanalyse: /dev/full: cannot be written ({os.strerror(28)})\n"


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_not_captured_is_said(capsys: Capture, tmp_path: Path, kind: str, make_profile: object) -> None:
    # GIVEN a report with a program but nothing of its memory
    make_profile({"report_info": [("layout", "pvanalyse-1")], "programs": [(1, "Sequence", "") + (None,) * 6]})  # type: ignore[operator]
    said = refusal(capsys, 4, kind, str(tmp_path), "-o", str(tmp_path / "x.png"))
    assert "was not captured in this report; to capture it: engine option" in said
    assert not (tmp_path / "x.png").exists()


def test_a_user_s_style_changes_nothing(tmp_path: Path) -> None:
    import matplotlib as mpl

    files = [tmp_path / "a.png", tmp_path / "b.png"]
    for file, size in zip(files, (10, 25), strict=True):
        with mpl.rc_context({"font.size": size, "axes.facecolor": "black", "text.usetex": size == 25}):
            assert main(["plot", "categories", REPORT, "-o", str(file)]) == 0
    assert files[0].read_bytes() == files[1].read_bytes()
