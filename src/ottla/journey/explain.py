"""The journey of one offset as a document: the response to the journey request. Pure.

`docs/journey.md` describes it for programs: fields are added, never changed; `journey` is its
version. Times are ms since 1970. A moment is {"since_ms", "until_ms", "exact"}: both times are
equal if it is known exactly; null means that this side is unknown.
"""

import base64
from collections.abc import Sequence
from typing import Final

from ottla.journey.clock_jumps import Jumps, jumps_of, told
from ottla.journey.explain_groups import explain_groups, known_groups
from ottla.journey.explain_replication import Replicas
from ottla.journey.facts import Facts, LogLocation, Position
from ottla.journey.key_elsewhere import across_partitions
from ottla.journey.moment import Document, moment
from ottla.journey.offset_history import (
    Appended,
    Delivered,
    When,
    Written,
    appended,
    began_after,
    client_of,
    commit_step,
    deliveries,
    delivery_of,
    high_watermark_passed,
    lives_of,
    opened_before,
    openings_of,
    removed,
    rewritten_at,
    steps_of,
)
from ottla.journey.partitioner import explain_choice
from ottla.journey.rejection import Rejection, rejection_of
from ottla.journey.replica_history import leadership_at, leaderships
from ottla.journey.retention_bounds import bound_retention
from ottla.journey.retention_rules import Counts, RecordFacts, explain_retention
from ottla.journey.shared import explain_shared
from ottla.journey.table_rows import Batches, row_of
from ottla.journey.transactions import read_committed, transaction_of
from ottla.journey.unknown_fields import unknown_fields_of
from ottla.journey.words.partition import format_choice
from ottla.journey.words.retention import format_delay, format_rule
from ottla.records.compression import Compression
from ottla.records.header import BatchHeader
from ottla.records.record import Record
from ottla.timelines.delivery_metadata import read_delivery
from ottla.timelines.destination import DELTA, Destination, destination_of
from ottla.timelines.rejected_offsets import rejected_steps
from ottla.timelines.step import OTHERS, Pipeline, Step

VERSION: Final = 1
MAX_KEY_BYTES: Final = 1024
MAX_VALUE_BYTES: Final = 2048
MAX_HEADERS: Final = 32
MAX_NAME_CHARS: Final = 256


def explain(facts: Facts) -> Document:
    """The whole document. Parts that do not apply are null."""
    if facts.offset >= facts.end_offset:
        state = "not_yet_written"
    elif facts.offset < facts.start_offset:
        state = "removed"
    elif facts.location is None or (
        facts.location.record is None and facts.location.damage is None
    ):
        state = "compacted"
    elif facts.location.damage is not None:
        state = "damaged"
    else:
        state = "stored"
    was_written = state != "not_yet_written"
    was = appended(facts.steps or (), facts.offset, facts.opening)
    jumps = jumps_of(facts.steps or (), facts.now_ms)
    is_hidden = jumps is not None and jumps.hides(facts.steps or (), facts.offset)
    is_older = not _is_of(was.when, facts)
    had_other = is_older and was.clients != ()
    if is_hidden or is_older:
        was = Appended(When(None, None), ())
    gone_ms = None
    if state == "removed":
        gone_ms = removed(facts.steps or (), facts.offset).when.until_ms
        was = was._replace(when=_before(was.when, gone_ms))
    passed = _passed(facts, was)
    if passed is not None and (is_hidden or not _is_of(passed, facts)):
        passed = When(None, None)
    if passed is not None:
        was = was._replace(when=_before(was.when, passed.until_ms))
    if jumps is None:
        ordered = was.when
    else:
        ordered = jumps.coarse(When(jumps.first_ms, jumps.last_ms) if is_hidden else was.when)
        was = was._replace(when=jumps.told(was.when))
        ordered = was.when if was.when != When(None, None) else ordered
    replicas = Replicas(facts, was, jumps, is_hidden=is_hidden)
    always_led = replicas.always_led
    rewritten_ms = rewritten_at(facts.steps or (), facts.offset, always_led=always_led)
    if had_other:
        # What a crash took was before the opening.
        lost_ms = facts.now_ms if facts.opening is None else facts.opening.opened_ms
        rewritten_ms = lost_ms if rewritten_ms is None else max(rewritten_ms, lost_ms)
    opened_ms = opened_before(facts.steps or (), facts.offset)
    written = Written(
        ordered,
        replicas.led_here,
        rewritten_ms,
        opened_ms,
        replicas.unclean_since(passed),
        facts.end_offset,
        facts.broker_id,
        jumps,
        always_led,
        openings_of(facts.steps or ()),
    )
    return {
        "journey": VERSION,
        "topic": facts.topic,
        "partition": facts.partition,
        "offset": facts.offset,
        "asked_ms": facts.now_ms,
        "state": state,
        "recorded": facts.steps is not None,
        "log": {
            "start_offset": facts.start_offset,
            "end_offset": facts.end_offset,
            "high_watermark": facts.high_watermark,
            "partitions": facts.partition_count,
        },
        "published": _published(facts, was, jumps) if was_written else None,
        "partition_chosen": _chosen(facts),
        "key_elsewhere": _key_elsewhere(facts),
        "appended": _appended(facts, replicas) if was_written else None,
        "replicated": _replicated(facts, replicas, passed, gone_ms, jumps) if was_written else None,
        "transaction": _transaction(facts),
        "read_committed": _read_committed(facts),
        "read": explain_groups(facts, state, gone_ms, written, jumps),
        "groups": known_groups(facts),
        "shared": explain_shared(facts.shared, facts.offset),
        "delivered": _delivered(facts, written, jumps, may_lack=_may_lack(facts, state, was))
        if was_written
        else [],
        "retention": _retention(facts) if state == "stored" else None,
        "removed": _removed(facts) if state == "removed" else None,
    }


def _is_of(when: When, facts: Facts) -> bool:
    """Whether what happened then may be about the record. It is not if the record has a newer
    leader epoch than there was: the steps of the record are lost then. A follower, too, copies
    nothing of an epoch of which it has not learned.
    """
    if facts.location is None or when.until_ms is None:
        return True
    then = leadership_at(leaderships(facts.steps or ()), when.until_ms)
    return then is None or then.leader_epoch >= facts.location.header.leader_epoch


def _before(when: When, gone_ms: int | None) -> When:
    """A record was appended before it was replicated, and that before it was removed."""
    if gone_ms is None or (when.until_ms is not None and when.until_ms <= gone_ms):
        return when
    if when.since_ms is not None and when.since_ms > gone_ms:
        return when  # the clock was set back in between
    return When(when.since_ms, gone_ms)


def content(data: bytes | None, max_bytes: int) -> Document | None:
    """Bytes as text if they are UTF-8, else as base64; cut at `max_bytes`."""
    if data is None:
        return None
    shown = data[:max_bytes]
    document: Document = {"size_bytes": len(data), "cut": len(data) > max_bytes}
    try:
        # The cut may go through a character.
        document["text"] = shown.decode() if len(shown) == len(data) else _cut_text(shown)
    except UnicodeDecodeError:
        document["base64"] = base64.b64encode(shown).decode()
    return document


def _cut_text(shown: bytes) -> str:
    for cut in range(4):
        try:
            return shown[: len(shown) - cut].decode()
        except UnicodeDecodeError:
            continue
    return shown.decode()


def _published(facts: Facts, was: Appended, jumps: Jumps | None) -> Document:
    location = facts.location
    is_client = location is not None and not location.header.is_control
    producer_id = location.header.producer_id if location else -1
    clients = client_of(was.clients, producer_id) if is_client else ()
    document: Document = {"client_ids": list(clients), "producer": None, "timestamp_ms": None}
    if location is None:
        return document
    header = location.header
    if header.producer_id >= 0:
        sequence = None
        if location.record is not None and header.base_sequence >= 0:
            delta = location.record.record.offset - header.base_offset
            sequence = (header.base_sequence + delta) & 0x7FFFFFFF
        document["producer"] = {
            "id": header.producer_id,
            "epoch": header.producer_epoch,
            "sequence": sequence,
        }
    document["timestamp_type"] = (
        "LogAppendTime" if header.timestamp_type.name == "log_append_time" else "CreateTime"
    )
    document["transactional"] = header.is_transactional
    document["control"] = header.is_control
    if location.record is not None:
        record = location.record.record
        document["timestamp_ms"] = record.timestamp_ms
        is_known = was.was_copied is False and was.when.is_exact
        is_comparable = jumps is None or is_known
        document["clock_ahead_ms"] = _clock_ahead_ms(document, was.when) if is_comparable else None
        document["key"] = content(record.key, MAX_KEY_BYTES)
        document["value"] = content(record.value, MAX_VALUE_BYTES)
        document["headers"] = [
            {"name": name[:MAX_NAME_CHARS], "value": content(value, MAX_KEY_BYTES)}
            for name, value in record.headers[:MAX_HEADERS]
        ]
        document["header_count"] = len(record.headers)
    return document


def _clock_ahead_ms(published: Document, was: When) -> int | None:
    """By how much, at least, the producer's clock is ahead of the broker's; None if it may be
    right.
    """
    stamped_ms, appended_ms = published["timestamp_ms"], was.until_ms
    if published["timestamp_type"] != "CreateTime" or appended_ms is None:
        return None
    return stamped_ms - appended_ms if stamped_ms > appended_ms else None


def _chosen(facts: Facts) -> Document | None:
    if facts.location is None or facts.location.record is None or facts.location.header.is_control:
        return None
    key = facts.location.record.record.key
    choice = explain_choice(key, facts.partition, facts.partition_count, facts.near_keys)
    return {
        "partition": facts.partition,
        "partitions": facts.partition_count,
        "has_key": key is not None,
        "partitioners": list(choice.matches),
        "certain": choice.certain,
        "keys": choice.keys,
        "agreeing": dict(choice.agreeing),
        "reason": choice.reason.value,
        "may_be_chance": choice.may_be_chance,
        "why": format_choice(choice),
    }


def _key_elsewhere(facts: Facts) -> Document | None:
    record = facts.location.record if facts.location else None
    if facts.key_elsewhere is None or record is None or record.record.key is None:
        return None
    return facts.key_elsewhere.document(record.record.key, facts.partition_count)


def _appended(facts: Facts, replicas: Replicas) -> Document:
    when = moment(replicas.learned(replicas.own))
    document: Document = {"when": when, "broker": replicas.appended_by}
    if facts.location is not None:
        document |= _where(facts.location)
    return document


def _where(location: LogLocation) -> Document:
    header, entry, segment = location.header, location.index_entry, location.segment
    document: Document = {
        "leader_epoch": header.leader_epoch,
        "segment": None
        if segment is None
        else {
            "file": f"{location.folder}/{location.log_file}",
            "base_offset": segment.base_offset,
            "size_bytes": segment.size_bytes,
            "active": segment.is_active,
        },
        "index": None
        if segment is None
        else {
            "file": f"{location.folder}/{location.index_file}",
            "entry": {"offset": entry[0], "position": entry[1]} if entry else None,
        },
        "batch": {
            "position": None if segment is None else location.batch_position,
            "base_offset": header.base_offset,
            "last_offset": header.last_offset,
            "records": header.count,
            "size_bytes": header.size_bytes,
            "compression": Compression(header.compression).name,
            "uncompressed_bytes": None,
        },
        "record": None,
        "damage": location.damage,
    }
    if location.record is not None:
        document["batch"]["uncompressed_bytes"] = location.record.records_bytes
        document["record"] = {
            "number": location.record.number,
            "position": location.record.position,
            "size_bytes": location.record.size_bytes,
        }
    return document


def _passed(facts: Facts, was: Appended) -> When | None:
    """When the high watermark passed it on this broker; None if it has not."""
    if facts.offset >= facts.high_watermark:
        return None
    return high_watermark_passed(facts.steps or (), facts.offset, facts.opening, was.when)


def _replicated(
    facts: Facts,
    replicas: Replicas,
    passed: When | None,
    gone_ms: int | None,
    jumps: Jumps | None,
) -> Document:
    """When the high watermark passed; `committed` says whether it has."""
    when = None if passed is None else _before(replicas.committed(passed), gone_ms)
    if when is not None:
        when = told(jumps, when)  # the removal bounds it only if no clock was set back in between
    document = {
        "committed": passed is not None,
        "when": moment(when) if when else None,
        "replicas": facts.replica_count,
    }
    return document | replicas.document(when)


def _transaction(facts: Facts) -> Document | None:
    if facts.location is None or facts.transactions is None:
        return None
    return transaction_of(facts.location.header, facts.transactions)


def _read_committed(facts: Facts) -> Document | None:
    if facts.location is None or facts.transactions is None:
        return None
    header, high_watermark = facts.location.header, facts.high_watermark
    return read_committed(header, facts.offset, high_watermark, facts.transactions)


def _may_lack(facts: Facts, state: str, was: Appended) -> bool:
    """Whether a pipeline that passed a record that is gone may not have read it: it was compacted
    before, or of an aborted transaction, or a marker.
    """
    if state != "removed":
        return state == "compacted"
    has_no_producer = was.clients and all(each[0] == -1 and each != OTHERS for each in was.clients)
    return facts.config.cleanup_compact or not (was.is_plain or has_no_producer)


def _delivered(
    facts: Facts, written: Written, jumps: Jumps | None, *, may_lack: bool
) -> list[Document]:
    steps = facts.steps or ()
    header = facts.location.header if facts.location else None
    if header is not None and header.is_control:
        return []  # no pipeline reads a marker
    transaction = _transaction(facts)
    outcome = transaction["state"] if transaction else "committed"
    found = _one_per_target(deliveries(steps, facts.offset, written))
    known = {name for one in found for name in _names(one.pipeline)}
    for group, position in sorted(facts.positions.items()):
        delivery = read_delivery(position.metadata)
        if delivery is None or position.offset <= facts.offset:
            continue
        now = _until_now(group, position)
        if began_after(steps, now.pipeline, facts.offset):
            continue
        if known.isdisjoint(_names(now.pipeline)):
            # A pipeline may have begun past the offset. With steps beyond it only, those about it
            # are lost, or it was never reached.
            last = commit_step(position.offset, position.committed_ms or 0, position.coordinator)
            began = delivery.begin is not None and delivery.begin <= facts.offset
            has_steps = bool(steps_of(steps, now.pipeline))
            is_before = written.may_precede(last) or has_steps or not began
            found.append(now._replace(is_before=is_before))
    found = [one._replace(is_before=one.is_before or _is_race(facts, one)) for one in found]
    if outcome == "aborted":
        found = [one for one in found if one.is_before or not one.reads_committed]
    if outcome in ("aborted", "unknown") or may_lack:
        found = [one._replace(is_before=True) for one in found]
    return [
        _delivered_document(facts, one._replace(when=told(jumps, one.when)), written)
        for one in found
    ]


def _is_race(facts: Facts, one: Delivered) -> bool:
    """Whether a record that was removed may have been removed before the pipeline read it: where a
    batch begins is not in the commits of every version.
    """
    if facts.offset >= facts.start_offset or one.when.until_ms is None:
        return False
    gone = removed(facts.steps or (), facts.offset).when
    gone_ms = gone.until_ms if gone.since_ms is None else gone.since_ms
    return gone_ms is None or one.when.until_ms >= gone_ms


def _one_per_target(found: list[Delivered]) -> list[Delivered]:
    """Earlier versions of pipelines said less of where their rows go, or gave the query another
    name, so one query may have steps with two names for one place. The steps that begin before the
    offset are the ones that count.
    """
    best: dict[tuple[str, ...], Delivered] = {}
    for one in found:
        *_, name = _names(one.pipeline)
        if name not in best or best[name].is_first_seen:
            best[name] = one
    return [one for one in found if one in best.values()]


def _names(pipeline: Pipeline) -> list[tuple[str, ...]]:
    """What tells a pipeline from others, the best last: its group with the query's name, and with
    the place of its rows if that is known (two queries may report to one group).
    """
    group, query, name = pipeline
    to = destination_of(name)
    return [(group, query, "")] if to is None else [(group, query, ""), (group, to.place)]


def _until_now(group: str, position: Position) -> Delivered:
    """Only the last commit is known: it was delivered by then, in that version or before it."""
    delivery = read_delivery(position.metadata)
    assert delivery is not None
    lowest = 0 if delivery.version >= 0 else -1
    versions = (lowest, delivery.version, 0, delivery.batch)
    pipeline = (group, delivery.query, delivery.table)
    return Delivered(
        pipeline,
        When(None, position.committed_ms),
        *versions,
        is_first_seen=False,
        span=(0, position.offset),
        has_gap=True,
        may_have_rejects=delivery.rejected is not None,
        is_last_commit=True,
    )


def _has_in_last(position: Position, offset: int) -> bool:
    """Whether the group's last commit is of a pipeline's batch that has the offset."""
    delivery = read_delivery(position.metadata)
    return delivery is not None and delivery.begin is not None and delivery.begin <= offset


def _delivered_document(facts: Facts, one: Delivered, written: Written) -> Document:
    group, query, name = one.pipeline
    to = destination_of(name)
    versions = {
        "version": one.last_version if one.first_version == one.last_version else None,
        "first_version": one.first_version,
        "last_version": one.last_version,
    }
    if one.last_version < 0:
        versions = dict.fromkeys(versions)
    is_delta = to is not None and to.kind == DELTA and one.last_version >= 0
    rejection = _rejection(facts, one, facts.offset)
    return {
        "group": group,
        "query": query,
        "when": moment(one.when),
        "batch": one.last_batch if one.first_batch == one.last_batch else None,
        "first_batch": one.first_batch,
        "last_batch": one.last_batch,
        "delta": {"table": to.place, **versions} if to is not None and is_delta else None,
        "sink": _sink_document(to) | versions if to else None,
        "rejected": rejection.document() if rejection else None,
        "unknown_fields": None if rejection else _unknown_fields(facts, group),
        "row": _row(facts, to, one, written)
        if to and not rejection and not one.is_before
        else None,
        "first_commit_seen": one.is_first_seen,
        "in_doubt": one.is_before,
    }


def _sink_document(to: Destination) -> Document:
    called = to.called or to.kind
    return {
        "kind": to.kind,
        "called": called,
        "place": to.place,
        "place_is": to.place_is,
        "rows": to.rows,
    }


def _rejection(facts: Facts, one: Delivered, offset: int) -> Rejection | None:
    """Whether the pipeline rejected an offset that it delivered as `one`."""
    group = one.pipeline[0]
    position = facts.positions.get(group)
    steps = list(facts.key_steps or facts.steps or ())
    if one.is_last_commit and position is not None:
        delivery = read_delivery(position.metadata)
        if delivery is not None and delivery.rejected is not None:
            end = min(position.offset, facts.end_offset)
            steps += rejected_steps(one.pipeline, delivery.rejected, end, facts.now_ms)
    return rejection_of(steps, one, offset, position.offset if position else 0)


def _unknown_fields(facts: Facts, group: str) -> Document | None:
    """Which fields of the message the group's pipeline leaves out or keeps apart."""
    position, location = facts.positions.get(group), facts.location
    if position is None or location is None or location.record is None:
        return None
    delivery = read_delivery(position.metadata)
    value = location.record.record.value
    return unknown_fields_of(value, delivery.unknown) if delivery else None


def _row(facts: Facts, to: Destination, one: Delivered, written: Written) -> Document | None:
    """What the message did to a table by the key of the messages; null for other destinations, and
    where it is not known whether another message of the key was rejected.
    """
    history = facts.key_history
    if to.rows == "append" or not to.by_message_key or history is None:
        return None
    every = facts.key_steps or facts.steps or ()
    steps = lives_of(every, one.pipeline)
    position = facts.positions.get(one.pipeline[0])
    in_doubt: list[int] = []
    outcomes = {one.offset: one.is_committed for one in history.records}
    is_compacted = facts.config.cleanup_compact

    def batches_of(offset: int) -> Batches | None:
        about = written if offset == facts.offset else _written_of(every, offset, written)
        found = delivery_of(one.pipeline, steps, offset, about)
        if found is not None and found.is_before:
            in_doubt.append(offset)  # another record may have had the offset
        if (
            found is None
            and not steps_of(steps, one.pipeline)
            and position is not None
            and offset < position.offset
        ):
            found = _until_now(one.pipeline[0], position)
            if not _has_in_last(position, offset):
                in_doubt.append(offset)  # an earlier checkpoint may have had it
        if found is None:
            return None
        is_committed = outcomes[offset]
        if is_committed is False and found.reads_committed:
            return None
        if not found.reads_committed and (is_compacted or not is_committed):
            # It may read records of aborted transactions, of which compaction removes some.
            in_doubt.append(offset)
        elif is_committed is None:
            in_doubt.append(offset)
        rejection = _rejection(facts, found, offset)
        if rejection is not None:
            if not rejection.is_certain:
                in_doubt.append(offset)
            return None
        return Batches(found.first_batch, found.last_batch, found.first_version, found.last_version)

    said = row_of(to, history, facts.offset, batches_of)
    if in_doubt:
        return None
    return across_partitions(said, to, facts.key_elsewhere, facts.partition_count)


def _written_of(steps: Sequence[Step], offset: int, own: Written) -> Written:
    """What is known of another record of the key: only whether it was written again."""
    rewritten_ms = rewritten_at(steps, offset, always_led=own.always_led)
    opened_ms = opened_before(steps, offset)
    return own._replace(
        when=When(None, None), is_own=False, rewritten_ms=rewritten_ms, opened_ms=opened_ms
    )


def _counts(header: BatchHeader, record: Record, facts: Facts) -> Counts:
    """Whether compaction looks at the record's key."""
    if header.is_control:
        return Counts.MARKER
    known = transaction_of(header, facts.transactions) if facts.transactions else None
    state = known["state"] if known else "committed"
    if state == "committed":
        return Counts.BY_KEY if record.key is not None else Counts.NO_KEY
    return {"aborted": Counts.ABORTED, "open": Counts.OPEN}.get(state, Counts.UNKNOWN)


def _retention(facts: Facts) -> Document:
    location = facts.location
    assert location is not None
    assert location.record is not None
    record = location.record.record
    asked = RecordFacts(
        record.offset,
        record.timestamp_ms,
        _counts(location.header, record, facts),
        record.value is None,
        facts.superseded_by,
        facts.searched_to,
        location.header.delete_horizon_ms,
        facts.undecided,
    )
    known = facts.transactions
    stable = facts.high_watermark if known is None else known.last_stable_offset
    if location.segment is None:
        newest_ms = location.header.max_timestamp
        retention = bound_retention(facts.config, newest_ms, facts.now_ms)
    else:
        retention = explain_retention(facts.config, facts.segments, asked, stable, facts.now_ms)
    return {
        "may_be_removed": retention.may_now,
        "not_before_ms": retention.not_before_ms,
        "segment_active": None if location.segment is None else location.segment.is_active,
        "rules": [
            {
                "setting": rule.setting,
                "may_be_removed": rule.may_now,
                "not_before_ms": rule.not_before_ms,
                "reason": rule.reason,
                "delay": rule.delay,
                "why": format_rule(rule),
                "note": format_delay(rule.delay),
            }
            for rule in retention.rules
        ],
    }


def _removed(facts: Facts) -> Document:
    when, reason = removed(facts.steps or (), facts.offset)
    return {
        "when": moment(told(jumps_of(facts.steps or (), facts.now_ms), when)),
        "reason": reason or None,
    }
