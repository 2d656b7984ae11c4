"""Checks a data folder with Apache Kafka's log dump tool.

The tool prints mismatches on stderr but exits with 0, so this module reads its output. Deep
iteration prints "-1 is followed by N" for the first batch of a later segment, which is not a fault.
It reports the preallocated time index of a running broker's active segment as corrupt, so the
broker must have stopped.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from components.apache_kafka import KafkaError, KafkaJars

TOOL = "org.apache.kafka.tools.DumpLogSegments"
FILES_AT_ONCE = 200
SIGNS_OF_FAULT = (
    "isvalid: false",
    "invalid bytes at the end",
    "Index offset:",
    "Index timestamp:",
    "Indexed offset:",
    "Non-consecutive offsets",
    "is followed by",
    "out of order",
    "Mismatches in",
    "Found timestamp mismatch",
    "Exception",
    "Ignoring unknown file",
)
# The tool does not say in which file it misses the offsets of a time index.
HEADINGS = (
    "Dumping ",
    "Mismatches in",
    "Non-consecutive offsets",
    "Found ",
    "The following indexed offsets are not found",
)


def faults_in(output: str) -> list[str]:
    """The lines that report a fault, each with the heading that names its file."""
    found: list[str] = []
    heading = ""
    for line in output.splitlines():
        if line.startswith(HEADINGS):
            heading = line
            if not line.startswith("Found ") or "invalid bytes" not in line:
                continue
        if line.strip().startswith("-1 is followed by"):
            continue
        if any(sign in line for sign in SIGNS_OF_FAULT):
            found.append(f"{heading} | {line.strip()}")
    return found


def _ask(jars: KafkaJars, files: Sequence[Path], *options: str) -> Iterator[str]:
    for start in range(0, len(files), FILES_AT_ONCE):
        names = ",".join(str(file) for file in files[start : start + FILES_AT_ONCE])
        try:
            output = jars.run(TOOL, "--files", names, *options, seconds=600)
        except KafkaError as fault:
            yield str(fault)
        else:
            yield from faults_in(output)


def faults(jars: KafkaJars, data: Path) -> list[str]:
    """All faults that the tool finds in the data folder of a stopped broker; [] if none.

    It reads every segment record by record, checks every index as at a start and entry by entry,
    reads every producer snapshot and transaction index, and decodes group offsets and the
    states of the transaction and share coordinators.
    """
    logs = sorted(path for path in data.glob("*/*.log") if path.stat().st_size)
    assert logs, f"there is no segment to check below {data}"
    indexes = sorted([*data.glob("*/*.index"), *data.glob("*/*.timeindex")])
    others = sorted([*data.glob("*/*.snapshot"), *data.glob("*/*.txnindex")])
    offsets = [path for path in logs if path.parent.name.startswith("__consumer_offsets")]
    states = [path for path in logs if path.parent.name.startswith("__transaction_state")]
    shares = [path for path in logs if path.parent.name.startswith("__share_group_state")]
    found = list(_ask(jars, logs, "--deep-iteration"))
    found += _ask(jars, indexes, "--index-sanity-check")
    found += _ask(jars, indexes, "--verify-index-only")
    found += _ask(jars, others)
    found += _ask(jars, offsets, "--offsets-decoder")
    found += _ask(jars, states, "--transaction-log-decoder")
    found += _ask(jars, shares, "--share-group-state-decoder")
    return found
