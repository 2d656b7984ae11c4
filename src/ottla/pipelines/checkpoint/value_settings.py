"""The settings by which a session makes other values of the same record, when a checkpoint goes on.

Of a number that is too large Spark makes null or fails, by `spark.sql.ansi.enabled`, and of a null
in an object nothing or `null`. A cluster or a new version of Spark may have other settings than the
session that began a table: its rows would then have two meanings, and a batch that was cut off
would be written in part by each. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.pipelines.checkpoint.identity import Identity


def wrong_settings(
    identity: Identity | None, checkpoint: str, settings: Mapping[str, str]
) -> str | None:
    """Return why a checkpoint does not continue by a session's settings, None where it does.

    What either of them does not know, as another version of Spark, is not compared.
    """
    before = (identity.settings if identity else None) or {}
    changed = {
        name: value
        for name, value in before.items()
        if name in settings and value.casefold() != settings[name].casefold()
    }
    if not changed:
        return None
    was = ", ".join(f"{name}={value}" for name, value in changed.items())
    now = ", ".join(settings[name] for name in changed)
    given = ", ".join(f"{name!r}: {value!r}" for name, value in changed.items())
    return (
        f"The checkpoint {checkpoint} has written rows with {was}, and this session has {now}, by "
        "which Spark makes other values of the same records. Start it with "
        f"conf={{{given}}}, or use a new checkpoint"
    )
