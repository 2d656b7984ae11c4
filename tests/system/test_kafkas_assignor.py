"""The same groups, given to Kafka's StickyTaskAssignor and to ours: each member has the same tasks,
also where processes and members are equally loaded.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

import pytest
from components.apache_kafka import KafkaJars

from components import fixture
from ottla.groups.streams.configured import ConfiguredSubtopology
from ottla.groups.streams.sticky import MemberSpec, assign
from ottla.groups.streams.tasks import TaskId, Tasks, by_subtopology
from ottla.groups.streams.topology import TopicInfo

kafka_jars = fixture.kafka_jars
# Java compiles the program, as it does the application of Kafka Streams.
streams_jars = fixture.streams_jars
pytestmark = pytest.mark.kafka

PROGRAM: Final = Path(__file__).with_name("KafkasAssignor.java")
GROUPS: Final = 600
CHANGELOG: Final = (TopicInfo("c", 1, 0, ()),)


class _Group:
    """Members with what they have, and subtopologies: what the assignor is given."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.subtopologies = {
            str(number): (random.randint(1, 12), random.random() < 0.6)
            for number in range(random.randint(1, 3))
        }
        self.standbys = random.choice((0, 1, 1, 2))
        self.tasks = [
            (name, index)
            for name, (count, _) in self.subtopologies.items()
            for index in range(count)
        ]
        ids = sorted(self._id() for _ in range(random.choice((1, 2, 3, 4, 8, 14, 40))))
        processes = [self._id() for _ in range(random.randint(1, len(ids)))]
        self.members = {each: self._member(random.choice(processes)) for each in ids}
        self._give()

    def _id(self) -> str:
        """As Kafka Streams makes them, or a short one."""
        if self._random.random() < 0.2:
            return "".join(self._random.choices("aäß日😀/", k=self._random.randint(3, 9)))
        return str(UUID(int=self._random.getrandbits(128)))

    def _member(self, process: str) -> dict[str, Any]:
        offsets = {}
        if self._random.random() < 0.5:
            some = self._random.sample(self.tasks, self._random.randint(0, len(self.tasks)))
            offsets = {task: self._random.randrange(4) for task in some}
        return {"process": process, "active": [], "standby": [], "offsets": offsets}

    def _give(self) -> None:
        """What they had: most tasks with an owner, some with copies."""
        names = list(self.members)
        for task in self.tasks:
            owner, *others = self._random.sample(names, min(3, len(names)))
            if self._random.random() < 0.6:
                self.members[owner]["active"].append(task)
            for other in others:
                if self._random.random() < 0.4:
                    self.members[other]["standby"].append(task)

    def as_json(self) -> dict[str, Any]:
        return {
            "standbys": self.standbys,
            "subtopologies": {
                name: {"tasks": count, "stateful": is_stateful}
                for name, (count, is_stateful) in self.subtopologies.items()
            },
            "members": [
                {
                    "id": member_id,
                    "process": said["process"],
                    "active": _lists(said["active"]),
                    "standby": _lists(said["standby"]),
                    "offsets": _offsets(said["offsets"]),
                }
                for member_id, said in self.members.items()
            ],
        }

    def assigned(self) -> dict[str, Any]:
        """By our assignor."""
        specs = {
            member_id: MemberSpec(
                said["process"],
                Tasks(by_subtopology(said["active"]), by_subtopology(said["standby"])),
                said["offsets"],
            )
            for member_id, said in self.members.items()
        }
        configured = {
            name: ConfiguredSubtopology(
                count, frozenset("t"), frozenset(), (), CHANGELOG if is_stateful else ()
            )
            for name, (count, is_stateful) in self.subtopologies.items()
        }
        found = assign(specs, configured, self.standbys)
        return {
            member_id: [_sorted(tasks.active), _sorted(tasks.standby)]
            for member_id, tasks in found.items()
        }


def _lists(tasks: list[TaskId]) -> dict[str, list[int]]:
    return _sorted(by_subtopology(tasks))


def _sorted(tasks: Any) -> dict[str, list[int]]:
    return {name: sorted(numbers) for name, numbers in tasks.items()}


def _offsets(offsets: dict[TaskId, int]) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for (name, number), offset in offsets.items():
        found.setdefault(name, {})[number] = offset
    return found


def test_each_member_has_the_same_tasks(streams_jars: KafkaJars, tmp_path: Path) -> None:
    random = Random(33)
    groups = [_Group(random) for _ in range(GROUPS)]
    asked, answered = tmp_path / "groups.json", tmp_path / "assigned.json"
    asked.write_text(json.dumps([group.as_json() for group in groups]))
    paths = f"{streams_jars.folder}/*"
    command = [streams_jars.java, "-Xmx256m", "-cp", paths, str(PROGRAM), str(asked), str(answered)]
    subprocess.run(command, check=True, timeout=120)
    for number, (group, theirs) in enumerate(
        zip(groups, json.loads(answered.read_text()), strict=True)
    ):
        expected = {
            member_id: [_sorted(tasks) for tasks in both] for member_id, both in theirs.items()
        }
        assert group.assigned() == expected, f"group {number}"
