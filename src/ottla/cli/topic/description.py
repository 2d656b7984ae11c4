"""What is shown of a topic: leaders, replicas, offsets, settings, and what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.cli.screen import say, show_table
from ottla.client.admin.topic_states import TopicPartitionState, TopicState
from ottla.wording.plural import plural

STATES: Final = {"ok": "", "under_replicated": "under-replicated", "offline": "OFFLINE"}


def show_topic(topic: TopicState) -> None:
    title = f"{topic.topic}: {plural(len(topic.partitions), 'partition')}"
    columns = ["partition", "leader", "epoch", "replicas", "racks", "in sync"]
    show_table(
        [*columns, "start offset", "end offset", "state"],
        [
            [
                each.partition,
                each.leader,
                each.leader_epoch,
                " ".join(map(str, each.replicas)),
                " ".join(rack or "-" for rack in each.racks) if any(each.racks) else None,
                " ".join(map(str, each.in_sync)),
                each.start_offset,
                each.end_offset,
                mark(each),
            ]
            for each in topic.partitions
        ],
        title=title + troubles(topic.partitions),
        drop_empty=["racks", "state"],
    )
    for name, value in topic.config.items():
        say(f"{name}={value}")


def mark(each: TopicPartitionState) -> str:
    """The problems of a partition, for the table; empty if it has none."""
    down = f"down: {' '.join(map(str, each.offline_replicas))}" if each.offline_replicas else ""
    return ", ".join(filter(None, (STATES[each.state], down, each.offsets_error)))


def troubles(partitions: Sequence[TopicPartitionState]) -> str:
    """The counts of problems for the title: `, 2 offline, 5 under-replicated`."""
    states = [each.state for each in partitions]
    counts = {
        "offline": states.count("offline"),
        "under-replicated": states.count("under_replicated"),
        "without offsets": sum(each.offsets_error is not None for each in partitions),
    }
    return "".join(f", {count:,} {word}" for word, count in counts.items() if count)
