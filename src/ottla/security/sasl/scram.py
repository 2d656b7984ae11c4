"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677): client and server prove to each other that
they know the password, and neither sends it.

    client                                  server
    n,,n=alice,r=NONCE              -->
                                    <--     r=NONCE+OURS,s=SALT,i=4096
    c=biws,r=NONCE+OURS,p=PROOF     -->
                                    <--     v=SIGNATURE

As Kafka's ScramSaslServer; names and passwords are not normalised (SASLprep), as Kafka's are not,
which is why no library for it is used. For an unknown user the exchange goes on with a made-up salt
until the proof is refused, so that nobody learns which users exist; Kafka refuses at once.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.security.sasl.mechanism import Identity, RefusedError

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384
SALT_BYTES: Final = 24
"""Of a new password."""
MAX_MESSAGE_CHARACTERS: Final = 8192
_FIRST: Final = re.compile(
    r"n,(?:a=(?P<acts_as>[^,]*))?,(?P<bare>(?:m=[^,]*,)?n=(?P<name>[^,]+),r=(?P<nonce>[!-+\--~]+)"
    r"(?P<extensions>,.*)?)",
    re.DOTALL,
)
_FINAL: Final = re.compile(
    r"(?P<signed>c=(?P<binding>[^,]+),r=(?P<nonce>[^,]+)(?:,[A-Za-z]=[^,]*)*),p=(?P<proof>[^,]+)"
)


class ScramCredential(NamedTuple):
    """What a server keeps of a password; it cannot be used to log in."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """This takes milliseconds: it is meant to."""
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)


def credential_of(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """What to keep of a salted password."""
    kind = HASHES[mechanism]
    client_key = hmac.digest(salted, b"Client Key", kind)
    stored_key = hashlib.new(kind, client_key).digest()
    return ScramCredential(salt, stored_key, hmac.digest(salted, b"Server Key", kind), iterations)


class ScramExchange:
    """One authentication."""

    def __init__(
        self,
        mechanism: str,
        credential: Callable[[str], ScramCredential | None],
        nonce: str,
        secret: bytes,
    ) -> None:
        """`credential` has what is kept of each user. `nonce` is random, printable, without a
        comma; `secret` is any that this broker keeps for itself.
        """
        self.identity: Identity | None = None
        self._hash = HASHES[mechanism]
        self._credential_of = credential
        self._nonce = nonce
        self._binding = ""
        """What the client must repeat of its first message, in base64: no channel binding."""
        self._secret = secret
        self._begun: tuple[str, str, bool, ScramCredential] | None = None
        """The user; what both signed so far; whether the user exists, and its credential."""

    def answer(self, message: bytes) -> bytes:
        """Raises RefusedError."""
        text = message.decode(errors="replace")
        if len(text) > MAX_MESSAGE_CHARACTERS:
            raise RefusedError("a SCRAM message of this size")
        return (self._first(text) if self._begun is None else self._final(text)).encode()

    def _first(self, text: str) -> str:
        found = _FIRST.fullmatch(text)
        if found is None:
            raise RefusedError("the first SCRAM message is wrong")
        name = _unescaped(found["name"])
        if found["acts_as"] and _unescaped(found["acts_as"]) != name:
            raise RefusedError(f"user {name!r} wants to act as {found['acts_as']!r}")
        if (found["extensions"] or "").find(",tokenauth=true") >= 0:
            raise RefusedError("delegation tokens are not supported")
        credential = self._credential_of(name)
        exists = credential is not None and credential.iterations >= MIN_ITERATIONS
        if credential is None or not exists:
            credential = self._made_up(name)
        nonce = found["nonce"] + self._nonce
        salt = b64encode(credential.salt).decode()
        answer = f"r={nonce},s={salt},i={credential.iterations}"
        self._begun = name, f"{found['bare']},{answer}", exists, credential
        self._nonce = nonce
        head = text[: len(text) - len(found["bare"])]
        self._binding = b64encode(head.encode()).decode()
        return answer

    def _made_up(self, name: str) -> ScramCredential:
        """Always the same for a name, as that of a user would be."""
        salt = hmac.digest(self._secret, name.encode(), self._hash)[:20]
        return ScramCredential(salt, b"", b"", MIN_ITERATIONS)

    def _final(self, text: str) -> str:
        assert self._begun is not None
        name, signed, exists, credential = self._begun
        found = _FINAL.fullmatch(text)
        if found is None or found["binding"] != self._binding:
            raise RefusedError(f"the last SCRAM message is wrong (user {name!r})")
        if found["nonce"] != self._nonce:
            raise RefusedError(f"the nonce is not the one of this exchange (user {name!r})")
        try:
            proof = b64decode(found["proof"], validate=True)
        except (Error, ValueError):
            raise RefusedError(f"the last SCRAM message is wrong (user {name!r})") from None
        signed = f"{signed},{found['signed']}"
        if not exists or not self._proves(proof, signed, credential):
            raise RefusedError(f"wrong user name or password (user {name!r})")
        self.identity = Identity(name)
        signature = hmac.digest(credential.server_key, signed.encode(), self._hash)
        return f"v={b64encode(signature).decode()}"

    def _proves(self, proof: bytes, signed: str, credential: ScramCredential) -> bool:
        signature = hmac.digest(credential.stored_key, signed.encode(), self._hash)
        if len(proof) != len(signature):
            return False
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
        stored_key = hashlib.new(self._hash, client_key).digest()
        return hmac.compare_digest(stored_key, credential.stored_key)


def _unescaped(name: str) -> str:
    """Raises RefusedError."""
    text = name.replace("=2C", ",").replace("=3D", "\0")
    if "=" in text:
        raise RefusedError("a SCRAM name has an = that is not escaped")
    return text.replace("\0", "=")
