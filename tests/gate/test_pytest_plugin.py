"""The pytest plugin, run by pytest on small suites: what passes, what fails and how, and what it leaves alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from fnmatch import fnmatchcase
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.conftest import ROOT, SAMPLES

pytest_plugins = ["pytester"]

PLUGIN = "pvanalyse.gate.pytest_plugin"
LOAD = [] if any(one.value == PLUGIN for one in entry_points(group="pytest11")) else ["-p", PLUGIN]
CHANGE = json.loads((Path(__file__).parents[1] / "sample_reports" / "transformer_change.json").read_text("utf-8"))
BEFORE, AFTER = (CHANGE[when]["memory.tile_max_including_gaps"] for when in ("before", "after"))
START = f"""
    import json, os, shutil, pytest
    S = {str(SAMPLES)!r} + "/"
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    monkeypatch.setenv("COLUMNS", "240")
    monkeypatch.delenv("POPLAR_ENGINE_OPTIONS", raising=False)
    return Suite(pytester)


class Suite:
    """A directory with tests, and what pytest says of them in a process of its own."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path

    def add(self, **sources: str) -> None:
        lines = {name: START.strip("\n") + "\n" + source.strip("\n") for name, source in sources.items()}
        self.pytester.makepyfile(**lines)

    def run(self, *arguments: str) -> pytest.RunResult:
        always = ("-W", "error", "-p", "no:cacheprovider", "--strict-markers")
        return self.pytester.runpytest_subprocess(*LOAD, *always, *arguments)

    def outcomes(self, *arguments: str) -> dict[str, str]:
        """What the summary says, by test; only the text up to the first ``:`` is kept."""
        return {name: line.partition(":")[0] for name, line in summary(self.run(*arguments)).items()}


def summary(result: pytest.RunResult) -> dict[str, str]:
    """The lines of the section "IPU memory" by test."""
    heads = [at for at, line in enumerate(result.outlines) if line.strip("=") == " IPU memory "]
    if not heads:
        return {}
    assert len(heads) == 1, "the summary is there once"
    section = result.outlines[heads[0] + 1 :]
    end = next(at for at, line in enumerate(section) if line.startswith("=="))
    return dict(line.split(": ", 1) for line in section[:end])


# ------------------------------------------------------------------------------------------------------------- verdicts
def test_a_limit_holds_to_the_byte(suite: Suite) -> None:
    # GIVEN a report whose fullest tile is known, one limit of just that and one of a byte less
    suite.add(
        test_it=f"""
    @pytest.mark.ipu_memory(tile_max={AFTER}, report=S + "transformer_after")
    def test_just(): pass

    @pytest.mark.ipu_memory(tile_max={AFTER - 1}, report=S + "transformer_after")
    def test_over(): pass
    """
    )
    # WHEN pytest runs
    result = suite.run("--junitxml=junit.xml", "-rA")
    # THEN one fails, the summary names the numbers, failures first, and passes are shown on demand
    result.assert_outcomes(passed=1, failed=1)
    lines = summary(result)
    assert list(lines) == ["test_it.py::test_over", "test_it.py::test_just"]
    assert lines["test_it.py::test_just"].startswith("PASSED: memory.tile_max_including_gaps is 599 KiB, limit <= 599")
    over = f"memory.tile_max_including_gaps is {AFTER:,} B, over its limit of {AFTER - 1:,} B"
    assert lines["test_it.py::test_over"].startswith(f"FAILED: 1 of 1 check; {over}")
    failure, passes = "\n".join(result.outlines).split("= PASSES =")
    assert f"FAILED: 1 of 1 check; {over}" in failure
    assert "Why memory.tile_max_including_gaps is 599 KiB" in failure
    assert str(SAMPLES / "transformer_after") in passes
    # AND exact numbers are in the XML for CI servers
    xml = ET.parse(suite.path / "junit.xml")
    found = {case.get("name"): {one.get("name"): one.get("value") for one in case.iter("property")}
             for case in xml.iter("testcase")}  # fmt: skip
    metric = "memory.tile_max_including_gaps"
    assert found == {
        "test_just": {metric: str(AFTER), f"{metric} limit": str(AFTER)},
        "test_over": {metric: str(AFTER), f"{metric} limit": str(AFTER - 1)},
    }


def test_growth_over_a_baseline_is_explained(suite: Suite) -> None:
    # GIVEN the regression whose cause is known
    suite.add(
        test_it="""
    pytestmark = pytest.mark.ipu_memory(baseline=S + "transformer_before")

    @pytest.mark.ipu_memory(increase="1%")
    def test_little(open_report):
        open_report(S + "transformer_after")

    @pytest.mark.ipu_memory(increase={"memory.tile_max_*": "10%", "default": "30%"})
    def test_much(open_report):
        open_report(S + "transformer_after")

    def test_nothing_at_all(open_report):
        open_report(S + "transformer_after")

    def test_same(open_report):
        open_report(S + "transformer_before")
    """
    )
    result = suite.run()
    result.assert_outcomes(passed=2, failed=2)
    lines = summary(result)
    assert {name.partition("::")[2]: line.partition(":")[0] for name, line in lines.items()} == {
        "test_little": "FAILED", "test_nothing_at_all": "FAILED", "test_much": "PASSED", "test_same": "PASSED",
    }  # fmt: skip
    # THEN the summary and the failure name the variable, its layer and the line
    layer = "layer bert/encoder/layer_1/attention/self"
    for text in (lines["test_it.py::test_little"], "\n".join(result.outlines)):
        assert f"{CHANGE['variable']} ({layer}, {CHANGE['after']['source']})" in text


def test_what_was_not_captured_fails(suite: Suite) -> None:
    # GIVEN a program that never ran, and a limit on its cycles
    suite.add(
        test_it="""
    @pytest.mark.ipu_memory(limits="execution.cycles <= 1e6".replace("1e6", "1000000"), report=S + "out_of_memory")
    def test_cycles(): pass

    @pytest.mark.ipu_memory(tiles_out_of_memory=0, report=S + "out_of_memory")
    def test_fits(): pass
    """
    )
    result = suite.run()
    result.assert_outcomes(failed=2)
    lines = summary(result)
    assert lines["test_it.py::test_cycles"].startswith("NOT CAPTURED: execution.cycles is limited, but not captured")
    assert "memory.tiles_out_of_memory is 416, over its limit of 0" in lines["test_it.py::test_fits"]


def test_a_damaged_report_fails_with_what_is_wrong(suite: Suite) -> None:
    damaged = suite.path / "damaged"
    shutil.copytree(SAMPLES / "transformer_before", damaged)
    (damaged / "profile.pop").write_bytes((SAMPLES / "transformer_before" / "profile.pop").read_bytes()[:50_000])
    suite.add(
        test_it="""
    @pytest.mark.ipu_memory(tile_max="600 KiB", report="damaged")
    def test_named(): pass

    @pytest.mark.ipu_memory(tile_max="600 KiB")
    def test_opened(open_report): open_report("damaged")
    """
    )
    result = suite.run()
    result.assert_outcomes(failed=2)
    for line in summary(result).values():
        assert line.startswith("CANNOT BE CHECKED: ")
        assert f"damaged{os.sep}profile.pop: " in line
    assert "INTERNALERROR" not in result.stdout.str()


# ---------------------------------------------------------------------------------------------------- reports of a test
def test_a_mark_without_a_report_fails(suite: Suite) -> None:
    suite.add(
        test_it="""
    pytestmark = pytest.mark.ipu_memory(tile_max="600 KiB")

    def test_nothing(): pass

    def test_empty(ipu_report): pass

    def test_unfinished(ipu_report):
        shutil.copytree(S + "transformer_before", ipu_report / "one")
        (ipu_report / "profile_4f2a.pop").write_bytes(b"SQLite format 3\\0")

    def test_unused_beside_another(ipu_report, open_report):
        open_report(S + "transformer_before")

    @pytest.mark.ipu_memory(report="nowhere")
    def test_wrong_path(): pass

    def test_body_fails(ipu_report): assert 1 == 2

    @pytest.mark.skip
    def test_skipped(ipu_report): pass

    @pytest.mark.xfail(strict=True)
    def test_expected(ipu_report): pass
    """
    )
    result = suite.run()
    result.assert_outcomes(failed=6, skipped=1, xfailed=1)
    reasons = {
        "test_nothing": "CANNOT BE CHECKED: the test made no report",
        "test_empty": "the test profiled nothing into ipu_report",
        "test_unfinished": "profile_4f2a.pop: the profile is not finished",
        "test_unused_beside_another": "the test profiled nothing into ipu_report",
        "test_wrong_path": "nowhere: no such file or directory",
        "test_body_fails": "NOT CHECKED: the test itself failed",
        "test_expected": "the test profiled nothing into ipu_report",
    }
    lines = {name.partition("::")[2]: line for name, line in summary(result).items()}
    assert {name for name, reason in reasons.items() if reason in lines[name]} == set(lines) == set(reasons)


def test_every_report_that_was_profiled_is_checked_once(suite: Suite) -> None:
    # GIVEN a program with two engines, of which only one fits its limit, opened by the test besides
    suite.add(
        test_it="""
    def tile_max(report):
        return report.metrics()["memory.tile_max_including_gaps"]

    @pytest.mark.ipu_memory(tile_max=1, total="1 TiB")
    def test_two(ipu_report, open_report):
        shutil.copytree(S + "pipelined", ipu_report, dirs_exist_ok=True)
        assert tile_max(open_report(ipu_report / "training")) != tile_max(open_report(str(ipu_report / "inference")))
        os.chdir(ipu_report)
        open_report("training")
    """
    )
    result = suite.run("--junitxml=junit.xml")
    result.assert_outcomes(failed=1)
    assert summary(result)["test_it.py::test_two"].startswith("FAILED: 2 of 2 reports; ")
    names = [one.get("name") for one in ET.parse(suite.path / "junit.xml").iter("property")]
    metrics = ("memory.total_including_gaps", "memory.tile_max_including_gaps")
    assert sorted(names) == sorted(f"{engine}: {metric}{what}" for engine in ("training", "inference")
                                   for metric in metrics for what in ("", " limit"))  # fmt: skip


def test_the_environment_profiles_into_the_fixture(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"autoReport.directory": "/elsewhere", "autoReport.outputDebugInfo": "false", "opt.enableInlining": "true"}
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", json.dumps(given))
    suite.add(
        test_it=f"""
    def options():
        return json.loads(os.environ["POPLAR_ENGINE_OPTIONS"])

    def test_set(ipu_report):
        assert os.listdir(ipu_report) == []
        assert options() == {{
            "autoReport.directory": str(ipu_report),
            "autoReport.outputGraphProfile": "true",
            "autoReport.outputLoweredVars": "true",
            "autoReport.outputDebugInfo": "false",
            "opt.enableInlining": "true",
        }}

    def test_unset():
        assert options() == {given!r}
    """
    )
    suite.run().assert_outcomes(passed=2)


def test_options_that_are_none_are_refused(suite: Suite) -> None:
    suite.add(
        test_it="""
    @pytest.fixture(params=["{", "[]", "[" * 100_000], ids=["cut", "list", "deep"])
    def environment(request, monkeypatch): monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", request.param)

    def test_it(environment, ipu_report): pass
    """
    )
    result = suite.run()
    result.assert_outcomes(errors=3)
    start = "POPLAR_ENGINE_OPTIONS in the environment is not a JSON object: "
    assert sum(line.startswith(start) for line in result.outlines) == 3


def test_reports_are_closed_and_forgotten_after_the_test(suite: Suite) -> None:
    suite.add(
        conftest="""
    from pvanalyse.report import Report
    closed, close = [], Report.close

    @pytest.fixture(autouse=True, scope="session")
    def watched():
        Report.close = lambda self: (closed.append(self.files.directory.name), close(self))

    @pytest.fixture
    def closed_reports(): return closed
    """,
        test_it="""
    import gc, weakref
    reports = []

    def test_open(open_report, closed_reports):
        reports.append(weakref.ref(open_report(S + "lightweight")))
        reports.append(weakref.ref(open_report(path=S + "replicated", debug_info=None)))
        assert closed_reports == []
        assert all(report() is not None for report in reports)

    def test_closed(closed_reports):
        gc.collect()
        assert closed_reports == ["replicated", "lightweight"]
        assert [report() for report in reports] == [None, None]
    """,
    )
    suite.run().assert_outcomes(passed=2)


# ------------------------------------------------------------------------------------------------------------ baselines
def test_a_baseline_is_made_kept_and_replaced(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN tests that limit growth and name no baseline, one of them with a name that no file can have
    suite.add(
        test_it="""
    class TestGrowth:
        @pytest.mark.ipu_memory(increase="1%")
        @pytest.mark.parametrize("name", ["a/b", "a:b"])
        def test_it(self, name, ipu_report):
            shutil.copytree(os.environ["PROGRAM"], ipu_report, dirs_exist_ok=True)
    """
    )
    tests = [f"test_it.py::TestGrowth::test_it[{name}]" for name in ("a/b", "a:b")]

    def outcomes(program: str, *arguments: str) -> dict[str, str]:
        monkeypatch.setenv("PROGRAM", str(SAMPLES / program))
        return suite.outcomes(*arguments)

    # WHEN there is none THEN they fail and say how to make one; it is made once
    monkeypatch.setenv("PROGRAM", str(SAMPLES / "transformer_before"))
    without = summary(suite.run())
    assert list(without) == tests
    assert all(
        line.endswith("no such baseline yet; 'pytest --ipu-update-baselines' writes it") for line in without.values()
    )
    assert outcomes("transformer_before", "--ipu-update-baselines") == dict.fromkeys(tests, "PASSED")
    files = {path: path.read_bytes() for path in (suite.path / "ipu_baselines").rglob("*.*")}
    assert len(files) == 2
    for path, data in files.items():
        assert path.parent == suite.path / "ipu_baselines" / "test_it"
        assert json.loads(data)["metrics"]["memory.tile_max_including_gaps"] == BEFORE
    # THEN it holds, growth fails and leaves it alone, and growth can be accepted
    assert outcomes("transformer_before") == dict.fromkeys(tests, "PASSED")
    assert outcomes("transformer_after") == dict.fromkeys(tests, "FAILED")
    assert {path: path.read_bytes() for path in files} == files
    assert outcomes("transformer_after", "--ipu-update-baselines") == dict.fromkeys(tests, "PASSED")
    assert outcomes("transformer_after") == dict.fromkeys(tests, "PASSED")


def test_each_engine_has_a_baseline(suite: Suite) -> None:
    suite.add(
        test_it="""
    @pytest.mark.ipu_memory(increase=0, report=S + "pipelined")
    def test_two(): pass
    """
    )
    assert suite.outcomes("--ipu-update-baselines") == {"test_it.py::test_two": "PASSED"}
    found = sorted(path.name for path in (suite.path / "ipu_baselines" / "test_it").iterdir())
    assert found == ["test_two.inference.json", "test_two.training.json"]
    assert suite.outcomes() == {"test_it.py::test_two": "PASSED"}


def test_limits_that_need_no_baseline_make_none(suite: Suite) -> None:
    suite.add(
        test_it=f"""
    @pytest.mark.ipu_memory(tile_max={BEFORE - 1}, report=S + "transformer_before")
    def test_it(): pass
    """
    )
    assert suite.outcomes("--ipu-update-baselines") == {"test_it.py::test_it": "FAILED"}
    assert not (suite.path / "ipu_baselines").exists()


def test_a_budget_comes_from_the_mark_or_the_project(suite: Suite) -> None:
    # GIVEN a budget of the project in its root, and another beside the tests
    (suite.path / "deep").mkdir()
    for name, limit in (("budget.toml", BEFORE), ("deep/tight.toml", BEFORE - 1)):
        (suite.path / name).write_text(f'[limits]\n"memory.tile_max_including_gaps" = {limit}\n', "utf-8")
    suite.pytester.makeini("[pytest]\nipu_budget = budget.toml")
    suite.add(
        **{
            "deep/test_it": f"""
    pytestmark = pytest.mark.ipu_memory(report=S + "transformer_before")

    def test_project(): pass

    @pytest.mark.ipu_memory(budget="tight.toml")
    def test_mark(): pass

    @pytest.mark.ipu_memory(budget="tight.toml", tile_max={BEFORE})
    def test_limit_in_place_of_the_budget(): pass

    @pytest.mark.ipu_memory(budget="none.toml")
    def test_none(): raise AssertionError("this is not run")
    """
        }
    )
    result = suite.run("--strict-config")
    result.assert_outcomes(passed=2, failed=1, errors=1)
    lines = {name.partition("::")[2]: line for name, line in summary(result).items()}
    assert "none.toml: no such file" in lines.pop("test_none")
    assert {name: line.partition(":")[0] for name, line in lines.items()} == {
        "test_project": "PASSED", "test_mark": "FAILED", "test_limit_in_place_of_the_budget": "PASSED",
    }  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------- marks
WRONG_MARKS = {
    "tile_maxx='600 KiB'": "has no argument 'tile_maxx'; the nearest: tile_max, *",
    "zzzzz=1": "has no argument 'zzzzz'; there are tile_max, *",
    "'600 KiB'": "takes arguments by name, such as tile_max='600 KiB', not '600 KiB'",
    "tile_max='600 KiX'": "ipu_memory(tile_max=…): 'KiX' is no unit: *",
    "tile_max=True": "ipu_memory(tile_max=…) is a number or a text such as '600 KiB', not True",
    "tile_max=None": "ipu_memory(tile_max=…) is a number or a text such as '600 KiB', not None",
    "limits='memory.gapps <= 1 MiB'": "there is no metric 'memory.gapps'; the nearest: memory.gaps*",
    "limits={'memory.gapps': '1 MiB'}": "there is no metric 'memory.gapps'; the nearest: memory.gaps*",
    "limits=['memory.gaps <= 1 MiB', 7]": "ipu_memory(limits=…) is made of texts, *, not 7",
    "limits={7: '1 MiB'}": "ipu_memory(limits=…) is made of texts, *, not 7",
    "limits=object": "ipu_memory(limits=…) is a text, a list of texts, or a dictionary by metrics, not *",
    "increase='1 percent'": "ipu_memory(increase=…): *",
    "increase=0.01": "ipu_memory(increase=…) is a share or a size, such as '1%', '64 KiB' or 65536, not 0.01",
    "increase={'memory.gapps': '1%'}": "there is no metric 'memory.gapps'; the nearest: memory.gaps*",
    "tile_max=1, report=7": "ipu_memory(report=…) is a path, not 7",
    "tile_max=1, report=''": "ipu_memory(report=…) is a path, not ''",
    "": "demands nothing: *",
    "report='somewhere'": "demands nothing: *",
}


def test_a_wrong_mark_is_an_error_of_collection(suite: Suite) -> None:
    # GIVEN marks that nobody can mean, each in a file with a test that would leave a trace
    sources = {f"test_{at:02}": f"""
    class TestIt:
        @pytest.mark.ipu_memory({arguments})
        def test_it(self): open("trace", "w")
    """ for at, arguments in enumerate(WRONG_MARKS)}  # fmt: skip
    suite.add(**sources)
    # WHEN pytest runs
    result = suite.run()
    # THEN no file is collected, and each reason names test and mistake
    result.assert_outcomes(errors=len(WRONG_MARKS))
    assert result.ret == pytest.ExitCode.INTERRUPTED
    start = "{}.py::TestIt::test_it: "
    for name, problem in zip(sources, WRONG_MARKS.values(), strict=True):
        said = [line for line in result.outlines if line.startswith(start.format(name))]
        assert len(said) == 1, name
        assert fnmatchcase(said[0], f"*{problem.replace('[', '[[]')}"), said[0]
    assert not (suite.path / "trace").exists()


def test_a_glob_for_nothing_and_a_mark_added_late_fail_their_tests(suite: Suite) -> None:
    suite.add(
        conftest="""
    def pytest_collection_modifyitems(items):
        items[0].add_marker(pytest.mark.ipu_memory(tile_maxx=1))
    """,
        test_it="""
    def test_late(): raise AssertionError("this is not run")

    @pytest.mark.ipu_memory(limits="memory.categorie.* <= 1 GiB", report=S + "transformer_before")
    def test_glob(): pass
    """,
    )
    result = suite.run()
    result.assert_outcomes(failed=1, errors=1)
    lines = summary(result)
    assert "has no argument 'tile_maxx'" in lines["test_it.py::test_late"]
    assert "'memory.categorie.*' matches no metric" in lines["test_it.py::test_glob"]


def test_marks_add_up_and_the_closest_holds(suite: Suite) -> None:
    suite.add(
        test_it=f"""
    pytestmark = pytest.mark.ipu_memory(tile_max={BEFORE - 1}, report=S + "transformer_before")

    def test_module(): pass

    @pytest.mark.ipu_memory(total=1)
    def test_both(): pass

    @pytest.mark.ipu_memory(tile_max={BEFORE})
    class TestClass:
        def test_class(self): pass

        @pytest.mark.ipu_memory(limits="memory.tile_max_including_gaps <= {BEFORE - 2}")
        def test_function(self): pass

        @pytest.mark.ipu_memory(tile_max=">= {BEFORE + 1}")
        def test_other_side(self): pass

        @pytest.mark.ipu_memory(tile_max=1)
        @pytest.mark.parametrize("x", [1, pytest.param(2, marks=pytest.mark.ipu_memory(tile_max={BEFORE + 2}))])
        def test_parameter(self, x): pass

    class TestDerived(TestClass):
        pass

    @pytest.mark.ipu_memory(tile_max={BEFORE + 3})
    class TestDerivedAndMarked(TestClass):
        pass
    """
    )
    suite.run("--junitxml=junit.xml")
    found = {
        f"{case.get('classname')}.{case.get('name')}".removeprefix("test_it."): {
            one.get("name"): int(one.get("value") or "")
            for one in case.iter("property")
            if " limit" in str(one.get("name"))
        }
        for case in ET.parse(suite.path / "junit.xml").iter("testcase")
    }
    tile_max, total = "memory.tile_max_including_gaps limit", "memory.total_including_gaps limit"
    own = {"test_function": BEFORE - 2, "test_parameter[1]": 1, "test_parameter[2]": BEFORE + 2}
    classes = {"TestClass": BEFORE, "TestDerived": BEFORE, "TestDerivedAndMarked": BEFORE + 3}
    expected = {"test_module": {tile_max: BEFORE - 1}, "test_both": {tile_max: BEFORE - 1, total: 1}}
    for name, limit in classes.items():
        expected |= {f"{name}.{test}": {tile_max: at} for test, at in ({"test_class": limit} | own).items()}
    others = {name: found.pop(f"{name}.test_other_side") for name in classes}
    assert found == expected
    assert set(others) == set(classes)
    assert all(one == {tile_max: BEFORE + 1} for one in others.values())  # the last of two limits of one metric


# ------------------------------------------------------------------------------------------------- manners in a suite
MIXED = """
    @pytest.mark.ipu_memory(tile_max="580 KiB")
    @pytest.mark.parametrize("name", ["transformer_before", "transformer_after"])
    def test_tile(name, ipu_report):
        shutil.copytree(S + name, ipu_report, dirs_exist_ok=True)

    @pytest.mark.ipu_memory(peak="1 KiB", report=S + "transformer_before")
    def test_peak(): pass

    def test_other(): pass
"""


@pytest.mark.skipif(find_spec("xdist") is None, reason="pytest-xdist is not installed")
def test_the_summary_is_the_same_on_several_processes(suite: Suite) -> None:
    suite.add(test_it=MIXED)
    alone, several = suite.run("-p", "no:xdist"), suite.run("-n", "2", "--junitxml=junit.xml")
    for result in (alone, several):
        result.assert_outcomes(passed=2, failed=2)
    assert set(summary(alone)) == {f"test_it.py::{name}" for name in
                                   ("test_tile[transformer_before]", "test_tile[transformer_after]", "test_peak")}  # fmt: skip
    assert summary(several) == summary(alone)
    values = [one.get("value") for one in ET.parse(suite.path / "junit.xml").iter("property")]
    assert {str(BEFORE), str(AFTER)} <= set(values)


@pytest.mark.skipif(find_spec("xdist") is None, reason="pytest-xdist is not installed")
def test_a_wrong_mark_is_an_error_of_collection_on_several_processes(suite: Suite) -> None:
    suite.add(test_it="""
    @pytest.mark.ipu_memory(tile_maxx=1)
    def test_it(): pass
    """)  # fmt: skip
    result = suite.run("-n", "2")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["test_it.py::test_it: * has no argument 'tile_maxx'; *"])


def test_a_suite_without_marks_is_left_alone(suite: Suite) -> None:
    # GIVEN a suite that has nothing to do with IPUs, and looks at what has been imported
    suite.add(
        test_it="""
    import sys, unittest

    def helper():
        '''
        >>> 1 + 1
        2
        '''

    class TestCase(unittest.TestCase):
        def test_unittest(self): pass

    @pytest.fixture
    def open_report(): return "my own"

    def test_own_fixture(open_report): assert open_report == "my own"

    def test_light(): assert not {"numpy", "pandas", "pyarrow", "rich"} & set(sys.modules)
    """
    )
    result = suite.run("--doctest-modules")
    result.assert_outcomes(passed=4)
    assert "IPU" not in result.stdout.str()


def test_unittest_methods_are_checked(suite: Suite) -> None:
    suite.add(
        test_it="""
    import unittest

    @pytest.mark.ipu_memory(tile_max="580 KiB")
    class TestCase(unittest.TestCase):
        @pytest.fixture(autouse=True)
        def reports(self, open_report): self.open_report = open_report

        def test_small(self): self.open_report(S + "transformer_before")
        def test_large(self): self.open_report(S + "transformer_after")
        def test_fails(self): self.fail("for itself")
    """
    )
    assert suite.outcomes() == {
        "test_it.py::TestCase::test_fails": "NOT CHECKED",
        "test_it.py::TestCase::test_large": "FAILED",
        "test_it.py::TestCase::test_small": "PASSED",
    }


def test_the_plugin_describes_itself(suite: Suite) -> None:
    marks = suite.run("--markers").stdout.str()
    for text in ("@pytest.mark.ipu_memory(tile_max=None, ", "without any the test fails"):
        assert text in marks
    fixtures = suite.run("--fixtures", "-v").stdout.str()
    for text in ("ipu_report --", "is profiled", "open_report --", "what was opened is checked after the test"):
        assert text in fixtures
    usage = suite.run("--help").stdout.str()
    assert "--ipu-update-baselines" in usage
    assert "ipu_budget (string):" in usage


def test_importing_the_plugin_is_light() -> None:
    code = f"import sys, {PLUGIN}; print(*sorted({{'numpy', 'pandas', 'pyarrow', 'rich'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
