"""The patterns of a mirror: RE2's, matched against whole names."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.messaging.patterns import compiled
from ottla.mirroring.spec import MirrorSpec
from ottla.mirroring.topic_plan import Matches


class Patterns:
    """Which names are meant."""

    def __init__(self, spec: MirrorSpec) -> None:
        """Raises PatternError."""
        self.topic = any_of("TOPIC", spec.topics)
        self.excluded = any_of("--exclude", spec.exclude)
        group, other = (
            any_of("--groups", spec.groups),
            any_of("--exclude-groups", spec.exclude_groups),
        )
        self.group: Matches = lambda name: group(name) and not other(name)


def any_of(option: str, patterns: Sequence[str]) -> Matches:
    """Whether one of the patterns matches the whole name. Raises PatternError."""
    found = [compiled(option, each, "For example: 'orders-.*'") for each in patterns]
    return lambda name: any(each.fullmatch(name) is not None for each in found)
