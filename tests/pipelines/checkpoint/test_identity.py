"""What a checkpoint belongs to, as it is kept."""

from dataclasses import replace

import pytest

from ottla.pipelines.checkpoint.identity import IDENTITY_DOCUMENT as RECORD
from ottla.pipelines.checkpoint.identity import Identity, Replacing
from ottla.pipelines.errors import PipelineError

IDENTITY = Identity("c", {"flights": "id"}, "table", "file:/lake", "exactly-once")


def test_it_is_read_as_it_was_written() -> None:
    moving = Identity(
        "c", {"a": "1", "b": "2"}, "t", "l", "at-most-once", Replacing(2, {"a": {0: 5, 11: 7}})
    )
    keyed = replace(IDENTITY, keys=("id", "day"))
    zoned = replace(IDENTITY, time_zone="Europe/Berlin")
    by = replace(IDENTITY, settings={"spark.sql.ansi.enabled": "true"})
    for identity in (IDENTITY, moving, keyed, replace(IDENTITY, keys=()), zoned, by):
        assert RECORD.value(RECORD.text(identity), "cp/ottla.json") == identity


def test_what_cannot_be_read_says_what_to_do() -> None:
    later = RECORD.text(IDENTITY).replace('"version": 1', '"version": 2')
    for text, words in (
        ("", "is damaged. Restore it, or delete it"),
        ("[]", "is damaged"),
        ("{}", "is damaged"),
        (RECORD.text(IDENTITY)[:40], "is damaged"),
        (later, "another version of Ottla"),
    ):
        with pytest.raises(PipelineError, match=words) as caught:
            RECORD.value(text, "cp/ottla.json")
        assert str(caught.value).startswith("cp/ottla.json")
