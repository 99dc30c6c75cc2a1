"""What the layers recorded in debug contexts, as compact JSON texts in Arrow arrays."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from cbor2 import CBORSimpleValue, undefined


def _beyond_json(value: Any) -> Any:
    """Return what stands in JSON for a value of CBOR that JSON does not know."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, CBORSimpleValue):
        return value.value
    if value is undefined:
        return None
    raise TypeError(f"{type(value)} is not of CBOR")


_encode = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":"), default=_beyond_json
).encode


def json_texts(values: list[dict[Any, Any]]) -> pa.StringArray:
    """Return the JSON text of each dictionary."""
    try:
        texts = [orjson.dumps(value, _beyond_json) for value in values]
    except TypeError:  # integers beyond 64 bits, keys that are bytes
        return pa.array(map(_json_text, values), pa.string())
    offsets = np.zeros(len(texts) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, texts), np.int32, len(texts)), out=offsets[1:])
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(b"".join(texts)))


def _json_text(value: Any) -> str:
    return _encode(_for_json(value))


def _for_json(value: Any) -> Any:
    """Return the value with keys that are text, and null for a float that JSON does not have."""
    if isinstance(value, dict):
        return {key.hex() if isinstance(key, bytes) else key: _for_json(content) for key, content in value.items()}
    if isinstance(value, list):
        return [_for_json(content) for content in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
