"""`python -m conformance.messages`: the versions of each request of Apache Kafka beside Ottla's.

`--write` writes the messages that kio does not have yet into `ottla.protocol.newer`.
"""

import argparse
import sys
from pathlib import Path

from components.apache_kafka import VERSION, KafkaJars

from components import ivy, java
from conformance.messages.definitions import read
from conformance.messages.python_source import snake_case, source_of
from conformance.messages.versions import lines
from ottla.protocol import newer


def newer_modules(jars: KafkaJars) -> dict[str, str]:
    """The source of each module of `ottla.protocol.newer`, by its name."""
    found = {}
    for definition in read(jars).values():
        kind = definition.content["type"]
        name = snake_case(definition.name.removesuffix(kind.capitalize()))
        for version in newer.VERSIONS.get(name, ()):
            found[newer.module_name(name, version, kind)] = source_of(definition, version)
    return found


def write(jars: KafkaJars) -> None:
    """Write those modules."""
    folder = Path(newer.__file__).parent
    for name, source in newer_modules(jars).items():
        (folder / f"{name}.py").write_text(source)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m conformance.messages", description=__doc__)
    parser.add_argument("--ivy-settings", type=Path, help="an Ivy settings file, to name a mirror")
    parser.add_argument("--write", action="store_true", help="write what kio does not have")
    options = parser.parse_args()
    try:
        jars = KafkaJars.fetched(options.ivy_settings)
    except (ivy.FetchError, java.NoJavaError) as fault:
        print(f"conformance.messages: {fault}", file=sys.stderr)
        return 2
    if options.write:
        write(jars)
    print(f"Apache Kafka {VERSION}")
    for line in lines(read(jars)):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
