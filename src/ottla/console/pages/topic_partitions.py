"""A topic's partitions: leader, replicas, in-sync set, offsets, size."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from ottla.client.admin.log_dirs import log_dirs
from ottla.client.admin.offsets import EARLIEST, LATEST, known_offsets
from ottla.client.admin.stored_replicas import replicas_of
from ottla.client.admin.topic_states import TopicPartitionState, partition_state
from ottla.client.topic_partition import TopicPartition
from ottla.console.pages.charts import sampler_of
from ottla.console.pages.existing_topic import existing_topic
from ottla.console.pages.paging import paging_of
from ottla.console.visit import Visit

PER_PAGE: Final = 200
STATES: Final = ("all", "wrong")


def partitions(visit: Visit) -> Response:
    """The page at `/topics/TOPIC/partitions`; `show=wrong`: those with a problem."""
    topic, client = existing_topic(visit), visit.client
    show = "wrong" if visit.text("show") == "wrong" else "all"
    wrong = [
        number
        for number, each in topic.partitions.items()
        if each.leader < 0 or len(each.in_sync) < len(each.replicas)
    ]
    numbers = wrong if show == "wrong" else list(topic.partitions)
    paging = paging_of(visit, len(numbers), PER_PAGE)
    chosen = numbers[paging.rows]
    keys = [TopicPartition(topic.name, number) for number in chosen]
    led = [key for key in keys if topic.partitions[key.partition].leader >= 0]
    (first, end), why = known_offsets(client, led, EARLIEST, LATEST)
    folders, _ = log_dirs(client, partitions={topic.name: chosen})
    leaders = {key: topic.partitions[key.partition].leader for key in led}
    rows: list[TopicPartitionState] = [
        partition_state(
            key.partition,
            topic.partitions[key.partition],
            {},
            first.get(key),
            end.get(key),
            why.get(key),
        )
        for key in keys
    ]
    return visit.page(
        "topic_partitions.html",
        topic=topic,
        tab="Partitions",
        has_history=sampler_of(visit) is not None,
        rows=rows,
        sizes={
            each.partition: each.size_bytes
            for folder, each in replicas_of(folders)
            if leaders.get(TopicPartition(each.topic, each.partition)) == folder.broker
            and not each.is_future
        },
        wrong=len(wrong),
        show=show,
        page=paging.page,
        pages=paging.pages,
    )
