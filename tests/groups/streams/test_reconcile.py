"""Members of streams groups at random: what holds after each step, and that it comes to rest."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.groups.streams.test_shard import Story
from tests.groups.streams.world import STATEFUL, subtopology

from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.tasks import Tasks, each
from ottla.groups.streams.topology import Topology

CLIENTS = "abcde"
PROCESSES = {"a": "one", "b": "one", "c": "two", "d": "two", "e": "three"}
STATIC = "bde"
TOPOLOGY = Topology(
    0, (*STATEFUL.subtopologies, subtopology("1", "u"), subtopology("2", "t,u", changelogs="d"))
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ("join", "beat", "beat", "beat", "lost", "keep", "leave", "away", "wait", "topic")
        ),
        st.sampled_from(CLIENTS),
        st.integers(1, 6),
    ),
    max_size=40,
)


class Play(Story):
    """Clients that have what they were told, each with a process."""

    def __init__(self, standbys: int) -> None:
        super().__init__()
        self.settings = replace(
            self.settings,
            initial_rebalance_delay_ms=0,
            assignment_interval_ms=0,
            num_standby_replicas=standbys,
        )
        for name in "tucd":
            self.set_topic(name, 3)
        self.members: set[str] = set()

    @property
    def group(self) -> StreamsGroup:
        return self.shard.groups["g"]

    def do_step(self, action: str, client: str, number: int) -> None:
        if action == "topic":
            # A task that is gone is refused, and the client ends: topics only grow here.
            for name in "tucd":
                self.set_topic(name, max(number, self.topics.by_name[name].partition_count))
        elif action == "wait":
            self.wait(f"{number}s")
        elif action == "join":
            self.epochs[client], self.owned[client] = 0, Tasks()
            self.instances[client] = f"i{client}" if client in STATIC else None
            request = self.request(client)._replace(
                rebalance_timeout_ms=60_000, topology=TOPOLOGY, process_id=PROCESSES[client]
            )
            self.send(client, request)
            if client in self.group.members and self.epochs[client] > 0:
                self.members.add(client)
        elif client not in self.members:
            return
        elif action == "away" and client in STATIC:
            self.away(client)
            self.members.remove(client)
        elif action in ("leave", "away"):
            self.leave(client)
            self.members.remove(client)
        elif action == "keep":
            had = self.owned[client]
            self.beat(client)
            self.owned[client] = had  # it has not given up yet
        else:
            getattr(self, action)(client)
        self.check()

    def check(self) -> None:
        if "g" not in self.shard.groups:
            return
        active: Counter[tuple[str, int]] = Counter()
        copies: Counter[tuple[str, tuple[str, int]]] = Counter()
        for member in self.group.members.values():
            held = (member.assigned, member.pending_revocation)
            tasks = [task for kind in held for task in each(kind.active)]
            active.update(tasks)
            # An active task becomes a standby task before the member has said that it stopped.
            demoted = set(each(member.assigned.standby)) & set(
                each(member.pending_revocation.active)
            )
            tasks += [task for kind in held for task in each(kind.standby) if task not in demoted]
            copies.update((member.process_id, task) for task in tasks)
        assert max(active.values(), default=0) <= 1, "an active task has two owners"
        assert max(copies.values(), default=0) <= 1, "a process has a task twice"

    def rest(self) -> None:
        """Everybody sends heartbeats until nothing changes."""
        for _ in range(12):
            size = len(self.log)
            for client in sorted(self.members):
                self.beat(client)
                self.check()
            if len(self.log) == size:
                return
        raise AssertionError(f"it does not come to rest: {self.output[-20:]}")


@given(STEPS, st.integers(0, 2))
@example([("join", client, 1) for client in "dabc"], 0)
@settings(max_examples=150, deadline=None)
def test_tasks_have_one_owner_and_all_come_to_rest(
    steps: list[tuple[str, str, int]], standbys: int
) -> None:
    play = Play(standbys)
    for step in steps:
        play.do_step(*step)
    # Static ones that left come back.
    for client in STATIC:
        if client not in play.members and "g" in play.shard.groups:
            play.do_step("join", client, 1)
    # Those that were told less than they say get there by what they are told next.
    for client in sorted(play.members):
        if client not in play.group.members:
            play.members.remove(client)
            continue
        member = play.group.members[client]
        play.epochs[client] = member.epoch
        active = {name: frozenset(its) for name, its in member.assigned.active.items()}
        play.owned[client] = Tasks(active, member.assigned.standby, member.assigned.warmup)
    play.rest()
    if not play.members:
        return
    group = play.group
    assert group.state.value == "Stable"
    compared = group.soft.compared
    assert compared is not None
    subtopologies = compared.configured.subtopologies
    assert subtopologies is not None
    wanted = {(name, n) for name, its in subtopologies.items() for n in range(its.task_count)}
    owned = [t for m in group.members.values() for t in each(m.assigned.active)]
    assert sorted(owned) == sorted(wanted)
    processes = len({member.process_id for member in group.members.values()})
    stateful = {task for task in wanted if subtopologies[task[0]].is_stateful}
    standby = Counter(t for m in group.members.values() for t in each(m.assigned.standby))
    assert standby == Counter(dict.fromkeys(stateful, min(standbys, processes - 1))) - Counter()
    counts = sorted(m.assigned.size for m in group.members.values())
    if not standbys:
        # Kafka's assignor fills members in turn, so that the last ones may have fewer (3, 3, 2, 1).
        assert counts[-1] <= -(-len(wanted) // len(counts)), "a member has more than its share"
