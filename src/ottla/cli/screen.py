"""Prints tables for people and JSON for programs, and never cuts anything silently.

On a terminal, a table that is too wide wraps its widest column. If that leaves only a few
characters, each row becomes a block of `name  value` lines. In a pipe nothing is wrapped.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, Final

from ottla.cli.output import OutputClosed, output_errors
from ottla.cli.wrapping import print_error, printable, wrapped

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

GAP: Final = 2
MIN_FOLD: Final = 16
PIPE_COLUMNS: Final = 1_000_000
CLEAR: Final = "\x1b[H\x1b[J"
"""Of a terminal: the cursor to the top left, and everything after it erased."""
FILL: Final = re.compile(r"(?: |\x1b\[[0-9;]*m)+$", re.MULTILINE)
"""Spaces at the end of a line, between the escape sequences that end a style."""


def write(text: str, *, flush: bool = False) -> None:
    """Write to standard output. Raises OutputClosed and OutputFailed."""
    with output_errors():
        sys.stdout.write(text)
        if flush:
            sys.stdout.flush()


def write_bytes(data: bytes) -> None:
    """Write bytes unchanged to standard output, at once. Raises OutputClosed and OutputFailed."""
    with output_errors():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def say(text: str) -> None:
    """One line on standard output."""
    write(f"{wrapped(text, sys.stdout)}\n")


def note(text: str) -> None:
    """One line on standard error."""
    print_error(text)


def show_json(value: Any) -> None:
    """One indented JSON document. Its fields keep their order."""
    import json

    write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def terminal_size() -> os.terminal_size:
    """The size of the terminal that standard output is, also where it was redirected."""
    if not sys.stdout.isatty() or "COLUMNS" in os.environ:
        return get_terminal_size()
    # The function above asks for descriptor 1, which may have become another file.
    size = os.get_terminal_size(sys.stdout.fileno())
    return size if size.columns else get_terminal_size()


def console() -> Console:
    """Standard output as rich sees it."""
    from rich.console import Console

    class Screen(Console):
        def on_broken_pipe(self) -> None:
            # Rich would end the process here.
            raise OutputClosed

    folds = sys.stdout.isatty() or "COLUMNS" in os.environ
    # Both are checked here: rich assumes 80 columns for a terminal without colours (TERM=dumb).
    size = terminal_size()
    return Screen(
        width=size.columns if folds else PIPE_COLUMNS,
        height=size.lines,
        highlight=False,
        markup=False,
        emoji=False,
    )


def show_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str | None = None,
    drop_empty: Sequence[str] = (),
) -> None:
    """A table with numeric columns aligned right. `None` is shown as a dash.

    Columns in `drop_empty` are left out if all their cells are empty.
    """
    rows = list(rows)
    kept = [
        index
        for index, name in enumerate(columns)
        if name not in drop_empty or any(row[index] not in (None, "") for row in rows)
    ]
    columns = [columns[index] for index in kept]
    rows = [[row[index] for index in kept] for row in rows]
    cells = [["-" if cell is None else printable(str(cell)) for cell in row] for row in rows]
    raw = [[isinstance(cell, int) or cell is None for cell in row] for row in rows]
    right = [all(row[index] for row in raw) for index in range(len(columns))]
    if title:
        say_styled(printable(title), "bold")
    print_rows(columns, cells, right)


def has_styles() -> bool:
    """Whether output may have styles and be folded. If not, nothing of rich is imported."""
    return sys.stdout.isatty() or not os.environ.keys().isdisjoint(("COLUMNS", "FORCE_COLOR"))


def say_styled(text: str, style: str) -> None:
    """One line in rich's style, folded at the width of the terminal."""
    if has_styles():
        console().print(text, style=style, overflow="fold")
    else:
        say(text)


def cell_width(text: str) -> int:
    """How many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def print_rows(
    columns: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool]
) -> None:
    """Rows below each other. What fits is written as it is: rich takes a second for 1,000 rows."""
    widths = [
        max([cell_width(name), *(cell_width(row[index]) for row in cells)])
        for index, name in enumerate(columns)
    ]
    total = sum(widths) + GAP * (len(widths) - 1)
    excess = total - console().width if has_styles() else 0
    if excess <= 0:
        say_styled(aligned(columns, widths, right), "bold cyan")
        write("".join(f"{aligned(row, widths, right)}\n" for row in cells))
    elif max(widths) - excess < MIN_FOLD:
        print_blocks(console(), columns, cells)
    else:
        print_folded(console(), columns, cells, right, widths)


def aligned(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    """One line of a table."""
    parts = []
    for cell, width, is_right in zip(row, widths, right, strict=True):
        space = " " * (width - cell_width(cell))
        parts.append(space + cell if is_right else cell + space)
    return (" " * GAP).join(parts).rstrip()


def print_folded(
    screen: Console,
    columns: Sequence[str],
    cells: Sequence[Sequence[str]],
    right: Sequence[bool],
    widths: Sequence[int],
) -> None:
    """A table that is too wide: its widest column is folded."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold cyan")
    widest = widths.index(max(widths))
    for index, name in enumerate(columns):
        table.add_column(
            Text(name),
            justify="right" if right[index] else "left",
            no_wrap=index != widest,
            min_width=widths[index] if index != widest else None,
            overflow="fold",
        )
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    print_trimmed(screen, table)


def print_blocks(screen: Console, columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    """Each row as lines of name and value; on very narrow screens the value gets a line of
    its own.
    """
    from rich.table import Table
    from rich.text import Text

    name_width = max(map(len, columns))
    below = screen.width - name_width - GAP < MIN_FOLD // 2
    for number, row in enumerate(cells):
        if number:
            screen.print()
        # A column without a name has a value in some rows only.
        named = [each for each in zip(columns, row, strict=True) if any(each)]
        if below:
            for name, cell in named:
                screen.print(Text(name, style="cyan"), overflow="fold")
                screen.print(Text(cell), overflow="fold")
            continue
        block = Table.grid(padding=(0, GAP, 0, 0))
        block.add_column(style="cyan", no_wrap=True, min_width=name_width)
        block.add_column(overflow="fold")
        for name, cell in named:
            block.add_row(name, Text(cell))
        print_trimmed(screen, block)


def print_trimmed(screen: Console, shown: RenderableType) -> None:
    """A table or a tree without the spaces with which rich fills lines, or leaves where it folds
    them.
    """
    with screen.capture() as captured:
        screen.print(shown)
    write(FILL.sub(lambda fill: fill[0].replace(" ", ""), captured.get()))


def line_of_input() -> str:
    """The next line of standard input; empty at its end. Raises UsageFailed if it is no text."""
    from ottla.cli.failures import UsageFailed

    try:
        return sys.stdin.readline()
    except UnicodeDecodeError:
        raise UsageFailed("standard input is not UTF-8 text.") from None


def ask(question: str, *, what_else: str) -> bool:
    """Ask the user yes or no. Without a terminal, refuse with a hint."""
    from ottla.cli.failures import UsageFailed

    if not sys.stdin.isatty():
        raise UsageFailed(f"{question} Cannot ask without a terminal.", what_else)
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return line_of_input().strip().lower() in ("y", "yes")
