"""Untruths to plant in the journey: random lives must find each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from tests.journey.model.life import AbortedLife, Life, live
from tests.journey.model.statements import UntrueError
from tests.journey.model.world import Broker, World

from ottla.journey import (
    explain,
    explain_groups,
    explain_replication,
    group_reads,
    offset_history,
    replica_history,
)
from ottla.journey.explain_replication import Replicas
from ottla.journey.offset_history import Removed, When, Written
from ottla.journey.replica_history import Copy
from ottla.journey.words import readers, tell
from ottla.journey.words.clock import Clock
from ottla.timelines.step import COPIED, By

Plant = Callable[[pytest.MonkeyPatch], None]


def first_seed(plant: Plant, patch: pytest.MonkeyPatch, count: int, folder: Path) -> int:
    """The first seed whose life finds the untruth, -1 if none of so many does."""
    plant(patch)
    start = RARE.get(plant, 0)
    for seed in range(start, start + count):
        try:
            live(seed, folder, OF.get(plant, Life))
        except UntrueError:
            return seed
    return -1


def only_the_groups_of_the_leader(patch: pytest.MonkeyPatch) -> None:
    """Other coordinators are not asked."""
    ask = World.facts

    def facts(self: World, broker: Broker, offset: int) -> Any:
        found = ask(self, broker, offset)
        own = {
            group: position
            for group, position in found.positions.items()
            if self.coordinator(group) is broker
        }
        return replace(found, positions=own)

    patch.setattr(World, "facts", facts)


def a_cut_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Who had the record that was truncated has read the one that replaced it."""
    patch.setattr(Written, "is_after", lambda self, step: False)
    patch.setattr(Written, "may_precede", lambda self, last: False)


def an_election_from_the_own_log_end(patch: pytest.MonkeyPatch) -> None:
    """An election is shown with the log end of the broker that answers."""
    patch.setattr(Replicas, "start_of", lambda self, leadership: leadership.end_offset)


def a_leader_before_that_was_not_the_last_one(patch: pytest.MonkeyPatch) -> None:
    """The leader before is the last one that this broker has heard of."""

    def previous(known: Any, leadership: Any) -> int | None:
        before = [one for one in known if one.leader_epoch < leadership.leader_epoch]
        return next((one.leader for one in reversed(before) if one.leader >= 0), None)

    patch.setattr(explain_replication, "previous_leader", previous)


def every_election_is_clean(patch: pytest.MonkeyPatch) -> None:
    """Where it is not known, too."""
    find = replica_history.elections

    def elections(known: Any, cuts: Any) -> Any:
        return [one._replace(unclean=False) for one in find(known, cuts)]

    patch.setattr(explain_replication, "elections", elections)


def replicated_before_appended(patch: pytest.MonkeyPatch) -> None:
    """The high watermark's step alone says when it passed."""
    find = offset_history.high_watermark_passed

    def passed(steps: Any, offset: int, opening: Any, after: When) -> When:
        return find(steps, offset, opening, When(None, None))

    patch.setattr(explain, "high_watermark_passed", passed)


def a_copy_is_an_append(patch: pytest.MonkeyPatch) -> None:
    """A follower's times are those of its leader."""
    patch.setattr(Replicas, "learned", lambda self, when: when)


def a_follower_is_told_at_once(patch: pytest.MonkeyPatch) -> None:
    """A follower's in-sync set is that of its leader."""
    find = replica_history.leaderships_between

    def between(*args: Any, is_follower: bool) -> Any:
        return find(*args, is_follower=False)

    patch.setattr(explain_replication, "leaderships_between", between)


def a_leader_forever(patch: pytest.MonkeyPatch) -> None:
    """Who appended the record has heard first that it is committed."""
    patch.setattr(Replicas, "committed", lambda self, passed: passed)


def what_followers_fetched_before(patch: pytest.MonkeyPatch) -> None:
    """A follower of which nothing is known has not copied the record."""
    patch.setattr(explain_replication, "Copy", lambda when, position: Copy(when, 0))


def a_follower_knows_why_it_removed(patch: pytest.MonkeyPatch) -> None:
    """What the leader's log start removed is taken for DeleteRecords."""
    find = offset_history.removed

    def removed(steps: Any, offset: int) -> Removed:
        found = find(steps, offset)
        return found._replace(reason=found.reason or "DeleteRecords")

    patch.setattr(explain, "removed", removed)


def a_follower_has_a_client(patch: pytest.MonkeyPatch) -> None:
    """What a follower copied is from a client without a name."""
    find = offset_history.client_of

    def client_of(clients: Any, producer_id: int) -> tuple[str, ...]:
        return ("",) if COPIED in clients else find(clients, producer_id)

    patch.setattr(explain, "client_of", client_of)


def everybody_is_a_member(patch: pytest.MonkeyPatch) -> None:
    """A reset forward is a reading."""
    certain = dict.fromkeys(By)
    patch.setattr(group_reads, "_BY", certain)


def no_offset_is_removed(patch: pytest.MonkeyPatch) -> None:
    """A group that was deleted and made again is the same."""
    find = group_reads.group_reads

    def reads(*args: Any, **more: Any) -> Any:
        return [read._replace(gone=None) for read in find(*args, **more)]

    patch.setattr(explain_groups, "group_reads", reads)


def a_doubt_is_not_said(patch: pytest.MonkeyPatch) -> None:
    """The words say that a group has read the message, and the value does not."""
    grow = readers.grow_reader

    def grow_reader(branch: Any, group: Any, clock: Any) -> None:
        grow(branch, {**group, "doubt": None}, clock)

    patch.setattr(tell, "grow_reader", grow_reader)


def the_end_of_a_range(patch: pytest.MonkeyPatch) -> None:
    """The words have one time where the value has two."""
    say = Clock.moment

    def moment(self: Clock, when: Any, *, dated: bool = False) -> str:
        said = dict(when or {})
        if said.get("until_ms") is not None:
            said["since_ms"] = said["until_ms"]
        return say(self, said, dated=dated)

    patch.setattr(Clock, "moment", moment)


def a_pipeline_began_at_the_start(patch: pytest.MonkeyPatch) -> None:
    """A pipeline has delivered all before its position."""
    patch.setattr(explain, "began_after", lambda steps, pipeline, offset: False)
    patch.setattr(explain, "steps_of", lambda steps, pipeline: [])
    patch.setattr(explain, "read_delivery", _from_the_start)


def _from_the_start(metadata: str | None) -> Any:
    from ottla.timelines.delivery_metadata import read_delivery

    found = read_delivery(metadata)
    return found and found._replace(begin=0)


def a_clock_that_only_goes_on(patch: pytest.MonkeyPatch) -> None:
    """Times tell what came first, also where a clock was set back."""
    patch.setattr(explain, "jumps_of", lambda steps, now_ms: None)


def what_is_gone_was_plain(patch: pytest.MonkeyPatch) -> None:
    """A record that was removed was of no transaction."""
    find = offset_history.appended
    patch.setattr(explain, "appended", lambda *args: find(*args)._replace(is_plain=True))


PLANTED: Final[tuple[Plant, ...]] = (
    only_the_groups_of_the_leader,
    a_cut_is_forgotten,
    an_election_from_the_own_log_end,
    a_leader_before_that_was_not_the_last_one,
    every_election_is_clean,
    replicated_before_appended,
    a_copy_is_an_append,
    a_follower_is_told_at_once,
    a_leader_forever,
    what_followers_fetched_before,
    a_follower_knows_why_it_removed,
    a_follower_has_a_client,
    everybody_is_a_member,
    no_offset_is_removed,
    a_doubt_is_not_said,
    the_end_of_a_range,
    a_pipeline_began_at_the_start,
    a_clock_that_only_goes_on,
    what_is_gone_was_plain,
)

OF: Final[dict[Plant, type[Life]]] = {what_is_gone_was_plain: AbortedLife}
"""The lives in which an untruth matters."""

RARE: Final[dict[Plant, int]] = {
    a_follower_knows_why_it_removed: 130,
    a_pipeline_began_at_the_start: 70,
    what_is_gone_was_plain: 80,
}
"""What few lives find: the seed to begin with."""
