"""The client's side of SASL: PLAIN (RFC 4616) and SCRAM (RFC 5802, RFC 7677). Pure.

User names and passwords are not normalised (SASLprep), as neither Kafka nor librdkafka does it.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from binascii import Error
from typing import Final

PLAIN: Final = "PLAIN"
HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS: Final = (PLAIN, *HASHES)
MAX_ITERATIONS: Final = 1_000_000
"""Kafka's own limit is 16384; a hostile server would keep the client busy for hours."""
NO_CHANNEL_BINDING: Final = "n,,"


class SaslError(Exception):
    """The server's message is wrong, or it refused. The text is a sentence."""


def plain_message(username: str, password: str) -> bytes:
    """The only message of PLAIN."""
    return b"\0".join((b"", username.encode(), password.encode()))


class Scram:
    """One exchange: `first`, then `final` with the server's first message, then `check` with its
    last one."""

    def __init__(self, mechanism: str, username: str, password: str, nonce: str) -> None:
        """`nonce`: random, printable, without a comma."""
        self._hash = HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={name},r={nonce}"
        self._server_signature = b""

    def first(self) -> bytes:
        return f"{NO_CHANNEL_BINDING}{self._first_bare}".encode()

    def final(self, server_first: bytes) -> bytes:
        """Raises SaslError."""
        given = _attributes(server_first)
        nonce = given.get("r", "")
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise SaslError("The server's nonce does not continue ours.")
        try:
            salt = b64decode(given["s"], validate=True)
            iterations = int(given["i"])
        except (KeyError, ValueError, Error):
            raise SaslError("The server's first message has no salt or iterations.") from None
        if not 0 < iterations <= MAX_ITERATIONS:
            raise SaslError(f"The server asks for {iterations} iterations.")
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        without_proof = f"c={b64encode(NO_CHANNEL_BINDING.encode()).decode()},r={nonce}"
        signed = b",".join((self._first_bare.encode(), server_first, without_proof.encode()))
        client_key = self._mac(salted, b"Client Key")
        stored_key = hashlib.new(self._hash, client_key).digest()
        signature = self._mac(stored_key, signed)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        self._server_signature = self._mac(self._mac(salted, b"Server Key"), signed)
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def check(self, server_final: bytes) -> None:
        """The server knows the password too. Raises SaslError if not, or if it refused."""
        given = _attributes(server_final)
        if "e" in given:
            raise SaslError(f"The server refused: {given['e']}.")
        expected = b64encode(self._server_signature).decode()
        if not hmac.compare_digest(given.get("v", "").encode(), expected.encode()):
            raise SaslError("The server's signature is wrong.")

    def _mac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)


def _attributes(message: bytes) -> dict[str, str]:
    """`a=x,b=y` as a mapping; empty if it is nothing like that."""
    words = message.decode(errors="replace").split(",")
    return {word[0]: word[2:] for word in words if word[1:2] == "="}
