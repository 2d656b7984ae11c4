"""The schema registry of a console: what records have in its schemas, as JSON.

A record may name any schema, and the registry may be away: neither holds a page up. An id that the
registry does not know is not asked for again for a while, of new ids only some are asked for in a
second, and a registry that does not answer, or slowly, is left alone for some seconds. What cannot
be decoded is shown as its bytes, with the reason on the record's own page.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from threading import Lock
from typing import Any, Final, NamedTuple

from ottla.console.errors import VisitError
from ottla.registry.client import RegistryClient, RegistryError
from ottla.registry.decoder import KEY, VALUE, DecodedRecord, DecodeError, Decoder
from ottla.registry.framing import id_of

TIMEOUT_S: Final = 3.0
MAX_UNKNOWN: Final = 1000
UNKNOWN_FOR_S: Final = 30.0
AWAY_FOR_S: Final = 5.0
SLOW_S: Final = 1.0
MAX_ASKED_A_SECOND: Final = 50
BUSY: Final = 429
FAILED: Final = 500
"""The first of the statuses that say that a server fails."""


class Decoded(NamedTuple):
    """`data` is JSON, or as it was: then `why` says what is wrong, if the data names a schema.
    `is_unasked`: it may be right, the registry was not asked or did not answer.
    """

    data: bytes | None
    schema: int | None = None
    format: str = ""
    why: str = ""
    is_unasked: bool = False


class Unasked:
    """How many records were looked at as bytes, because the registry was not asked or did not
    answer; and why. For one thread at a time.
    """

    def __init__(self) -> None:
        self.count = 0
        self.why = ""
        self._last: tuple[int, int] | None = None

    def note(self, record: Any, why: str) -> None:
        """A record is looked at once for each part of a filter."""
        position = record.partition(), record.offset()
        if position != self._last:
            self._last = position
            self.count += 1
        self.why = why


class NotDecodedError(VisitError):
    """What a record has is not known now."""

    status = 502


class Schemas:
    """Use from any thread. `shown`: the registry's address without a password."""

    def __init__(self, client: RegistryClient, shown: str) -> None:
        self.client = client
        self.shown = shown
        self._decoder = Decoder(client)
        self._lock = Lock()
        self._known: set[int] = set()
        self._unknown: OrderedDict[int, tuple[float, str, bool]] = OrderedDict()
        """Until when it is not asked again, why, and whether the registry has refused to say it."""
        self._away_until_s = 0.0
        self._why_away = ""
        self._second = 0
        self._asked = 0

    def decoded(self, record: Any, *, surely: bool = False, unasked: Unasked | None = None) -> Any:
        """The record with what can be decoded as JSON; the record itself if nothing is framed. If
        it is not known what it has, `unasked` notes it, and with `surely` NotDecodedError is
        raised.
        """
        key, value = record.key(), record.value()
        if not _is_framed(key) and not _is_framed(value):
            return record
        topic = record.topic()
        parts = self.read(key, topic, KEY), self.read(value, topic, VALUE)
        for each in parts:
            if surely and each.is_unasked:
                raise NotDecodedError(
                    f"which records match is not known: schema {each.schema}. {each.why}",
                    "Try it again in a moment.",
                )
            if each.is_unasked and unasked is not None:
                unasked.note(record, each.why)
        return DecodedRecord(record, parts[0].data, parts[1].data)

    def read(self, data: bytes | None, topic: str, field: str) -> Decoded:
        """`field`: KEY or VALUE."""
        number = None if data is None else id_of(data)
        if data is None or number is None:
            return Decoded(data)
        known = self._unknown_now(number)
        if known is not None:
            return Decoded(data, number, why=known[0], is_unasked=known[1])
        why = self._why_not_asked(number)
        if why:
            return Decoded(data, number, why=why, is_unasked=True)
        began_s = time.monotonic()
        try:
            try:
                form = self._decoder.schema(number, f"the {field} with schema {number}").format
            finally:
                self._answered(time.monotonic() - began_s)
        except DecodeError as error:
            is_away = self._failed(number, error)
            return Decoded(data, number, why=f"{error}.", is_unasked=is_away)
        with self._lock:
            self._known.add(number)
        try:
            read = self._decoder.read(data, topic, field, "this record")
        except DecodeError as error:
            return Decoded(data, number, form, f"{error}.")
        return Decoded(read, number, form)

    def _unknown_now(self, number: int) -> tuple[str, bool] | None:
        """Why the schema cannot be had, as the registry has said not long ago, and whether it has
        refused to say.
        """
        with self._lock:
            until_s, why, is_refused = self._unknown.get(number, (0.0, "", False))
            return (why, is_refused) if time.monotonic() < until_s else None

    def _why_not_asked(self, number: int) -> str:
        now_s = time.monotonic()
        with self._lock:
            if number in self._known:
                return ""
            if now_s < self._away_until_s:
                return self._why_away
            if int(now_s) != self._second:
                self._second, self._asked = int(now_s), 0
            self._asked += 1
            if self._asked > MAX_ASKED_A_SECOND:
                return "So many schemas are named at once that this one was not asked for."
            return ""

    def _answered(self, after_s: float) -> None:
        """A page with fifty unknown ids would wait fifty times as long."""
        if after_s < SLOW_S:
            return
        with self._lock:
            self._away_until_s = time.monotonic() + AWAY_FOR_S
            self._why_away = "The registry answers slowly: load the page again in a moment."

    def _failed(self, number: int, error: DecodeError) -> bool:
        """Whether the registry did not answer, or refused to."""
        cause, now_s = error.__cause__, time.monotonic()
        is_refused = isinstance(cause, RegistryError)
        with self._lock:
            if isinstance(cause, RegistryError) and (
                cause.away or (cause.status or 0) >= FAILED or cause.status == BUSY
            ):
                self._away_until_s = now_s + AWAY_FOR_S
                self._why_away = "The registry does not answer."
                return True
            self._unknown[number] = now_s + UNKNOWN_FOR_S, f"{error}.", is_refused
            while len(self._unknown) > MAX_UNKNOWN:
                self._unknown.popitem(last=False)
            return is_refused


def _is_framed(data: bytes | None) -> bool:
    return data is not None and id_of(data) is not None
