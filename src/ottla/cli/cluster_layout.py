"""The layout of a cluster that `ottla cluster start` runs: brokers, their ports and their racks.

`cluster.json` in the cluster's folder holds it, so that the next start is as the last one was:

    {"brokers": 3, "first_port": 9092, "zookeeper_port": 2181, "racks": ["a", "b", "c"]}

Without racks, `racks` is empty or missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from ottla.cli.failures import Failed, UsageFailed
from ottla.testing.ports import claim, free_ports
from ottla.testing.zookeeper_server import ZooKeeperEnsemble

FILE_NAME: Final = "cluster.json"
DEFAULT_BROKERS: Final = 3
FIRST_PORT: Final = 9092
ZOOKEEPER_PORT: Final = 2181
OTHER_PORTS_TRIED: Final = 20
NUMBERS: Final = ("brokers", "first_port", "zookeeper_port")


@dataclass(frozen=True, slots=True)
class Layout:
    """What a cluster's folder says of it."""

    brokers: int
    first_port: int
    zookeeper_port: int
    """Where ZooKeeper is to serve while nobody else does."""
    racks: tuple[str, ...] = ()
    """One for each broker, or none at all."""

    @property
    def ports(self) -> list[int]:
        return list(range(self.first_port, self.first_port + self.brokers))


def chosen_layout(
    data: Path, brokers: int | None, port: int | None, racks: str | None = None
) -> Layout:
    """The folder's layout with what was typed over it. Raises Failed."""
    known = read_layout(data)
    if known is None:
        if data.is_file():
            raise Failed(f"--data {data} is a file; it wants a folder.")
        known = Layout(brokers or DEFAULT_BROKERS, port or FIRST_PORT, ZOOKEEPER_PORT)
    elif brokers is not None and brokers < known.brokers:
        raise Failed(
            f"{data} holds a cluster of {known.brokers} brokers; with {brokers} some of its data "
            "would be missing.",
            f"Say --brokers {known.brokers} or nothing, or give another --data.",
        )
    chosen = Layout(
        brokers or known.brokers,
        port or known.first_port,
        known.zookeeper_port,
        known.racks if racks is None else read_racks(racks),
    )
    check_racks(chosen, typed=racks is not None)
    if chosen.first_port + chosen.brokers > 65536:
        raise Failed(f"--port {chosen.first_port} leaves no room for {chosen.brokers} brokers.")
    return chosen


def read_racks(text: str) -> tuple[str, ...]:
    """`a,b,c` as names. Raises UsageFailed."""
    racks = tuple(each.strip() for each in text.split(","))
    if not all(racks):
        raise UsageFailed(
            f"--racks wants names with commas between, not {text!r}.",
            "For three brokers in two racks: --racks a,b,a",
        )
    return racks


def check_racks(layout: Layout, *, typed: bool) -> None:
    """Raises UsageFailed unless each broker has a rack, or none has."""
    count, brokers = len(layout.racks), layout.brokers
    if count in (0, brokers):
        return
    named = f"--racks names {count:,}" if typed else f"the folder's cluster has {count:,} racks"
    raise UsageFailed(
        f"{named} ({','.join(layout.racks)}) for {brokers:,} "
        f"broker{'' if brokers == 1 else 's'}; it takes one for each, in their order.",
        "Brokers may share one; give --racks " + ",".join((layout.racks * brokers)[:brokers]),
    )


def read_layout(data: Path) -> Layout | None:
    """What an earlier start wrote, or None. Raises Failed for a file that is not ours."""
    file = data / FILE_NAME
    try:
        found = json.loads(file.read_text())
        numbers = {name: int(found[name]) for name in NUMBERS}
        return Layout(**numbers, racks=tuple(map(str, found.get("racks", ()))))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Failed(f"{file} cannot be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError):
        raise Failed(
            f"{file} is not what `ottla cluster start` writes.", "Give another --data."
        ) from None


def write_layout(data: Path, layout: Layout) -> None:
    (data / FILE_NAME).write_text(json.dumps(asdict(layout), indent=2) + "\n")


@contextmanager
def claimed(layout: Layout, data: Path, *, own_zookeeper: bool) -> Iterator[Layout]:
    """The layout with its ports held: another start that begins now gets none of them.

    Brokers have the ports that they were given: Failed where one is in use. ZooKeeper, of whose
    port nobody has asked anything, goes to another.
    """
    with ExitStack() as holding:
        # In ascending order: of two that want the same ports, one gets all of its own.
        for number, port in enumerate(layout.ports, 1):
            holder = claim(port)
            if holder is None:
                raise Failed(
                    f"port {port}, wanted for broker {number}, is in use.",
                    "Stop what listens there, or give --port FIRST.",
                )
            holding.enter_context(holder)
        if own_zookeeper:
            layout = replace(layout, zookeeper_port=zookeeper_port(layout, data, holding))
        yield layout


def zookeeper_port(layout: Layout, data: Path, holding: ExitStack) -> int:
    """The layout's port or, where that is in use, a free one. Raises Failed."""
    wanted = layout.zookeeper_port
    for port in (wanted, *free_ports(OTHER_PORTS_TRIED)):
        if (holder := claim(port)) is not None:
            holding.enter_context(holder)
            return port
        # Where the kernel does not end our children with us, a killed start leaves them.
        if port == wanted and ZooKeeperEnsemble(data, 1, port).servers[0].is_serving():
            raise Failed(
                f"the ZooKeeper of {data} runs still, on port {port}: its start was killed.",
                "End that process, or give another --data.",
            )
    raise Failed("there is no free port for ZooKeeper.")
