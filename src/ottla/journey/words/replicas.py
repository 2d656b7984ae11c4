"""The replicas in the journey's tree: who copied the message and when, who was in sync, and which
elections followed.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.journey.words.clock import Clock
from ottla.journey.words.line import BAD, GOOD, NAME, STEP, WAITING, WEAK, Branch, Document


def grow_replicated(top: Branch, replicated: Document, clock: Clock) -> None:
    """The step `Replicated`: one line for a single replica, one line per replica for several."""
    count = replicated["replicas"]
    by = "1 replica" if count == 1 else f"{count} replicas"
    if replicated["committed"]:
        when = replicated["when"]
        passed = f"  the high watermark passed it ({by})"
        branch = top.add(
            ("Replicated  ", STEP), clock.moment(when), (clock.after(when), WEAK), passed
        )
    else:
        branch = top.add(
            ("Replicated  ", STEP), ("not yet", WAITING), ": the high watermark has not reached it"
        )
    elections = replicated.get("elections", ())
    if count > 1:
        for copy in replicated.get("copies", ()):
            _copy(branch, copy, clock)
        _in_sync(branch, replicated)
    for election in elections:
        _election(branch, election, clock, answered_by=replicated.get("leader"))


def _copy(branch: Branch, copy: Document, clock: Clock) -> None:
    name, when = (f"broker {copy['broker']}", NAME), copy["when"]
    if copy["state"] == "leader":
        branch.add(name, "  leader, appended it  ", clock.moment(when), (clock.after(when), WEAK))
    elif copy["state"] == "copied":
        copied = ("  copied it  ", GOOD)
        branch.add(name, copied, clock.moment(when), (clock.after(when), WEAK))
    elif copy["state"] == "stored":
        branch.add(name, ("  has it  ", GOOD), clock.moment(when), (clock.after(when), WEAK))
    elif copy["state"] == "not_yet":
        come = f": it has fetched up to offset {copy['fetched_to']}"
        branch.add(name, ("  not yet", WAITING), come)
    else:
        branch.add(name, "  not known: none of its fetches is recorded here")


def _in_sync(branch: Branch, replicated: Document) -> None:
    then = replicated.get("in_sync")
    possible = [then] if then is not None else replicated.get("in_sync_possible", [])
    if not possible:
        return
    branch.add(("in sync then  ", WEAK), ", or ".join(map(_format_in_sync, possible)))
    now = sorted(replicated["in_sync_now"])
    if any(now != sorted(each["brokers"]) for each in possible):
        branch.add(("in sync now   ", WEAK), format_brokers(replicated["in_sync_now"]))


def _format_in_sync(then: Document) -> str:
    led = "without a leader" if then["leader"] is None else f"led by {then['leader']}"
    return f"{format_brokers(then['brokers'])}, {led} in epoch {then['leader_epoch']}"


def format_brokers(brokers: Sequence[int]) -> str:
    """`brokers 1 2 3`, `broker 2`, `no broker`."""
    if not brokers:
        return "no broker"
    noun = "broker" if len(brokers) == 1 else "brokers"
    return f"{noun} {' '.join(map(str, brokers))}"


def _election(branch: Branch, election: Document, clock: Clock, *, answered_by: int | None) -> None:
    at, leader, before = (
        clock.at(election["at_ms"]),
        election["leader"],
        election["previous_leader"],
    )
    over = f" after broker {before}" if before is not None and before != leader else ""
    epoch = f"epoch {election['leader_epoch']}"
    start = election.get("start_offset")
    where = "" if start is None else f", from offset {start}"
    # Other brokers lead before this one hears of it.
    found = "by " if election["seen_at_start"] or leader != answered_by else ""
    said = f"  {found}{at}  broker {leader} leads{over}, {epoch}{where}"
    parts: list[tuple[str, str] | str] = [("election", STEP), said]
    if election["unclean"]:
        parts.append(("  unclean: it was not in sync", BAD))
    grown = branch.add(*parts)
    for cut in election["dropped"]:
        _dropped(grown, cut, clock)


def _dropped(branch: Branch, cut: Document, clock: Clock) -> None:
    first, last = cut["from_offset"], cut["to_offset"]
    reach = f"offset {first}" if first == last else f"offsets {first} to {last}"
    said = f"  {reach} of broker {cut['broker']}, at {clock.at(cut['at_ms'])}"
    parts: list[tuple[str, str] | str] = [("dropped", BAD), said]
    if cut["committed_to"] is not None:
        parts.append((f"  (committed up to {cut['committed_to']})", BAD))
    if cut.get("replaced_by_epoch") is not None:
        parts.append(f"  epoch {cut['replaced_by_epoch']} begins there")
    branch.add(*parts)
