"""The chart that `ottla bench` draws while it runs: throughput and p99 over time.

Drawn on standard error, and only on a terminal; elsewhere a line is printed every few seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from ottla.cli.screen import note, say, show_table
from ottla.messaging.load.meter import Measured, Meter, Sample, milliseconds
from ottla.wording.sizes import size_text

if TYPE_CHECKING:
    from rich.live import Live

BLOCKS: Final = " ▁▂▃▄▅▆▇█"
RATE_ROWS: Final = 6
LATENCY_ROWS: Final = 3
MAX_COLUMNS: Final = 120
LINE_EVERY_S: Final = 5.0


def bars(values: Sequence[float], columns: int, rows: int) -> list[str]:
    """The last values as bars, one column each; the highest one fills all rows."""
    shown = values[-columns:]
    top = max(shown, default=0) or 1
    heights = [round(max(value, 0) / top * rows * 8) for value in shown]
    return [
        "".join(BLOCKS[min(max(height - row * 8, 0), 8)] for height in heights).rstrip()
        for row in reversed(range(rows))
    ]


def chart(title: str, meter: Meter, columns: int) -> list[str]:
    """The lines of the chart."""
    columns = min(columns, MAX_COLUMNS)
    samples = meter.samples[-columns:]
    if not samples:
        return [title]
    last = samples[-1]
    rates = [sample.records_per_s for sample in samples]
    lines = [
        title[:columns],
        f"{last.seconds:.0f} s, {meter.records:,} records",
        f"{last.records_per_s:,.0f} records/s, at most {max(rates):,.0f}",
        *bars(rates, columns, RATE_ROWS),
    ]
    latencies = [sample.p99_us or 0 for sample in samples]
    if any(latencies):
        now, most = milliseconds(last.p99_us), milliseconds(max(latencies))
        lines.append(f"p99 {latency_text(now)}, at most {latency_text(most)}")
        lines += bars(latencies, columns, LATENCY_ROWS)
    return lines


class Chart:
    """`with Chart(title, meter, wanted=...) as chart:` and `chart.show()` after each sample."""

    def __init__(self, title: str, meter: Meter, *, wanted: bool) -> None:
        """Not `wanted`: nothing is shown."""
        self._title = title
        self._meter = meter
        self._wanted = wanted
        self._line_s = LINE_EVERY_S
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._wanted and can_draw():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(
                console=Console(stderr=True, highlight=False, markup=False),
                auto_refresh=False,
                transient=True,
            )
            self._live.start()
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self) -> None:
        if not self._wanted or not self._meter.samples:
            return
        if self._live is not None:
            from rich.text import Text

            # One column less: some terminals wrap after the last one.
            lines = chart(self._title, self._meter, self._live.console.width - 1)
            text = Text("\n".join(lines), no_wrap=True, overflow="crop")
            self._live.update(text, refresh=True)
            return
        last = self._meter.samples[-1]
        if last.seconds >= self._line_s:
            self._line_s += LINE_EVERY_S
            note(line(last, self._meter.records))


def can_draw() -> bool:
    """Whether standard error is a terminal that shows block characters in place."""
    from os import environ

    encoding = (getattr(sys.stderr, "encoding", None) or "").lower().replace("-", "")
    return sys.stderr.isatty() and encoding == "utf8" and environ.get("TERM") != "dumb"


def show_measured(found: Measured, title: str) -> None:
    """A whole run as tables."""
    show_table(
        ["records", "bytes", "time", "records/s", "bytes/s"],
        [
            [
                f"{found.records:,}",
                size_text(found.bytes),
                f"{found.seconds:.1f} s",
                f"{found.records_per_s:,}",
                f"{size_text(found.bytes_per_s)}/s",
            ]
        ],
        title=title,
    )
    if found.latency_ms is not None:
        say("")
        show_table(
            ["latency", *found.latency_ms], [["", *map(latency_text, found.latency_ms.values())]]
        )


def latency_text(latency_ms: float | None) -> str:
    """`0.42 ms`, `12.3 ms`, `1.2 s`."""
    if latency_ms is None:
        return "-"
    if latency_ms < 10:
        return f"{latency_ms:.2f} ms"
    return f"{latency_ms:.1f} ms" if latency_ms < 1000 else f"{latency_ms / 1000:.1f} s"


def line(sample: Sample, records: int) -> str:
    """A moment as one line, where there is no chart."""
    text = (
        f"{sample.seconds:.0f} s: {records:,} records, {sample.records_per_s:,.0f}/s, "
        f"{size_text(round(sample.bytes_per_s))}/s"
    )
    if sample.p99_us is None:
        return text
    p50, p99 = milliseconds(sample.p50_us), milliseconds(sample.p99_us)
    return f"{text}, p50 {latency_text(p50)}, p99 {latency_text(p99)}"
