"""The zone of times that name none, when a checkpoint continues."""

from ottla.pipelines.checkpoint.identity import Identity
from ottla.pipelines.checkpoint.time_zone import wrong_zone, zone_not_known

UNKNOWN = Identity("c", {"flights": "id"}, "table", "file:/lake", "exactly-once")
BERLIN = Identity("c", {}, "table", "file:/lake", "exactly-once", time_zone="Europe/Berlin")
UTC = Identity("c", {}, "table", "file:/lake", "exactly-once", time_zone="UTC")


def test_a_checkpoint_continues_in_its_own_zone() -> None:
    assert wrong_zone(BERLIN, "./cp", "Europe/Berlin") is None
    assert wrong_zone(BERLIN, "./cp", "UTC") == (
        "The checkpoint ./cp has read times without a zone as Europe/Berlin, and this session "
        "reads them as UTC. Start it with conf={'spark.sql.session.timeZone': 'Europe/Berlin'}, or "
        "use a new checkpoint and a new table"
    )
    for zone in ("Etc/UTC", "Z", "GMT", "+00:00"):
        assert wrong_zone(UTC, "./cp", zone) is None


def test_a_checkpoint_that_did_not_keep_its_zone_takes_the_next() -> None:
    for identity in (None, UNKNOWN):
        assert wrong_zone(identity, "./cp", "UTC") is None
    assert zone_not_known(UNKNOWN, "./cp", "UTC") == (
        "The checkpoint ./cp does not say in which time zone it has read times without one, which "
        "was the machine's by default. From now on it is UTC"
    )
    assert zone_not_known(None, "./cp", "UTC") is None
    assert zone_not_known(UTC, "./cp", "UTC") is None
