"""The page writes values as the command line does: its functions against those of ``pvanalyse.units``."""

from __future__ import annotations

from typing import Any

import pytest

from pvanalyse import units
from pvanalyse.html.page import _ASSETS
from pvanalyse.names import shorten

WHOLE = sorted(
    {0, 1, 9, 10, 511, 1023, 1024, 1025, 638_976, 10**6 - 1, 2**53}
    | {base**power * factor // 1000 + change for base in (1000, 1024) for power in range(1, 6)
       for factor in (999, 1000, 1001, 9994, 9995, 9996, 99949, 99951, 999499, 999501, 1023499, 1023500, 1023501)
       for change in (-1, 0, 1) if base**power * factor // 1000 + change <= 2**53}
)  # fmt: skip
FRACTIONS = [0, 1e-9, 0.00004999, 0.00005, 0.005, 0.00994, 0.00995, 0.00996, 0.1, 0.4567, 1, 12.5, -0.00001, -0.3]
SECONDS = [0, 1e-10, 3e-9, 9.996e-7, 1e-6, 0.0009997, 0.00123, 0.5, 0.9997, 1, 61.234, 5000]


@pytest.fixture(scope="module")
def written(browser: Any) -> Any:
    """A function that calls one of the page's functions with each of some arguments."""
    context = browser.new_context()
    tab = context.new_page()
    source = (_ASSETS / "core" / "format.js").read_text("utf-8")
    functions = "{formatBytes, formatFraction, formatSeconds, formatHertz, formatCount, shortened}"
    tab.add_script_tag(content=f"const preferences = {{units: 'binary'}};\n{source}\nwindow.functions = {functions};")
    yield lambda name, calls: tab.evaluate(
        "([name, calls]) => calls.map((one) => window.functions[name](...one))", [name, calls]
    )
    context.close()


@pytest.mark.parametrize("unit", units.BYTE_UNITS)
def test_bytes(written: Any, unit: units.ByteUnits) -> None:
    values = [*WHOLE, *(-value for value in WHOLE[1:])]
    assert written("formatBytes", [[value, unit] for value in values]) == [units.format_bytes(v, unit) for v in values]


@pytest.mark.parametrize(
    ("name", "function", "values"),
    [
        ("formatFraction", units.format_fraction, FRACTIONS),
        ("formatSeconds", units.format_seconds, SECONDS),
        ("formatHertz", units.format_hertz, [1, 999.6, 1.33e9, 250e6, 1234]),
        ("formatCount", units.format_count, WHOLE),
    ],
)
def test_other_values(written: Any, name: str, function: Any, values: list[float]) -> None:
    assert written(name, [[value] for value in values]) == [function(value) for value in values]


def test_names_are_cut_alike(written: Any) -> None:
    names = ["", "abc", "x" * 20, "0123456789" * 3, "bert/encoder/layer_1/attention"]
    calls = [[name, width] for name in names for width in (8, 19, 20, 21, 30)]
    assert written("shortened", calls) == [shorten(*call) for call in calls]
