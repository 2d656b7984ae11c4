"""The file of `ottla cluster reassign --file`: that of Kafka's `kafka-reassign-partitions.sh`.

    {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}, ...]}

Other fields, such as `log_dirs`, are refused if they ask for something that is not done here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from ottla.wording.errors import ReportedError

FORM: Final = (
    'It must be {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}]}.'
)
VERSION: Final = 1
ANY_FOLDER: Final = "any"


class ReassignmentFileError(ReportedError):
    """The file cannot be read, or is not such a file."""


def read_reassignments(path: Path) -> dict[str, dict[int, tuple[int, ...]]]:
    """The replicas of each partition in the file. Raises ReassignmentFileError."""
    try:
        document = json.loads(path.read_text())
    except OSError as error:
        raise ReassignmentFileError(f"cannot read {path}: {error.strerror or error}.") from None
    except (ValueError, RecursionError) as error:
        raise ReassignmentFileError(f"{path} is not JSON: {error}.", FORM) from None
    if not isinstance(document, dict) or not isinstance(document.get("partitions"), list):
        raise ReassignmentFileError(f"{path} has no list of partitions.", FORM)
    if document.get("version", VERSION) != VERSION:
        raise ReassignmentFileError(
            f"{path} has version {document['version']!r}; only {VERSION} is known.", FORM
        )
    found: dict[str, dict[int, tuple[int, ...]]] = {}
    for number, entry in enumerate(document["partitions"], 1):
        topic, index, replicas = _partition(path, number, entry)
        if index in found.setdefault(topic, {}):
            raise ReassignmentFileError(f"{path} names {topic}-{index} twice.")
        found[topic][index] = replicas
    if not found:
        raise ReassignmentFileError(f"{path} names no partition.", FORM)
    return found


def _partition(path: Path, number: int, entry: Any) -> tuple[str, int, tuple[int, ...]]:
    """One entry of the list; the first has the number 1."""
    given = entry if isinstance(entry, dict) else {}
    topic, index, replicas = (given.get(name) for name in ("topic", "partition", "replicas"))
    is_valid = (
        isinstance(topic, str)
        and _is_number(index)
        and isinstance(replicas, list)
        and all(map(_is_number, replicas))
    )
    if not is_valid:
        raise ReassignmentFileError(
            f"{path}: entry {number} of partitions is {json.dumps(entry)}.", FORM
        )
    assert isinstance(topic, str)
    assert isinstance(index, int)
    assert isinstance(replicas, list)
    if not replicas or len(set(replicas)) < len(replicas):
        reason = "names a broker twice" if replicas else "has no replicas"
        raise ReassignmentFileError(f"{path}: {topic}-{index} {reason}.", FORM)
    if any(each != ANY_FOLDER for each in given.get("log_dirs") or ()):
        raise ReassignmentFileError(
            f"{path}: {topic}-{index} names log_dirs, which this command does not move."
        )
    return topic, index, tuple(replicas)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
