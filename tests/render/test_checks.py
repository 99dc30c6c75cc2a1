"""Checks in every format, full of names that try to be more than names; judged by parsers that are not ours."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from io import StringIO

import pandas as pd
import pytest
import xmlschema
from hypothesis import given, settings
from markdown_it import MarkdownIt

from pvanalyse.analysis.checks import Check, CheckResult, Difference, ReportCheck, Status, Why
from pvanalyse.analysis.rules import Increase, Limit, Sense
from pvanalyse.names import printable
from pvanalyse.render.check_words import changed_by, sentence, verdict
from pvanalyse.render.checks import check_document, full_text, markdown_text
from pvanalyse.render.document import Unit, formatter
from pvanalyse.render.github import command, render_github
from pvanalyse.render.junit import render_junit
from pvanalyse.render.machine import render_csv, render_json
from tests.render.hostile import NAMES, offending, texts

COLUMNS = ["category", "layer", "operation", "variable", "location"]
WRITE = formatter("binary")
# The facts of the schema junit-10 of Jenkins' xUnit plugin, by which CI servers judge such files: which elements and
# attributes there are, and which are required.
JUNIT = """
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
  <xs:simpleType name="time"><xs:restriction base="xs:string"><xs:pattern value="[0-9,]*(\\.[0-9]{0,3})?"/>
  </xs:restriction></xs:simpleType>
  <xs:complexType name="outcome" mixed="true"><xs:attribute name="type"/><xs:attribute name="message"/></xs:complexType>
  <xs:element name="testsuites"><xs:complexType><xs:sequence>
    <xs:element ref="testsuite" minOccurs="0" maxOccurs="unbounded"/></xs:sequence>
    <xs:attribute name="name"/><xs:attribute name="time" type="time"/><xs:attribute name="tests"/>
    <xs:attribute name="failures"/><xs:attribute name="errors"/>
  </xs:complexType></xs:element>
  <xs:element name="testsuite"><xs:complexType><xs:choice minOccurs="0" maxOccurs="unbounded">
    <xs:element name="properties"><xs:complexType><xs:sequence>
      <xs:element name="property" minOccurs="0" maxOccurs="unbounded"><xs:complexType>
        <xs:attribute name="name" use="required"/><xs:attribute name="value" use="required"/></xs:complexType></xs:element>
    </xs:sequence></xs:complexType></xs:element>
    <xs:element name="testcase"><xs:complexType><xs:choice minOccurs="0" maxOccurs="unbounded">
      <xs:element name="skipped" type="outcome"/><xs:element name="error" type="outcome"/>
      <xs:element name="failure" type="outcome"/>
      <xs:element name="system-out" type="xs:string"/><xs:element name="system-err" type="xs:string"/>
      </xs:choice><xs:attribute name="name" use="required"/><xs:attribute name="time"/><xs:attribute name="classname"/>
      <xs:attribute name="group"/></xs:complexType></xs:element>
    <xs:element name="system-out" type="xs:string"/><xs:element name="system-err" type="xs:string"/>
    </xs:choice>
    <xs:attribute name="name" use="required"/><xs:attribute name="tests" use="required"/>
    <xs:attribute name="failures" use="required"/><xs:attribute name="errors" use="required"/>
    <xs:attribute name="skipped"/><xs:attribute name="time" type="time"/><xs:attribute name="timestamp"/>
    <xs:attribute name="hostname"/><xs:attribute name="id"/><xs:attribute name="package"/>
  </xs:complexType></xs:element>
</xs:schema>"""


def result(name: str, reports: int = 1, rows: int = 1) -> CheckResult:
    """A result with the name wherever a report's text can come to stand."""
    metric = f"memory.category.{name}"
    limit = Limit("memory.gaps", Sense.AT_MOST, 3, written=f"memory.gaps<=3 {name}", where=name)
    grown = Increase("memory.*", 5, written=name, where=name)
    held = name.encode("utf-8", "replace").decode()  # a frame cannot hold half a character
    changed = pd.DataFrame([[held] * 5] * rows, columns=COLUMNS).assign(before=1, after=8, change=7)
    checks = (
        Check("memory.gaps", Status.FAILED, limit, 1 << 40, 5, 3, (1 << 40) - 5),
        Check(metric, Status.FAILED, grown, 8, 1, 6, 7),
        Check(metric, Status.NOT_CAPTURED, limit),
        *(Check(metric, status, grown, 3, 5, 10, -2) for status in Status if status is not Status.FAILED),
    )
    why = Why(metric, 8, 1, changed, 7 * rows)
    what = Why("memory.gaps", 8, None, pd.DataFrame([[held] * 5], columns=COLUMNS).assign(value=8), 8)
    whole = ReportCheck(
        name or "r", name, name, checks, (why, what), (Difference(metric, 1, None),), notes=(f"Note: {name}",)
    )
    lost = ReportCheck(name or "r", problem=f"{name}: lost")
    return CheckResult((whole, *([lost] * (reports - 1))))


def junit(what: CheckResult) -> str:
    out = StringIO()
    render_junit(what, out, WRITE)
    return out.getvalue()


def annotations(what: CheckResult, workspace: str = "") -> list[tuple[str, dict[str, str], str]]:
    """The commands that a runner takes from a step's output: kind, properties, message."""
    out = StringIO()
    render_github(what, out, WRITE, workspace)
    return [parsed(line) for line in re.split(r"\r\n|\r|\n", out.getvalue().removesuffix("\n"))]


def parsed(line: str) -> tuple[str, dict[str, str], str]:
    """As the runner reads it: up to the next ``::`` the command, its properties between commas, then unescaped."""
    assert line.startswith("::")
    head, _, message = line[2:].partition("::")
    kind, _, rest = head.partition(" ")
    found = dict(one.split("=", 1) for one in rest.split(","))
    return kind, {key: unescaped(value, "\r\n:,%") for key, value in found.items()}, unescaped(message, "\r\n%")


def unescaped(text: str, which: str) -> str:
    for char in which:
        text = text.replace(f"%{ord(char):02X}", char)
    return text


# ------------------------------------------------------------------------------------------------------------ hostile
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("reports", [1, 3])
def test_names_do_no_harm_in_any_format(name: str, reports: int) -> None:
    check_all(name, reports)


@given(texts)
@settings(max_examples=25, deadline=None)
def test_no_name_does_harm(name: str) -> None:
    check_all(name, 2)


@pytest.mark.parametrize("name", ["::error::x", "::stop-commands::y", "a%0Ab", "a,line=3::b", "]]>", "##[error]z"])
def test_names_made_for_continuous_integration_do_no_harm(name: str) -> None:
    check_all(name, 1)
    # AND no line of the text begins as a command of GitHub's runner would
    assert [line for line in full_text(result(name)).splitlines()[1:] if line.lstrip().startswith("::")] == []


def check_all(name: str, reports: int) -> None:
    what = result(name, reports)
    for text in (full_text(what), markdown_text(what)):
        assert offending(text) == []
    check_markdown(markdown_text(what))
    check_junit(what, name)
    check_github(what, name)
    document = check_document(what)
    out = StringIO()
    render_json(document, out, WRITE)
    data = json.loads(out.getvalue())
    assert data["reports"][0]["checks"][0]["rule"]["where"] == name
    assert data["reports"][0]["why"][0]["contributors"][0]["variable"] == name.encode("utf-8", "replace").decode()
    render_csv(document, StringIO(), WRITE)


def check_markdown(text: str) -> None:
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    inline = {child.type.split("_")[0] for token in tokens for child in token.children or ()}
    assert inline <= {"text", "strong"}
    assert {token.type for token in tokens if "html" in token.type or "code" in token.type} == set()
    assert [token.type for token in tokens].count("heading_open") == text.count("\n#") + 1


def check_junit(what: CheckResult, name: str) -> None:
    text = junit(what)
    xmlschema.XMLSchema(JUNIT).validate(text)
    root = ET.fromstring(text.encode())
    cases = root.findall("testsuite/testcase")
    failed = [check for check in what.checks if check.status is Status.FAILED]
    missing = [check for check in what.checks if check.status is Status.NOT_CAPTURED]
    errors = len(missing) + len(what.reports) - 1
    assert root.attrib["tests"] == str(len(cases)) == str(len(what.checks) + len(what.reports) - 1)
    assert (root.attrib["failures"], root.attrib["errors"]) == (str(len(failed)), str(errors))
    assert (len(root.findall(".//failure")), len(root.findall(".//error"))) == (len(failed), errors)
    assert [case.get("name") for case in cases[:2]] == [
        "memory.gaps <= limit",
        printable(f"memory.category.{name} growth"),
    ]
    said = root.findall(".//failure")[1].text or ""
    assert offending(said) == []
    assert printable(name.encode("utf-8", "replace").decode()).strip() in said


def check_github(what: CheckResult, name: str) -> None:
    found = annotations(what)
    assert [kind for kind, _, _ in found[:-1]] == ["error"] * (len(found) - 1)
    assert found[-1][0] == "notice"
    assert set().union(*(properties for _, properties, _ in found)) <= {"file", "line", "title"}
    assert any(printable(f"memory.category.{name}")[:300] in message for _, _, message in found)


# ---------------------------------------------------------------------------------------------------------- sentences
def test_sentences_say_what_is_wrong_and_by_how_much() -> None:
    limit = Limit("memory.gaps", Sense.AT_MOST, 614_400)
    cases = {
        Check("memory.gaps", Status.FAILED, limit, 700 << 10, 600 << 10, 600 << 10, 100 << 10): (
            "memory.gaps is 700 KiB (+100 KiB, +16.7 %), over its limit of 600 KiB"
        ),
        Check("memory.gaps", Status.FAILED, limit, 614_401, None, 614_400): (
            "memory.gaps is 614,401 B, over its limit of 614,400 B"
        ),
        Check("execution.tile_balance", Status.FAILED, Limit("x", Sense.AT_LEAST, 0.7), 0.65, 0.72, 0.7, -0.07): (
            "execution.tile_balance is 65.0 % (-7.0 points), under its limit of 70.0 %"
        ),
        Check("memory.tiles_out_of_memory", Status.FAILED, Limit("x", Sense.EQUAL, 0), 3, None, 0): (
            "memory.tiles_out_of_memory is 3, not 0"
        ),
        Check("memory.gaps", Status.NOT_CAPTURED, Increase("memory.gaps"), 3): (
            "memory.gaps is limited, but not in the baseline"
        ),
        Check("liveness.peak", Status.IMPROVED, Increase("x"), 1024, 2048, 2048, -1024): (
            "liveness.peak is 1.00 KiB (-1.00 KiB, -50.0 %), improved (<= 2.00 KiB)"
        ),
    }
    assert {check: sentence(check, WRITE) for check in cases} == cases
    unknown = sentence(Check("execution.cycles", Status.NOT_CAPTURED, limit), WRITE)
    assert unknown.startswith("execution.cycles is limited, but not captured; to capture it: engine option ")


def test_what_goes_against_the_change_is_not_its_cause() -> None:
    # GIVEN a metric that grew although its largest contributor shrank; THEN the verdict names what made it grow
    rows = pd.DataFrame([["variable", "", "", name, ""] for name in ("shrank", "grew")], columns=COLUMNS)
    why = Why("memory.gaps", 15, 5, rows.assign(before=[100, 0], after=[10, 100], change=[-90, 100]), 10)
    check = Check("memory.gaps", Status.FAILED, Increase("memory.gaps"), 15, 5, 5, 10)
    assert verdict(CheckResult((ReportCheck("r", checks=(check,), whys=(why,)),))) == (
        "FAILED: 1 of 1 check; memory.gaps is 15 B (+10 B, +200.0 %), over its limit of 5 B, mostly grew."
    )


def test_changes_have_their_sign() -> None:
    assert changed_by(0, 5, Unit.BYTES, WRITE) == "0"
    assert changed_by(-2048, 4096, Unit.BYTES, WRITE) == "-2.00 KiB (-50.0 %)"
    assert changed_by(3, 0, Unit.COUNT, WRITE) == "+3"
    assert changed_by(3, None, Unit.COUNT, WRITE) == "+3"
    assert changed_by(1, 10**9, Unit.COUNT, WRITE) == "+1 (< 0.01 %)"
    assert changed_by(0.036, 0.5, Unit.FRACTION, WRITE) == "+3.6 points"


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        (CheckResult((ReportCheck("r"),)), "PASSED: 0 checks."),
        (CheckResult((ReportCheck("r", problem="r: gone"),)), "CANNOT BE CHECKED: r: gone"),
        (CheckResult((ReportCheck("a"), ReportCheck("r", problem="r: gone"))),
         "CANNOT BE CHECKED: 1 of 2 reports; r: gone"),
    ],
)  # fmt: skip
def test_verdicts(what: CheckResult, expected: str) -> None:
    assert verdict(what) == expected


# ------------------------------------------------------------------------------------------------------------- length
@pytest.mark.parametrize(
    ("name", "reports", "rows"), [("v" * 40, 1, 5000), ("x|y`" * 3000, 2, 50), ("n" * 300, 300, 9)]
)
def test_markdown_fits_into_a_comment_with_the_most_important_first(name: str, reports: int, rows: int) -> None:
    # GIVEN far more than a comment holds; WHEN written; THEN it fits, begins with the verdict, and says what is missing
    what = result(name, 1, rows)
    whole = CheckResult(what.reports * reports)
    text = markdown_text(whole)
    assert len(text) <= 65_536
    assert text.split("\n")[2].startswith("**NOT CAPTURED: ")
    assert "JSON has them all" in text
    check_markdown(text)
    position = [text.find(word) for word in ("| FAILED |", "| NOT CAPTURED |", "| passed |") if word in text]
    assert position == sorted(position)
    assert position


@pytest.mark.parametrize("most", [200, 1000, 3000])
def test_markdown_is_never_longer_than_asked_for(most: int) -> None:
    assert len(markdown_text(result("v" * 50, 3, 100), most=most)) <= most


# ------------------------------------------------------------------------------------------------------------- GitHub
def test_failures_of_a_line_share_an_annotation_there() -> None:
    def why(metric: str, variable: str, location: str) -> Why:
        row = pd.DataFrame([["variable", "l", "o", variable, location]], columns=COLUMNS).assign(value=9)
        return Why(metric, 9, None, row, 9)

    limit = Limit("*", Sense.AT_MOST, 3)
    metrics = ("memory.gaps", "liveness.peak", "memory.always_live", "memory.total_including_gaps", "memory.overflowed")
    places = ("/w/m/a.py:88", "/w/m/a.py:88", "b.py", "odd:name:x:7")
    whys = tuple(why(metric, "v:0", place) for metric, place in zip(metrics, places, strict=False))
    checks = tuple(Check(metric, Status.FAILED, limit, 9, None, 3) for metric in metrics)
    found = annotations(CheckResult((ReportCheck("r", checks=checks, whys=whys),)), "/w")
    assert [(properties.get("file"), properties.get("line")) for _, properties, _ in found] == [
        ("m/a.py", "88"), ("odd:name:x", "7"), (None, None), ("b.py", None), (None, None),
    ]  # fmt: skip
    assert found[0][1]["title"] == "r: 2 failed checks: mostly v:0 (layer l, /w/m/a.py:88)"
    assert found[0][2].split("\n") == [
        "liveness.peak is 9 B, over its limit of 3 B", "memory.gaps is 9 B, over its limit of 3 B",
    ]  # fmt: skip
    assert found[-1][0] == "notice"


def test_a_command_is_escaped_as_github_does() -> None:
    assert command("error", "a:b,c%\n", "50 %\nx::y, z", "d:e,f.py", 3) == (
        "::error file=d%3Ae%2Cf.py,line=3,title=a%3Ab%2Cc%25\\n::50 %25%0Ax::y, z"
    )
