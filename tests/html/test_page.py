"""The file: what may run in it, that it is the same every time, and that it is never written over another."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from pathlib import Path

import pytest

import pvanalyse
from pvanalyse.cli import main
from pvanalyse.errors import UsageError
from pvanalyse.html.page import Page, page
from tests.conftest import SAMPLES

SAMPLE = SAMPLES / "lightweight"


@pytest.fixture(scope="module")
def made() -> Page:
    with pvanalyse.open_report(SAMPLE) as report:
        return report.html()


def policy_of(text: str) -> dict[str, list[str]]:
    found = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)
    assert found is not None
    parts = [part.split() for part in html.unescape(found[1]).split(";")]
    return {words[0]: words[1:] for words in parts}


def test_the_policy_lets_two_scripts_run_and_nothing_be_asked_for(made: Page) -> None:
    policy = policy_of(made.text)
    program = re.search(r'<script type="module">(.*)</script>', made.text, re.DOTALL)
    assert program is not None
    digest = base64.b64encode(hashlib.sha256(program[1].encode()).digest()).decode()
    assert policy["default-src"] == ["'none'"]
    assert policy["connect-src"] == ["'none'"]
    assert policy["img-src"] == ["data:", "blob:"]
    assert f"'sha256-{digest}'" in policy["script-src"]
    assert len(policy["script-src"]) == 2
    assert "unsafe-eval" not in str(policy)


def test_a_live_page_may_ask_its_own_server_only() -> None:
    with pvanalyse.open_report(SAMPLE) as report:
        text = page([("name", report)], live=True).text
    assert policy_of(text)["connect-src"] == ["'self'"]
    assert '<html lang="en" data-units="binary" data-live>' in text


def test_the_page_is_the_same_every_time(made: Page) -> None:
    with pvanalyse.open_report(SAMPLE) as report:
        assert report.html().text == made.text


def test_the_page_names_no_file_but_itself(made: Page) -> None:
    markup = re.sub(r"<script.*?</script>|<style>.*?</style>", "", made.text, flags=re.DOTALL)
    assert re.findall(r"(?:src|href)=\"([^\"]*)\"", markup) == ["#main"]


def test_a_title_that_is_markup_is_text(made: Page) -> None:
    with pvanalyse.open_report(SAMPLE) as report:
        text = page([("</title><script>x</script>", report)]).text
    assert "<title>&lt;/title&gt;&lt;script&gt;x&lt;/script&gt;</title>" in text


def test_a_frame_holds_the_whole_page(made: Page) -> None:
    held = re.search(r'srcdoc="([^"]*)"', made.frame())
    assert held is not None
    assert html.unescape(held[1]) == made.text
    assert made._repr_html_() == made.frame()


def test_saving_never_overwrites(made: Page, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    made.save(path)
    assert path.read_bytes() == made.text.encode()
    with pytest.raises(UsageError, match="exists already"):
        made.save(path)


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, as WCAG 2.1 defines it."""

    def luminance(colour: str) -> float:
        parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [":root {", ':root[data-theme="dark"] {', ':root, :root[data-theme="dark"] {'])
def test_text_can_be_read_on_every_background(made: Page, theme: str) -> None:
    block = made.text.partition(theme)[2].partition("}")[0]
    colours = dict(re.findall(r"--(\w+): (#\w+)", block))
    colours = {
        name: value if len(value) == 7 else "#" + "".join(2 * digit for digit in value[1:])
        for name, value in colours.items()
    }
    for ink in {"ink", "soft", "accent", "bad", "good"} & colours.keys():
        for ground in {"page", "card", "chosen"} & colours.keys():
            assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)


# ------------------------------------------------------------------------------------------------------- the command


def test_the_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str], made: Page) -> None:
    path = tmp_path / "report.html"
    assert main(["html", str(SAMPLE), "-o", str(path), "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert path.read_bytes() == made.text.encode()


def test_the_command_writes_a_frame_of_two_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "frame.html"
    other = SAMPLES / "replicated"
    assert main(["html", str(SAMPLE), str(other), "-o", str(path), "--format", "frame", "-q", "--units", "si"]) == 0
    assert capsys.readouterr() == ("", "")
    text = path.read_text("utf-8")
    assert text.startswith("<iframe srcdoc=")
    assert html.unescape(text).count("data-report>") == 2
    assert 'data-units="si"' in html.unescape(text)


def test_the_command_overwrites_only_when_forced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "report.html"
    path.write_text("mine", "utf-8")
    assert main(["html", str(SAMPLE), "-o", str(path)]) == 2
    assert "exists already; --force overwrites it" in capsys.readouterr().err
    assert path.read_text("utf-8") == "mine"
    assert main(["html", str(SAMPLE), "-o", str(path), "--force", "--tiles", "3,4"]) == 0
    assert path.stat().st_size > 1_000_000


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["missing", "-o", "x.html"], 3, "missing"),
        ([str(SAMPLE)], 2, "--output"),
        ([str(SAMPLE), "-o", "x.html", "--tiles", "999999"], 2, "999"),
        ([str(SAMPLE), "-o", "nowhere/x.html"], 2, "no directory"),
        ([str(SAMPLE), "missing", "-o", "x.html"], 3, "missing"),
    ],
)
def test_the_command_refuses_what_it_cannot_do(
    arguments: list[str], code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["html", *arguments]) == code
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
