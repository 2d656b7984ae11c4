"""The layout of a cluster that `ottla cluster start` runs: brokers, their ports and their racks.

`cluster.json` in the cluster's folder stores it, so that the next start uses the same layout:

    {"brokers": 3, "first_port": 9092, "zookeeper_port": 2181, "racks": ["a", "b", "c"],
     "secure": false}

Without racks, `racks` is empty or missing. A folder of an older version has no `secure`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from ottla.devcluster.errors import DevClusterError, OptionError
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
    """The contents of a cluster's `cluster.json`."""

    brokers: int
    first_port: int
    zookeeper_port: int
    """The port for ZooKeeper, if it is free."""
    racks: tuple[str, ...] = ()
    """One per broker, or none at all."""
    secure: bool = False
    """Whether clients and brokers use TLS and passwords."""

    @property
    def ports(self) -> list[int]:
        return list(range(self.first_port, self.first_port + self.brokers))


def chosen_layout(
    data: Path,
    brokers: int | None,
    port: int | None,
    racks: str | None = None,
    *,
    secure: bool = False,
) -> Layout:
    """The stored layout, overridden by the options that were typed. Raises DevClusterError."""
    known = read_layout(data)
    if known is None:
        if data.is_file():
            raise DevClusterError(f"--data {data} is a file, not a folder.")
        known = Layout(brokers or DEFAULT_BROKERS, port or FIRST_PORT, ZOOKEEPER_PORT)
    elif brokers is not None and brokers < known.brokers:
        raise DevClusterError(
            f"{data} holds a cluster of {known.brokers} brokers; with {brokers}, some of its data "
            "would be missing.",
            f"Give --brokers {known.brokers}, leave it out, or give another --data.",
        )
    chosen = Layout(
        brokers or known.brokers,
        port or known.first_port,
        known.zookeeper_port,
        known.racks if racks is None else read_racks(racks),
        secure or known.secure,
    )
    check_racks(chosen, typed=racks is not None)
    if chosen.first_port + chosen.brokers > 65536:
        raise DevClusterError(
            f"--port {chosen.first_port} is too high for {chosen.brokers} brokers: ports end at "
            "65535."
        )
    return chosen


def read_racks(text: str) -> tuple[str, ...]:
    """`a,b,c` as names. Raises OptionError."""
    racks = tuple(each.strip() for each in text.split(","))
    if not all(racks):
        raise OptionError(
            f"--racks must be names separated by commas, not {text!r}.",
            "For three brokers in two racks: --racks a,b,a",
        )
    return racks


def check_racks(layout: Layout, *, typed: bool) -> None:
    """Raises OptionError unless every broker has a rack, or none has."""
    count, brokers = len(layout.racks), layout.brokers
    if count in (0, brokers):
        return
    named = f"--racks names {count:,}" if typed else f"the folder's cluster has {count:,} racks"
    raise OptionError(
        f"{named} ({','.join(layout.racks)}) for {brokers:,} "
        f"broker{'' if brokers == 1 else 's'}; it must name one per broker, in order.",
        "Brokers may share a rack. For example: --racks "
        + ",".join((layout.racks * brokers)[:brokers]),
    )


def read_layout(data: Path) -> Layout | None:
    """The layout of an earlier start, or None. Raises DevClusterError for an unknown file."""
    file = data / FILE_NAME
    try:
        found = json.loads(file.read_text())
        numbers = {name: int(found[name]) for name in NUMBERS}
        racks = tuple(map(str, found.get("racks", ())))
        return Layout(**numbers, racks=racks, secure=bool(found.get("secure", False)))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise DevClusterError(f"{file} cannot be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError):
        raise DevClusterError(
            f"{file} was not written by `ottla cluster start`.", "Give another --data."
        ) from None


def write_layout(data: Path, layout: Layout) -> None:
    (data / FILE_NAME).write_text(json.dumps(asdict(layout), indent=2) + "\n")


@contextmanager
def claimed(layout: Layout, data: Path, *, own_zookeeper: bool) -> Iterator[Layout]:
    """Hold the layout's ports, so that no other start can take them meanwhile.

    The brokers' ports are fixed: raises DevClusterError if one is in use. ZooKeeper moves to a free
    port if its own is in use, since no user configured it.
    """
    with ExitStack() as holding:
        # In ascending order: of two starts that want the same ports, one gets all of them.
        for number, port in enumerate(layout.ports, 1):
            holder = claim(port)
            if holder is None:
                raise DevClusterError(
                    f"port {port}, for broker {number}, is in use.",
                    "Stop the process that listens there, or give another --port.",
                )
            holding.enter_context(holder)
        if own_zookeeper:
            layout = replace(layout, zookeeper_port=zookeeper_port(layout, data, holding))
        yield layout


def zookeeper_port(layout: Layout, data: Path, holding: ExitStack) -> int:
    """The layout's port or, if it is in use, a free one. Raises DevClusterError."""
    wanted = layout.zookeeper_port
    for port in (wanted, *free_ports(OTHER_PORTS_TRIED)):
        if (holder := claim(port)) is not None:
            holding.enter_context(holder)
            return port
        # If the kernel does not end child processes with us, a killed start leaves them running.
        if port == wanted and ZooKeeperEnsemble(data, 1, port).servers[0].is_serving():
            raise DevClusterError(
                f"the ZooKeeper of {data} still runs on port {port}: its `cluster start` was "
                "killed.",
                "End that process, or give another --data.",
            )
    raise DevClusterError("no port is free for ZooKeeper.")
