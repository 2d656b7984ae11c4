"""Whether each statement of a journey is true of a world: its values, and its words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from tests.journey.model.world import Broker, Happened, World, Written

from ottla.journey.explain import explain
from ottla.journey.words.line import Branch
from ottla.journey.words.tell import tell
from ottla.timelines.step import By

Document = dict[str, Any]

TIME: Final = r"(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d\.\d{3}"
MOMENT: Final = re.compile(
    rf"between ({TIME}) and ({TIME})|before ({TIME})|after ({TIME})|({TIME})"
)
ELECTION: Final = re.compile(r"broker (\d+) leads.*, epoch (\d+)(?:, from offset (\d+))?")


class UntrueError(Exception):
    """A journey said something that is not true."""


def check(world: World, broker: Broker, offset: int) -> None:
    """Ask the broker for a journey. Raises UntrueError for what it should not have said."""
    document = explain(world.facts(broker, offset))
    Checked(world, broker, offset, document).everything()


class Checked:
    """One journey beside the truth."""

    def __init__(self, world: World, broker: Broker, offset: int, document: Document) -> None:
        self.world, self.broker, self.offset, self.said = world, broker, offset, document
        has_it = offset < len(broker.log)
        self.record: Written | None = broker.log[offset] if has_it else None
        self.lines = list(_lines(tell(document)))

    def everything(self) -> None:
        self._ranges(self.said)
        if self.record is None:
            self._is(self.said["state"] == "not_yet_written", "state")
        else:
            removed = self.offset < self.broker.start
            self._is(self.said["state"] == ("removed" if removed else "stored"), "state")
            self._published(self.record)
            self._appended(self.record)
            self._replicated(self.record)
            self._copies(self.record)
            self._delivered(self.record)
            if removed:
                self._removed(self.record)
        self._read()
        self._elections()
        self._words()

    def _is(self, is_true: bool, what: str, said: Any = None) -> None:
        if not is_true:
            where = f"offset {self.offset} at broker {self.broker.number}"
            raise UntrueError(f"{what}: {said!r}, {where}")

    def _holds(
        self,
        when: Document | None,
        event: Happened,
        by: Broker,
        what: str,
        learned: Happened | None = None,
    ) -> None:
        """The moment has the event's time by this broker's clock. If that was set between the event
        and when the broker `learned` of it, it may be by the one or the other: it recorded nothing
        that could show that its clock was set back.
        """
        if when is None or self._is_within(when, event, by):
            return
        truth = {**when, "truth": by.reads(event)}
        is_known = learned is not None and self._is_within(when, learned._replace(ms=event.ms), by)
        self._is(is_known, what, truth)

    def _is_within(self, when: Document, event: Happened, by: Broker) -> bool:
        since, until, at = when["since_ms"], when["until_ms"], by.reads(event)
        return (since is None or since <= at + event.took_ms) and (until is None or at <= until)

    def _ranges(self, said: Any) -> None:
        """No range ends before it begins."""
        if isinstance(said, dict):
            if "since_ms" in said and "until_ms" in said:
                since, until = said["since_ms"], said["until_ms"]
                is_one = since is None or until is None or since <= until
                self._is(
                    is_one and said["exact"] == (since == until and since is not None),
                    "range",
                    said,
                )
            said = said.values()
        if not isinstance(said, str | bytes) and isinstance(said, Iterable):
            for each in said:
                self._ranges(each)

    # Each step.

    def _published(self, record: Written) -> None:
        said = self.said["published"]
        clients = said["client_ids"]
        self._is(not clients or record.client in clients, "client", clients)
        if record.is_control:
            self._is(not clients, "client of a marker", clients)
        ahead = said.get("clock_ahead_ms")
        if ahead is not None:
            truth = record.timestamp_ms - self.broker.reads(record.at)
            self._is(ahead <= truth, "clock ahead", (ahead, truth))

    def _appended(self, record: Written) -> None:
        said = self.said["appended"]
        self._is(said["broker"] in (None, record.leader), "appended by", said["broker"])
        learned = record.copied.get(self.broker.number)
        self._holds(said["when"], record.at, self.broker, "appended", learned)

    def _replicated(self, record: Written) -> None:
        said, appended = self.said["replicated"], self.said["appended"]["when"]
        self._is(said["committed"] == (self.offset < self.broker.high), "committed")
        if said["when"] is not None:
            assert record.committed is not None
            learned = record.copied.get(self.broker.number)
            self._holds(said["when"], record.committed, self.broker, "replicated", learned)
            for side in ("since_ms", "until_ms"):
                first, then = appended[side], said["when"][side]
                if first is not None and then is not None:
                    self._is(first <= then, f"replicated before appended, {side}", (first, then))
        then = said["in_sync"]
        possible = said["in_sync_possible"] or ([then] if then else [])
        if possible:
            truth, leader = record.isr_then, record.leader
            # "In sync then" is when it was appended until this broker knows that it is committed.
            if said["committed"] and record.committed_state is not None:
                truth, leader = record.committed_state.isr, record.committed_state.leader
            said_of = [(tuple(one["brokers"]), one["leader"]) for one in possible]
            self._is((truth, leader) in said_of, "in sync then", (said_of, truth))

    def _copies(self, record: Written) -> None:
        for copy in self.said["replicated"]["copies"]:
            number, state, when = copy["broker"], copy["state"], copy["when"]
            has_it = record in self.world.brokers[number].log
            if state == "leader":
                self._is(number == record.leader, "the leader then", number)
                learned = record.copied.get(self.broker.number)
                self._holds(when, record.at, self.broker, "the leader's append", learned)
            elif state == "stored":
                self._is(number == self.broker.number, "stored", number)
                self._holds(when, record.copied.get(number, record.at), self.broker, "stored")
            elif number == self.broker.number:
                self._is(state == "copied" and number in record.copied, "its own copy", state)
                self._holds(when, record.copied[number], self.broker, "its own copy")
            elif state == "copied":
                again = record.fetched.get(number)
                fetched = record.fetched_before.get(number, again)
                self._is(fetched is not None, "copied", number)
                assert fetched is not None
                if again is None or not self._is_within(when, again, self.broker):
                    self._holds(when, fetched, self.broker, f"copied by {number}")
            elif state == "not_yet":
                self._is(number not in record.fetched or not has_it, "not yet", copy)

    def _removed(self, record: Written) -> None:
        said = self.said["removed"]
        is_one = any(
            said["reason"] in (None, reason) and self._is_within(said["when"], event, self.broker)
            for event, reason in record.removed
        )
        self._is(is_one, "removed", (said, record.removed))

    def _read(self) -> None:
        record = self.record
        for group in self.said["read"]:
            name, state = group["group"], group["state"]
            has, now = name in self.world.positions, self.world.positions.get(name, -1)
            self._is(group["committed_offset"] == (now if has else None), "position", group)
            coordinator = self.world.coordinator(name)
            assert coordinator is not None
            if state in ("not_yet", "missed"):
                self._is(now <= self.offset, state, (group, now))
            elif (
                state == "set_back"
                and group["doubt"] == "unordered"
                and not (record and name in record.read)
            ):
                self._was_past(group, coordinator)
            elif (
                state == "set_back"
                and group["doubt"] == "not_recorded"
                and not (record and name in record.read)
            ):
                # Only that it was past the offset, perhaps past the log end.
                self._is(self.world.highest[name] > self.offset, state, group)
            elif state in ("read", "set_back"):
                self._is(record is not None and name in record.read, state, group)
                assert record is not None
                truth = [
                    one
                    for one in record.read[name]
                    if self._is_within(group["when"], one.at, coordinator)
                ]
                self._is(bool(truth), f"{state} by {name}", (group, record.read[name]))
                by = {one.by for one in truth}
                self._is(not group["certain"] or By.MEMBER in by, "read by a member", (group, by))
                if group["doubt"] == "outside":
                    self._is(By.OUTSIDE in by, "not by a member", (group, by))
                if group["first_commit_seen"]:
                    self._is(any(one.was_first for one in truth), "its first commit", group)
                if group["forgotten"]:
                    self._forgotten(record, group, coordinator)
                is_back = has and now <= self.offset and not group["forgotten"]
                self._is((state == "set_back") == is_back, state, (group, now))
                self._is(has or group["forgotten"], "has an offset", group)
            else:
                self._is(state == "not_known", "state", state)
                if group["doubt"] in ("ahead", "unordered"):
                    self._was_past(group, coordinator)

    def _was_past(self, group: Document, coordinator: Broker) -> None:
        """It committed an offset after the record, "ahead": before that was there."""
        is_ahead = group["doubt"] == "ahead"
        self._is(
            any(
                offset > self.offset
                and (not is_ahead or self.record is None or event.seq < self.record.at.seq)
                and self._is_within(group["when"], event, coordinator)
                for event, name, offset in self.world.commits
                if name == group["group"]
            ),
            "was past",
            group,
        )

    def _forgotten(self, record: Written, group: Document, coordinator: Broker) -> None:
        said = group["forgotten"]
        truth = record.forgotten.get(group["group"], [])
        is_one = any(
            said["at_ms"] in (None, coordinator.reads(event)) and said["reason"] in (None, reason)
            for event, reason in truth
        )
        self._is(is_one, "forgotten", (group, truth))

    def _delivered(self, record: Written) -> None:
        for one in self.said["delivered"]:
            if one["in_doubt"]:
                continue
            if one["first_commit_seen"] and self.world.pipeline_began > self.offset:
                continue  # it says that the start is not recorded
            coordinator = self.world.coordinator(one["group"])
            assert coordinator is not None
            right = [
                true
                for true in record.delivered
                if one["first_batch"] <= true.batch <= one["last_batch"]
                and (not one["delta"] or one["delta"]["first_version"] <= true.version)
                and (not one["delta"] or true.version <= one["delta"]["last_version"])
            ]
            self._is(bool(right), "delivered", (one, record.delivered))
            is_within = any(self._is_within(one["when"], true.at, coordinator) for true in right)
            self._is(is_within, "delivered at", (one["when"], right))

    def _elections(self) -> None:
        replicated = self.said["replicated"]
        if replicated is None:
            return
        for one in replicated["elections"]:
            epoch = one["leader_epoch"]
            led = [
                (number, state)
                for number, (_, state) in enumerate(self.world.states)
                if state.leader_epoch == epoch and state.leader >= 0
            ]
            self._is(bool(led) and led[0][1].leader == one["leader"], "elected", one)
            first = led[0][0]
            event = self.world.states[first][0]
            before = [state for _, state in self.world.states[:first]]
            if len({ahead for _, ahead in self.broker.clock}) == 1:
                self._is(self.broker.reads(event) <= one["at_ms"], "election at", one)
            if one["previous_leader"] is not None:
                last = next((state.leader for state in reversed(before) if state.leader >= 0), None)
                self._is(one["previous_leader"] == last, "previous leader", (one, last))
            if one["unclean"] is not None:
                truth = one["leader"] not in before[-1].isr
                self._is(one["unclean"] == truth, "unclean", (one, before[-1]))
            start = one.get("start_offset")
            truth_start = self.world.epoch_starts.get(epoch)
            self._is(start in (None, truth_start), "start offset", (one, truth_start))
            for cut in one["dropped"]:
                self._dropped(cut)

    def _dropped(self, cut: Document) -> None:
        offsets = set(range(cut["from_offset"], cut["to_offset"] + 1))
        lost = [
            record
            for each in self.world.cuts
            if each.broker == cut["broker"]
            for record in each.records
        ]
        self._is(offsets <= {record.offset for record in lost}, "dropped", cut)
        if cut["committed_to"] is not None:
            last = [record for record in lost if record.offset == cut["committed_to"]]
            self._is(any(one.committed for one in last), "committed", cut)
        if cut["replaced_by_epoch"] is not None:
            first = self.broker.log[cut["from_offset"]]
            before = self.broker.log[cut["from_offset"] - 1]
            is_first = before.leader_epoch < first.leader_epoch == cut["replaced_by_epoch"]
            self._is(is_first, "replaced by", cut)

    # The words say no more than the values.

    def _words(self) -> None:
        said = self.said
        if said["state"] == "not_yet_written":
            return
        self._line("Appended", said["appended"]["when"])
        if said["replicated"]["committed"]:
            self._line("Replicated", said["replicated"]["when"])
        if said["removed"]:
            self._line("Removed", said["removed"]["when"])
        for copy in said["replicated"]["copies"]:
            if copy["state"] in ("leader", "copied"):
                self._line(f"broker {copy['broker']}  ", copy["when"])
        for group in said["read"]:
            if group["state"] == "read":
                did = "read" if group["certain"] else "passed it"
                self._line(f"{group['group']}  {did}", group["when"])
                lines = [line for line in self.lines if line.startswith(f"{group['group']}  read")]
                self._is(not lines or group["certain"], "words", lines)
        record = self.record
        assert record is not None
        for line in self.lines:
            found = ELECTION.search(line)
            if found and line.startswith("election"):
                start, truth = found[3], self.world.epoch_starts.get(int(found[2]))
                is_true = start is None or int(start) == truth
                self._is(is_true, "election from offset", (line, truth))
            never = re.match(r"broker (\d+)  time of its copy", line)
            if never:
                number = int(never[1])
                has_had = number in record.copied or number == record.leader
                self._is(has_had, "time of a copy that there is not", line)
            if "no group has committed" in line:
                self._is(not self.world.positions, "no group", line)
            if line.startswith("Published"):
                self._is("client" not in line or not record.is_control, "a marker", line)
                self._is("producer" not in line or not record.is_control, "a marker", line)

    def _line(self, begin: str, when: Document | None) -> None:
        """The line with this beginning has the moment, if there is such a line."""
        line = next((line for line in self.lines if line.startswith(begin)), None)
        if line is None or when is None:
            return
        found = MOMENT.search(line)
        if found is None:
            nothing = when["since_ms"] is None and when["until_ms"] is None
            self._is(nothing and "not recorded" in line, "words", line)
            return
        first, last, before, after, exact = (text and _clock_part(text) for text in found.groups())
        since, until = first or after or exact, last or before or exact
        for text, ms in ((since, when["since_ms"]), (until, when["until_ms"])):
            self._is((text is None) == (ms is None), "words", line)
            if text is not None:
                moment = datetime.fromtimestamp(ms // 1000, UTC)
                self._is(f"{moment:%H:%M:%S}.{ms % 1000:03}" == text, "words", line)


def _clock_part(text: str) -> str:
    return text.rsplit(" ", 1)[-1]


def _lines(branch: Branch) -> Iterable[str]:
    yield branch.text()
    for below in branch.below:
        yield from _lines(below)
