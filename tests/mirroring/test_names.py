"""Names that a mirror may have, and those that it uses."""

from __future__ import annotations

from ottla.mirroring.names import group_of, is_name, is_of_a_mirror, map_topic_of


def test_what_belongs_to_a_mirror() -> None:
    assert is_of_a_mirror(group_of("a"))
    assert is_of_a_mirror(map_topic_of("a"))
    assert is_of_a_mirror("mm2-offset-syncs.b.internal")
    assert is_of_a_mirror("a.checkpoints.internal")
    assert is_of_a_mirror("a.heartbeats")
    assert not is_of_a_mirror("orders")


def test_names_of_mirrors_are_those_of_topics() -> None:
    assert is_name("dc1.to_dc-2")
    for other in ("", "a b", "ü", "x" * 101):
        assert not is_name(other)
