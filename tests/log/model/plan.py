"""Which steps a life has: chosen by a seed, before the life begins.

Each step has a seed of its own, from which it takes its offsets and sizes. So a life from which
steps were removed does the same in the others, as far as it still can.
"""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple


class Step(NamedTuple):
    """One step. `fault`: in it a system call fails ("error"), an fsync fails ("sync"), or the
    process ends ("kill").
    """

    name: str
    seed: int
    fault: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.fault}".rstrip()


COMMON: Final = {
    "append": 30, "commit": 6, "role": 4, "roll": 4, "flush": 4, "checkpoint": 4, "look": 4,
    "delete_records": 3, "truncate": 5, "truncate_fully": 2, "retain": 3, "remove_files": 2,
    "stop": 4, "kill": 4, "lose_power": 3, "expire": 0.5, "send_wrong": 3, "begin_flush": 3,
    "end_flush": 1, "compact": 2,
    "end_transactions": 2,
}  # fmt: skip
PROFILES: Final[tuple[dict[str, float], ...]] = (
    {},
    {"truncate": 12, "role": 8, "stop": 8},
    {"truncate_fully": 10, "delete_records": 8, "kill": 8, "roll": 1},
    {"compact": 16, "append": 40},
    {"compact": 8, "role": 10, "truncate": 8},
    {"delete_records": 8, "retain": 16, "kill": 8, "truncate": 0, "commit": 3, "append": 40},
)
AFTERWARDS: Final[dict[str, tuple[str, ...]]] = {
    "truncate": ("stop", "stop", "kill", "lose_power", "append", "look"),
    "truncate_fully": ("kill", "kill", "stop", "lose_power", "append"),
    "compact": ("compact", "kill", "stop", "role", "truncate", "append"),
    "delete_records": ("kill", "stop", "checkpoint", "truncate_fully", "retain"),
    "role": ("append",),
    "begin_flush": ("end_flush", "append", "truncate", "roll"),
    "kill": ("stop", "append"),
}
"""What often follows a step."""
FOLLOWS: Final = 0.5
FAULTS: Final = {
    "append": 0.1, "roll": 0.15, "truncate": 0.2, "truncate_fully": 0.2, "retain": 0.15,
    "compact": 0.4, "stop": 0.1, "flush": 0.1, "checkpoint": 0.1,
}  # fmt: skip
"""How often a step of that name is hit by a fault."""


SYNCING: Final = frozenset({"flush", "checkpoint", "stop"})


def plan(seed: int) -> list[Step]:
    """The steps of this life."""
    random = Random(seed)
    weights = COMMON | random.choice(PROFILES)
    names, shares = list(weights), list(weights.values())
    steps: list[Step] = []
    for _ in range(random.randrange(12, 36)):
        following = AFTERWARDS.get(steps[-1].name, ()) if steps else ()
        if following and random.random() < FOLLOWS:
            name = random.choice(following)
        else:
            (name,) = random.choices(names, shares)
        fault = ""
        if random.random() < FAULTS.get(name, 0):
            fault = random.choice(("kill", "kill", "error"))
            if name in SYNCING and random.random() < 0.4:
                fault = "sync"
        steps.append(Step(name, random.getrandbits(32), fault))
    return steps
