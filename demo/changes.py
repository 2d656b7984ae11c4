"""The flights and the weather of New York 2013 as changes that arrive out of order.

A flight is announced a week before its hour and known in full six hours after it; one that was
cancelled is deleted. Each third measurement of the weather is forecast first, and measurements
without wind or pressure are withdrawn. The timestamp of a record says when that was. Up to
MAX_DELAY_MS later it is published, so records of one key overtake each other.
"""

from __future__ import annotations

import csv
import io
import json
import random
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from demo.flights import data_folder

FLIGHTS: Final = "flights"
WEATHER: Final = "weather"
TOPICS: Final = (FLIGHTS, WEATHER)
KEYS: Final = {FLIGHTS: ("time_hour", "carrier", "flight"), WEATHER: ("time_hour", "origin")}
HOUR_MS: Final = 3_600_000
MAX_DELAY_MS: Final = 60 * 24 * HOUR_MS
ANNOUNCED_EVERY: Final = 4
FORECAST_EVERY: Final = 3
SEED: Final = 2013

_PLAN: Final = {
    "sched_dep_time": int,
    "sched_arr_time": int,
    "tailnum": str,
    "origin": str,
    "dest": str,
    "distance": int,
}
_FLOWN: Final = {
    **_PLAN,
    "dep_time": int,
    "dep_delay": int,
    "arr_time": int,
    "arr_delay": int,
    "air_time": int,
}
_MEASURED: Final = {
    "temp": float,
    "dewp": float,
    "humid": float,
    "wind_dir": int,
    "wind_speed": float,
    "wind_gust": float,
    "precip": float,
    "pressure": float,
    "visib": float,
}
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    topic: (*KEYS[topic], *fields) for topic, fields in ((FLIGHTS, _FLOWN), (WEATHER, _MEASURED))
}
"""The columns of each table, without those of the topic."""


class Change(NamedTuple):
    """One record; `value` is None where its key is deleted."""

    topic: str
    key: bytes
    value: bytes | None
    timestamp_ms: int


def read_changes() -> list[Change]:
    """Return all changes in the order in which they are published: the same each time."""
    changes = [*_flights(), *_weather()]
    delay = random.Random(SEED)
    arrivals = [change.timestamp_ms + delay.randrange(MAX_DELAY_MS) for change in changes]
    order = sorted(range(len(changes)), key=arrivals.__getitem__)
    return [changes[number] for number in order]


def last_rows(changes: Iterable[Change]) -> dict[str, list[dict[str, object]]]:
    """Return the rows of each topic, computed from all changes at once.

    The last change of a key counts, by its timestamp and then by the order of publishing.
    """
    last: dict[tuple[str, bytes], Change] = {}
    for change in changes:
        known = last.get((change.topic, change.key))
        if known is None or known.timestamp_ms <= change.timestamp_ms:
            last[change.topic, change.key] = change
    rows: dict[str, list[dict[str, object]]] = {topic: [] for topic in TOPICS}
    for (topic, key), change in last.items():
        if change.value is not None:
            rows[topic].append(json.loads(key) | json.loads(change.value))
    return rows


def _flights() -> Iterator[Change]:
    with (
        zipfile.ZipFile(data_folder() / "flights.csv.zip") as archive,
        archive.open("flights.csv") as file,
    ):
        for number, row in enumerate(csv.DictReader(io.TextIOWrapper(file, "utf-8"))):
            hour_ms = _ms(row["time_hour"])
            key = _json(row, {"time_hour": str, "carrier": str, "flight": int})
            is_cancelled = row["dep_time"] in ("", "NA")
            if is_cancelled or number % ANNOUNCED_EVERY == 0:
                yield Change(FLIGHTS, key, _json(row, _PLAN), hour_ms - 7 * 24 * HOUR_MS)
            value = None if is_cancelled else _json(row, _FLOWN)
            yield Change(FLIGHTS, key, value, hour_ms + 6 * HOUR_MS)


def _weather() -> Iterator[Change]:
    with (data_folder() / "weather.csv").open(encoding="utf-8") as file:
        for number, row in enumerate(csv.DictReader(file)):
            hour_ms = _ms(row["time_hour"])
            key = _json(row, {"time_hour": str, "origin": str})
            if number % FORECAST_EVERY == 0:
                forecast = _json(row, {"temp": float, "humid": float})
                yield Change(WEATHER, key, forecast, hour_ms - 24 * HOUR_MS)
            yield Change(WEATHER, key, _json(row, _MEASURED), hour_ms)
            if "NA" in (row["wind_speed"], row["pressure"]):
                yield Change(WEATHER, key, None, hour_ms + 24 * HOUR_MS)


def _ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1_000)


def _json(row: dict[str, str], fields: Mapping[str, type]) -> bytes:
    document: dict[str, object] = {}
    for name, kind in fields.items():
        if row[name] not in ("NA", ""):
            document[name] = int(float(row[name])) if kind is int else kind(row[name])
    return json.dumps(document, separators=(",", ":")).encode()
