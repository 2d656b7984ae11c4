"""Ottla's error codes are kio's, and those that only Apache Kafka 4.4 has."""

from kio.schema.errors import ErrorCode as OfKio

from ottla.protocol.errors import ErrorCode


def test_the_codes_of_kio_and_the_newest_three() -> None:
    ours = {each.name: each.value for each in ErrorCode}
    theirs = {each.name: each.value for each in OfKio}
    assert theirs.items() <= ours.items()
    assert {name: ours[name] for name in ours.keys() - theirs.keys()} == {
        "group_deletion_failed": 134,
        "streams_topology_description_update_failed": 135,
        "controller_id_not_registered": 136,
    }
