"""Commands whose answer has parts that can be asked for one by one."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from pvanalyse.errors import NotCaptured, UsageError
from pvanalyse.names import marked
from pvanalyse.units import parse_bytes

if TYPE_CHECKING:
    from pvanalyse.render.parts import Part


Maker = Callable[[str], Callable[[], "Part"]]
"""Returns, for the name of a part, what makes it."""


Found = tuple[list["Part"], dict[str, NotCaptured]]
"""Parts, and by name why others were not captured."""


def asked(names: Sequence[str], maker: Maker) -> Found:
    """Return the parts that were asked for by name, all of them.

    Raises
    ------
    NotCaptured
        One of them was not.
    """
    return [maker(name)() for name in names], {}


def usual(names: Sequence[str], maker: Maker) -> Found:
    """Return those of the parts that were captured, and by name why others were not.

    Raises
    ------
    NotCaptured
        None of them was.
    """
    found: list[Part] = []
    missing: dict[str, NotCaptured] = {}
    for name in names:
        try:
            found.append(maker(name)())
        except NotCaptured as error:
            missing[name.replace("-", "_")] = error
    if missing and not found:
        raise next(iter(missing.values()))
    return found, missing


def show_option(names: Sequence[str]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option that asks for parts by name, as the keyword ``show``."""
    return click.option(
        "--show", type=click.Choice(names), multiple=True, metavar="WHAT",
        help=f"Show this instead: {', '.join(names)}. Repeatable.",
    )  # fmt: skip


def top_option(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option that says how long lists are, as the keyword ``top``."""
    return click.option(
        "--top", type=click.IntRange(1), metavar="N",
        help="Rows of each list. Default: 10 in text and Markdown, all in JSON and in CSV of one list.",
    )(command)  # fmt: skip


def regular_expression(_ctx: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Check a regular expression that an option names, before any work is done.

    Raises
    ------
    UsageError
        It is none; where, is marked below it.
    """
    if value is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(value)
    except re.error as error:
        where = error.pos or 0
        raise UsageError(_marked(option, value, error.msg, where)) from None
    except (OverflowError, RecursionError) as error:
        raise UsageError(_marked(option, value, str(error), 0)) from None
    return value


def size(_ctx: click.Context, _option: click.Parameter, value: str | None) -> int | None:
    """Read a size that an option gives, such as '2 MiB'."""
    try:
        return None if value is None else parse_bytes(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _marked(option: click.Parameter, value: str, problem: str, where: int) -> str:
    return f"{option.opts[0]}: not a regular expression: {problem}\n{marked(value, where)}"
