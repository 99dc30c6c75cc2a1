"""CBOR (RFC 8949) read from a file a few items at a time.

The decoding itself is cbor2's. This module adds what a profile of hundreds of megabytes needs: an array is decoded
in small batches, so that its tree of Python objects never exists as a whole; nothing a header claims is believed
before it fits the file; and every error names the byte at which the file stops making sense.

Tags are not interpreted, their content stands for itself. That leaves out shared and string references (which can
make a small file decode into an endless one), regular expressions, and decimals with a huge exponent.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NoReturn, Self, cast

from cbor2 import CBORDecodeError, CBORDecoder

from pvanalyse.errors import UnreadableFile
from pvanalyse.readers.cbor_structure import ARRAY, KINDS, MAP, MAX_DEPTH, TEXT, Malformed, read_header, skip_item
from pvanalyse.readers.files import describe, regular_file

MAX_ITEM_BYTES = 32 << 20
"""Largest array item that is decoded; one byte of CBOR can become 70 bytes of Python objects."""

_BATCH_BYTES = 32 << 10  # a batch as Python objects, ten times that, then stays in a processor core's own cache
_BATCH_LIMIT_BYTES = 4 << 20  # a batch that turns out larger than this is decoded item by item instead
_BATCH_ITEMS = 4096
_READ_BYTES = 8 << 10  # cbor2 throws away what it has read ahead at the end of each batch

_BREAK = b"\xff"
_SELF_DESCRIBED = b"\xd9\xd9\xf7"  # RFC 8949 section 3.4.6: tag 55799, which may stand before any CBOR


class _Source:
    """What cbor2 reads from: the file, after a few bytes put before it, and no more of it than allowed."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._size = size
        self._before = b""
        self._allowance = 0
        self.exceeded = False

    def start(self, before: bytes, allowance: int) -> None:
        """Put bytes before the file's position, and set how many of its bytes may be read."""
        self._before, self._allowance, self.exceeded = before, allowance, False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def read(self, amount: int) -> bytes:
        before, self._before = self._before, b""
        # cbor2 asks for as much as a header claims; the file's size bounds what is allocated for it
        amount = min(amount, self._size - self._file.tell())
        if amount > self._allowance:
            amount, self.exceeded = self._allowance, True
        data = self._file.read(amount)
        self._allowance -= len(data)
        return before + data


class _Untagged(dict[int, Callable[[Any, bool], Any]]):
    """Decoders of tags for cbor2: for every tag one that returns the content."""

    def __missing__(self, tag: int) -> Callable[[Any, bool], Any]:
        return _content


def _content(value: Any, _immutable: bool) -> Any:
    return value


class CborFile:
    """A CBOR file read from front to back.

    Parameters
    ----------
    path
        A regular file.
    progress
        Called with the bytes done and the bytes in all, after each batch of items.

    Raises
    ------
    UnreadableFile
        The file cannot be read or does not begin with a CBOR map. All methods raise it when the file is damaged,
        with the byte offset.
    """

    def __init__(self, path: str | PathLike[str], progress: Callable[[int, int], None] | None = None) -> None:
        self.path = Path(path)
        self.size, head = regular_file(self.path)
        # A byte such as "{" can begin CBOR as well, but not a map
        if head[0] >> 5 != MAP and not head.startswith(_SELF_DESCRIBED):
            raise UnreadableFile(self.path, f"this is {describe(head)}, not a CBOR map")
        self._progress = progress
        self._map: mmap.mmap | None = None
        self._file = self.path.open("rb", buffering=0)
        self.position = len(_SELF_DESCRIBED) if head.startswith(_SELF_DESCRIBED) else 0
        self._source = _Source(self._file, self.size)
        self._strict = self._decoder("strict")
        self._lenient = self._decoder("replace")

    def _decoder(self, str_errors: str) -> CBORDecoder:
        return CBORDecoder(
            cast("IO[bytes]", self._source),
            semantic_decoders=_Untagged(),
            str_errors=str_errors,
            read_size=_READ_BYTES,
            max_depth=MAX_DEPTH + 1,  # one for the array put around a batch
            strict_hashable_types=True,  # keys that are tuples of integers could be made to collide
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._map is not None:
            self._map.close()
        self._file.close()

    @property
    def position(self) -> int:
        """Offset of the next byte to be read."""
        return self._file.tell()

    @position.setter
    def position(self, offset: int) -> None:
        self._file.seek(offset)

    def fail(self, offset: int, problem: str) -> NoReturn:
        """Raise the error that the file is damaged at an offset."""
        raise UnreadableFile(self.path, f"{problem} at byte {offset:,}")

    def fail_item(self, start: int, index: int, problem: str) -> NoReturn:
        """Raise the error that an item is wrong, `index` items after the one that starts at offset `start`."""
        for _ in range(index):
            start = skip_item(self._mapped(), start)
        self.fail(start, problem)

    def _read_at(self, offset: int, amount: int) -> bytes:
        self.position = offset
        return self._file.read(amount)

    def _mapped(self) -> mmap.mmap:
        """Return the file mapped into memory, for the rare work that jumps about in it."""
        if self._map is None:
            self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        return self._map

    def _header(self) -> tuple[int, int, int | None]:
        """Read a header: its offset, major type and argument."""
        start = self.position
        beginning = self._read_at(start, 9)
        try:
            major, argument, end = read_header(beginning, 0)
        except Malformed as error:
            self.fail(start + error.offset, error.problem)
        self.position = start + end
        return start, major, argument

    def _container(self, major: int, what: str, bytes_per_item: int) -> int | None:
        """Read the header of a container that has to be here: the number of items, None for indefinite."""
        start, found, count = self._header()
        if found != major:
            self.fail(start, f"{what} is {KINDS[found]} instead of {KINDS[major]}")
        left = self.size - self.position
        if count is not None and count > left // bytes_per_item:
            self.fail(start, f"{what} claims {count:,} items, but the file has {left:,} bytes left")
        return count

    def _ends_here(self) -> bool:
        """Read the break code of a container of indefinite length, if it is next."""
        if self._read_at(start := self.position, 1) == _BREAK:
            return True
        self.position = start
        return False

    def keys(self, what: str) -> Iterator[str | None]:
        """Yield the keys of the map that is next; the caller reads or skips the value after each.

        Parameters
        ----------
        what
            What the map is, for messages.

        Yields
        ------
        The key, None when it is no text. An indefinite map's end is read as well.
        """
        count = self._container(MAP, what, 2)
        while count is None or count > 0:
            if count is None and self._ends_here():
                return
            start, major, _ = self._header()
            self.position = start
            if major == TEXT:
                yield cast("str", self._decode_one("a key"))
            else:
                self.skip()
                yield None
            count = None if count is None else count - 1

    def skip(self) -> None:
        """Skip the item that is next, whatever it is."""
        try:
            self.position = skip_item(self._mapped(), self.position)
        except Malformed as error:
            self.fail(error.offset, error.problem)

    def array_length(self, what: str) -> int | None:
        """Read the header of the array that is next: its number of items, None when it is not known yet."""
        return self._container(ARRAY, what, 1)

    def items(self, count: int | None, what: str) -> Iterator[tuple[int, list[Any]]]:
        """Decode the items of an array whose header has been read.

        Parameters
        ----------
        count
            What :meth:`array_length` returned.
        what
            What an item is, for messages.

        Yields
        ------
        The offset of the first item of a batch, and the batch. Byte sequences in text that are not UTF-8 become
        U+FFFD. The caller may change the items; the list is not kept.
        """
        first = self.position
        done, batch_size = 0, 16
        ended = count == 0
        while not ended:
            start = self.position
            wanted = batch_size if count is None else min(batch_size, count - done)
            try:
                batch = self._decode_batch(wanted)
            except (CBORDecodeError, MemoryError):
                self.position = start
                batch, ended = self._decode_singly(wanted, what, indefinite=count is None)
            done += len(batch)
            ended = ended or done == count
            position = self.position
            if batch:
                yield start, batch
                batch_size = max(1, min(_BATCH_ITEMS, done * _BATCH_BYTES // (position - first)))
            if self._progress is not None:
                self._progress(position, self.size)

    def _decode(self, decoder: CBORDecoder, before: bytes, allowance: int) -> Any:
        self._source.start(before, allowance)
        try:
            return decoder.decode()
        except BaseException:
            decoder.fp = cast("IO[bytes]", self._source)  # forgets what was read ahead
            raise

    def _decode_batch(self, count: int) -> list[Any]:
        # The header of an array of `count` items goes before the items, so that one call decodes them all
        header = b"\x9a" + count.to_bytes(4, "big")
        return cast("list[Any]", self._decode(self._strict, header, _BATCH_LIMIT_BYTES))

    def _decode_singly(self, count: int, what: str, *, indefinite: bool) -> tuple[list[Any], bool]:
        """Decode a batch that has something unusual in it; also say whether the array's end was in it."""
        batch: list[Any] = []
        start = self.position
        while len(batch) < count and self.position - start < _BATCH_LIMIT_BYTES:
            if indefinite and self._ends_here():
                return batch, True
            batch.append(self._decode_one(what))
        return batch, False

    def _decode_one(self, what: str) -> Any:
        start = self.position
        try:
            return self._decode(self._lenient, b"", MAX_ITEM_BYTES)
        except (CBORDecodeError, MemoryError) as error:
            exceeded = self._source.exceeded
            try:
                skip_item(self._mapped(), start)
            except Malformed as malformed:
                self.fail(malformed.offset, malformed.problem)
            if exceeded:
                self.fail(start, f"{what} of more than {MAX_ITEM_BYTES >> 20} MiB")
            self.fail(start, f"{what} cannot be decoded ({error})")

    def expect_end(self) -> None:
        """Check that nothing but zeros, which a crashed file system can leave, comes after what was read."""
        while data := self._read_at(offset := self.position, 1 << 20):
            if rest := data.lstrip(b"\0"):
                self.fail(offset + len(data) - len(rest), "there is more after the end of the data")
        if self._progress is not None:
            self._progress(self.size, self.size)

    def find_last(self, pattern: bytes) -> int:
        """Return the offset of the last occurrence of a byte pattern in what is still to be read, or −1."""
        return self._mapped().rfind(pattern, self.position)
