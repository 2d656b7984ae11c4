"""What the mirror's loop does when the source changes at an unlucky moment, without clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.client.errors import ClientError
from ottla.client.topic_partition import TopicPartition
from ottla.mirroring import assignment, events, identity, mirror, transaction_size
from ottla.mirroring.assignment import Assignment
from ottla.mirroring.clusters import Side
from ottla.mirroring.events import Event
from ottla.mirroring.mirror import Mirror
from ottla.mirroring.position import LastRecord, Origin, Position
from ottla.mirroring.source_end import SourceEnd
from ottla.mirroring.source_reader import News, Read
from ottla.mirroring.spec import MirrorSpec
from ottla.mirroring.target_producer import LATE, TransactionFailed
from ottla.mirroring.topic_plan import SourceTopic, TopicPlan
from ottla.mirroring.transaction_size import FIRST_BYTES, MIN_BYTES

ORIGIN = Origin("id", "id", ("cluster",))
ONE, TWO = TopicPartition("t", 0), TopicPartition("u", 0)


class FakeWriter:
    """Holds what was added, by partition; and is the producer and the member."""

    def __init__(self) -> None:
        self.shares = frozenset({ONE, TWO})
        self.added: list[TopicPartition] = []
        self.committed: list[TopicPartition] = []
        self.at: dict[TopicPartition, Position] = {}
        self.sizes: list[int] = []
        """Records of each transaction."""
        self.carries: int | None = None
        """So many records in the time of a transaction."""

    def add(self, partition: TopicPartition, records: Sequence[object]) -> None:
        self.added += [partition] * len(records)

    def serve(self) -> None:
        pass

    def poll(self, _within_s: float) -> None:
        pass

    def check(self) -> None:
        pass

    def abort(self) -> None:
        self.added.clear()

    def positions(self, partitions: Iterable[TopicPartition], _within_s: float) -> Any:
        return {each: self.at.get(each, Position(0, ORIGIN)) for each in partitions}

    def commit(
        self,
        positions: Mapping[TopicPartition, Position],
        names: Mapping[str, str],
        _starts: Mapping[TopicPartition, int],
        check: Callable[[], None],
    ) -> None:
        late = 0 if self.carries is None else len(self.added) - self.carries
        if late > 0:
            raise TransactionFailed(LATE, unacknowledged=late)
        check()
        self.at.update(positions)
        self.sizes.append(len(self.added))
        self.committed += [each for each in self.added if names[each.topic]]
        self.added.clear()


class FakeClient:
    """Knows topics t and u."""

    def __init__(self) -> None:
        self.forgetful_looks = 0
        """So often it does not know topic t, as a broker that has just started."""
        self.topics = {name: SimpleNamespace(id="id", partitions={0: None}) for name in ("t", "u")}

    def metadata(self, _topics: Iterable[str]) -> Any:
        found = dict(self.topics)
        if self.forgetful_looks:
            self.forgetful_looks -= 1
            del found["t"]
        return SimpleNamespace(topics=found)

    def asked(self) -> Any:
        return nullcontext()

    def close(self) -> None:
        pass


def plan(*names: str) -> TopicPlan:
    made = TopicPlan()
    for name in names:
        made.mirrored[name] = SourceTopic(name, "id", 1, {}, ())
    return made


@pytest.fixture
def told() -> list[Event]:
    return []


@pytest.fixture
def loop(told: list[Event], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(assignment, "id_of", lambda topic: None)
    side = Side("127.0.0.1:1", {"bootstrap.servers": "127.0.0.1:1"}, "source")
    monkeypatch.setattr(identity, "id_of", lambda topic: topic.id)
    monkeypatch.setattr(identity, "LOOK_PAUSE_S", 0.0)
    made: Any = Mirror(MirrorSpec(), side, side, told.append)
    made._source, made._target = FakeClient(), FakeClient()
    made._producer = made._writer = made._member = FakeWriter()
    made._assignment = Assignment(
        made._source,
        made._target,
        made._member,
        made._writer,
        made._lost,
        made._share,
        told.append,
        "cluster",
    )
    made._reader = SimpleNamespace(assign=lambda positions: None, end_seen=lambda source: 0)
    made._has_joined = True
    made._end = SourceEnd(MirrorSpec(), made._source, made._target, told.append)
    made._plan = plan("t", "u")
    yield made
    made.close()


def record(topic: str, offset: int, size_bytes: int = 1, epoch: int | None = None) -> Any:
    return type(
        "Record",
        (),
        {
            "topic": lambda _: topic,
            "partition": lambda _: 0,
            "offset": lambda _: offset,
            "leader_epoch": lambda _: epoch,
            "key": lambda _: None,
            "__len__": lambda _: size_bytes,
        },
    )()


def test_a_topic_that_goes_while_its_position_is_awaited(loop: Any) -> None:
    loop._assignment.waiting = {ONE, TWO}
    assert loop._assignment.find(plan("u"), ())
    assert set(loop._share.committed) == {TWO}
    assert not loop._assignment.is_waiting


def test_a_log_that_was_cut_below_an_open_transaction(
    loop: Any, told: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first_offsets", "end_offsets"):
        end = 0 if name == "first_offsets" else 3
        monkeypatch.setattr(
            mirror, name, lambda _client, wanted, end=end: dict.fromkeys(wanted, end)
        )
    loop._share.take(ONE, "t", Position(5, ORIGIN))
    loop._share.take(TWO, "u", Position(0, ORIGIN))
    loop._add([record("t", 5), record("u", 0)])
    loop._take_news(News(out_of_range={ONE}))
    assert [each.kind for each in told] == [events.CUT]
    loop._add([record("u", 0)])
    loop._commit()
    assert loop._writer.committed == [TWO]


def test_a_log_that_was_cut_above_what_is_committed(
    loop: Any, told: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first_offsets", "end_offsets"):
        end = 0 if name == "first_offsets" else 5
        monkeypatch.setattr(
            mirror, name, lambda _client, wanted, end=end: dict.fromkeys(wanted, end)
        )
    loop._share.take(ONE, "t", Position(4, ORIGIN))
    loop._add([record("t", 4), record("t", 5), record("t", 6)])
    loop._take_news(News(out_of_range={ONE}))
    assert not told
    assert loop._share.next == {ONE: 4}, "what the source has not any more is not mirrored"
    assert not loop._writer.added


def test_behind_a_transaction_the_source_is_asked_for_its_last_record(
    loop: Any, told: list[Event]
) -> None:
    """The marker may be of a later epoch. A record where it was is one of another log."""
    loop._share.take(ONE, "t", Position(0, ORIGIN))
    loop._add([record("t", 13, epoch=3)])
    loop._take_news(News(ends={ONE: 15}))
    loop._commit()
    assert loop._share.committed[ONE] == Position(15, ORIGIN, LastRecord(14, 3))
    assert loop._share.next_offsets() == {ONE: (14, 3)}
    loop._add([record("t", 13, epoch=3)])
    loop._take_news(News())
    assert not told
    loop._add([record("t", 14, epoch=4)])
    loop._take_news(News())
    assert [each.kind for each in told] == [events.CUT]
    assert not loop._share.committed


def test_what_is_gone_before_the_position_is_no_loss(
    loop: Any, told: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is it asked for again and again."""
    monkeypatch.setattr(mirror, "first_offsets", lambda _, wanted: dict.fromkeys(wanted, 15))
    monkeypatch.setattr(mirror, "end_offsets", lambda _, wanted: dict.fromkeys(wanted, 30))
    loop._share.take(ONE, "t", Position(20, ORIGIN, LastRecord(14, 3)))
    loop._take_news(News(out_of_range={ONE}))
    assert not told
    assert loop._share.next_offsets() == {ONE: (20, None)}


def test_a_broker_that_does_not_know_the_topic_yet(loop: Any, told: list[Event]) -> None:
    loop._share.take(ONE, "t", Position(0, ORIGIN))
    loop._add([record("t", 0)])
    loop._source.forgetful_looks = 3
    loop._commit()
    assert loop._writer.committed == [ONE]
    assert not told


def test_a_topic_that_stays_away_is_left_out(loop: Any) -> None:
    loop._share.take(ONE, "t", Position(0, ORIGIN))
    loop._add([record("t", 0)])
    del loop._source.topics["t"]
    with pytest.raises(identity.RecreatedError) as failed:
        loop._commit()
    assert failed.value.names == ["t"]


def test_other_instances_are_told_of_what_is_left_out(loop: Any) -> None:
    """By the positions, which the end of another instance's run looks at."""
    loop._share.take(ONE, "t", Position(0, ORIGIN))
    loop._leave_out(["t"])
    loop._follow_assignment()
    assert not loop._has_reached({})
    assert loop._assignment.find(loop._plan, loop._out)
    assert loop._writer.at == {ONE: Position(0, ORIGIN, None, True)}
    assert set(loop._share.committed) == {TWO}
    assert loop._has_reached({ONE: 9})


def test_the_end_is_reached_only_once_the_source_has_taken_each_position(loop: Any) -> None:
    """A log that was cut may end where it ended before, or have an open transaction below that."""
    loop._share.take(ONE, "t", Position(17, ORIGIN))
    seen: dict[Any, int] = {}
    loop._reader.end_seen = seen.get
    loop._has_joined = False
    assert not loop._has_reached({ONE: 17})
    loop._has_joined = True
    assert not loop._has_reached({ONE: 17})
    assert not loop._has_reached({ONE: 0})
    seen[ONE] = 17
    assert loop._has_reached({ONE: 17})


def test_what_fails_again_is_said_again(loop: Any, told: list[Event]) -> None:
    def fails() -> None:
        raise ClientError("the source is away.")

    for work in (fails, fails, lambda: None, fails):
        loop.keeper.attempt("topics", work)
        loop.keeper.attempt("groups", fails)
    assert [each.text for each in told] == ["Trying again: the source is away."] * 3


def test_what_is_read_at_once_may_be_several_transactions(loop: Any) -> None:
    loop._share.take(ONE, "t", Position(0, ORIGIN))
    each = FIRST_BYTES // 4
    loop._add([record("t", at, each) for at in range(10)])
    assert loop._writer.sizes[0] == 4
    loop._commit()
    assert loop._writer.committed == [ONE] * 10
    assert loop._share.committed[ONE].offset == 10
    assert loop.progress.records == 10


def test_over_a_slow_link_transactions_become_smaller(
    loop: Any, told: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror, "FAILED_PAUSE_S", 0.0)
    monkeypatch.setattr(transaction_size, "QUICK_S", -1.0)
    loop.keeper = SimpleNamespace(plan=loop._plan, check=lambda: None)
    loop._writer.looks_after_groups = False
    loop._writer.carries = 40
    loop._writer.shares = frozenset({ONE})
    loop._has_changed = True
    count, each = 2_000, MIN_BYTES // 10

    def read(_within_s: float) -> Read:
        some = [record("t", at, each) for at in range(loop._share.next[ONE], count)]
        return Read(some, News(), is_all=True)

    loop._reader.read = read
    loop._open.times.is_due = lambda _now_s: True
    for _ in range(100):
        loop._turn()
    assert loop._writer.committed == [ONE] * count
    assert max(loop._writer.sizes) <= loop._writer.carries
    assert 1 <= len(told) < mirror.MAX_FAILURES
    assert all(event.text.endswith("The next ones are smaller.") for event in told)
