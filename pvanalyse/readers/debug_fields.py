"""What the layers recorded in debug contexts, as compact JSON texts in Arrow arrays."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from cbor2 import CBORSimpleValue


def _beyond_json(value: Any) -> Any:
    """Return what stands in JSON for a value of CBOR that JSON does not know."""
    if isinstance(value, bytes):
        return value.hex()
    return value.value if isinstance(value, CBORSimpleValue) else None  # the other one is `undefined`


_encode = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":"), default=_beyond_json
).encode
_MARK = "\0"
_MARK_BETWEEN = f",{_encode(_MARK)},"


def json_texts(values: list[dict[Any, Any]]) -> pa.StringArray:
    """Return the JSON text of each dictionary."""
    # One call with marks between the dictionaries, because a call for each takes a third longer. A mark is told from
    # the same text within a dictionary by their number: if there are more, the dictionaries are encoded one by one.
    marked: list[Any] = [_MARK] * max(0, 2 * len(values) - 1)
    marked[::2] = values
    try:
        text = _encode(marked).encode()
    except (TypeError, ValueError):
        return _one_by_one(values)
    inside = np.array([1, len(text) - 1], np.int32)  # the brackets left out
    whole = pa.StringArray.from_buffers(1, pa.py_buffer(inside), pa.py_buffer(text))
    texts = pc.split_pattern(whole, _MARK_BETWEEN).flatten()
    return texts if len(texts) == len(values) else _one_by_one(values)


def _one_by_one(values: list[dict[Any, Any]]) -> pa.StringArray:
    return pa.array(map(_json_text, values), pa.string())


def _json_text(value: Any) -> str:
    try:
        return _encode(value)
    except (TypeError, ValueError):
        return _encode(_for_json(value))


def _for_json(value: Any) -> Any:
    """Return the value with keys that are text and floats that JSON has."""
    if isinstance(value, dict):
        return {key.hex() if isinstance(key, bytes) else key: _for_json(content) for key, content in value.items()}
    if isinstance(value, list):
        return [_for_json(content) for content in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
