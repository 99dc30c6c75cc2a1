"""A report walked through libpva's public objects and written down as a profile of the layout ``pvanalyse-1``.

For machines with the Poplar SDK, whose ``pva`` reads profiles of the vendor's own layout: what is captured there is
read by everything here, anywhere. Only names that public documentation or public programs show are asked for; names
that only C++ programs show are asked for with care, and listed when they are not there.
"""

from __future__ import annotations

from pvanalyse.capture.capturing import PARTS, Captured, capture_report, open_module
from pvanalyse.capture.not_told import NotTold

__all__ = ["PARTS", "Captured", "NotTold", "capture_report", "open_module"]
