"""Every request in every situation, to both brokers, and where their answers differ."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from components.apache_kafka import KafkaJars

from conformance.authorization import brokers
from conformance.authorization.asked import Asked, NotInTimeError
from conformance.authorization.known import KNOWN, Known
from conformance.authorization.situations import FOR_EVERYONE, SITUATIONS, Situation
from conformance.outcome import Outcome, State
from ottla.client.errors import NoAnswerError

SUITE: Final = "G"
EVERYONE: Final = ", for everyone"
MAX_SHOWN: Final = 6


def names() -> list[str]:
    """Of all situations."""
    return [each.name for each in SITUATIONS] + [f"{each.name}{EVERYONE}" for each in FOR_EVERYONE]


def run(jars: KafkaJars, wanted: Sequence[str]) -> Iterator[Outcome]:
    """One outcome for each situation, or for those wanted."""
    seen: set[Known] = set()
    for situations, for_everyone in ((SITUATIONS, False), (FOR_EVERYONE, True)):
        chosen = [
            each
            for each in situations
            if not wanted or f"{each.name}{EVERYONE * for_everyone}" in wanted
        ]
        if chosen:
            yield from _compared(jars, chosen, seen, for_everyone=for_everyone)
    for entry in KNOWN if not wanted else ():
        if entry not in seen:
            name = f"{entry.label}: {entry.difference}"
            yield Outcome(SUITE, name, "failed", reason="a known difference is gone")


def _compared(
    jars: KafkaJars, situations: Sequence[Situation], seen: set[Known], *, for_everyone: bool
) -> Iterator[Outcome]:
    with ExitStack() as ending:
        scratch = tempfile.TemporaryDirectory(prefix="ottla-", ignore_cleanup_errors=True)
        folder = Path(ending.enter_context(scratch))
        theirs = ending.enter_context(brokers.kafka(jars, folder, for_everyone=for_everyone))
        mine = ending.enter_context(brokers.ottla(folder, for_everyone=for_everyone))
        both = [Asked(address, for_everyone=for_everyone) for address in (mine, theirs)]
        for asked in both:
            ending.callback(asked.close)
        for number, situation in enumerate(situations):
            began = time.monotonic()
            try:
                ours, other = (asked.answers(number, situation) for asked in both)
                found = differences(situation.name, ours, other, seen)
            except (NotInTimeError, NoAnswerError) as error:
                found = [f"no answer in time: {error}"]
            state: State = "failed" if found else "passed"
            reason = "; ".join(found[:MAX_SHOWN])
            if len(found) > MAX_SHOWN:
                reason += f"; and {len(found) - MAX_SHOWN} more"
            name = f"{situation.name}{EVERYONE * for_everyone}"
            yield Outcome(SUITE, name, state, time.monotonic() - began, reason)


def differences(
    situation: str,
    ours: Mapping[str, Mapping[str, Any]],
    theirs: Mapping[str, Mapping[str, Any]],
    seen: set[Known],
) -> list[str]:
    """Where the answers differ without a known reason; those that are known go to `seen`."""
    found = []
    for label, mine in ours.items():
        other = theirs[label]
        for path in sorted({*mine, *other}):
            if mine.get(path) == other.get(path):
                continue
            difference = f"{path}: {_said(mine, path)}, {_said(other, path)}"
            known = next(
                (each for each in KNOWN if each.explains(situation, label, difference)), None
            )
            if known is None:
                found.append(f"{label}: {difference}")
            else:
                seen.add(known)
    return found


def _said(answer: Mapping[str, Any], path: str) -> str:
    return "+".join(answer[path]) if path in answer else "nothing"
