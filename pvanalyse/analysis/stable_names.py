"""Names that stay the same from one compile to the next.

The compiler and the frameworks number much of what they make, and give other numbers when anything before it changes.
To match two reports these numbers are taken away; numbers that say which of several things is meant are kept.

=============================== ================= ========== ==================================================
what is numbered                as reported       stable     kept, because it says which
=============================== ================= ========== ==================================================
pieces of a lowered variable    ``scores#12``     ``scores``
copies and casts                ``copy85_/x``     ``copy_/x`` ``conv2d_1``, ``layer_12``
instructions of XLA             ``fusion.123``    ``fusion`` ``layer.1``, ``resnet.50``
from three digits on, anything  ``MatMul_1234:0`` ``MatMul:0`` ``Conv_1``, ``layer_123``, ``dense_1024``, ``x:0``
temporary tensors               ``t1234``         ``t``      ``mobilenet/v2``
addresses                       ``f.0x7f31a0``    ``f.0x``
=============================== ================= ========== ==================================================

Each rule is for one part of a name between slashes. A number of one or two digits after an underscore is kept: a model
has a ``layer_1`` and a ``layer_2``, and the libraries number what they do in an operation from 1 (``Conv_1``). From
three digits on it counts the whole graph, except after a word that models count or measure. A number after a colon is
the output of an operation and part of the tensor's name. Two things that only such a number told apart have the same
stable name, and are added up.
"""

from __future__ import annotations

import re
from functools import lru_cache

_LONGEST_PART = 500  # beyond, it is no name that somebody made, and left alone
_ADDRESS = re.compile(r"0x[0-9a-f]{4,}", re.IGNORECASE)
_PIECE = re.compile(r"(?:#\d++)++(?=$|:)")
_MADE = "broadcast|cast|clone|copy|partials|preArrange|rearrange|regroup|temp|tmp|zero"
_NUMBERED_COPY = re.compile(rf"(?<![a-z])({_MADE})\d++(?=_|$|:)", re.IGNORECASE)
_INSTRUCTIONS = (
    "abs|add|all-gather|all-reduce|all-to-all|and|batch-norm-grad|batch-norm-inference|batch-norm-training|bitcast|"
    "broadcast|call|clamp|compare|concatenate|conditional|constant|convert|convolution|copy|custom-call|divide|dot|"
    "dynamic-slice|dynamic-update-slice|exponential|fusion|gather|get-tuple-element|infeed|iota|log|map|maximum|"
    "minimum|multiply|negate|not|or|outfeed|pad|parameter|power|reduce|reduce-scatter|reduce-window|remainder|reshape|"
    "reverse|rng|rsqrt|scatter|select|select-and-scatter|slice|sort|sqrt|subtract|tanh|transpose|tuple|while"
)
_INSTRUCTION = re.compile(rf"^(%?(?:[a-z_-]*[_-])?(?:{_INSTRUCTIONS}))(?:\.\d++)++(?=$|:|_)")
_COUNTED = (
    "bank|batch|bin|blocks?|bucket|cell|channels?|chunk|column|conv|decoder|dense|depth|device|dim|embedding|encoder|"
    "epoch|experts?|features?|group|heads?|hidden|ipu|iteration|layers?|level|linear|phase|pipeline|position|rank|"
    "replica|resnet|row|scale|segment|shard|size|split|stage|step|table|tile|time|token|units?|width"
)
_NUMBERS = re.compile(r"(?:_++t?\d{3,}+)++(?=$|:)")
_ENDS_COUNTED = re.compile(rf"(?:^|[^a-z])(?:{_COUNTED})$", re.IGNORECASE)
_TEMPORARY = re.compile(r"^([tv%])\d{3,}+(?=$|:)")  # in a path, where v2 is a version
_ONLY_TEMPORARY = re.compile(r"^([tv%])\d++(?=$|:|#)")


@lru_cache(maxsize=1 << 16)
def stable_name(name: str) -> str:
    """Return a name without the numbers that the compiler gave, see the table above.

    What is stable already stays as it is, so ``stable_name(stable_name(name)) == stable_name(name)``; no name becomes
    empty.
    """
    temporary = _TEMPORARY if "/" in name else _ONLY_TEMPORARY
    return "/".join(_stable_part(part, temporary) for part in name.split("/"))


def layer_of(stable: str) -> str:
    """Return the path that a name is under: all of it but the last part, empty when there is only one."""
    return stable.rpartition("/")[0]


def _stable_part(part: str, temporary: re.Pattern[str]) -> str:
    if len(part) > _LONGEST_PART:
        return part
    # Each round takes something away or is the last; taking a number away can leave another at the end.
    while (shorter := _without_numbers(part, temporary)) not in ("", part):
        part = shorter
    return part


def _without_numbers(part: str, temporary: re.Pattern[str]) -> str:
    part = _PIECE.sub("", _ADDRESS.sub("0x", part))
    part = _INSTRUCTION.sub(r"\1", _NUMBERED_COPY.sub(r"\1", part))
    part = temporary.sub(r"\1", part)
    numbers = _NUMBERS.search(part)
    if numbers is None or not numbers.start() or _ENDS_COUNTED.search(part, 0, numbers.start()):
        return part
    return part[: numbers.start()] + part[numbers.end() :]
