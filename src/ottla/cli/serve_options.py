"""`ottla serve`: turns options into Kafka's property names and starts the broker.

Imports neither click nor rich nor a Kafka client (`main.py` says why).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.cli.failures import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    UsageFailed,
    as_failed,
)
from ottla.cli.wrapping import print_error
from ottla.wording.errors import ReportedError

if TYPE_CHECKING:
    from ottla.api.context import Broker
    from ottla.node.node import Node

    def _serves_handlers(node: Node) -> Broker:
        """The node has the parts that handlers use: the room of the node knows no handlers."""
        return node


# Each takes one value; `--config` is repeatable.
OPTION_NAMES: Final = {
    "--listen": "listen",
    "--advertise": "advertise",
    "--data": "data",
    "--id": "node_id",
    "--zookeeper": "zookeeper",
    "--rack": "rack",
    "--properties": "properties",
    "--config": "config",
    "-c": "config",
    "--log-level": "log_level",
}
FLAGS: Final = {
    "--quiet": "quiet",
    "-q": "quiet",
    "--secure": "secure",
    "--console": "console",
}
SECURE_PROTOCOL: Final = "SASL_SSL"
DEFAULT_ADDRESS: Final = "127.0.0.1:9092"
DEFAULT_DATA: Final = "ottla-data"
LOG_LEVELS: Final = ("debug", "info", "warning", "error")


@dataclass(slots=True)
class ServeOptions:
    """The options of `ottla serve`."""

    listen: str | None = None
    advertise: str | None = None
    data: str | None = None
    properties: str | None = None
    node_id: str | None = None
    zookeeper: str | None = None
    rack: str | None = None
    config: list[str] = field(default_factory=list)
    log_level: str | None = None
    quiet: bool = False
    secure: bool = False
    console: bool = False


def parse(words: Sequence[str]) -> ServeOptions | None:
    """Read serve's options; None if click should handle the command line."""
    options = ServeOptions()
    position = 0
    while position < len(words):
        if words[position] in FLAGS:
            setattr(options, FLAGS[words[position]], True)
            position += 1
            continue
        name, equals, value = words[position].partition("=")
        if not equals:
            position += 1
            if position == len(words):
                return None
            value = words[position]
        attribute = OPTION_NAMES.get(name)
        if attribute is None or (equals and not name.startswith("--")):
            return None
        if attribute == "config":
            options.config.append(value)
        elif getattr(options, attribute) is not None:
            return None
        else:
            setattr(options, attribute, value)
        position += 1
    return options


def level_of(options: ServeOptions) -> str:
    """The log level: as given, else warning with --quiet, else info. Raises UsageFailed."""
    given = options.log_level
    if given is None:
        return "warning" if options.quiet else "info"
    if given.lower() not in LOG_LEVELS:
        raise UsageFailed(f"--log-level must be one of {', '.join(LOG_LEVELS)}, not {given!r}.")
    return given.lower()


def listener(option: str, address: str, protocol: str = "PLAINTEXT") -> str:
    """`HOST:PORT` as Kafka's `PLAINTEXT://HOST:PORT`; an IPv6 host is in brackets."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise UsageFailed(
            f"{option} must be HOST:PORT with a port from 0 to 65535, not {address!r}.",
            f"For example: ottla serve {option} 127.0.0.1:9092",
        )
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return f"{protocol}://{host}:{int(port)}"


def to_properties(options: ServeOptions) -> dict[str, str]:
    """The broker's properties: from the file, then `--config`, then other options; later ones
    override.

    Unset properties keep the broker's defaults. Raises UsageFailed or ConfigError with one line
    that says what was given and what is allowed.
    """
    properties: dict[str, str] = {}
    if options.properties is not None:
        # Imported late: most brokers start without a file.
        from ottla.config.properties import read_properties

        properties = read_properties(options.properties)
    if options.secure and options.listen is None and "listeners" in properties:
        raise UsageFailed(
            f"--secure sets listeners itself, and {options.properties} does too.",
            "Give the address as --listen HOST:PORT.",
        )
    own: dict[str, tuple[str, str]] = {}
    protocol = SECURE_PROTOCOL if options.secure else "PLAINTEXT"
    listen = options.listen or (DEFAULT_ADDRESS if options.secure else None)
    if listen is not None:
        option = "--secure" if options.listen is None else "--listen"
        own["listeners"] = (option, listener("--listen", listen, protocol))
        # Do not advertise the file's listener if --listen replaces it.
        properties.pop("advertised.listeners", None)
    if options.advertise is not None:
        advertised = listener("--advertise", options.advertise, protocol)
        own["advertised.listeners"] = ("--advertise", advertised)
    if options.data is not None:
        own["log.dirs"] = ("--data", options.data)
        properties.pop("log.dir", None)
    own |= _of_cluster(options)
    for pair in options.config:
        name, equals, value = pair.partition("=")
        name = name.strip()
        if not equals or not name:
            raise UsageFailed(
                f"--config must be name=value, not {pair!r}.",
                "For example: ottla serve --config num.partitions=3",
            )
        if name in own:
            raise UsageFailed(
                f"{own[name][0]} and --config {name} set the same property; give only one."
            )
        properties[name] = value.strip()
    properties.update({name: value for name, (_, value) in own.items()})
    return properties


def _of_cluster(options: ServeOptions) -> dict[str, tuple[str, str]]:
    """The options of a cluster member: properties with the option that sets them."""
    if options.zookeeper is not None and options.node_id is None:
        raise UsageFailed(
            "--zookeeper needs --id: each broker of a cluster has its own id.",
            "For example: ottla serve --id 1 --zookeeper 127.0.0.1:2181",
        )
    for option, given in (("--zookeeper", options.zookeeper), ("--rack", options.rack)):
        if given is not None and not given.strip():
            raise UsageFailed(
                f"{option} is empty: is a shell variable unset?",
                "Give it a value, or leave it out.",
            )
    own: dict[str, tuple[str, str]] = {}
    if options.node_id is not None:
        own["node.id"] = ("--id", options.node_id)
    if options.zookeeper is not None:
        own["zookeeper.connect"] = ("--zookeeper", options.zookeeper)
    if options.rack is not None:
        own["broker.rack"] = ("--rack", options.rack)
    return own


@contextmanager
def _not_imported(name: str) -> Iterator[None]:
    """Prevents the import of a module inside the block.

    If Hypothesis is installed, as in a developer's environment, kio imports it to register
    strategies: 0.3 s and 20 MB that no broker needs.
    """
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]


def _secured(
    options: ServeOptions, properties: dict[str, str]
) -> tuple[dict[str, str], Callable[[Node], AbstractAsyncContextManager[object]]]:
    """The properties with those of --secure, and what is done beside the broker. Raises
    ReportedError.
    """
    if "zookeeper.connect" in properties:
        raise UsageFailed(
            "--secure is for one broker alone.",
            "For a cluster on this machine: ottla cluster start --secure. "
            "Otherwise docs/security.md has the settings.",
        )
    # Imported late: other brokers make no certificates.
    from ottla.cli.secured_broker import beside, own_profile, secured
    from ottla.client.profiles import ProfileError, profiles_file, read_profiles
    from ottla.security.development.secure_folder import check_given

    check_given(properties)
    addresses = [each for each in (options.listen, options.advertise) if each is not None]
    data = properties.get("log.dirs") or properties.get("log.dir") or DEFAULT_DATA
    folder = secured(Path(data.partition(",")[0]), addresses)

    def say(text: str) -> None:
        if not options.quiet:
            print(text, flush=True)

    opened: Callable[[Node], AbstractAsyncContextManager[object]]
    opened = beside(folder, say, print_error)
    if options.console:
        # Imported late: other brokers have no console.
        from ottla.cli.console_beside import check_installed, secured_beside

        check_installed()

        def profile() -> str | None:
            try:
                return own_profile(folder, read_profiles(profiles_file()).by_name)
            except ProfileError:  # it was said when it could not be written
                return None

        opened = secured_beside(beside(folder, say, print_error), profile, print_error)
    return properties | folder.broker_settings(), opened


def _print_failure(why: str) -> None:
    print_error(why, "ottla serve: ")


def run(options: ServeOptions) -> int:
    """Run the broker until it is told to stop; returns the exit code."""
    from ottla.config.error import ConfigError

    try:
        properties, level = to_properties(options), level_of(options)
        with _not_imported("hypothesis"):
            from ottla.api.table import HANDLERS
            from ottla.node.serve import serve

        beside: Callable[[Node], AbstractAsyncContextManager[object]] = nullcontext
        if options.secure:
            properties, beside = _secured(options, properties)
        elif options.console:
            # Imported late: other brokers have no console.
            from ottla.cli.console_beside import check_installed, console_beside

            check_installed()
            beside = console_beside
        return serve(
            properties,
            HANDLERS,
            log_level=level,
            announce=not options.quiet,
            beside=beside,
            print_failure=_print_failure,
        )
    except ReportedError as error:
        failure = as_failed(error)
        failure.print("ottla serve")
        return failure.exit_code
    except ConfigError as error:
        _print_failure(str(error))
        return EXIT_USAGE
    except OSError as error:
        # A port in use, someone else's folder, a full disk: not a bug of the broker.
        _print_failure(str(error))
        return EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
