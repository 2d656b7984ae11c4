"""The settings by which Spark makes values, when a checkpoint continues."""

from dataclasses import replace

from ottla.pipelines.checkpoint.identity import Identity
from ottla.pipelines.checkpoint.value_settings import wrong_settings

ANSI = "spark.sql.ansi.enabled"
NULLS = "spark.sql.jsonGenerator.ignoreNullFields"
UNKNOWN = Identity("c", {"flights": "id"}, "table", "file:/lake", "exactly-once")
KNOWN = replace(UNKNOWN, settings={ANSI: "true", NULLS: "true"})


def test_a_checkpoint_does_not_continue_by_settings_that_make_other_values() -> None:
    assert wrong_settings(KNOWN, "./cp", {ANSI: "false", NULLS: "true"}) == (
        f"The checkpoint ./cp has written rows with {ANSI}=true, and this session has false, by "
        "which Spark makes other values of the same records. Start it with "
        f"conf={{'{ANSI}': 'true'}}, or use a new checkpoint"
    )
    both = wrong_settings(KNOWN, "./cp", {ANSI: "false", NULLS: "false"})
    assert both is not None
    assert f"{ANSI}=true, {NULLS}=true, and this session has false, false" in both


def test_what_is_the_same_or_not_known_is_not_refused() -> None:
    assert wrong_settings(KNOWN, "./cp", {ANSI: "TRUE", NULLS: "true"}) is None
    assert wrong_settings(KNOWN, "./cp", {ANSI: "true"}) is None
    for identity in (None, UNKNOWN):
        assert wrong_settings(identity, "./cp", {ANSI: "false"}) is None
