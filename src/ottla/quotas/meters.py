"""What clients with a quota have used, and how long they must wait (ClientQuotaManager).

Only clients with a quota are measured. What one has used is forgotten when it no longer counts,
which is after all windows; of more clients than MAX_METERS the one that has paused longest is
forgotten sooner. So strangers with ever new client ids use no more memory than that.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Final, NamedTuple, TypeAlias

from ottla.quotas.entity import Entity, Kind
from ottla.quotas.forgetting import evict
from ottla.quotas.limits import MAX_NAME_CHARACTERS, Limits, Share
from ottla.quotas.rate import Rate, TokenBucket, Windows, in_ms

MAX_METERS: Final = 10_000
MAX_REMEMBERED: Final = 10_000
"""Clients whose quotas have been looked up; beyond it all are looked up again."""
MAX_KEPT_CHARACTERS: Final = 250
"""Of a client id, which may have 32 KB; of a longer one a hash is kept."""

_Meters: TypeAlias = dict[Share, "_Meter"]


class _Meter:
    """One share's use of one kind."""

    __slots__ = ("bucket", "limit", "rate")

    def __init__(self, limit: float, rate: Rate | None, bucket: TokenBucket | None) -> None:
        self.limit = limit
        self.rate = rate
        self.bucket = bucket

    @property
    def used_ms(self) -> int:
        used = self.rate or self.bucket
        assert used is not None
        return used.used_ms

    def is_like_new(self, now_ms: int) -> bool:
        used = self.rate or self.bucket
        assert used is not None
        return used.is_like_new(self.limit, now_ms)


class _Found(NamedTuple):
    share: Share
    limit: float


class Meters:
    """All use of one broker."""

    def __init__(self, windows: Windows, mutation_windows: Windows) -> None:
        """`mutation_windows` are for `Kind.MUTATION`: `controller.quota.window.num` and
        `controller.quota.window.size.seconds`.
        """
        self.is_on = False
        """Whether any client may have a quota: otherwise nothing else has to be asked."""
        self._windows = windows
        self._mutation_windows = mutation_windows
        self._limits = Limits()
        self._meters: dict[Kind, _Meters] = {}
        self._found: dict[tuple[Kind, str, str], _Found | None] = {}
        """By kind, user and client id."""

    def __len__(self) -> int:
        """How many are kept."""
        return sum(map(len, self._meters.values()))

    def set(self, entity: Entity, values: Mapping[Kind, float]) -> None:
        """These are all quotas of a user, client id, or both; what they have used still counts."""
        self._limits.set(entity, values)
        self._found.clear()
        self.is_on = bool(self._limits)
        if not self.is_on:
            self._meters.clear()

    def has(self, kind: Kind, user: str, client_id: str) -> bool:
        """Whether a quota of this kind applies to the client."""
        return self._find(kind, user, client_id) is not None

    def use(self, kind: Kind, user: str, client_id: str, value: float, now_ms: int) -> int:
        """Records a use of anything but mutations. Returns for how long the client must wait, in
        milliseconds: until its rate has come down to the quota. A request's time is used up after
        one window.
        """
        meter = self._meter(kind, user, client_id, now_ms)
        if meter is None or meter.rate is None:
            return 0
        meter.rate.record(value, now_ms)
        throttle = meter.rate.over(meter.limit, now_ms)
        if kind is Kind.REQUEST:
            throttle = min(throttle, self._windows.size_ms)
        return in_ms(throttle)

    def fetch(self, user: str, client_id: str, size_bytes: int, now_ms: int) -> tuple[int, bool]:
        """How long a consumer must wait that asks for so many bytes, and whether it gets them.

        As in Kafka it gets nothing while it must wait, and nothing counts as used. But a batch that
        is larger than all windows allow is sent to a consumer that has used nothing: in Kafka it
        would never get it.
        """
        throttle_ms = self.use(Kind.FETCH, user, client_id, size_bytes, now_ms)
        if not throttle_ms:
            return 0, True
        meter = self._meter(Kind.FETCH, user, client_id, now_ms)
        assert meter is not None
        assert meter.rate is not None
        if size_bytes == meter.rate.total(now_ms):
            return throttle_ms, True
        meter.rate.record(-size_bytes, now_ms)
        return throttle_ms, False

    def most_bytes(self, user: str, client_id: str) -> int | None:
        """What a consumer may fetch that has used nothing, and does not have to wait then; None
        without a limit.
        """
        found = self._find(Kind.FETCH, user, client_id)
        if found is None:
            return None
        count, size_ms = self._windows
        return int(found.limit * (count - 1) * size_ms / 1000)

    def mutate(
        self, user: str, client_id: str, partitions: int, now_ms: int, *, strict: bool
    ) -> tuple[int, bool]:
        """How long a client must wait that creates or deletes so many partitions, and whether it
        may (KIP-599). With `strict` it may not while it must wait, and nothing is used; it may if
        anything at all is left. Otherwise it always may.
        """
        meter = self._meter(Kind.MUTATION, user, client_id, now_ms)
        if meter is None or meter.bucket is None:
            return 0, True
        bucket, limit = meter.bucket, meter.limit
        if strict:
            throttle = bucket.over(limit, now_ms)
            if throttle:
                return in_ms(throttle), False
            bucket.record(partitions, limit, now_ms)
            return 0, True
        bucket.record(partitions, limit, now_ms)
        return in_ms(bucket.over(limit, now_ms)), True

    def _find(self, kind: Kind, user: str, client_id: str) -> _Found | None:
        if len(client_id) > MAX_KEPT_CHARACTERS:
            return self._look_up(kind, user, client_id)
        key = kind, user, client_id
        try:
            return self._found[key]
        except KeyError:
            pass
        if len(self._found) >= MAX_REMEMBERED:
            self._found.clear()
        found = self._found[key] = self._look_up(kind, user, client_id)
        return found

    def _look_up(self, kind: Kind, user: str, client_id: str) -> _Found | None:
        found = self._limits.find(kind, user, client_id[: MAX_NAME_CHARACTERS + 1])
        if found is None:
            return None
        share, limit = found
        if len(share.client_id) > MAX_KEPT_CHARACTERS:
            share = share._replace(client_id=sha256(client_id.encode()).hexdigest())
        return _Found(share, limit)

    def _meter(self, kind: Kind, user: str, client_id: str, now_ms: int) -> _Meter | None:
        found = self._find(kind, user, client_id)
        if found is None:
            return None
        share, limit = found
        meters = self._meters.setdefault(kind, {})
        meter = meters.get(share)
        if meter is None:
            if len(meters) >= MAX_METERS:
                evict(meters, MAX_METERS, lambda each: each.is_like_new(now_ms))
            meter = meters[share] = self._new(kind, limit, now_ms)
        meter.limit = limit
        return meter

    def _new(self, kind: Kind, limit: float, now_ms: int) -> _Meter:
        if kind is Kind.MUTATION:
            return _Meter(limit, None, TokenBucket(self._mutation_windows, now_ms, limit))
        return _Meter(limit, Rate(self._windows, now_ms), None)
