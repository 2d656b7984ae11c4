"""Draws a schedule of faults from a seed. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Final

from faults.anomaly import Policy


class Kind(Enum):
    """One fault at a time; each ends, and the cluster recovers, before the next one begins."""

    kill = "SIGKILL and start again"
    stop = "controlled shutdown and start again"
    pause = "SIGSTOP for longer than the session"
    cut = "nothing passes between two brokers"
    cut_off = "nothing passes between a broker and all others"
    cut_zookeeper = "nothing passes between a broker and ZooKeeper"
    no_zookeeper = "nothing passes between any broker and ZooKeeper"
    expire = "a broker's session expires"
    kill_zookeeper = "a member of the ensemble is killed"
    lose_disk = "a broker starts again with an empty disk"
    full_disk = "a broker's disk takes no more, until the broker starts again"
    fail_sync = "an fsync of a broker fails with EIO, once: it stops, and starts again"
    power = "a broker is killed, and loses what it has not synced"
    clone = "a copy of a running broker's folder is started: it must not get its id"
    move_leaders = "preferred leaders are elected"
    move_replicas = "replicas move to another broker, and a broker is killed meanwhile"
    rolling_restart = "all brokers are restarted, one after the other"
    deposed = "a broker is cut from all others, then killed while they elect"
    last_standing = "all replicas but one are killed, then that one; the others come back first"


EVERYDAY: Final = (
    *(Kind.kill, Kind.stop, Kind.pause, Kind.cut, Kind.cut_off, Kind.cut_zookeeper),
    *(Kind.expire, Kind.kill_zookeeper, Kind.lose_disk, Kind.move_leaders, Kind.rolling_restart),
    *(Kind.deposed, Kind.no_zookeeper, Kind.move_replicas, Kind.full_disk),
    *(Kind.fail_sync, Kind.power, Kind.clone),
)
NEED_OTHERS: Final = frozenset(
    {
        *(Kind.cut, Kind.cut_off, Kind.lose_disk, Kind.power, Kind.move_replicas),
        *(Kind.deposed, Kind.last_standing),
    }
)
"""Without other brokers these faults do nothing, or lose records."""
OF_POLICY: Final = {
    Policy.strict: EVERYDAY,
    # Faults that catch a leader with records that no other replica has.
    Policy.acks_1: (Kind.kill, Kind.pause, Kind.cut_off, Kind.deposed),
    Policy.unclean: (Kind.kill, Kind.last_standing),
}
REST_MS: Final = (1_000, 3_000)
"""The shortest and the longest pause between two faults."""


@dataclass(frozen=True, slots=True)
class Step:
    """One fault: it begins `rest_ms` after the end of the previous one and lasts `lasts_ms`.
    `other` is the second broker for faults that need two; with one broker, itself."""

    rest_ms: int
    lasts_ms: int
    kind: Kind
    broker: int
    other: int

    def __str__(self) -> str:
        return f"{self.kind.name} of {self.broker} (and {self.other}), {self.lasts_ms} ms"


def draw(
    seed: int,
    seconds: float,
    policy: Policy,
    *,
    brokers: int,
    session_ms: int,
    kinds: tuple[Kind, ...] = (),
) -> tuple[Step, ...]:
    """Steps that fill about `seconds`, at least one. Broker ids start at 1, as in the test kit.
    `kinds` limits the faults to these; with one broker, those in `NEED_OTHERS` are left out."""
    random = Random(seed)
    choice = tuple(
        kind for kind in kinds or OF_POLICY[policy] if brokers > 1 or kind not in NEED_OTHERS
    )
    assert choice, "one broker alone has none of these faults"
    steps: list[Step] = []
    spent_ms = 0
    bag: list[Kind] = []
    while not steps or spent_ms < seconds * 1000:
        if not bag:
            # Each kind once before any repeats, so that a short run covers many.
            bag = random.sample(choice, len(choice))
        kind = bag.pop()
        broker, *more = random.sample(range(1, brokers + 1), min(2, brokers))
        other = more[0] if more else broker
        step = Step(
            random.randint(*REST_MS), _lasts_ms(kind, random, session_ms), kind, broker, other
        )
        steps.append(step)
        spent_ms += step.rest_ms + step.lasts_ms
    return tuple(steps)


def _lasts_ms(kind: Kind, random: Random, session_ms: int) -> int:
    """Sometimes shorter than the session timeout, sometimes longer; a pause is always longer."""
    if kind in (Kind.expire, Kind.move_leaders, Kind.rolling_restart, Kind.clone):
        return random.randint(500, 1_500)
    if kind is Kind.pause:
        return random.randint(session_ms * 5 // 4, session_ms * 2)
    if kind is Kind.deposed:
        # Short, so that the others are still in the ISR when it dies: a controller that is cut off
        # removes them from the ISR itself, and the partition would then wait for it.
        return random.randint(500, session_ms // 2)
    return random.randint(500, session_ms * 2)
