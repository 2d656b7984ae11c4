"""A token that nobody signed, for development (KIP-255): {"alg":"none"}.CLAIMS. and no signature.

Every client can be anybody. As Kafka's OAuthBearerUnsecuredValidatorCallbackHandler
and OAuthBearerUnsecuredJws, with the options of the listener's sasl.jaas.config.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from binascii import Error
from collections.abc import Callable, Mapping
from typing import Final

from ottla.security.sasl.mechanism import Identity
from ottla.security.sasl.oauthbearer import TokenError
from ottla.security.sasl.token_claims import ClaimRules, identity_in, read_object

PREFIX: Final = "unsecuredValidator"
PRINCIPAL_CLAIM: Final = f"{PREFIX}PrincipalClaimName"
SCOPE_CLAIM: Final = f"{PREFIX}ScopeClaimName"
REQUIRED_SCOPE: Final = f"{PREFIX}RequiredScope"
SKEW: Final = f"{PREFIX}AllowableClockSkewMs"


def unsecured_rules(options: Mapping[str, str]) -> ClaimRules:
    """By the options of the login module. Raises ValueError."""
    skew = options.get(SKEW, "0")
    if not skew.isdecimal() or len(skew) > 9:
        raise ValueError(f"{SKEW} must be a number of milliseconds")
    return ClaimRules(
        skew_ms=int(skew),
        subject_claim=options.get(PRINCIPAL_CLAIM) or "sub",
        scope_claim=options.get(SCOPE_CLAIM) or "scope",
        required_scopes=tuple(options.get(REQUIRED_SCOPE, "").split()),
        needs_issue_time=False,
    )


class UnsecuredTokens:
    """Believes every token."""

    def __init__(self, rules: ClaimRules, now_ms: Callable[[], int]) -> None:
        self._rules = rules
        self._now_ms = now_ms

    def identity_of(self, token: str) -> Identity:
        """Raises TokenError."""
        parts = token.split(".")
        if len(parts) != 3:
            raise TokenError("it has not three parts with dots between them")
        header = read_object(_decoded(parts[0]), "its header")
        if header.get("alg") != "none" or parts[2]:
            raise TokenError("it is signed, and this listener takes unsecured tokens only")
        return identity_in(read_object(_decoded(parts[1]), "its text"), self._rules, self._now_ms())


def _decoded(text: str) -> bytes:
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (Error, ValueError):
        raise TokenError("it is not base64url") from None
