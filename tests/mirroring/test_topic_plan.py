"""Which topics are mirrored, what is created and changed for it, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.mirroring.position import Origin, Position, metadata_of, read_origin, written
from ottla.mirroring.spec import MirrorSpec
from ottla.mirroring.topic_plan import (
    Alteration,
    Creation,
    SourceTopic,
    TargetTopic,
    TopicPlan,
    chosen,
    plan_topics,
)

HERE, THERE = "source-id", "target-id"
OURS = Origin("id-1", "there-1", (HERE,))


def planned(
    source: list[SourceTopic],
    target: dict[str, TargetTopic] | None = None,
    origins: dict[str, Origin] | None = None,
    there: str = THERE,
    present: dict[str, str | None] | None = None,
    **spec: Any,
) -> TopicPlan:
    return plan_topics(
        MirrorSpec(**spec),
        source,
        target or {},
        origins or {},
        {topic.name: topic.id for topic in source} if present is None else present,
        source_cluster=HERE,
        target_cluster=there,
    )


def test_internal_topics_and_those_of_mirrors_are_never_meant() -> None:
    names = ["b", "a", "__consumer_offsets", "ottla-mirror-x", "mm2-offsets.a.internal", "no"]
    assert chosen(names, lambda _: True, lambda name: name == "no") == ["a", "b"]


def test_a_new_topic_is_created_with_its_partitions_and_settings() -> None:
    topic = SourceTopic("t", "id-1", 4, {"retention.ms": "1", "min.insync.replicas": "2"})
    plan = planned([topic], prefix="dc1.")
    assert plan.create == [Creation("dc1.t", 4, {"retention.ms": "1"})]
    assert plan.mirrored == {"dc1.t": topic}
    assert not plan.refused


def test_settings_and_partitions_follow() -> None:
    topic = SourceTopic("t", "id-1", 4, {"retention.ms": "1", "segment.ms": "5"})
    there = TargetTopic(
        2,
        "there-1",
        {
            "retention.ms": "2",
            "segment.ms": "5",
            "cleanup.policy": "compact",
            "min.insync.replicas": "2",
        },
        has_records=True,
    )
    plan = planned([topic], {"t": there}, {"t": OURS})
    assert plan.extend == {"t": 4}
    assert plan.alter == [Alteration("t", {"retention.ms": "1"}, ("cleanup.policy",))]


def test_more_partitions_at_the_target_stay() -> None:
    plan = planned([SourceTopic("t", "id-1", 1)], {"t": TargetTopic(3, "there-1")}, {"t": OURS})
    assert not plan.extend
    assert not plan.alter
    assert list(plan.mirrored) == ["t"]


@pytest.mark.parametrize(
    ("topic", "target", "origin", "options", "words"),
    [
        (SourceTopic("t", "id-1", 1), None, None, {"there": HERE}, "same cluster"),
        (
            SourceTopic("t", "id-1", 1, {}, ("other", THERE)),
            None,
            None,
            {},
            "mirrored from the target",
        ),
        (SourceTopic("t", "id-2", 1), TargetTopic(1), OURS, {}, "deleted and created again"),
        (
            SourceTopic("t", "id-1", 1),
            TargetTopic(1),
            Origin("id-1", None, ("third",)),
            {},
            "from another cluster, third",
        ),
        (
            SourceTopic("t", "id-1", 1),
            TargetTopic(1, "there-1", {}, has_records=True),
            None,
            {},
            "did not write",
        ),
        (
            SourceTopic("t", "id-1", 1),
            TargetTopic(1, "there-1", {}, has_records=True, is_forgotten=True),
            None,
            {"into_existing": True},
            "has forgotten the mirror's positions",
        ),
    ],
)
def test_refused(
    topic: SourceTopic,
    target: TargetTopic | None,
    origin: Origin | None,
    options: dict[str, Any],
    words: str,
) -> None:
    plan = planned(
        [topic], {"t": target} if target else {}, {"t": origin} if origin else {}, **options
    )
    assert words in plan.refused["t"]
    assert not plan.mirrored
    assert not plan.create


def test_what_is_allowed_although_it_looks_alike() -> None:
    topic = SourceTopic("t", "id-1", 1, {}, ("other",))
    assert planned([topic]).mirrored, "a mirror of a mirror is no circle"
    existing = {"t": TargetTopic(1, "there-1", {}, has_records=True)}
    assert planned([topic], existing, into_existing=True).mirrored
    assert planned([topic], there=HERE, prefix="copy.").mirrored
    old = SourceTopic("t", None, 1)
    assert planned([old], existing, {"t": OURS}).mirrored, "brokers without topic ids"


def test_a_topic_that_was_deleted_at_the_target_is_mirrored_anew() -> None:
    new = SourceTopic("t", "id-2", 1)
    assert planned([new], {}, {"t": OURS}).create
    assert planned([new], {"t": TargetTopic(1, "there-2")}, {"t": OURS}).mirrored


def test_deleted_topics_are_reported_and_nothing_else() -> None:
    gone = Origin("id-gone", "there-2", (HERE,))
    others = Origin("id-2", "there-3", ("other",))
    topic = SourceTopic("t", "id-1", 1)
    plan = planned([topic], {}, {"gone": gone, "t": OURS, "others": others})
    assert plan.deleted == ["gone"]
    old = Origin(None, None, (HERE,))
    assert planned([topic], {}, {"gone": old}).deleted == ["gone"]


def test_a_topic_that_is_not_meant_any_more_is_not_deleted() -> None:
    topic = SourceTopic("t", "id-1", 1)
    other = Origin("id-2", "there-2", (HERE,))
    present: dict[str, str | None] = {"t": "id-1", "u": "id-2"}
    assert not planned([topic], {}, {"u": other}, present=present).deleted
    assert not planned([topic], {}, {"old-prefix.u": other}, present=present).deleted


def test_origins_are_read_as_they_were_written() -> None:
    for origin in (OURS, Origin(None, None, (HERE, THERE))):
        assert read_origin(written(Position(7, origin))) == origin
        assert read_origin(written(Position(7, origin)) + "\0") == origin
        assert read_origin(written(Position(7, origin)) + "\x11{\u00e9") == origin
    for other in ("", "{}", "[]", "x", '{"clusters":1,"topic_id":null}', "[" * 100_000):
        assert read_origin(other) is None


def test_an_origin_with_bytes_of_the_heap_behind_it_is_read() -> None:
    """As confluent-kafka gives what another client committed."""

    class Commit:
        def __init__(self, content: bytes) -> None:
            self.content = content

        @property
        def metadata(self) -> str | None:
            return self.content.decode() or None

    assert read_origin(metadata_of(Commit(written(Position(7, OURS)).encode() + b"\xd1{"))) == OURS
    assert metadata_of(Commit(b"")) == ""
