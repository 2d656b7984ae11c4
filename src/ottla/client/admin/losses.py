"""When retention removes records that a group has not read, on any Kafka cluster.

What is known from outside: `retention.ms` of the topic (DescribeConfigs) and which offset the first
record from a time on has (ListOffsets). A record goes once the newest one of its segment is older
than retention.ms, so the times here are the earliest ones. `retention.bytes` depends on what will
be written: `growth` estimates it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ottla.client.admin.committed_offsets import all_commits
from ottla.client.admin.configs import topic_settings
from ottla.client.admin.groups import SHARE, listed_groups
from ottla.client.admin.growth import Growth, growths
from ottla.client.admin.offsets import EARLIEST, LATEST, Offsets, asked_offsets, known_offsets
from ottla.client.admin.share_offsets import share_commits_of
from ottla.client.client import Client
from ottla.client.errors import RefusedError
from ottla.client.topic_partition import TopicPartition
from ottla.journey.formatting import format_elapsed
from ottla.wording.plural import plural

DAY_MS: Final = 24 * 3_600_000
STEPS: Final = 1_000
"""The time until the first record goes is told to this part of the time looked ahead, and not finer
than a second: ten questions to the leaders."""
MAX_NAMED: Final = 5
RETENTION: Final = "retention.ms"
BYTES: Final = "retention.bytes"
POLICY: Final = "cleanup.policy"

Positions = Mapping[TopicPartition, int]
"""The offset of the first record that a group has not read."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Records of a partition that a group has not read.

    `removed`: how many are gone already. `records`: how many more go within the time that was
    looked ahead, the first of them in `goes_in_ms` at the earliest (0: at any moment; None if none
    goes). `is_estimate`: because of `retention.bytes`, if the partition grows as it did lately.
    """

    topic: str
    partition: int
    removed: int
    records: int
    goes_in_ms: int | None
    is_estimate: bool = False

    def __str__(self) -> str:
        name = f"{self.topic}-{self.partition}"
        parts = []
        if self.removed:
            verb = "was" if self.removed == 1 else "were"
            parts.append(f"{plural(self.removed, 'unread record')} of {name} {verb} removed")
        if self.records:
            when = "now" if not self.goes_in_ms else f"in {format_elapsed(self.goes_in_ms)}"
            verb = "goes" if self.records == 1 else "go"
            why = " (an estimate: retention.bytes, by its growth)" if self.is_estimate else ""
            parts.append(f"{plural(self.records, 'unread record')} of {name} {verb} {when}{why}")
        return ", ".join(parts)


def losses_of(client: Client, positions: Positions, within_ms: int, now_ms: int) -> list[Loss]:
    """The losses of one group within this time from now, the next ones first. Partitions whose
    leaders do not answer are left out. Raises ClientError.
    """
    return losses(client, {"": positions}, within_ms, now_ms).get("", [])


def losses(
    client: Client, groups: Mapping[str, Positions], within_ms: int, now_ms: int
) -> dict[str, list[Loss]]:
    """The same of several groups; those that lose nothing are left out."""
    return _losses(client, groups, _look(client, groups, within_ms, now_ms), within_ms)


class AllLosses(NamedTuple):
    """Of all groups. `unknown`: what could not be looked at, each as a sentence without its end."""

    by_group: dict[str, list[Loss]]
    unknown: list[str]


def losses_of_all(client: Client, within_ms: int, now_ms: int) -> AllLosses:
    """Of all groups of the cluster. Raises ClientError."""
    groups, unknown = _all_positions(client)
    logs = _look(client, groups, within_ms, now_ms)
    if logs.silent:
        named = ", ".join(f"{each.topic}-{each.partition}" for each in logs.silent[:MAX_NAMED])
        unknown.append(
            f"{plural(len(logs.silent), 'partition')} that groups read did not say their offsets, "
            f"so whether unread records go is not known ({named}{_more(logs.silent)})"
        )
    return AllLosses(_losses(client, groups, logs, within_ms), unknown)


def records_at_risk(client: Client, within_ms: int, now_ms: int) -> dict[str, int]:
    """How many unread records of each group go within this time, the most first. It costs less than
    to ask when. What does not answer is left out. Raises ClientError.
    """
    groups, _ = _all_positions(client)
    logs = _look(client, groups, within_ms, now_ms)
    counts = {
        group: sum(logs.survivors[each] - at for each, at in _at_risk(positions, logs).items())
        for group, positions in groups.items()
    }
    return {
        group: count
        for group, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
        if count
    }


class _Logs(NamedTuple):
    """`cutoffs`: the records before this time are removed by the end of what is looked ahead.
    `by_time`: the first record that is not. `survivors`: the same with what `growths` estimate.
    `silent`: partitions that exist and did not answer.
    """

    starts: Offsets
    ends: Offsets
    cutoffs: Mapping[TopicPartition, int]
    by_time: Offsets
    growths: Mapping[TopicPartition, Growth]
    survivors: Offsets
    silent: list[TopicPartition]


def _all_positions(client: Client) -> tuple[dict[str, Positions], list[str]]:
    """And what is not known."""
    commits = all_commits(client)
    positions: dict[str, Positions] = {
        group: {partition: commit.offset for partition, commit in each.items()}
        for group, each in commits.by_group.items()
    }
    refused = list(commits.refused)
    for group in listed_groups(client):
        if group.type == SHARE:
            try:
                starts = share_commits_of(client, group.group)
            except RefusedError:
                refused.append(group.group)
                continue
            positions[group.group] = {
                partition: commit.offset for partition, commit in starts.items()
            }
    unknown = [
        f"broker {number} does not say what its groups have read, so whether unread records go is "
        "not known"
        for number in commits.unanswered
    ]
    if refused:
        unknown.append(
            f"what {plural(len(refused), 'group')} read may not be seen, so whether unread records "
            f"go is not known ({', '.join(refused[:MAX_NAMED])}{_more(refused)})"
        )
    return positions, unknown


def _more(names: Sequence[object]) -> str:
    return " ..." if len(names) > MAX_NAMED else ""


def _look(client: Client, groups: Mapping[str, Positions], within_ms: int, now_ms: int) -> _Logs:
    wanted = sorted({partition for positions in groups.values() for partition in positions})
    leaders = client.metadata(sorted({each.topic for each in wanted})).leaders
    led = [each for each in wanted if each in leaders]
    (starts, ends), _ = known_offsets(client, led, EARLIEST, LATEST)
    kept_ms, kept_bytes = _retention(client, sorted({each.topic for each in ends}))
    cutoffs = {
        each: at_ms
        for each in ends
        # What has no time is not taken for a record from before 1970.
        if each.topic in kept_ms and (at_ms := now_ms + within_ms - kept_ms[each.topic]) > 0
    }
    by_time = _survivors(client, cutoffs, ends)
    limits = {each: kept_bytes[each.topic] for each in ends if each.topic in kept_bytes}
    growing, unsized = growths(client, limits, starts, ends, now_ms)
    survivors = dict(by_time)
    for each, growth in growing.items():
        survivors[each] = max(survivors.get(each, 0), growth.survivor(within_ms))
    silent = [each for each in led if each not in ends or each not in starts]
    silent += [each for each in cutoffs if each not in by_time]
    silent += [each for each in unsized if each not in silent]
    return _Logs(starts, ends, cutoffs, by_time, growing, survivors, silent)


def _unread(positions: Positions, logs: _Logs) -> dict[TopicPartition, int]:
    """The first unread record that there still is, where that is known."""
    return {
        each: max(at, logs.starts[each])
        for each, at in positions.items()
        if each in logs.ends and each in logs.starts
    }


def _at_risk(positions: Positions, logs: _Logs) -> dict[TopicPartition, int]:
    return {
        each: at
        for each, at in _unread(positions, logs).items()
        if each in logs.survivors and logs.survivors[each] > at
    }


def _losses(
    client: Client, groups: Mapping[str, Positions], logs: _Logs, within_ms: int
) -> dict[str, list[Loss]]:
    found: dict[str, list[Loss]] = {}
    for group, positions in groups.items():
        unread, at_risk = _unread(positions, logs), _at_risk(positions, logs)
        gone = {each: at - positions[each] for each, at in unread.items()}
        by_time = {each: at for each, at in at_risk.items() if logs.by_time.get(each, 0) > at}
        goes_in = _goes_in_ms(client, by_time, logs.cutoffs, logs.ends, within_ms)
        its = []
        for each, at in unread.items():
            if gone[each] or each in at_risk:
                records = logs.survivors[each] - at if each in at_risk else 0
                goes_in_ms, is_estimate = _first(each, at, records, goes_in.get(each), logs)
                its.append(Loss(*each, gone[each], records, goes_in_ms, is_estimate))
        if its:
            last = within_ms + 1
            found[group] = sorted(
                its, key=lambda each: last if each.goes_in_ms is None else each.goes_in_ms
            )
    return found


def _first(
    partition: TopicPartition, at: int, records: int, by_time_ms: int | None, logs: _Logs
) -> tuple[int | None, bool]:
    """When the record at this offset goes, by time or by size; and whether the answer, or how many
    go with it, is an estimate."""
    growth = logs.growths.get(partition)
    if not records or growth is None:
        return by_time_ms, False
    by_size_ms = growth.goes_in_ms(at)
    times = [each for each in (by_time_ms, by_size_ms) if each is not None]
    is_more = logs.survivors[partition] > logs.by_time.get(partition, 0)
    is_sooner = by_size_ms is not None and (by_time_ms is None or by_size_ms < by_time_ms)
    return min(times, default=None), is_more or is_sooner


def _retention(client: Client, topics: list[str]) -> tuple[dict[str, int], dict[str, int]]:
    """For how long topics keep records, and how many bytes of each partition; without those that
    have no such limit."""
    kept_ms: dict[str, int] = {}
    kept_bytes: dict[str, int] = {}
    if not topics:
        return kept_ms, kept_bytes
    for topic, settings in topic_settings(client, topics, (RETENTION, BYTES, POLICY)).items():
        values = {each.name: each.value or "" for each in settings}
        policy = [each.strip() for each in values.get(POLICY, "").split(",")]
        for name, found in ((RETENTION, kept_ms), (BYTES, kept_bytes)):
            limit = int(values.get(name) or -1)
            if "delete" in policy and limit >= 0:
                found[topic] = limit
    return kept_ms, kept_bytes


def _survivors(client: Client, times: Mapping[TopicPartition, int], ends: Offsets) -> Offsets:
    """The first record from each time on; the end where there is none."""
    found, _ = asked_offsets(client, times, client.patience.answer_s)
    return {each: ends[each] if offset < 0 else offset for each, offset in found.items()}


def _goes_in_ms(
    client: Client,
    at_risk: Positions,
    cutoffs: Mapping[TopicPartition, int],
    ends: Offsets,
    within_ms: int,
) -> dict[TopicPartition, int]:
    """In how long the record at each of these offsets goes: by halving the time."""
    # It goes after more than the first number, and by the second.
    bounds = dict.fromkeys(at_risk, (-1, within_ms))
    finest_ms = max(within_ms // STEPS, 1_000)
    asked = dict(bounds)
    is_first = True
    while asked:
        tries = {each: 0 if is_first else sum(asked[each]) // 2 for each in asked}
        is_first = False
        times = {each: max(cutoffs[each] - within_ms + tries[each], 0) for each in asked}
        survivors = _survivors(client, times, ends)
        for each, tried in tries.items():
            low, high = bounds[each]
            is_gone = each in survivors and survivors[each] > at_risk[each]
            bounds[each] = (low, tried) if is_gone else (tried, high)
        asked = {
            each: bound
            for each, bound in bounds.items()
            if bound[1] and bound[1] - bound[0] > finest_ms
        }
    return {each: high if not high else low for each, (low, high) in bounds.items()}
