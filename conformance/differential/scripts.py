"""Scripts of transactional requests, by subject: the usual ways and the wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from conformance.differential.session import Session
from ottla.shards.step import ProducerEpoch

Script = Callable[[Session], None]
A0: Final = ("a", 0)
A1: Final = ("a", 1)
TRANSACTIONAL_KEYS: Final = (0, 1, 2, 9, 10, 22, 24, 25, 26, 28, 57, 61, 65, 66)
END_VERSIONS: Final = range(6)


def _epoch(producer: ProducerEpoch, change: int) -> ProducerEpoch:
    return producer._replace(epoch=producer.epoch + change)


def _other_id(producer: ProducerEpoch) -> ProducerEpoch:
    return producer._replace(producer_id=producer.producer_id + 500_000)


def versions(session: Session) -> None:
    """Which versions are advertised."""
    session.versions(TRANSACTIONAL_KEYS)
    session.broker_meant()
    for version in range(1, 7):
        session.coordinator("t", version)
        session.coordinator("", version)
    for version in (3, 4):
        session.features(version)


def init_in_each_version(session: Session) -> None:
    for version in range(6):
        word = f"t{version}"
        session.init(None, version)
        first = session.init(word, version)
        second = session.init(word, version)
        if version >= 3:
            session.init(word, version, first)
            session.init(word, version, second)
        session.describe(word)


def init_with_wrong_values(session: Session) -> None:
    session.init("", 5)
    for timeout_ms in (0, -1, 900_000, 900_001, 2**31 - 1):
        session.init(f"t{timeout_ms}", 5, timeout_ms=timeout_ms)
    session.init("half", 5, ProducerEpoch(7, -1))
    session.init("half", 5, ProducerEpoch(-1, 7))
    session.init(None, 5, ProducerEpoch(7, 7))
    session.init("unknown", 5, ProducerEpoch(7_000_000, 3))


def init_with_an_expected_epoch(session: Session) -> None:
    first = session.init("t")
    second = session.init("t", 5, first)
    session.init("t", 5, first)
    session.init("t", 5, second)
    session.init("t", 5, _epoch(second, 5))
    session.init("t", 5, _other_id(second))
    third = session.init("t")
    session.init("t", 5, second)
    session.init("t", 5, third)
    session.describe("t")


def init_aborts_an_open_transaction(session: Session) -> None:
    session.create("a")
    for version, produce in ((5, 12), (3, 9)):
        word = f"t{version}"
        first = session.init(word, version)
        if produce < 12:
            session.add(word, first, [A0])
        session.produce(word, first, A0, [word], produce)
        second = session.init(word, version)
        session.end(word, first, 5 if produce >= 12 else 3)
        session.end(word, first, 5 if produce >= 12 else 3, is_commit=False)
        session.init(word, version, first)
        session.describe(word)
        session.describe_producers(A0)
        session.produce(word, first, A0, ["late"], produce, sequence=1)
        session.produce(word, second, A0, ["next"], 12)
        session.fetch(A0)


def a_transaction_of_version_2(session: Session) -> None:
    session.create("a")
    producer = session.init("t")
    for number, is_commit in enumerate((True, False, True)):
        session.produce("t", producer, A0, [f"{number}-0", f"{number}-1"])
        session.produce("t", producer, A0, [f"{number}-2"], sequence=2)
        session.produce("t", producer, A1, [f"{number}-3"])
        session.describe("t")
        session.describe_producers(A0, A1)
        session.list_transactions()
        for partition in (A0, A1):
            session.fetch(partition)
            session.list_offsets(partition)
        producer = session.end("t", producer, is_commit=is_commit)
        session.describe("t")
        session.describe_producers(A0, A1)
        for partition in (A0, A1):
            session.fetch(partition)
            session.list_offsets(partition)


def a_transaction_below_version_2(session: Session) -> None:
    session.create("a")
    for version in range(5):
        word = f"t{version}"
        producer = session.init(word, min(version, 4))
        for sequence, is_commit in enumerate((True, False)):
            session.add(word, producer, [A0, A1], min(version, 3))
            session.add(word, producer, [A0], min(version, 3))
            produce = 3 + 2 * version
            session.produce(word, producer, A0, ["one"], produce, sequence=sequence)
            session.produce(word, producer, A1, ["two"], produce, sequence=sequence)
            producer = session.end(word, producer, version, is_commit=is_commit)
            session.end(word, producer, version, is_commit=is_commit)
            session.end(word, producer, version, is_commit=not is_commit)
        session.describe(word)
    for version in range(4, 19):
        session.fetch(A0, version=version)
        session.fetch(("no", 0), version=version)
    for version in range(1, 12):
        session.list_offsets(A1, version)


def end_without_a_transaction(session: Session) -> None:
    for version in END_VERSIONS:
        for is_commit in (True, False):
            word = f"t{version}{is_commit}"
            session.end(f"{word}x", ProducerEpoch(4_000_000, 0), version, is_commit=is_commit)
            producer = session.init(word)
            session.end(word, _epoch(producer, -1), version, is_commit=is_commit)
            session.end(word, _epoch(producer, 1), version, is_commit=is_commit)
            session.end(word, _other_id(producer), version, is_commit=is_commit)
            session.end(word, producer, version, is_commit=is_commit)
            session.describe(word)


def end_again_after_an_end(session: Session) -> None:
    session.create("a")
    for ended in (True, False):
        for again in (True, False):
            for change in (0, -1, -2, 1):
                word = f"t{ended}{again}{change}"
                producer = session.init(word)
                session.produce(word, producer, A0, [word])
                producer = session.end(word, producer, is_commit=ended)
                session.end(word, _epoch(producer, change), is_commit=again)
                session.end(word, producer, 3, is_commit=again)
                session.describe(word)
    session.fetch(A0)


def end_late_after_an_older_end(session: Session) -> None:
    """EndTxn 5 of the producer before the one that has ended its transaction with version 3."""
    session.create("a")
    for ended in (True, False):
        for late in (True, False):
            word = f"t{ended}{late}"
            session.init(word)
            producer = session.init(word)
            session.add(word, producer, [A0])
            session.produce(word, producer, A0, [word], 11)
            session.end(word, _epoch(producer, -1), is_commit=late)
            session.end(word, producer, 3, is_commit=ended)
            session.end(word, _epoch(producer, -1), is_commit=late)
            session.describe(word)
            session.end(word, _epoch(producer, -1), 3, is_commit=late)
            session.init(word)
            session.end(word, producer, is_commit=late)
    session.fetch(A0)


def end_by_others(session: Session) -> None:
    session.create("a")
    for version in END_VERSIONS:
        word = f"t{version}"
        producer = session.init(word)
        session.produce(word, producer, A0, [word])
        session.end(word, _other_id(producer), version)
        session.end(word, _epoch(producer, -1), version)
        session.end(word, _epoch(producer, 1), version)
        session.end(word, producer, version, is_commit=version % 2 == 0)
        session.describe(word)
    session.fetch(A0)


def add_partitions(session: Session) -> None:
    session.create("a")
    for version in range(4):
        word = f"t{version}"
        session.add(f"{word}x", ProducerEpoch(4_000_000, 0), [A0], version)
        producer = session.init(word)
        session.add(word, producer, [A0, ("no", 0)], version)
        session.add(word, producer, [("a", 7)], version)
        session.describe(word)
        session.add(word, _epoch(producer, -1), [A0], version)
        session.add(word, _epoch(producer, 1), [A0], version)
        session.add(word, _other_id(producer), [A0], version)
        session.add(word, producer, [], version)
        session.describe(word)
        session.add(word, producer, [A0], version)
        session.describe(word)


def add_partitions_as_a_broker(session: Session) -> None:
    session.create("a")
    for version in (4, 5):
        for verify_only in (True, False):
            word = f"t{version}{verify_only}"
            session.add_as_broker(f"{word}x", ProducerEpoch(4_000_000, 0), [A0], version,
                                  verify_only=verify_only)  # fmt: skip
            producer = session.init(word)
            for wrong in (_epoch(producer, -1), _epoch(producer, 1), _other_id(producer)):
                session.add_as_broker(word, wrong, [A0], version, verify_only=verify_only)
            for partitions in ([A0, ("no", 0)], [A0], [A0, A1]):
                session.add_as_broker(word, producer, partitions, version, verify_only=verify_only)
                session.describe(word)
            session.add(word, producer, [A0])
            session.add_as_broker(word, producer, [A0, A1], version, verify_only=True)


def offsets_in_a_transaction(session: Session) -> None:
    session.create("a")
    for version in range(7):
        word, group = f"t{version}", f"g{version}"
        producer = session.init(word)
        for is_commit in (True, False):
            if version < 5:
                session.add_offsets(word, producer, group, min(version, 4))
            session.commit_offset(word, producer, group, "a", 5 + is_commit, version)
            session.describe(word)
            for require_stable in (True, False):
                if not require_stable:
                    session.offset(group, "a", require_stable=require_stable)
            producer = session.end(word, producer, min(version, 5), is_commit=is_commit)
            session.offset(group, "a", require_stable=True)
        session.describe(word)


def offsets_that_are_refused(session: Session) -> None:
    session.create("a")
    for version in range(7):
        word, group = f"t{version}", f"g{version}"
        session.add_offsets(f"{word}x", ProducerEpoch(4_000_000, 0), group, min(version, 4))
        session.commit_offset(f"{word}x", ProducerEpoch(4_000_000, 0), group, "a", 1, version)
        producer = session.init(word)
        session.commit_offset(word, producer, group, "a", 1, min(version, 4))
        for wrong in (_epoch(producer, -1), _epoch(producer, 1), _other_id(producer)):
            session.add_offsets(word, wrong, group, min(version, 4))
            session.commit_offset(word, wrong, group, "a", 1, version)
        session.add_offsets(word, producer, "", min(version, 4))
        session.add_offsets(word, producer, group, min(version, 4))
        session.commit_offset(word, producer, group, "no", 1, version)
        if version >= 3:
            session.commit_offset(word, producer, group, "a", 1, version, generation=3)
            session.commit_offset(word, producer, group, "a", 1, version, member="m")
            session.commit_offset(word, producer, group, "a", 1, version, member="m", generation=3)
        session.commit_offset(word, producer, group, "a", 1, version)
        session.end(word, producer, 3)
        session.offset(group, "a", require_stable=True)


def records_that_are_refused(session: Session) -> None:
    session.create("a")
    for version in (3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13):
        word = f"t{version}"
        session.produce(f"{word}x", ProducerEpoch(4_000_000, 0), A0, ["x"], version)
        producer = session.init(word)
        if version < 12:
            session.produce(word, producer, A0, ["not added"], version)
        for wrong in (_epoch(producer, -1), _epoch(producer, 1), _other_id(producer)):
            session.produce(word, wrong, A0, ["wrong"], version)
        session.add(word, producer, [A0])
        session.produce(word, producer, A0, ["sequence"], version, sequence=3)
        session.produce(word, producer, A0, ["good"], version)
        session.produce(word, producer, A0, ["good"], version)
        session.produce(word, producer, A0, ["gap"], version, sequence=5)
        session.produce(word, producer, A0, ["plain"], version, sequence=1,
                        is_transactional=False)  # fmt: skip
        session.produce(None, producer, A0, ["no id"], version, sequence=1)
        session.produce(word, producer, ("no", 0), ["no topic"], version)
        session.end(word, producer, 3)
        session.describe(word)
    session.fetch(A0)


def records_after_the_end(session: Session) -> None:
    session.create("a")
    for is_commit in (True, False):
        word = f"t{is_commit}"
        producer = session.init(word)
        session.produce(word, producer, A0, ["one"])
        following = session.end(word, producer, is_commit=is_commit)
        session.produce(word, producer, A0, ["one"])
        session.produce(word, producer, A0, ["late"], sequence=1)
        session.produce(word, following, A0, ["gap"], sequence=1)
        session.produce(word, following, A0, ["next"])
        session.end(word, following)
    session.fetch(A0)
    session.fetch(A0, 2)
    session.list_offsets(A0)


def a_batch_of_a_future_epoch(session: Session) -> None:
    session.create("a")
    producer = session.init("t")
    session.produce("t", producer, A0, ["one"])
    session.produce("t", _epoch(producer, 1), A0, ["future"])
    session.produce("t", producer, A0, ["two"], sequence=1)
    session.end("t", producer)
    session.describe("t")


def two_transactions_beside_each_other(session: Session) -> None:
    session.create("a")
    one, two = session.init("one"), session.init("two")
    session.produce("one", one, A0, ["1a"])
    session.produce("two", two, A0, ["2a"])
    session.produce("one", one, A0, ["1b"], sequence=1)
    session.list_offsets(A0)
    session.end("two", two, is_commit=False)
    session.list_offsets(A0)
    session.fetch(A0)
    session.end("one", one)
    session.list_offsets(A0)
    for offset in range(6):
        session.fetch(A0, offset)


def a_topic_deleted_in_a_transaction(session: Session) -> None:
    session.create("a")
    session.create("b")
    producer = session.init("t")
    session.produce("t", producer, A0, ["a"])
    session.produce("t", producer, ("b", 0), ["b"])
    session.delete("b")
    session.end("t", producer)
    session.describe("t")
    session.fetch(A0)


def description(session: Session) -> None:
    session.create("a")
    session.describe("unknown")
    session.describe("")
    session.describe_producers(("no", 0), ("a", 9), A0)
    empty, open_, done = (session.init(word) for word in ("empty", "open", "done"))
    session.produce("open", open_, A0, ["x"])
    session.produce("done", done, A0, ["x"])
    session.end("done", done, is_commit=False)
    session.describe("empty", "open", "done", "unknown")
    session.describe_producers(A0, A1)
    for version in (0, 1):
        session.list_transactions(version=version)
        for state in ("Empty", "Ongoing", "CompleteAbort", "CompleteCommit", "empty", "Wrong"):
            session.list_transactions(states=[state], version=version)
        session.list_transactions(states=["Empty", "Ongoing"], version=version)
        session.list_transactions(producers=[open_.producer_id], version=version)
        session.list_transactions(
            producers=[empty.producer_id], states=["Ongoing"], version=version
        )
    for duration_ms in (0, 3_600_000):
        session.list_transactions(duration_ms=duration_ms)


def markers_of_an_administrator(session: Session) -> None:
    session.create("a")
    for version in (1, 2):
        word = f"t{version}"
        session.markers(ProducerEpoch(5_000_000 + version, 0), [A0], version, is_commit=False)
        session.markers(ProducerEpoch(5_000_000, 0), [("no", 0), ("a", 9)], version,
                        is_commit=False)  # fmt: skip
        session.init(word)
        producer = session.init(word)
        session.produce(word, producer, A0, ["hanging"])
        session.markers(_epoch(producer, -1), [A0], version, is_commit=False)
        session.markers(producer, [A0], version, is_commit=False)
        session.describe_producers(A0)
        session.markers(producer, [A0], version, is_commit=False)
        session.fetch(A0)
        session.describe(word)
        session.end(word, producer)
    session.fetch(A0)


def markers_of_version_2(session: Session) -> None:
    session.create("a")
    session.init("t")
    producer = session.init("t")
    session.produce("t", producer, A0, ["x"])
    for change in (-1, 0, 1, 1, 0):
        session.markers(
            _epoch(producer, change),
            [A0],
            is_commit=False,
            transaction_version=2,
        )
        session.describe_producers(A0)
    session.markers(_epoch(producer, 1), [A0], is_commit=False, coordinator_epoch=-1)
    session.fetch(A0)


def features(session: Session) -> None:
    """Leaves transaction.version as it was."""
    name = "transaction.version"
    for version in (0, 1, 2):
        session.update_feature(name, 3, version)
        session.update_feature(name, -1, version)
        session.update_feature("no.such.feature", 1, version)
        session.update_feature(name, 2, version)
        session.update_feature(name, 1, version)
    for version in (1, 2):
        session.update_feature(name, 1, version, upgrade_type=9)
        session.update_feature(name, 1, version, upgrade_type=2, validate_only=True)
        session.features()
        session.update_feature(name, 1, version, upgrade_type=2)
        session.features(level=1)
        session.update_feature(name, 0, version, upgrade_type=3)
        session.features(level=0)
        session.update_feature(name, 2, version)
        session.features()


SCRIPTS: Final[tuple[Script, ...]] = (
    versions,
    init_in_each_version,
    init_with_wrong_values,
    init_with_an_expected_epoch,
    init_aborts_an_open_transaction,
    a_transaction_of_version_2,
    a_transaction_below_version_2,
    end_without_a_transaction,
    end_again_after_an_end,
    end_late_after_an_older_end,
    end_by_others,
    add_partitions,
    add_partitions_as_a_broker,
    offsets_in_a_transaction,
    offsets_that_are_refused,
    records_that_are_refused,
    records_after_the_end,
    a_batch_of_a_future_epoch,
    two_transactions_beside_each_other,
    a_topic_deleted_in_a_transaction,
    description,
    markers_of_an_administrator,
    markers_of_version_2,
    features,
)
