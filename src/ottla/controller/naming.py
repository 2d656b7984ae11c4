"""Which names a topic may have (org.apache.kafka.common.internals.Topic)."""

from __future__ import annotations

import re
from typing import Final

from ottla.controller.image import ClusterImage
from ottla.protocol.errors import ApiError, ErrorCode

NAME_LENGTH_MAX: Final = 249

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+\Z")


def is_topic_name(name: str) -> bool:
    """Whether a topic may have this name."""
    return _reason(name) is None


def check_topic_name(name: str) -> None:
    """Raise INVALID_TOPIC_EXCEPTION, with Kafka's message, for an invalid name."""
    reason = _reason(name)
    if reason is not None:
        raise ApiError(ErrorCode.invalid_topic_exception, f"Topic name is invalid: {reason}")


def check_new_topic_name(name: str, image: ClusterImage) -> None:
    """The same for a new topic. Also raises TOPIC_ALREADY_EXISTS, and INVALID_TOPIC_EXCEPTION for a
    collision: names that differ only in "." and "_" are the same in metrics."""
    check_topic_name(name)
    if name in image.topics:
        raise ApiError(ErrorCode.topic_already_exists, f"Topic '{name}' already exists.")
    other = image.colliding(name) if "." in name or "_" in name else None
    if other is not None:
        raise ApiError(
            ErrorCode.invalid_topic_exception,
            f"Topic '{name}' collides with existing topic: {other}",
        )


def _reason(name: str) -> str | None:
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > NAME_LENGTH_MAX:
        return f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    if not _LEGAL.match(name):
        return (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    return None
