"""The screen of `ottla pipeline run`: a live table, lines in a pipe, or lines of JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ottla.cli.pipeline.snapshot import (
    COLUMNS,
    remarks,
    snapshot_document,
    snapshot_line,
    snapshot_row,
)
from ottla.cli.screen import GAP, MIN_FOLD, console, note, terminal_size, write
from ottla.cli.wrapping import printable
from ottla.pipelines.program.snapshot import Snapshot
from ottla.pipelines.program.view import View

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

LINE_S: Final = 2.0
"""In a pipe a pipeline that runs gets no more than one line in this time."""


def open_view(*, as_json: bool) -> View:
    """The view that fits where the output goes."""
    if as_json:
        return JsonView()
    return LiveView() if sys.stdout.isatty() else LineView()


class LineView:
    """A line for each batch, at most one in LINE_S, and for each other state.

    All of them raise OutputClosed and OutputFailed.
    """

    shows_inside = False

    def __init__(self) -> None:
        self._marks: dict[str, tuple[object, ...]] = {}
        self._states: dict[str, tuple[str, str | None]] = {}
        self._shown_s: dict[str, float] = {}

    def show(self, snapshots: Sequence[Snapshot]) -> None:
        for snapshot in snapshots:
            self._show(snapshot, is_last=False)

    def tell(self, line: str) -> None:
        note(printable(line))

    def close(self, snapshots: Sequence[Snapshot]) -> None:
        for snapshot in snapshots:
            self._show(snapshot, is_last=True)

    def _show(self, snapshot: Snapshot, *, is_last: bool) -> None:
        name, now_s = snapshot.pipeline, time.monotonic()
        if self._marks.get(name) == snapshot.mark:
            return
        state = (snapshot.state, snapshot.reason)
        is_soon = now_s - self._shown_s.get(name, -LINE_S) < LINE_S
        if is_soon and self._states.get(name) == state and not is_last:
            return
        self._marks[name], self._states[name] = snapshot.mark, state
        self._shown_s[name] = now_s
        write(self._line(snapshot), flush=True)

    def _line(self, snapshot: Snapshot) -> str:
        return f"{time.strftime('%H:%M:%S')} {printable(snapshot_line(snapshot))}\n"


class JsonView(LineView):
    """The same as JSON, one document a line; notices go to standard error."""

    def _line(self, snapshot: Snapshot) -> str:
        document = snapshot_document(snapshot, int(time.time() * 1_000))
        return json.dumps(document, ensure_ascii=False) + "\n"


class LiveView:
    """A table that stays in place; notices scroll above it."""

    shows_inside = True

    def __init__(self) -> None:
        self._console: Console = console()
        self._live: Live | None = None

    def show(self, snapshots: Sequence[Snapshot]) -> None:
        from rich.live import Live

        size = terminal_size()  # the user may have changed it
        self._console.width, self._console.height = size.columns, size.lines
        if self._live is None:
            self._live = Live(
                console=self._console, auto_refresh=False, redirect_stdout=False,
                redirect_stderr=False, vertical_overflow="visible",
            )  # fmt: skip
            self._live.start()
        self._live.update(table_of(snapshots, self._console.width), refresh=True)

    def tell(self, line: str) -> None:
        from rich.text import Text

        self._console.print(Text(printable(line)), overflow="fold")

    def close(self, snapshots: Sequence[Snapshot]) -> None:
        self.show(snapshots)
        assert self._live is not None
        self._live.stop()


def table_of(snapshots: Sequence[Snapshot], width: int) -> RenderableType:
    """A table, or lines of name and value where the table would not fit."""
    from rich.cells import cell_len
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    cells = [[printable(cell) for cell in snapshot_row(snapshot)] for snapshot in snapshots]
    widths = [
        max(cell_len(name), *(cell_len(row[index]) for row in cells))
        for index, name in enumerate(COLUMNS)
    ]
    parts: list[Any] = []
    if sum(widths) + GAP * (len(widths) - 1) <= width:
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold cyan")
        for index, name in enumerate(COLUMNS):
            table.add_column(name, justify="left" if index < 2 else "right", no_wrap=True)
        for row in cells:
            table.add_row(*map(Text, row))
        parts.append(table)
    else:
        for row in cells:
            block = Table.grid(padding=(0, GAP, 0, 0))
            block.add_column(style="cyan", no_wrap=True)
            block.add_column(overflow="fold", min_width=min(MIN_FOLD, width // 2))
            for name, cell in zip(COLUMNS, row, strict=True):
                block.add_row(name, Text(cell))
            parts.append(block)
    for snapshot in snapshots:
        for style, line in remarks(snapshot):
            text = printable(f"{snapshot.pipeline}: {line}")
            parts.append(Text(text, style=style, overflow="fold"))
    return Group(*parts)
