"""Why a group has no coordinator: librdkafka keeps asking and does not say."""

from __future__ import annotations

from typing import Final

from ottla.cli.failures import Failed

FIND_COORDINATOR: Final = 10
_VERSION: Final = 3
_GROUP: Final = 0
ANSWER_WITHIN_S: Final = 5.0


def why_no_coordinator(bootstrap: str, group: str) -> str | None:
    """The broker's reason, as a sentence. None if the group has a coordinator, or no broker
    responds on a plain connection.
    """
    # Imported late: only a command that waits needs them.
    from ottla.cli.cluster_client import ask
    from ottla.protocol.errors import ErrorCode
    from ottla.protocol.messages import messages_of

    build = messages_of(FIND_COORDINATOR, _VERSION, "request")
    try:
        response = ask(
            bootstrap,
            build.FindCoordinatorRequest(key=group, key_type=_GROUP),
            ANSWER_WITHIN_S,
        )
    except Failed:
        return None
    if response.error_code == ErrorCode.none:
        return None
    reason = response.error_message or response.error_code.name.replace("_", " ")
    return f"{reason.rstrip('.')}."
