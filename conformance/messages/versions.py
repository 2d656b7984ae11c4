"""The versions of each request of Apache Kafka, beside those that Ottla advertises."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from conformance.messages.definitions import Definition
from ottla.api.table import ADVERTISED

_NAME: Final = len("StreamsGroupTopologyDescriptionUpdate")


class Row(NamedTuple):
    """One type of request; a range is "0-5", "3", or "-" where there is none."""

    key: int
    name: str
    kafka: str
    ottla: str


def rows(definitions: Mapping[tuple[int, str], Definition]) -> Iterator[Row]:
    """By key: the requests that brokers of Kafka answer, or Ottla."""
    ottla = {key: range(first, last + 1) for key, first, last in ADVERTISED}
    for (key, kind), definition in sorted(definitions.items()):
        if kind == "request" and "broker" in definition.listeners:
            name = definition.name.removesuffix("Request")
            mine = ottla.pop(key, range(0))
            yield Row(key, name, _text(definition.versions), _text(mine))
    assert not ottla, "every request that Ottla advertises is one of Kafka's brokers"


def differences(definitions: Mapping[tuple[int, str], Definition]) -> Iterator[Row]:
    """Those with other versions."""
    return (row for row in rows(definitions) if row.kafka != row.ottla)


def lines(definitions: Mapping[tuple[int, str], Definition]) -> Iterator[str]:
    """A table for the terminal."""
    yield f"{'key':>4}  {'request':{_NAME}}  {'Kafka':>6}  {'Ottla':>6}"
    for row in rows(definitions):
        mark = "" if row.kafka == row.ottla else "  differs"
        yield f"{row.key:>4}  {row.name:{_NAME}}  {row.kafka:>6}  {row.ottla:>6}{mark}"


def _text(versions: range) -> str:
    if not versions:
        return "-"
    return f"{versions[0]}-{versions[-1]}" if len(versions) > 1 else str(versions[0])
