"""The bytes of a segment and its indexes, each byte with the field that it belongs to.

The bytes are real: the broker's own log writes two batches, with fixed times, into a folder.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from ottla.log.config import LogConfig
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.records.build import build_batch
from ottla.records.header import iterate_headers
from ottla.records.record import Record
from website.pictures.svg import INK, MONO, Picture

AT_MS: Final = 1_767_225_600_000  # 2026-01-01T00:00:00Z
LINE_BYTES: Final = 16
CELL: Final = 27
ROW: Final = 26
COLOURS: Final = ("#dbeafe", "#fef3c7", "#dcfce7", "#fce7f3", "#e0e7ff", "#ffedd5", "#ccfbf1")


class Field(NamedTuple):
    """A field of a file: its name, its size in bytes, and how its value is shown."""

    name: str
    size: int
    shown: str = "int"


BATCH: Final = (
    Field("base offset", 8),
    Field("batch length (what follows)", 4),
    Field("leader epoch", 4),
    Field("magic: the format's version", 1),
    Field("CRC-32C of all that follows", 4, "hex"),
    Field("attributes: no compression, CreateTime", 2),
    Field("last offset, relative", 4),
    Field("base timestamp, ms", 8),
    Field("max timestamp, ms", 8),
    Field("producer id", 8),
    Field("producer epoch", 2),
    Field("base sequence", 4),
    Field("number of records", 4),
    Field("record length (zigzag varint)", 1, "zigzag"),
    Field("record attributes", 1),
    Field("timestamp, relative", 1, "zigzag"),
    Field("offset, relative", 1, "zigzag"),
    Field("key length", 1, "zigzag"),
    Field("key", 5, "text"),
    Field("value length", 1, "zigzag"),
    Field("value", 8, "text"),
    Field("number of headers", 1, "zigzag"),
)
INDEX: Final = (Field("offset, relative to the segment's first", 4), Field("position in .log", 4))
TIME_INDEX: Final = (Field("timestamp, ms", 8), Field("offset, relative", 4))


def written(folder: Path) -> dict[str, bytes]:
    """The files of a partition with two batches, by the ends of their names."""
    config = LogConfig(index_interval_bytes=0)
    log = open_log(str(folder / "orders-0"), config, OpenFiles(8), now_ms=AT_MS)
    for number, value in enumerate((b"2 apples", b"5 apples")):
        record = Record(0, AT_MS + 1000 * number, b"alice", value)
        batch = build_batch([record], producer_id=7, producer_epoch=0, base_sequence=number)
        log.append(batch, list(iterate_headers(batch)), leader_epoch=3, now_ms=AT_MS)
    log.close()
    ends = (".log", ".index", ".timeindex")
    return {end: next((folder / "orders-0").glob(f"*{end}")).read_bytes() for end in ends}


def fields_of(data: bytes, fields: tuple[Field, ...]) -> Iterator[tuple[Field, bytes]]:
    """Each field with its bytes."""
    at = 0
    for field in fields:
        yield field, data[at : at + field.size]
        at += field.size


def value_of(field: Field, data: bytes) -> str:
    if field.shown == "hex":
        return data.hex()
    if field.shown == "text":
        return data.decode()
    number = int.from_bytes(data, "big", signed=field.shown == "int")
    return str((number >> 1) ^ -(number & 1)) if field.shown == "zigzag" else str(number)


def draw() -> str:
    """The picture as SVG."""
    with tempfile.TemporaryDirectory() as folder:
        files = written(Path(folder))
    size = sum(field.size for field in BATCH)
    parts = [
        (f".log, bytes 0 to {size - 1}: the first batch", files[".log"][:size], BATCH),
        (".index, its first entry", files[".index"][:8], INDEX),
        (".timeindex, its first entry", files[".timeindex"][:12], TIME_INDEX),
    ]
    height = 20 + sum(34 + ROW * len(fields) + 16 for _, _, fields in parts)
    picture = Picture(980, height, "A segment and its indexes, byte by byte")
    y = 20
    for title, data, fields in parts:
        picture.text(20, y + 14, title, size=15, weight="bold")
        y += 34
        put(picture, y, data, fields)
        y += ROW * len(fields) + 16
    return picture.svg()


def put(picture: Picture, top: int, data: bytes, fields: tuple[Field, ...]) -> None:
    """The bytes on the left in lines of 16, the fields with their values on the right."""
    at = 0
    for number, (field, part) in enumerate(fields_of(data, fields)):
        colour = COLOURS[number % len(COLOURS)]
        for offset, byte in enumerate(part, start=at):
            line, column = divmod(offset, LINE_BYTES)
            x, y = 20 + column * CELL, top + line * ROW
            picture.box(x, y, CELL - 2, ROW - 4, colour)
            picture.text(x + 12, y + 15, f"{byte:02x}", size=12, anchor="middle", font=MONO)
        y = top + number * ROW
        picture.box(480, y, 24, ROW - 4, colour)
        picture.text(492, y + 15, str(field.size), size=12, anchor="middle")
        picture.text(514, y + 15, field.name, fill=INK)
        picture.text(960, y + 15, value_of(field, part), anchor="end", font=MONO)
        at += field.size
