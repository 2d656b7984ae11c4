"""A token that its issuer has signed (RFC 7515, RFC 7519), and the issuer's public keys (RFC 7517).

Only algorithms with a public key are accepted: with `none` nothing is signed, and with HS* all who
can check a token can make one. The work is joserfc's, the extra `oauth`.
"""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol

from ottla.security.sasl.mechanism import Identity, NotYetError
from ottla.security.sasl.oauthbearer import MAX_TOKEN_CHARACTERS, TokenError
from ottla.security.sasl.token_claims import ClaimRules, identity_in, read_object

if TYPE_CHECKING:
    from joserfc.jwk import ECKey, OKPKey, RSAKey
    from joserfc.jws import CompactSignature, JWSRegistry

    SigningKey = RSAKey | ECKey | OKPKey

INSTALL_OAUTH: Final = "pip install 'ottla[oauth]'"
ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"),
    *("EdDSA", "Ed25519", "Ed448"),
)
MAX_HEADER_CHARACTERS: Final = 16_384
"""It may have the signer's certificates."""
MAX_SIGNATURE_CHARACTERS: Final = 2_048
MAX_KEYS: Final = 200
MIN_RSA_BITS: Final = 2_048
MAX_RSA_BITS: Final = 8_192
MAX_TRIED_KEYS: Final = 8
"""For a token that does not say which key it is signed with."""


class KeysError(Exception):
    """The issuer's keys cannot be had; one line."""


class SigningKeys:
    """An issuer's public keys."""

    def __init__(self, keys: Sequence[SigningKey]) -> None:
        self._keys = tuple(keys)

    def __len__(self) -> int:
        return len(self._keys)

    def those_for(self, key_id: str | None, algorithm: str) -> Sequence[SigningKey]:
        """The keys that a token may be signed with."""
        from joserfc.errors import JoseError

        model = _registry().get_alg(algorithm)
        found: list[SigningKey] = []
        for key in self._keys:
            if key_id is not None and key.kid != key_id:
                continue
            try:
                model.check_key(key)
            except JoseError:
                continue
            found.append(key)
        return found[:MAX_TRIED_KEYS]


class KeySource(Protocol):
    """Where the issuer's keys come from."""

    @property
    def keys(self) -> SigningKeys | None:
        """None: they have not been read yet."""

    def again(self) -> Awaitable[None] | None:
        """Reads them again, as some token is signed with a key that is not among them; done when
        they have been. None: they were read just now.
        """


class SignedTokens:
    """Accepts an issuer's tokens."""

    def __init__(self, source: KeySource, rules: ClaimRules, now_ms: Callable[[], int]) -> None:
        self._source = source
        self._rules = rules
        self._now_ms = now_ms

    def identity_of(self, token: str) -> Identity:
        """Raises TokenError, NotYetError."""
        from joserfc.errors import JoseError
        from joserfc.jws import extract_compact, validate_compact

        registry = _registry()
        try:
            signed = extract_compact(token.encode(), registry=registry)
        except (JoseError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise TokenError(f"it is not a signed token ({type(error).__name__})") from None
        algorithm, key_id = _named_by(signed)
        try:
            is_right = any(
                validate_compact(signed, key, registry=registry)
                for key in self._candidates(key_id, algorithm)
            )
        except (JoseError, ValueError) as error:
            raise TokenError(f"its signature cannot be checked: {error}") from None
        if not is_right:
            raise TokenError("its signature is wrong")
        return identity_in(read_object(signed.payload, "its text"), self._rules, self._now_ms())

    def _candidates(self, key_id: str | None, algorithm: str) -> Sequence[SigningKey]:
        """Never empty. Raises TokenError, NotYetError."""
        keys = self._source.keys
        found = () if keys is None else keys.those_for(key_id, algorithm)
        if found:
            return found
        fetched = self._source.again()
        if fetched is not None:
            raise NotYetError(fetched)
        if keys is None:
            raise TokenError("the issuer's keys have not been read yet")
        which = "" if key_id is None else f" {key_id[:100]!r}"
        raise TokenError(f"the issuer has no key{which} for {algorithm}")


def _named_by(signed: CompactSignature) -> tuple[str, str | None]:
    """The algorithm, and which key. Raises TokenError."""
    header = signed.headers()
    if not isinstance(header, dict):
        raise TokenError("its header is not an object of JSON")
    algorithm, key_id = header.get("alg"), header.get("kid")
    if algorithm not in ALGORITHMS:
        raise TokenError(f"its algorithm is {str(algorithm)[:20]!r}, not one with a public key")
    if "crit" in header or "b64" in header:
        raise TokenError("its header demands what is not supported")
    if key_id is not None and not isinstance(key_id, str):
        raise TokenError("its key id is not a text")
    assert isinstance(algorithm, str)
    return algorithm, key_id


def read_keys(text: bytes) -> SigningKeys:
    """The public keys in a JWK Set; others in it are left out. Raises KeysError."""
    try:
        entries = read_object(text, "it").get("keys")
    except TokenError as error:
        raise KeysError(str(error)) from None
    if not isinstance(entries, list) or len(entries) > MAX_KEYS:
        raise KeysError(f"it is no JWK Set of at most {MAX_KEYS} keys")
    found = [key for key in map(_key, entries) if key is not None]
    if not found:
        raise KeysError("it has no public key of RSA, EC or OKP to check signatures with")
    return SigningKeys(found)


def _key(entry: object) -> SigningKey | None:
    """None: signatures cannot be checked with it."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from joserfc.errors import JoseError
    from joserfc.jwk import ECKey, OKPKey, RSAKey

    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
        return None
    key: SigningKey
    try:
        match entry.get("kty"):
            case "RSA":
                key = RSAKey.import_key(entry)
                if not MIN_RSA_BITS <= key.public_key.key_size <= MAX_RSA_BITS:
                    return None
            case "EC":
                key = ECKey.import_key(entry)
            case "OKP" if entry.get("crv") in ("Ed25519", "Ed448"):
                key = OKPKey.import_key(entry)
            case _:
                return None
        key.get_op_key("verify")
    except (JoseError, UnsupportedAlgorithm, ValueError, TypeError):
        return None
    return key


def load_joserfc() -> None:
    """Raises ImportError, which says how to install it."""
    try:
        import joserfc.jws  # noqa: F401
        from joserfc.errors import SecurityWarning
    except ImportError:
        raise ImportError(f"OAUTHBEARER needs joserfc for signed tokens: {INSTALL_OAUTH}") from None
    # It prints them for an issuer's choices: EdDSA, which RFC 9864 has split, and small keys, which
    # are left out here.
    warnings.simplefilter("ignore", SecurityWarning)


@cache
def _registry() -> JWSRegistry:
    from joserfc.jws import JWSRegistry

    # An issuer may put more into the header than RFC 7515 has: it is ignored.
    registry = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
    registry.max_header_length = MAX_HEADER_CHARACTERS
    registry.max_payload_length = MAX_TOKEN_CHARACTERS
    registry.max_signature_length = MAX_SIGNATURE_CHARACTERS
    return registry
