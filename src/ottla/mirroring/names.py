"""The names that a mirror uses at the target: a group, a topic, transactional ids."""

from __future__ import annotations

import re
from typing import Final

BEGIN: Final = "ottla-mirror-"
NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")
MM2_INTERNAL: Final = re.compile(
    r"mm2-(?:configs|offsets|status|offset-syncs)\..*|.*\.checkpoints\.internal|.*heartbeats"
)
"""Topics that MirrorMaker 2 keeps for itself (KIP-382)."""


def group_of(mirror: str) -> str:
    """The group whose offsets at the target are the positions in the source."""
    return f"{BEGIN}{mirror}"


def map_topic_of(mirror: str) -> str:
    """The topic at the target that says which source offset has which target offset."""
    return f"{BEGIN}{mirror}"


def transactional_id_of(mirror: str, instance: str) -> str:
    """One per instance: a new process with the same aborts what the old one left open."""
    return f"{BEGIN}{mirror}-{instance}"


def is_of_a_mirror(name: str) -> bool:
    """Whether a topic or group belongs to a mirror, ours or MirrorMaker 2."""
    return name.startswith(BEGIN) or MM2_INTERNAL.fullmatch(name) is not None


def is_name(text: str) -> bool:
    """Whether a mirror or an instance may have this name."""
    return NAME.fullmatch(text) is not None
