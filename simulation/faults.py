"""The faults and operator requests of one run: a list drawn before the run begins.

Shortening the list makes the transcript of a failure short enough to read.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Final, NamedTuple

from simulation.pace import Pace

FIRST_MS: Final = 1_500
LAST_MS: Final = 13_000
MIN_FIRST_MS: Final = 800
MAX_COUNT: Final = 13
MAX_FLAP_MS: Final = 400
"""Faults up to this length are as long in every run."""
KINDS: Final = (
    ("crash", 5),
    ("power", 4),
    ("pause", 4),
    ("cut", 5),
    ("cut tree", 4),
    ("expire", 2),
    ("leave", 3),
    ("lose disk", 3),
    ("depose", 3),
    ("stall tree", 4),
    ("stall join", 3),
    ("stall leave", 2),
    ("reassign", 3),
    ("preferred", 2),
    ("unclean", 1),
    ("add partition", 1),
    ("drain", 1),
    ("roll", 1),
    ("delete", 3),
    ("kill member", 3),
    ("pause member", 3),
)
"""Each with its weight."""


class Fault(NamedTuple):
    """`one` and `other` are brokers; `ms` is the duration; `seed` drives all other random choices
    of this fault, so that a shorter list repeats them.
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
            case "depose" | "reassign" | "preferred" | "unclean" | "add partition" | "roll":
                return self.kind
            case "delete":
                return f"topic created, deleted after {self.ms} ms"
            case "stall tree":
                return "the controller is deposed while its write is stalled"
            case "stall join":
                return f"the proposal that {self.one} joins the in-sync set is stalled"
            case "stall leave":
                return f"the proposal that {self.one} leaves the in-sync set is stalled"
            case "expire":
                return f"session of {self.one} expires"
            case "outrun" | "cut and stop" | "delete records" | "move compacted" | "recreate":
                return self.kind
            case "cut deletion" | "power alone":
                return self.kind
            case "fail sync":
                return f"a sync of {self.one} fails"
            case "kill member" | "pause member":
                return f"{self.kind} of the group{end}"
        return f"{self.kind} {self.one}{end}"


def draw_faults(
    random: Random, brokers: int, only: tuple[str, ...] = (), *, max_count: int = MAX_COUNT
) -> tuple[Fault, ...]:
    """A list in order of time; with `only`, of these kinds."""
    faults = []
    kinds = [kind for kind, weight in KINDS for _ in range(weight) if not only or kind in only]
    for _ in range(random.randrange(2, max_count + 1)):
        one, other = random.sample(range(1, brokers + 1), 2)
        # Short faults are flaps; long ones last beyond the session timeout.
        ms = random.choice(
            (random.randrange(20, MAX_FLAP_MS), random.randrange(MAX_FLAP_MS, 7_000))
        )
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


def first_ms(pace: Pace) -> int:
    """When the first fault may happen: all clients have begun."""
    return max(MIN_FIRST_MS, pace.ms(FIRST_MS))


def at_pace(faults: Iterable[Fault], pace: Pace) -> tuple[Fault, ...]:
    """The faults of a full run as they are at this pace."""
    return tuple(
        sorted(
            fault._replace(
                at_ms=first_ms(pace) + pace.ms(fault.at_ms - FIRST_MS),
                ms=fault.ms if fault.ms < MAX_FLAP_MS else max(MAX_FLAP_MS, pace.ms(fault.ms)),
            )
            for fault in faults
        )
    )
