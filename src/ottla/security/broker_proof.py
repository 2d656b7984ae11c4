"""How two brokers of a cluster prove to each other which brokers they are: pure.

Both know the cluster's secret, which only the coordination tree holds. Each end sends a nonce, and
answers the other's with HMAC-SHA256(secret, context, role, broker that connected, broker it wants,
both nonces). So a proof counts for one connection, one direction and one pair of brokers, and who
only listens learns nothing that helps. `docs/decisions/between-brokers.md` says why.
"""

from __future__ import annotations

import hashlib
import hmac
from enum import Enum
from typing import Final, NamedTuple

SECRET_BYTES: Final = 32
NONCE_BYTES: Final = 16
_CONTEXT: Final = b"ottla: brokers of one cluster, 1"


class Role(Enum):
    """Who proves."""

    CONNECTED = b"connected"
    ACCEPTED = b"accepted"


class Meeting(NamedTuple):
    """One connection between two brokers."""

    connected_id: int
    accepted_id: int
    connected_nonce: bytes
    accepted_nonce: bytes


def proof(secret: bytes, role: Role, meeting: Meeting) -> bytes:
    """What the broker in this role sends."""
    assert len(secret) == SECRET_BYTES
    fields = (
        _CONTEXT,
        role.value,
        str(meeting.connected_id).encode(),
        str(meeting.accepted_id).encode(),
        meeting.connected_nonce,
        meeting.accepted_nonce,
    )
    # Each with its length, so that no two meetings have the same text.
    text = b"".join(len(field).to_bytes(4, "big") + field for field in fields)
    return hmac.digest(secret, text, hashlib.sha256)


def is_proven(secret: bytes, role: Role, meeting: Meeting, sent: bytes) -> bool:
    """Whether this is that broker's proof."""
    return hmac.compare_digest(proof(secret, role, meeting), sent)
