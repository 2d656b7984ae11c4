"""ssl.principal.mapping.rules: from the name in a certificate to the name of a principal (KIP-371).

Rules are separated by commas; the first that matches the whole name decides:

    RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, DEFAULT

A rule is a pattern, a replacement and perhaps L or U, for lower or upper case. DEFAULT leaves the
name as it is. As Kafka's SslPrincipalMapper; patterns are Python's, which differ from Java's only
in rare constructs.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_RULE: Final = (
    r"(?P<default>DEFAULT)"
    r"|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?)"
)
_SPLITTER: Final = re.compile(rf"\s*(?:{_RULE})\s*(?:,\s*|\Z)")
_REFERENCE: Final = re.compile(r"\\(.)|\$(\d+)", re.DOTALL)


class NoRuleError(Exception):
    """No rule matches the name."""


class _Rule(NamedTuple):
    pattern: re.Pattern[str] | None
    """None: the rule DEFAULT."""
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        matched = self.pattern.fullmatch(name)
        if matched is None:
            return None
        found = _REFERENCE.sub(lambda reference: _referenced(reference, matched), self.replacement)
        if self.case == "L":
            return found.lower()
        return found.upper() if self.case == "U" else found


def _referenced(reference: re.Match[str], matched: re.Match[str]) -> str:
    """What `$1` stands for. A number with more digits than there are groups is shortened; one that
    is still too large stands for itself.
    """
    if reference[1] is not None:
        return reference[1]
    digits, groups = reference[2], len(matched.groups())
    rest = ""
    while int(digits) > groups and len(digits) > 1:
        digits, rest = digits[:-1], digits[-1] + rest
    if int(digits) > groups:
        return reference[0]
    return (matched[int(digits)] or "") + rest


class PrincipalMapping:
    """The rules of one listener."""

    def __init__(self, rules: str) -> None:
        """Raises ValueError, with the rule that is invalid."""
        self._rules: list[_Rule] = []
        text = rules.strip()
        position = 0
        while position < len(text):
            found = _SPLITTER.match(text, position)
            if found is None:
                raise ValueError(f"Invalid rule: {text[position:]}")
            position = found.end()
            if found["default"]:
                self._rules.append(_Rule(None, "", ""))
                continue
            try:
                pattern = re.compile(found["pattern"])
            except re.error as error:
                raise ValueError(f"Invalid rule: {found['pattern']}: {error}") from None
            self._rules.append(_Rule(pattern, found["replacement"], found["case"]))

    def name_of(self, distinguished_name: str) -> str:
        """The principal's name. Raises NoRuleError."""
        for rule in self._rules:
            name = rule.apply(distinguished_name)
            if name is not None:
                return name
        raise NoRuleError(f"No rules apply to {distinguished_name}")
