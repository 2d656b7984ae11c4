"""Why a group has no coordinator: librdkafka keeps asking and does not say."""

from __future__ import annotations

from ottla.cli.client import Connection


def why_no_coordinator(connection: Connection, group: str) -> str | None:
    """The broker's reason, as a sentence. None if the group has a coordinator, or no broker can be
    asked.
    """
    # Imported late: only a command that waits needs them.
    from ottla.client.admin import groups
    from ottla.client.errors import ClientError

    try:
        reason = groups.why_no_coordinator(connection.client, group)
    except ClientError:
        return None
    return None if reason is None else f"{reason}."
