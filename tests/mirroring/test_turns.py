"""What the mirror's loop does when the source changes at an unlucky moment, without clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.client.errors import ClientError
from ottla.client.topic_partition import TopicPartition
from ottla.mirroring import events, identity, mirror
from ottla.mirroring.clusters import Side
from ottla.mirroring.events import Event
from ottla.mirroring.mirror import Mirror
from ottla.mirroring.position import Origin, Position
from ottla.mirroring.source_reader import News
from ottla.mirroring.spec import MirrorSpec
from ottla.mirroring.topic_plan import SourceTopic, TopicPlan

ORIGIN = Origin("id", "id", ("cluster",))
ONE, TWO = TopicPartition("t", 0), TopicPartition("u", 0)


class FakeWriter:
    """Holds what was added, by partition."""

    def __init__(self) -> None:
        self.shares = frozenset({ONE, TWO})
        self.added: list[TopicPartition] = []
        self.committed: list[TopicPartition] = []

    def add(self, partition: TopicPartition, records: Sequence[object]) -> None:
        self.added += [partition] * len(records)

    def serve(self) -> None:
        pass

    def abort(self) -> None:
        self.added.clear()

    def positions(self, partitions: Iterable[TopicPartition], _within_s: float) -> Any:
        return {each: Position(0, ORIGIN) for each in partitions}

    def commit(
        self,
        positions: Mapping[TopicPartition, Position],
        names: Mapping[str, str],
        _starts: Mapping[TopicPartition, int],
        check: Callable[[], None],
    ) -> None:
        check()
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
    monkeypatch.setattr(mirror, "id_of", lambda topic: None)
    side = Side("127.0.0.1:1", {"bootstrap.servers": "127.0.0.1:1"}, "source")
    monkeypatch.setattr(identity, "id_of", lambda topic: topic.id)
    monkeypatch.setattr(identity, "LOOK_PAUSE_S", 0.0)
    made: Any = Mirror(MirrorSpec(), side, side, told.append)
    made._source, made._target = FakeClient(), FakeClient()
    made._writer = FakeWriter()
    made._reader = SimpleNamespace(assign=lambda positions: None)
    made._plan = plan("t", "u")
    yield made
    made.close()


def record(topic: str, offset: int) -> Any:
    return type(
        "Record",
        (),
        {
            "topic": lambda _: topic,
            "partition": lambda _: 0,
            "offset": lambda _: offset,
            "leader_epoch": lambda _: None,
            "key": lambda _: None,
            "__len__": lambda _: 1,
        },
    )()


def test_a_topic_that_goes_while_its_position_is_awaited(loop: Any) -> None:
    loop._waiting = {ONE, TWO}
    loop._plan = plan("u")
    loop._find_positions()
    assert set(loop._share.committed) == {TWO}
    assert not loop._waiting


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
    with pytest.raises(mirror.RecreatedError) as failed:
        loop._commit()
    assert failed.value.names == ["t"]


def test_what_fails_again_is_said_again(loop: Any, told: list[Event]) -> None:
    def fails() -> None:
        raise ClientError("the source is away.")

    for work in (fails, fails, lambda: None, fails):
        loop.keeper.attempt("topics", work)
        loop.keeper.attempt("groups", fails)
    assert [each.text for each in told] == ["Trying again: the source is away."] * 3
