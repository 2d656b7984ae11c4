"""The scan that a query needs: by the key on brokers that find keys, else of every record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.client.admin.key_offsets import MAX_KEY_BYTES, key_offsets
from ottla.client.admin.own_requests import NotOttlaError
from ottla.client.client import Client
from ottla.client.errors import ClientError
from ottla.client.metadata import Topic
from ottla.client.topic_partition import TopicPartition
from ottla.console.record_query import RecordQuery
from ottla.console.visit import Visit
from ottla.messaging.key_scan import KeyScan
from ottla.messaging.record_scan import Matches, RecordScan, Seen, Span

ASKED_AGAIN_S: Final = 60.0
"""Other brokers than Ottla's close the connection, and write an error into their logs."""


def opened_scan(
    visit: Visit,
    topic: Topic,
    query: RecordQuery,
    spans: Mapping[TopicPartition, Span],
    seen: Seen,
    matches: Matches | None,
) -> RecordScan | KeyScan:
    """Raises RejectedSettingsError."""
    settings, key = visit.access.settings, query.key.encode()
    is_stored = query.has_stored_key(visit.console.schemas)
    if query.key and is_stored and len(key) <= MAX_KEY_BYTES:
        where = next((each for each, (begin, end) in spans.items() if begin < end), None)
        if where is not None and visit.access.kept(
            "finds keys", ASKED_AGAIN_S, lambda: finds_keys(visit.client, where)
        ):
            return KeyScan(
                settings,
                visit.access.client,
                key,
                len(topic.partitions),
                spans,
                seen,
                matches,
                newest_first=query.newest_first,
            )
    return RecordScan(settings, spans, seen, matches, newest_first=query.newest_first)


def finds_keys(client: Client, where: TopicPartition) -> bool:
    """Whether the partition's leader, and so the cluster, says where a key's records are."""
    try:
        key_offsets(client, where, b"", 0, 0, from_end=False, most=1)
    except NotOttlaError:
        return False
    except ClientError:
        # It knows the request: what is wrong with the partition, its search says as well.
        return True
    return True
