"""Pictures as a whole: like the reference, the same every time, of every kind on every sample."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import matplotlib as mpl
import pytest
from matplotlib.axes import Axes
from matplotlib.image import imread

from pvanalyse import NotCaptured, UsageError, open_report
from pvanalyse.plots import FORMATS, KINDS
from pvanalyse.plots.figures import figure_axes, picture
from tests.conftest import SAMPLES
from tests.plots.pictures import BASELINE, CASES, DRAWN_WITH, TOLERANCE, draw, png, sample, worst_block

REPORTS = sorted(path.parent for path in SAMPLES.rglob("profile.pop"))
same_matplotlib = pytest.mark.skipif(
    not mpl.__version__.startswith(f"{DRAWN_WITH}."), reason=f"reference pictures are of matplotlib {DRAWN_WITH}"
)


@same_matplotlib
@pytest.mark.parametrize("case", CASES)
def test_a_picture_is_like_its_reference(case: str) -> None:
    with sample(case) as report:
        drawn = png(draw(report, case))
    assert worst_block(drawn, (BASELINE / f"{case}.png").read_bytes()) <= TOLERANCE


NEEDED = {
    "memory-map": "lowered_variables", "timeline": "execution_steps", "cycles-by-type": "execution_steps",
    "imbalance": "execution_steps", "bandwidth": "execution_steps", "overlap": "execution_steps",
    "bsp": "execution_steps",
}  # fmt: skip
OF_BLOCKS_TOO = ("timeline", "cycles-by-type", "imbalance", "overlap")


LOSSES: dict[str, Callable[[Axes], None]] = {
    "memory-by-tile": lambda axes: axes.patches[-2].remove(),
    "memory-by-tile-region": lambda axes: axes.patches[-1].remove(),
    "memory-by-tile-liveness": lambda axes: axes.patches[0].remove(),
    "categories": lambda axes: axes.patches[2].remove(),
    "tile-histogram": lambda axes: axes.patches[0].remove(),
    "tile-map": lambda axes: axes.images[0].remove(),
    "memory-map": lambda axes: next(one for one in axes.collections if one.get_label() == "variable").remove(),
    "liveness": lambda axes: axes.patches[0].remove(),
    "liveness-always-live": lambda axes: axes.patches[1].remove(),
    "peak-variables": lambda axes: axes.patches[5].remove(),
    "lifetimes": lambda axes: axes.patches[3].remove(),
    "timeline": lambda axes: axes.patches[0].remove(),
    "timeline-flame": lambda axes: axes.collections[0].remove(),
    "cycles-by-type": lambda axes: axes.patches[0].remove(),
    "imbalance": lambda axes: axes.patches[0].remove(),
    "overlap": lambda axes: axes.patches[0].remove(),
    "bsp": lambda axes: axes.images[0].remove(),
    "bandwidth": lambda axes: axes.patches[2].remove(),
}


@same_matplotlib
@pytest.mark.parametrize("case", CASES)
def test_the_comparison_notices_a_missing_series(case: str) -> None:
    # GIVEN a picture; WHEN one series of it is lost and its legend and all else stay
    with sample(case) as report:
        axes = draw(report, case)
    LOSSES[case](axes)
    # THEN it is not like its reference
    assert worst_block(png(axes), (BASELINE / f"{case}.png").read_bytes()) > TOLERANCE


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("kind", ["memory-by-tile", "memory-map"])
def test_the_same_plot_is_the_same_file(kind: str, file_format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a plot; WHEN it is drawn now, and by another program on another day
    files = []
    with sample() as report:
        for when in ("0", "1600000000"):
            monkeypatch.setenv("SOURCE_DATE_EPOCH", when)
            files.append(picture(KINDS[kind].load()(report, ax=figure_axes((8, 5))), file_format))
    # THEN the files are the same and of that format, and no date is in them
    assert files[0] == files[1]
    assert files[0].startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[file_format])
    assert b"CreationDate" not in files[0]
    assert b"<dc:date>" not in files[0]


@pytest.mark.parametrize("report", REPORTS, ids=lambda path: str(path.relative_to(SAMPLES)))
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_draws_every_sample(kind: str, report: object) -> None:
    # GIVEN a sample; WHEN any kind of plot is drawn
    with open_report(str(report)) as opened:
        needed = NEEDED.get(kind, "tile_memory")
        of_blocks = kind in OF_BLOCKS_TOO and opened.captured("execution_blocks")
        untold = kind == "bsp" and report != SAMPLES / "replicated"  # the only one with cycles by tile
        if untold or not (opened.captured(needed) or of_blocks):
            # THEN it is refused, with what would capture what it needs
            with pytest.raises(NotCaptured) as refused:
                KINDS[kind].load()(opened)
            assert refused.value.table == needed
            return
        pixels = imread(BytesIO(picture(KINDS[kind].load()(opened), "png", 50)), format="png")
    # THEN it has the size that the kind says, and something on it
    assert pixels.shape[:2] == (KINDS[kind].size[1] * 50, KINDS[kind].size[0] * 50)
    assert pixels.std() > 0.05


@pytest.mark.parametrize(("file_format", "dpi"), [("jpg", 100), ("png", 20_000)])
def test_no_such_format_and_no_such_size(file_format: str, dpi: float) -> None:
    with sample() as report, pytest.raises(UsageError):
        picture(KINDS["categories"].load()(report), file_format, dpi)
