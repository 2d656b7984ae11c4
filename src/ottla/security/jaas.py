"""The value of sasl.jaas.config (KIP-85): a login module and its options.

    org.apache.kafka.common.security.plain.PlainLoginModule required
        username="broker" password="secret" user_alice="hers";

As Kafka's JaasConfig: one module, a flag, options, and a semicolon.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

USER_PREFIX: Final = "user_"
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(
    r"""\s*(?: (?P<quoted>"(?:[^"\\]|\\.)*") | (?P<sign>[=;]) | (?P<word>[^\s"=;]+) )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


class JaasError(ValueError):
    """The text is not a login module with its options. Its message has no value of an option."""


class LoginModule(NamedTuple):
    """A class of Java, whose name says which mechanism it is for."""

    name: str
    options: dict[str, str]

    @property
    def passwords(self) -> dict[str, str]:
        """By user: the options `user_<name>`."""
        return {
            name.removeprefix(USER_PREFIX): password
            for name, password in self.options.items()
            if name.startswith(USER_PREFIX)
        }


def parse_jaas(text: str) -> LoginModule:
    """Raises JaasError."""
    tokens = list(_tokens(text))
    if len(tokens) < 3 or tokens[-1] != ";":
        raise JaasError("Expected a login module, `required`, its options, and a semicolon")
    name, flag, *rest = tokens[:-1]
    if flag.lower() not in _FLAGS:
        raise JaasError(f"Expected one of {', '.join(_FLAGS)} after the login module")
    if len(rest) % 3 or any(sign != "=" for sign in rest[1::3]):
        raise JaasError('Expected options as name="value"')
    pairs = zip(rest[::3], rest[2::3], strict=True)
    return LoginModule(name, {key: _unquoted(value) for key, value in pairs})


def _tokens(text: str) -> Iterator[str]:
    position = 0
    end = len(text.rstrip())
    while position < end:
        found = _TOKEN.match(text, position)
        if found is None:
            raise JaasError("A quotation mark is missing")
        position = found.end()
        yield found["quoted"] or found["sign"] or found["word"]


def _unquoted(token: str) -> str:
    return _ESCAPE.sub(r"\1", token[1:-1]) if token.startswith('"') else token
