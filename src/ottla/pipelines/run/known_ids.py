"""Which schema each id of a registry has meant to a query so far.

`<checkpoint>/ottla-schemas.json`, one JSON object, replaced as a whole:

    {"version": 1, "schemas": {"<topic> <key or value>": {"<id>": "<digest of the schema>"}}}

A registry gives an id once. One that was reset, or that was replaced by another, gives the ids
again to other schemas, by which the records that are not read yet would be decoded: Avro's data
does not say what it is. Data of JSON names its fields, so it has no digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.checkpoint.document import Document, Folder
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.locations import shown_location

if TYPE_CHECKING:
    from ottla.pipelines.registry.framed import Framed
    from ottla.pipelines.source.source import Source

FILE: Final = "ottla-schemas.json"
MAX_IDS: Final = 10_000
"""Of one column: the greatest ids are kept."""
_DIGEST_LETTERS: Final = 16

Known = dict[str, dict[int, str]]


def check_ids(files: Folder, sources: Iterable[Source]) -> None:
    """Refuse ids that have meant another schema to this checkpoint. Raises PipelineError."""
    _checked(files, sources)


def note_ids(files: Folder, sources: Iterable[Source]) -> None:
    """Keep what the ids mean now, for later starts. Raises PipelineError as `check_ids` does."""
    now, known = _checked(files, sources)
    if not now:
        return
    every = {column: known.get(column, {}) | now.get(column, {}) for column in {**known, **now}}
    every = {column: dict(sorted(ids.items())[-MAX_IDS:]) for column, ids in every.items()}
    if every != known:
        _DOCUMENT.write(files, every)


def _checked(files: Folder, sources: Iterable[Source]) -> tuple[Known, Known]:
    """Return what the ids mean now, and what they have meant so far, which is read only where there
    are ids now. Raises PipelineError where one means another schema.
    """
    now = digests_of(sources)
    known = (_DOCUMENT.read(files) or {}) if now else {}
    for column, digests in now.items():
        before = known.get(column, {})
        changed = [one for one, digest in digests.items() if before.get(one, digest) != digest]
        if changed:
            where = shown_location(files.location)
            topic, _, part = column.rpartition(" ")
            raise PipelineError(
                f"The schema registry has another schema under the id {min(changed)} than when the "
                f"checkpoint {where} last read the {part} of topic {topic!r}: it was reset, or is "
                "another one, and records with that id could be read by the wrong schema. Use the "
                "former registry, or bring it back. Where all records of it are delivered, delete "
                f"{FILE} in {where}"
            )

    return now, known


def digests_of(sources: Iterable[Source]) -> Known:
    """Return a digest of each schema that a plan knows, by column and id. Pure."""
    found: Known = {}
    for source in sources:
        for name, framed in source.framed.items():
            if digests := _digests(framed):
                found.setdefault(f"{source.name} {name}", {}).update(digests)
    return found


def _digests(framed: Framed) -> dict[int, str]:
    texts = {branch.id: branch.writer for branch in framed.branches if branch.writer}
    return {
        id_: hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LETTERS]
        for id_, text in texts.items()
    }


def _parse(document: dict[str, Any]) -> Known:
    return {
        str(column): {int(id_): str(digest) for id_, digest in ids.items()}
        for column, ids in document["schemas"].items()
    }


_DOCUMENT: Final = Document(
    FILE,
    _parse,
    lambda known: {"schemas": known},
    if_damaged="Restore it, or delete it where the schema registry is still the same",
)
