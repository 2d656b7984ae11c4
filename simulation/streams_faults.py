"""Faults that only runs with a streams group have: its topics go, its application changes.

    delete internal     a repartition or changelog topic is deleted; members have it made again
    delete source       the application's own source topic is deleted, and made again later
    new application     all processes are replaced by those of a version with another topology
    kill who asks       the same, and the coordinator that then asks a member for the description of
                        the topology is killed
    standbys            the group has another number of standby tasks
    replace threads     of a process: they leave, static ones for a while, and others come at once
    stop process        its threads leave, static ones for a while; another process follows later
    replace process     a process hangs, and another one is started for it, which it meets later
    cut process         a process and a broker do not reach each other: answers come late or never
    jump clock          as with share groups

The group goes on without tasks while a topic is missing, and must have them again afterwards.
"""

from __future__ import annotations

from random import Random
from typing import Final

from simulation.faults import FIRST_MS, LAST_MS, Fault

KINDS: Final = (
    *("delete internal",) * 3,
    *("delete source",) * 2,
    *("new application",) * 2,
    *("standbys",) * 2,
    *("replace threads",) * 2,
    *("stop process",) * 3,
    *("replace process",) * 3,
    *("cut process",) * 4,
    "jump clock",
)
MAX_COUNT: Final = 4
ASKING_SHARE: Final = 0.25
"""Of the seeds: in those "kill who asks" comes, too."""


def draw_streams_faults(random: Random, brokers: int) -> tuple[Fault, ...]:
    """In order of time; see `simulation.faults`."""
    faults = []
    kinds = [random.choice(KINDS) for _ in range(random.randrange(MAX_COUNT + 1))]
    if random.random() < ASKING_SHARE:
        kinds.append("kill who asks")
    for kind in kinds:
        one, other = random.sample(range(1, brokers + 1), 2)
        at_ms, ms = random.randrange(FIRST_MS, LAST_MS), random.randrange(20, 4_000)
        faults.append(Fault(at_ms, kind, one, other, ms, random.randrange(1 << 30)))
    return tuple(sorted(faults))
