"""The numbers behind the charts of a page, from the console's history, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from starlette.responses import JSONResponse, Response

from ottla.console.errors import NotFoundError
from ottla.console.history import Trend, rates, trend_of
from ottla.console.sampler import AGE, END, LAG, Sampler
from ottla.console.visit import Visit


class GroupTrend(NamedTuple):
    """`age_ms`: the lag in time; `lag`: how it changes. None: not known (yet)."""

    age_ms: int | None
    lag: Trend | None


def sampler_of(visit: Visit) -> Sampler | None:
    """The history that this visitor may see: it was made with the rights of the console."""
    return visit.console.sampler if visit.access is visit.console.access else None


def group_chart(visit: Visit) -> Response:
    """At `/charts/group?name=GROUP`: the lag in records and in ms."""
    sampler, name = known_sampler(visit), visit.query.get("name", "")
    sampler.watch(name)
    times, (lags, ages) = sampler.history.read_kinds([LAG, AGE], name)
    return chart(times, {"records": lags, "ms": ages})


def topic_chart(visit: Visit) -> Response:
    """At `/charts/topic?name=TOPIC`: new offsets a second."""
    times, ends = known_sampler(visit).history.read(END, visit.query.get("name", ""))
    return chart(times, {"records/s": rates(times, ends)})


def known_sampler(visit: Visit) -> Sampler:
    """Raises NotFoundError."""
    found = sampler_of(visit)
    if found is None:
        raise NotFoundError("this console keeps no history for you.")
    return found


def chart(times: list[int], lines: Mapping[str, Sequence[float | None]]) -> Response:
    return JSONResponse({"times_s": [each / 1000 for each in times], "lines": lines})


def group_trend(visit: Visit, name: str) -> GroupTrend | None:
    """Of a group whose page is open; None without a history."""
    sampler = sampler_of(visit)
    if sampler is None:
        return None
    sampler.watch(name)
    times, (lags, ages) = sampler.history.read_kinds([LAG, AGE], name)
    return GroupTrend(ages[-1] if ages else None, trend_of(times, lags))


def topic_rate(visit: Visit, name: str) -> float | None:
    """New offsets a second in the last minute; None if it is not known yet."""
    sampler = sampler_of(visit)
    trend = None if sampler is None else sampler.history.trend(END, name)
    return None if trend is None or trend.per_s < 0 else trend.per_s
