"""What libpva's enumerations have in common."""

from __future__ import annotations

from enum import Enum
from typing import Self


class Enumeration(Enum):
    """An enumeration as libpva's are: members with ``name`` and ``value`` that turn into an int when asked.

    Each has a member ``Unknown``, which stands for whatever libpva has no member for.
    """

    def __int__(self) -> int:
        return int(self.value)

    __index__ = __int__

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the member that a report's word names, ``Unknown`` for any other word."""
        return cls.__members__.get(text) or cls.__members__["Unknown"]
