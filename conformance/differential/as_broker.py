"""Requests that a broker of Ottla answers only to brokers of its cluster: the connection proves
first that it is one (`ottla.network.broker_identity`). Apache Kafka without an authorizer believes
everybody.
"""

from __future__ import annotations

import base64
import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from ottla.client.wire import Wire
from ottla.controller.layout import SECRET, read_secret
from ottla.coordination.store_copy import FILE_NAME
from ottla.protocol.versions import BROKER_PROOF
from ottla.security.broker_proof import NONCE_BYTES, Meeting, Role, proof

BROKER = 1
"""The one under test."""
OTHER_BROKER = 4711
"""As which the connection shows itself."""
WITHIN_S = 30.0


def secret_in(folder: Path) -> bytes:
    """The secret of a running broker's cluster, from the tree in its data folder."""
    uri = f"{(folder / FILE_NAME).absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as tree:
        (data,) = tree.execute("SELECT data FROM node WHERE path = ?", (SECRET,)).fetchone()
    return read_secret(data)


def introduce(wire: Wire, secret: bytes) -> None:
    """Makes this connection to the broker under test one of another broker."""
    nonce = os.urandom(NONCE_BYTES)
    answer = _ask(wire, {"from": OTHER_BROKER, "to": BROKER, "nonce": _text(nonce)})
    meeting = Meeting(OTHER_BROKER, BROKER, nonce, base64.b64decode(answer["nonce"]))
    answer = _ask(wire, {"proof": _text(proof(secret, Role.CONNECTED, meeting))})
    assert not answer, answer


def _ask(wire: Wire, document: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(
        wire.ask_bytes(BROKER_PROOF, json.dumps(document).encode(), WITHIN_S)
    )
    assert "error" not in answer, answer
    return answer


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
