"""Runs every script against both brokers and compares the answers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import Final

from conformance.differential.group_administration import GROUP_ADMINISTRATION
from conformance.differential.group_scripts import GROUP_SCRIPTS
from conformance.differential.group_walks import GROUP_WALKS
from conformance.differential.known import KNOWN, Known
from conformance.differential.normal import differences
from conformance.differential.scripts import SCRIPTS, Script
from conformance.differential.session import Answer, Introduce, NotInTimeError, Session
from conformance.differential.share_member_walks import SHARE_MEMBER_WALKS
from conformance.differential.share_scripts import SHARE_SCRIPTS
from conformance.differential.share_walks import SHARE_WALKS
from conformance.differential.streams_scripts import STREAMS_SCRIPTS
from conformance.differential.streams_walks import STREAMS_WALKS
from conformance.differential.walks import walk
from conformance.outcome import Outcome, State
from ottla.client.errors import NoAnswerError

SUITE: Final = "D"
SEEDS: Final = (*range(10), 1011, 1032, 1036, 2001)
"""The later ones have found a difference once: a late EndTxn after one of an older version."""
MAX_SHOWN: Final = 6


def scripts() -> dict[str, Script]:
    """By name: the scripts, the walks of some seeds, those of 200 seeds of groups, of 50 of
    share groups and 100 of their members, and of 200 of streams groups.
    """
    walks = {f"walk_{seed}": partial(walk, seed=seed) for seed in SEEDS}
    return (
        {
            each.__name__: each
            for each in (
                *SCRIPTS,
                *GROUP_SCRIPTS,
                *GROUP_ADMINISTRATION,
                *SHARE_SCRIPTS,
                *STREAMS_SCRIPTS,
            )
        }
        | walks
        | GROUP_WALKS
        | SHARE_WALKS
        | SHARE_MEMBER_WALKS
        | STREAMS_WALKS
    )


def run(
    ottla: str, kafka: str, names: Sequence[str], introduce: Introduce | None = None
) -> Iterator[Outcome]:
    """One outcome for each script; `ottla` and `kafka` are addresses. `introduce` makes a
    connection to Ottla that of a broker.
    """
    seen: set[Known] = set()
    wanted = scripts()
    for name in names or wanted:
        began = time.monotonic()
        try:
            found = _compare(name, wanted[name], (ottla, introduce), kafka, seen)
        except (NotInTimeError, NoAnswerError) as error:
            found = [f"no answer in time: {error}"]
        state: State = "failed" if found else "passed"
        shown = "; ".join(found[:MAX_SHOWN])
        more = f"; and {len(found) - MAX_SHOWN} more" if len(found) > MAX_SHOWN else ""
        yield Outcome(SUITE, name, state, time.monotonic() - began, shown + more)
    for entry in KNOWN if not names else ():
        if entry not in seen:
            name = f"{entry.label}{entry.field}"
            yield Outcome(SUITE, name, "failed", reason="a known difference is gone")


def _compare(
    name: str,
    script: Script,
    ottla: tuple[str, Introduce | None],
    kafka: str,
    seen: set[Known],
) -> list[str]:
    mine, theirs = _answers(name, script, *ottla), _answers(name, script, kafka)
    found = []
    for one, other in zip_longest(mine, theirs, fillvalue=Answer("nothing", None)):
        if one.label != other.label:
            # What a walk asks depends on the answers before.
            found.append(f"the brokers were not asked the same: {one.label}, {other.label}")
            break
        for difference in differences(one.content, other.content):
            known = next(
                (each for each in KNOWN if each.explains(name, one.label, difference)), None
            )
            if known is None:
                found.append(f"{one.label}: {difference}")
            else:
                seen.add(known)
    return found


def _answers(
    name: str, script: Script, address: str, introduce: Introduce | None = None
) -> list[Answer]:
    session = Session(address, name, introduce)
    try:
        session.find_coordinators()
        script(session)
    finally:
        session.close()
    return session.answers
