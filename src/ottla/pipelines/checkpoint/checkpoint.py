"""Spark's own files in a checkpoint, as far as they say where a query stands.

    metadata       {"id": "<query id>"}
    sources/<n>/0  where source n started: a zero byte, "v1", then offsets as JSON
    offsets/<b>    planned batch b: "v1", settings as JSON, then the end of each source, a line each
    commits/<b>    batch b is done

Beside them `ottla-noted.json`, one JSON object, has the last batch that at-most-once began:

    {"version": 1, "id": "<query id>", "batch": b, "since": n}

Batches from n on have their numbers in the target. A version that wrote them without left `since`
out.

A batch that is planned and not done is run again. `replace` moves all of it to `replaced-<n>/`,
so that a new query begins: offsets/ goes first, and a crash leaves a checkpoint without a plan,
whose remaining files the next start moves as well.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final, TypeAlias

from ottla.pipelines.checkpoint.document import Document
from ottla.pipelines.checkpoint.identity import Offsets, read_offsets
from ottla.pipelines.checkpoint.next_batch import Planned
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.locations import shown_location
from ottla.pipelines.spark.jvm.files import DamagedFileError, Files

Position: TypeAlias = tuple[str, int | None, int | None]

_STATE: Final = ("offsets", "commits", "sources", "state", "metadata")
_INSTEAD: Final = "Restore the whole checkpoint, or use a new one"


@dataclass(frozen=True, slots=True)
class _Noted:
    """The last batch that at-most-once began, and the first one with its number in the target."""

    id: str
    batch: int
    since: int | None


_NOTE: Final = Document(
    "ottla-noted.json",
    lambda document: _Noted(
        document["id"],
        int(document["batch"]),
        int(document["since"]) if "since" in document else None,
    ),
    asdict,
)


class Checkpoint:
    """One checkpoint's folder."""

    def __init__(self, files: Files) -> None:
        self.files = files

    def check(self) -> None:
        """Check that what Spark reads at a start is there, and whole.

        Without `metadata` Spark would go on under another id, by which no target knows a batch. A
        folder that is copied while its query runs may lack batches that it has as done. Raises
        PipelineError.
        """
        planned, done = self.planned(), self.done()
        query_id = self.query_id()
        if planned is None:
            return
        where = shown_location(self.files.location)
        if not query_id:
            raise PipelineError(
                f"The checkpoint {where} has batches, and lacks the file metadata, which names "
                f"their query. {_INSTEAD}"
            )
        if done is not None and done > planned:
            raise PipelineError(
                f"The checkpoint {where} has batch {done} as done, and plans up to {planned} "
                f"alone: files are missing in {where}/offsets, as in a folder that was copied "
                f"while its query ran. {_INSTEAD}"
            )
        self._check_lines(f"offsets/{planned}", 3)
        if done is not None:
            self._check_lines(f"commits/{done}", 2)
        if planned > 0:
            self._check_lines(f"offsets/{planned - 1}", 3)  # Spark reads it, too

    def _check_lines(self, name: str, least: int) -> None:
        """Raise PipelineError where one of Spark's files has fewer lines, or broken JSON."""
        try:
            lines = (self.files.read(name) or "").splitlines()
            for line in lines:
                if line.startswith("{"):
                    json.loads(line)
        except (DamagedFileError, ValueError) as error:
            raise self._damaged(name) from error
        if len(lines) < least:
            raise self._damaged(name)

    def _damaged(self, name: str) -> PipelineError:
        return PipelineError(
            f"{shown_location(self.files.location)}/{name} is damaged or missing. {_INSTEAD}"
        )

    def query_id(self) -> str:
        """Return the query's id, empty until Spark has written it. Raises PipelineError."""
        try:
            text = self.files.read("metadata")
            return "" if text is None else str(json.loads(text)["id"])
        except (DamagedFileError, ValueError, KeyError, TypeError) as error:
            raise self._damaged("metadata") from error

    def planned(self) -> int | None:
        """Return the last batch that was planned, None when there is none."""
        return self._last("offsets")

    def done(self) -> int | None:
        """Return the last batch that is done, None when there is none."""
        return self._last("commits")

    def begun_ms(self) -> int | None:
        """Return when the batch that is planned and not done began, in ms since 1970.

        None when there is no such batch.
        """
        return None if self.planned() == self.done() else self.last_ms()

    def last_ms(self) -> int | None:
        """Return when the last batch that was planned began, in ms since 1970, None without one."""
        lines = self._planned_lines()
        return int(json.loads(lines[1])["batchTimestampMs"]) if len(lines) > 1 else None

    def position(self) -> Position:
        """Return where the checkpoint stands: the query's id, the last batches planned and done."""
        return self.query_id(), self.planned(), self.done()

    def plans(self, checkpoint: str) -> Planned:
        """Return the batch that comes next: planned and not done, or the one after the last.

        `checkpoint` names the checkpoint in sentences.
        """
        planned, done = self.planned(), self.done()
        if planned is None:
            return Planned(checkpoint, 0)
        begins = self.begins()
        if done is not None and done >= planned:
            return Planned(checkpoint, planned + 1, begins)
        return Planned(checkpoint, planned, begins, self.ends(planned))

    def begins(self, *, is_delivered: bool = False) -> Offsets:
        """Return the offsets at which the batch that comes next begins; none in a new checkpoint.

        `is_delivered`: that batch is delivered, though Spark may not have noted it as done.
        """
        planned, done = self.planned(), self.done()
        if planned is None:
            return {}
        is_done = is_delivered or (done is not None and done >= planned)
        return self.ends(planned) if is_done else self._start_of(planned)

    def started(self) -> Offsets:
        """Return where a query that Spark has started and that has no batch yet begins."""
        is_new = self.planned() is None and self.query_id() != ""
        return self._start_of(0) if is_new else {}

    def ends(self, batch: int) -> Offsets:
        """Return where a planned batch ends."""
        return _read_batch(self.files.read(f"offsets/{batch}") or "")

    def count_sources(self) -> int:
        """Return how many sources the planned batches have, those of other makers included."""
        return len(self._planned_lines()[2:])

    def topics_by_number(self) -> list[list[str]]:
        """Return the topics of each source in the planned batches, none of one that is no topic."""
        return [list(_topics_in(line)) for line in self._planned_lines()[2:]]

    def _planned_lines(self) -> list[str]:
        """Return the lines of the last batch that was planned: version, metadata, each source."""
        planned = self.planned()
        text = "" if planned is None else self.files.read(f"offsets/{planned}") or ""
        return text.splitlines()

    def _start_of(self, batch: int) -> Offsets:
        if batch:
            return self.ends(batch - 1)
        found: Offsets = {}
        for number in self.files.names("sources"):
            text = self.files.read(f"sources/{number}/0") or ""
            _merge(found, text.partition("\n")[2])
        # A partition that had no record yet is not in the first offsets, but in the batch's end.
        for topic, partitions in self.ends(batch).items():
            for partition in partitions:
                found.setdefault(topic, {}).setdefault(partition, 0)
        return found

    def noted(self, query_id: str) -> int:
        """Return the last batch of this query that was noted before its write, -1 for none."""
        note = self._note(query_id)
        return -1 if note is None else note.batch

    def note(self, query_id: str, batch: int) -> None:
        """Note a batch before its write: it will not be written again."""
        note = self._note(query_id)
        since = batch if note is None or note.since is None else note.since
        _NOTE.write(self.files, _Noted(query_id, batch, since))

    def _note(self, query_id: str) -> _Noted | None:
        note = _NOTE.read(self.files)
        return note if note is not None and note.id == query_id else None

    def promised(self, query_id: str) -> int | None:
        """Return the last batch that the target must have, None where there is none.

        One that at-most-once began and is done is there, with or without its rows, unless a version
        wrote it that did not number such batches.
        """
        done, note = self.done(), self._note(query_id)
        if done is None or note is None or done > note.batch:
            return done
        return done if note.since is not None and done >= note.since else None

    def next_replaced(self) -> int:
        """Return the number of the next `replaced-<n>`."""
        numbers = [
            int(name.removeprefix("replaced-"))
            for name in self.files.names()
            if name.removeprefix("replaced-").isdigit() and name.startswith("replaced-")
        ]
        return max(numbers, default=0) + 1

    def replace(self, number: int) -> None:
        """Move the query's state away; after a crash in between, move what is left."""
        for name in _STATE:
            if self.files.exists(name):
                self.files.move(name, f"replaced-{number}/{name}")

    def _last(self, folder: str) -> int | None:
        return max((int(n) for n in self.files.names(folder) if n.isdigit()), default=None)


def _read_batch(text: str) -> Offsets:
    found: Offsets = {}
    for line in text.splitlines()[2:]:
        _merge(found, line)
    return found


def _merge(found: Offsets, line: str) -> None:
    """Add the offsets of one source; a topic that two sources read stands at the first of both."""
    for topic, partitions in read_offsets(_topics_in(line)).items():
        known = found.setdefault(topic, {})
        for partition, offset in partitions.items():
            known[partition] = min(offset, known.get(partition, offset))


def _topics_in(line: str) -> dict[str, dict[str, int]]:
    """Return the offsets of one source by topic, nothing of one that is not Kafka's."""
    document = json.loads(line) if line.startswith("{") else {}
    is_kafkas = all(isinstance(value, dict) for value in document.values())
    return document if is_kafkas else {}
