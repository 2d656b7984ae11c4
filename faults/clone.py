"""A copy of a running broker's data folder, as a backup or a cloned machine has it."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Final

from ottla.security.development.secure_folder import PROTOCOL
from ottla.testing.broker_process import SERVE, BrokerProcess
from ottla.testing.ports import HOST, free_ports

_OF_ADDRESSES: Final = ("listener", "advertised.listeners", "inter.broker.listener")
"""Settings that begin with these belong to the original's ports."""


def clone_of(broker: BrokerProcess, folder: Path, zookeeper: str) -> BrokerProcess:
    """A broker with the id, the settings and a copy of the data of one that runs, on another port;
    not started."""
    _copy(broker.data, folder)
    address = f"{HOST}:{free_ports(1)[0]}"
    return BrokerProcess(
        folder, _options(broker.options, zookeeper, address), address, program=SERVE
    )


def _options(options: list[str], zookeeper: str, address: str) -> list[str]:
    kept = ["--id", options[options.index("--id") + 1], "--zookeeper", zookeeper]
    for name, value in pairwise(options):
        if name == "-c" and not value.startswith(_OF_ADDRESSES):
            kept += ["-c", value]
        if name == "--properties":  # of a secured cluster
            kept += [name, value, "-c", f"listeners={PROTOCOL}://{address}"]
    return kept


def _copy(source: Path, target: Path) -> None:
    """Without the files that vanish meanwhile."""
    for folder, _, names in os.walk(source):
        to = target / Path(folder).relative_to(source)
        to.mkdir(parents=True, exist_ok=True)
        for name in names:
            with suppress(FileNotFoundError):
                shutil.copyfile(Path(folder) / name, to / name)
