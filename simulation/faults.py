"""What goes wrong, and what operators ask for, in one run: a list made before it begins.

A list can be shortened: that is how a failure's transcript gets short enough to read.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

FIRST_MS = 1500
LAST_MS = 13_000
KINDS = (
    ("crash", 5),
    ("pause", 4),
    ("cut", 5),
    ("cut tree", 4),
    ("loss", 2),
    ("expire", 2),
    ("leave", 3),
    ("lose disk", 2),
    ("depose", 3),
    ("reassign", 4),
    ("preferred", 3),
    ("hold up", 4),
    ("delete", 2),
    ("add partition", 1),
)


class Fault(NamedTuple):
    """`one` and `other` are brokers; `ms` is how long it lasts; `seed` is for what else chance
    decides, so that it is decided alike in a shorter list.
    """

    at_ms: int
    kind: str
    one: int
    other: int
    ms: int
    seed: int

    def __str__(self) -> str:
        end = f" until {self.at_ms + self.ms} ms"
        match self.kind:
            case "cut":
                return f"cut {self.one} - {self.other}{end}"
            case "loss":
                return f"messages get lost{end}"
            case "depose" | "reassign" | "preferred" | "add partition":
                return self.kind
            case "delete":
                return f"topic deleted, made again after {self.ms} ms"
            case "hold up":
                return f"proposal that {self.one} joins is held up"
            case "expire":
                return f"session of {self.one} expires"
        return f"{self.kind} {self.one}{end}"


def draw_faults(
    random: Random,
    brokers: int,
    only: tuple[str, ...] = (),
    weights: tuple[tuple[str, int], ...] = KINDS,
) -> tuple[Fault, ...]:
    """A list in order of time; `only` of these kinds."""
    faults = []
    kinds = [kind for kind, weight in weights for _ in range(weight) if not only or kind in only]
    for _ in range(random.randrange(2, 14)):
        one, other = random.sample(range(1, brokers + 1), 2)
        # Short ones are flaps; long ones outlive the session.
        ms = random.choice((random.randrange(20, 400), random.randrange(400, 7000)))
        faults.append(
            Fault(
                random.randrange(FIRST_MS, LAST_MS),
                random.choice(kinds),
                one,
                other,
                ms,
                random.randrange(1 << 30),
            )
        )
    return tuple(sorted(faults))
