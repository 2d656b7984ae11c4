"""What happens around a pipeline: the shipped start and batches, on a Spark and targets in memory.

`World` has one topic, one target and checkpoints, and an action for each thing that can happen.
After each action `World` compares the target with the topic: no row is lost or doubled in silence.
A start that is refused, a batch that fails and a notice of `on_lost="skip"` are not silent.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import confluent_kafka
import pytest
from tests.pipelines.model import topics
from tests.pipelines.model.errors import QueryFailedError
from tests.pipelines.model.files import Killed, MemoryFiles, Steps
from tests.pipelines.model.iceberg import FakeTable, IcebergTarget, committing, set_written
from tests.pipelines.model.keyed import Records
from tests.pipelines.model.rejected import Beside, expectations, install_rejected
from tests.pipelines.model.spark import (
    SCHEMA,
    TOPIC,
    FakeExecution,
    Frame,
    Session,
    nothing,
)
from tests.pipelines.model.targets import (
    TARGETS,
    DatabaseTarget,
    DeltaStore,
    DeltaTarget,
    FakeConnection,
    FakeDeltaTable,
    FakeFileSink,
)
from tests.pipelines.model.truncations import install_truncations

from ottla.pipelines.checkpoint import lease, topic_watch
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.failures.cause import Cause
from ottla.pipelines.kafka.brokers import ClusterState, TopicState
from ottla.pipelines.kafka.settings import read_settings
from ottla.pipelines.rejects import left_out
from ottla.pipelines.run import (
    batch,
    begin,
    plan,
    query,
    specification,
    start,
)
from ottla.pipelines.run.guard import BatchFailedError
from ottla.pipelines.running import QUERIES
from ottla.pipelines.sinks.delta import merge, target
from ottla.pipelines.sinks.delta import sink as delta
from ottla.pipelines.sinks.files import sink as files
from ottla.pipelines.sinks.iceberg import sink as iceberg
from ottla.pipelines.sinks.postgresql import sink as jdbc
from ottla.pipelines.sinks.topic import one_transaction
from ottla.pipelines.sinks.topic import sink as topic
from ottla.pipelines.source.source import Source
from ottla.pipelines.target.commit_metadata import CommitMetadata
from ottla.pipelines.target.keyed_table import KeyedTable
from ottla.pipelines.target.port import Batch

KAFKA = read_settings("b:9092")
ONCE = "exactly-once"
AT_LEAST_ONCE = "at-least-once"
MAX_PARTITIONS = 3
TWICE = (
    "would write rows twice",
    "may have rows of it twice",
    "older rows may have replaced newer ones",
    "rows may be there twice",
)
"""What is said where rows are doubled."""
REPLAYED = "replayed"
"""In place of a topic's id: the rows of replays."""
CHECKPOINTS = ("a", "b")
KINDS = (
    *TARGETS,
    *("delta-upsert", "delta-marked", "delta-history"),
    *("iceberg-upsert", "iceberg-marked"),
    *("postgresql-upsert", "postgresql-marked"),
    *("delta-truncated", "iceberg-truncated", "postgresql-truncated"),
    *("delta-emptied", "iceberg-emptied", "postgresql-emptied"),
)
"""Targets, and kinds of tables with keys in them."""


class SilentError(AssertionError):
    """Rows were lost or doubled, and nobody said so."""


class Query:
    """`run.query.PipelineQuery` without its thread."""

    def __init__(
        self, start_query: Callable[[], Any], guard: Any, check_again: Callable[[], None] | None
    ) -> None:
        self._start_query = start_query
        self._check_again = check_again
        self.guard = guard
        self.current = start_query()
        self.isActive = True
        self.error = ""

    @property
    def id(self) -> str:
        return str(self.current.id)

    def start_again(self) -> None:
        """As the supervisor does after a failure that passes by itself."""
        if self._check_again is not None:
            self._check_again()
        self.current = self._start_query()

    def fail(self, reason: str) -> None:
        self.error, self.isActive = reason, False


class Run:
    """A process that runs the pipeline; `query` is None while it does not run.

    `is_blind`: somebody set the target back while it runs, which its next start finds.
    """

    def __init__(self, world: World, checkpoint: str, starting: str, on_lost: str) -> None:
        self.world = world
        self.checkpoint = checkpoint
        self.session = Session(world)
        self.starting, self.on_lost = starting, on_lost
        self.query: Query | None = None
        self.lease: lease.Lease | None = None
        self.is_blind = False
        self.is_busy = False
        self.topic_id = ""
        self.each = world.each

    def specification(self) -> Any:
        return SimpleNamespace(
            frame=Frame(self.session),
            target=self.world.path,
            checkpoint=f"/cp/{self.checkpoint}",
            trigger=None,
            delivery=self.world.delivery,
            schema_changes="refuse",
            on_lost=self.on_lost,
            on_rejects="continue",
            group=None,
            max_rejects=None,
            dead_letters=None,
            keyed_table=self.world.keyed,
            key_columns=self.world.keyed.keys if self.world.keyed else (),
            name=None,
            rebuild=None,
            time_zone="UTC",
            value_settings={},
            ends_by_itself=False,
            mode="append",
            expectations=expectations(self.each),
        )

    def start(self) -> str:
        """Start the pipeline; return the sentence that refuses it, empty where it runs."""
        world = self.world
        world.starting = self
        try:
            checked = self._plan()
            world.steps.step(self.session)  # somebody else may be quicker
            world.starting = self
            self.topic_id = checked.topic_ids[TOPIC]
            world.excuse(self, checked)
            self.query = start.start(checked)
        except PipelineError as error:
            return str(error)
        except QueryFailedError as error:
            return f"Spark: {error}"
        except Killed:
            return "killed"
        return ""

    def _plan(self) -> Any:
        world, path = self.world, self.world.path
        return plan.plan(self.specification(), lambda _: world.target.sink(self.session, path))

    def batch(self, most: int) -> str:
        """Run the next batch; return why the query failed, empty where it did not."""
        assert self.query is not None
        self.is_busy = True
        try:
            self.query.current.run(most)
        except (QueryFailedError, BatchFailedError) as error:
            self.query.isActive = False
            cause = self.query.guard.error
            if isinstance(cause, AttributeError | NameError | TypeError):
                raise cause from None  # a bug, of the model or of ours: every batch would fail
            return str(cause or error)
        except Killed:
            self.query.isActive = False
            return "killed"
        finally:
            self.is_busy = False
        return ""

    @property
    def rows(self) -> tuple[Any, ...]:
        """The records of the batch under way."""
        return () if self.query is None else self.world.positions(self.query.current.rows)

    @property
    def runs(self) -> bool:
        return self.query is not None and self.query.isActive and not self.session.dead

    @property
    def is_idle(self) -> bool:
        return self.runs and not self.is_busy


class World:
    """A topic, a target, checkpoints, and runs of one pipeline."""

    def __init__(self, kind: str, delivery: str) -> None:
        self.delivery = delivery
        self.steps = Steps()
        self.folders: dict[str, dict[str, str]] = {}
        self.runs: list[Run] = []
        self.starting: Run | None = None
        self.said: list[str] = []
        self.excused: set[Any] = set()
        self.twice: set[Any] = set()
        self.unseen: dict[str, set[Any]] = {}
        """Of queries whose run was killed before it could say so: rows that may be doubled."""
        self.backups: dict[str, Any] = {}
        self.begun: tuple[str, tuple[Any, ...]] | None = None  # a replay that was cut off
        self.each: int | None = None  # what is expected of the rows: see `rejected`
        self._has_changed = False
        self._beside: dict[str, Beside] = {}
        self.sessions = 0
        self.begins: dict[str, tuple[str, dict[int, int]]] = {}
        """Where each query began, and in which topic."""
        self._numbers = 0
        self._starts = 0
        self.topic_id = self.new_id("topic")
        self.first, self.ends = {0: 0}, {0: 0}
        self.kind, _, table = kind.partition("-")
        self.records = Records(table) if table else None
        self.target: Any = TARGETS[self.kind](self)
        self.path = ""
        self.renew()

    # ---- what Spark and the sinks ask for

    @property
    def keyed(self) -> KeyedTable | None:
        return None if self.records is None else self.records.keyed

    @property
    def schema(self) -> Any:
        """The columns of the frame."""
        return SCHEMA if self.records is None else self.records.frame

    @property
    def table_schema(self) -> Any:
        return SCHEMA if self.records is None else self.records.schema

    def positions(self, rows: Any) -> tuple[Any, ...]:
        """Return of which records rows are: of the frame, or of the target."""
        return tuple(rows) if self.records is None else self.records.positions(rows)

    @property
    def held(self) -> tuple[Any, ...]:
        """The records that the target has."""
        return self.positions(self.target.rows(self.path))

    def new_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def new_id(self, what: str) -> str:
        return f"{what}-{self.new_number()}"

    def new_query_id(self) -> str:
        return str(uuid.UUID(int=self.new_number()))

    def earliest(self) -> dict[int, int]:
        return dict(self.first)

    def next_ends(self, at: dict[int, int], most: int) -> dict[int, int]:
        ends = {}
        # A key moves to a partition that was added: its newer records are read first.
        for partition, end in sorted(self.ends.items(), reverse=self.records is not None):
            begin_at = at.get(partition, 0)
            if end < begin_at:
                raise QueryFailedError("some data may have been missed")
            ends[partition] = min(end, begin_at + most)
            most -= ends[partition] - begin_at
        if set(at) - set(ends):
            raise QueryFailedError("partitions are gone")
        return dict(sorted(ends.items()))

    def read(self, at: dict[int, int], ends: dict[int, int]) -> tuple[Any, ...]:
        rows: list[Any] = []
        for partition, end in ends.items():
            begin_at = at.get(partition, 0)
            if end < begin_at:  # KafkaOffsetReader.getOffsetRangesFromResolvedOffsets
                raise QueryFailedError("the offset was changed, some data may have been missed")
            if end > begin_at and not (
                self.first.get(partition, 0) <= begin_at and end <= self.ends.get(partition, 0)
            ):
                raise QueryFailedError("records are gone")
            rows += [(self.topic_id, partition, offset) for offset in range(begin_at, end)]
        return tuple(rows) if self.records is None else self.records.rows(rows)

    def look_up(self, kafka: Any, names: Any) -> ClusterState:
        state = TopicState(TOPIC, self.topic_id, dict(self.first), dict(self.ends))
        return ClusterState("cluster", {TOPIC: state})

    # ---- what can happen

    def append(self, partition: int, count: int) -> None:
        """Somebody produces records."""
        if self.records is None:
            self.ends[partition % len(self.ends)] += count
        else:
            self.records.send(self.topic_id, partition, self.ends, count)

    def add_partition(self) -> None:
        if len(self.ends) < MAX_PARTITIONS:
            self.first[len(self.ends)] = self.ends[len(self.ends)] = 0

    def recreate_topic(self, count: int) -> None:
        """Somebody deletes the topic, and creates it with so many records."""
        if self.kind in ("files", "topic") and self._has_copies():
            return  # they keep the offsets of batches alone, and both topics have the same
        self.topic_id = self.new_id("topic")
        self.first, self.ends = {0: 0}, {0: 0}
        self.append(0, count)

    def _has_copies(self) -> bool:
        """Whether two checkpoints or backups are of one query."""
        folders = [self.folders.get(f"/cp/{name}", {}) for name in CHECKPOINTS]
        ids = [one["metadata"] for one in (*folders, *self._kept()) if "metadata" in one]
        return len(set(ids)) < len(ids)

    def _kept(self) -> list[dict[str, str]]:
        return [kept for name, kept in self.backups.items() if name in CHECKPOINTS]

    def retention(self, count: int) -> None:
        """The oldest records of partition 0 are deleted."""
        self.first[0] = min(self.ends[0], self.first[0] + count)

    def start(self, checkpoint: str, starting: str = "earliest", on_lost: str = "stop") -> Run:
        """A process starts the pipeline on a checkpoint."""
        if starting == "table" and not self.target.can_start_from_table:
            starting = "earliest"
        on_lost = "stop" if self.kind == "topic" else on_lost
        run = Run(self, checkpoint, starting, on_lost)
        if self._begins_twice(checkpoint) or self._begins_again(checkpoint):
            return run
        self._starts += 1
        said = run.start()
        self._starts -= 1
        if said:
            self.said.append(said)
            if said != "killed":
                self._release(run)
        else:
            self.runs.append(run)
            self.check(run)
        self._see(run, said)
        self.audit()
        return run

    def batch(self, run: Run, most: int) -> None:
        """A process runs its next batch."""
        if not run.is_idle or self._begins_twice(run.checkpoint):
            return
        said = run.batch(most)
        if said:
            self.said.append(said)
            if said != "killed":
                self._release(run)
            if any(words in said for words in TWICE):
                self.twice |= set(self.held)
                if self.records is not None:  # older rows have replaced newer ones
                    self.excused |= set(self._records(self.ends))
        else:
            self.check(run)
        self._see(run, said)
        self.audit()

    def batch_cut_off(self, run: Run, most: int, after: Callable[[], None]) -> None:
        """A process commits its next batch, and is killed before it looks at the target again.

        `after` happens between the two. What the process would have said its next start says.
        """

        def cut_off(session: Session) -> None:
            assert run.query is not None
            if self.records is None:  # others may double these later
                self.unseen.setdefault(run.query.id, set()).update(run.rows)
            after()
            session.dead = True

        self.steps.after_commit = cut_off
        self.batch(run, most)
        self.steps.after_commit = None

    def _see(self, run: Run, said: str) -> None:
        """A start, or the first batch of a query after it, says that rows are doubled."""
        text = self.folders.get(f"/cp/{run.checkpoint}", {}).get("metadata")
        unseen = self.unseen.get(json.loads(text)["id"] if text else "", set())
        if said and said != "killed":
            if any(words in said for words in TWICE):
                self.twice |= unseen
        elif run.runs and run.query is not None and self.delivery != AT_LEAST_ONCE:
            query = run.query.current
            is_first = query.number == 0 and query.is_planned  # it is looked at after the batch
            if not is_first and (twice := (unseen & self._doubled()) - self.twice):
                raise SilentError(
                    f"doubled: {sorted(twice)[:5]} before a kill, and a start goes on"
                )

    def replay(self, count: int) -> None:
        """A process sends rejected rows again, or ends what the last one has begun.

        The pipeline is stopped: a replay has its checkpoint.
        """
        if self.records is not None or any(run.runs for run in self.runs):
            return
        if self.begun is None:
            rows = tuple((REPLAYED, 0, self.new_number()) for _ in range(count))
            self.begun = self.new_id("replay"), rows
        replay_id, rows = self.begun
        session = Session(self)
        text = CommitMetadata("replay", replay_id, 0, "", {}, {}).text()
        try:
            sink = self.target.sink(session, self.path)
            sink.make()
            sink.write(Frame(session, rows), Batch(replay_id, 0, text, is_replay=True))
        except Killed:
            self.audit()
            return
        self.begun = None
        if missing := set(rows) - set(self.held):
            raise SilentError(f"lost: {sorted(missing)} were sent again")
        self.audit()

    def stop(self, run: Run) -> None:
        """A process ends as it should."""
        if run.is_idle and run.query is not None:
            run.query.isActive = False
            self._release(run)

    def _release(self, run: Run) -> None:
        if run.lease is not None:
            with contextlib.suppress(Killed):
                run.lease.release()

    def kill(self, run: Run) -> None:
        run.session.dead = True

    def restart(self, run: Run) -> None:
        """Spark's query failed for something that passes: the process starts it again."""
        if not run.is_idle or run.query is None:
            return
        try:
            run.query.start_again()
            run.is_blind = run.is_blind and run.query.current.number < 0
            self.check(run)
        except (PipelineError, QueryFailedError) as error:
            run.query.fail(str(error))
            self.said.append(str(error))
        except Killed:
            self.said.append("killed")
        self.audit()

    def beat(self, run: Run) -> None:
        """The lease of a run is renewed; the run ends where another one has it."""
        if not run.runs or run.lease is None or run.query is None:
            return
        try:
            reason = run.lease.renew()
        except Killed:
            return
        if reason:
            run.query.fail(reason)
            self.said.append(reason)

    def freeze(self, checkpoint: str) -> None:
        """The process that has the lease is on another machine, and beats no more."""
        folder = self.folders.get(f"/cp/{checkpoint}", {})
        if text := folder.get(lease.FILE):
            folder[lease.FILE] = json.dumps(json.loads(text) | {"host": "elsewhere"})

    def expect(self, each: int | None) -> None:
        """The user expects something else of the rows, from the next start on.

        Not where a checkpoint has copies: what a copy decided, the checkpoint does not say.
        """
        if self.records is not None or self.kind == "topic" or self._has_copies():
            return
        self._has_changed = self._has_changed or each != self.each
        self.each = each

    def beside(self, path: str) -> Beside:
        """Return the rejected rows beside a target."""
        return self._beside.setdefault(path, Beside())

    def copy_checkpoint(self, of: str, to: str) -> None:
        if self._has_changed:
            return
        copied = dict(self.folders.get(f"/cp/{of}", {}))
        copied.pop(lease.FILE, None)
        self.folders[f"/cp/{to}"] = copied

    def forget_checkpoint(self, checkpoint: str) -> None:
        self.folders.pop(f"/cp/{checkpoint}", None)

    def back_up_checkpoint(self, checkpoint: str) -> None:
        if self._has_changed:
            return
        self.backups[checkpoint] = dict(self.folders.get(f"/cp/{checkpoint}", {}))

    def restore_checkpoint(self, checkpoint: str) -> None:
        """A backup is restored, while nothing runs on the checkpoint."""
        if checkpoint in self.backups and not self.running_on(checkpoint):
            restored = dict(self.backups[checkpoint])
            restored.pop(lease.FILE, None)
            self.folders[f"/cp/{checkpoint}"] = restored

    def back_up_target(self) -> None:
        if self.kind != "topic":
            beside = self.beside(self.path).copied()
            self.backups["target"] = self.path, (self.target.backup(self.path), beside)

    def restore_target(self) -> None:
        """A backup of the whole target is restored: its folder or its database."""
        path, backup = self.backups.get("target", ("", None))
        if path == self.path:
            if self.kind in ("delta", "iceberg"):  # nobody takes away a folder that is written to
                for run in self.runs:
                    self.kill(run)
            rows, beside = backup
            self.target.restore(path, rows)
            self._beside[path] = beside.copied()
            self._blind()

    def restore_table(self, version: int) -> None:
        """RESTORE TABLE ... TO VERSION AS OF; one that takes out rows, and brings none back.

        Iceberg's tables are also compacted and tagged.
        """
        if isinstance(self.target, IcebergTarget) and self.target.change_table(self.path, version):
            self._blind()
        if isinstance(self.target, DeltaTarget):
            store = self.target.stores[f"file:{self.path}"]
            chosen = max(version % (store.latest + 1), store.first_known)
            if self._only_takes_out(store, chosen):
                store.restore(chosen)
                self._blind()

    def _only_takes_out(self, store: DeltaStore, version: int) -> bool:
        if self.records is None:
            return set(store.versions[version][2]) <= set(store.rows)
        return not any(restore for _, restore, _ in store.versions[version + 1 :])

    def compact(self) -> None:
        """Somebody compacts the table: a commit that is no batch's."""
        if isinstance(self.target, IcebergTarget):
            store = self.target.store(self.path)
            store.commit("", store.rows)
        if isinstance(self.target, DeltaTarget):
            table = self.target.stores[f"file:{self.path}"]
            table.versions.append(("", None, table.rows))

    def forget_history(self) -> None:
        """Delta removes old entries of the table's log, up to the first RESTORE; Iceberg expires
        snapshots.
        """
        if isinstance(self.target, IcebergTarget) and self.delivery != AT_LEAST_ONCE:
            self.begun = None  # the next replay refuses to go on: `replay.fits.check_known`
            # A batch in two snapshots is not known as such where one of them has expired.
            self.twice.update(*self.unseen.values())
            self.target.store(self.path).expire()
            self.backups.pop("target", None)  # its files are gone
        if isinstance(self.target, DeltaTarget) and self.delivery != AT_LEAST_ONCE:
            store = self.target.stores[f"file:{self.path}"]
            self.compact()  # the latest entry, which stays, may be of no batch
            # A start says that it would not notice a RESTORE which is forgotten.
            restores = (at for at, (_, one, _) in enumerate(store.versions) if one)
            store.first_known = max(store.first_known, next(restores, store.latest))
            self.backups.pop("target", None)  # it is older than Delta keeps the history

    def forget_writers(self) -> None:
        """A Delta table forgets the last batches of its writers: its owner has told it to."""
        if isinstance(self.target, DeltaTarget):
            self.target.stores[f"file:{self.path}"].forget_writers()

    def recreate_target(self) -> None:
        """Somebody drops the table or folder, and makes it again, while nothing runs."""
        if any(run.runs for run in self.runs):
            return
        self.backups.pop("target", None)
        self._make(one_in=2)
        self._blind()

    def _make(self, one_in: int) -> None:
        """Make the target, empty; some tables with keys have a column that is too narrow."""
        self.target.make(self.path)
        if self.records is not None:
            self.records.is_narrow = self.new_number() % one_in == 0
            if isinstance(self.target, DatabaseTarget):
                self.target.database.is_made = self.records.is_narrow

    def renew(self) -> None:
        """The user begins again: another target, and new checkpoints."""
        for run in self.runs:
            self.kill(run)
        self.runs.clear()
        self.begun = None
        self.unseen.clear()
        self.folders = {}
        self.backups.clear()
        self._has_changed = False
        self.excused = {
            (self.topic_id, partition, offset)
            for partition, first in self.first.items()
            for offset in range(first)
        }
        self.path = f"/lake/{self.new_id('t')}"
        self._make(one_in=5)
        if self.records is not None:
            self.records.moved.clear()

    # ---- what must hold

    def _begins_twice(self, checkpoint: str) -> bool:
        """Whether a new query would begin within the first batch of another one.

        Two that begin in the same second are not told from each other.
        """
        first = [
            run for run in self.runs if run.is_busy and run.query and run.query.current.number <= 0
        ]
        folder = self.folders.get(f"/cp/{checkpoint}", {})
        return bool(first) and "offsets/0" not in folder

    def _begins_again(self, checkpoint: str) -> bool:
        """Whether a new query would write into a topic that another one writes or has written.

        A topic takes them all, as the records of any producer.
        """
        if self.kind != "topic":
            return False
        folder = self.folders.get(f"/cp/{checkpoint}", {})
        if "metadata" in folder:
            group = topics.group_of(str(json.loads(folder["metadata"])["id"]))
            return bool(self.held) and group not in {of for of, _ in self.target.store.marks}
        others = any("metadata" in self.folders.get(f"/cp/{name}", {}) for name in CHECKPOINTS)
        return others or self._starts > 0 or bool(self.held)

    def running_on(self, checkpoint: str) -> list[Run]:
        return [run for run in self.runs if run.checkpoint == checkpoint and run.runs]

    def _blind(self) -> None:
        """Rows were taken out of the target; those that the topic has no longer are gone."""
        self.begun = None
        for run in self.runs:
            run.is_blind = True
        self.excused |= set(self._records(self.first)) - set(self.held)

    def excuse(self, run: Run, checked: Any) -> None:
        """A start with on_lost="skip" has said that records are lost, or it is the first one."""
        has_said = any("on_lost='skip' continues without" in one for one in checked.notices)
        assert not has_said or run.on_lost == "skip"
        rows = set(self.held)
        is_first = checked.starting and not any(row[0] == self.topic_id for row in rows)
        if has_said or (is_first and checked.replacing is None):
            self.excused |= set(self._records(self.first)) - rows
        if self.records is not None and checked.starting is not None:
            first = checked.starting.get(TOPIC, {})
            unread = [one for one in self._records(self.ends) if one[2] >= first.get(one[1], 0)]
            self.records.begin(unread, len(self.ends))

    def _records(self, ends: dict[int, int]) -> list[Any]:
        return [
            (self.topic_id, partition, offset)
            for partition, end in ends.items()
            for offset in range(end)
        ]

    def check(self, run: Run) -> None:
        """All records before the offsets of a run are in the target."""
        if run.query is None or run.is_blind or run.topic_id != self.topic_id:
            return
        query = run.query.current
        if query.number < 0 or (query.number == 0 and query.is_planned):
            return  # the first batch checks where it begins
        at = query.at
        wanted = [one for one in self._records(at) if one not in self.excused]
        if self.records is None:
            rows = set(self.held) | set(self.beside(self.path).rows)
            missing = [one for one in wanted if one not in rows]
        else:
            missing = self.records.missing(self.target.rows(self.path), wanted)
            self._check_truncated(query.id, wanted)
        if missing:
            raise SilentError(f"lost: {missing[:5]} are before {at}")

    def _check_truncated(self, query_id: str, before: list[Any]) -> None:
        """The table has no row that a truncation of the same query took away.

        A query that did not read the truncation does not know it.
        """
        assert self.records is not None
        topic_id, begin = self.begins[query_id]
        first = begin if topic_id == self.topic_id else {}
        read = [one for one in before if one[2] >= first.get(one[1], 0)]
        if kept := self.records.not_truncated(self.target.rows(self.path), read):
            raise SilentError(f"not truncated: {kept[:5]}")

    def audit(self) -> None:
        """No record is in the target twice, and none is changed."""
        if self.records and (wrong := self.records.wrong(self.target.rows(self.path))):
            raise SilentError(f"changed: {wrong}")
        if self.delivery != AT_LEAST_ONCE:
            twice = self._doubled() - self.twice
            if silent := twice.difference(*self.unseen.values()):
                raise SilentError(f"doubled: {sorted(silent)[:5]}")

    def _doubled(self) -> set[Any]:
        """Return the records that are in the target more than once."""
        rows = self.held
        if len(set(rows)) == len(rows):
            return set()
        return {row for row in rows if rows.count(row) > 1}


CURRENT: list[World] = []
"""The world in which the shipped code runs now."""


class ModelLease(lease.Lease):
    """The lease of the run that starts now, without the wait for a run on another host."""

    def acquire(self, *, watch_s: float = 0.0) -> None:
        world = CURRENT[-1]
        assert world.starting is not None
        run = world.starting
        super().acquire(watch_s=watch_s)
        run.lease = self


class BatchLog:
    """What batches say: the rows that at-most-once leaves out are not missing in silence."""

    def warning(self, message: str, *_: Any) -> None:
        if "does not write it again" in message:
            for run in CURRENT[-1].runs:
                if run.is_busy:
                    CURRENT[-1].excused |= set(run.rows)


class _NoThread:
    def __init__(self, **_: Any) -> None: ...

    def start(self) -> None: ...


def install(patch: pytest.MonkeyPatch) -> None:
    """Put what is in memory instead of Spark, the brokers and the targets."""
    import threading

    def source_of(frame: Frame) -> list[tuple[int, Source]]:
        world = CURRENT[-1]
        assert world.starting is not None
        tombstones: Any = "mark" if world.keyed else "keep"
        source = Source(
            TOPIC, KAFKA, {"value": SCHEMA}, world.starting.starting, tombstones=tombstones
        )
        return [(0, source)]

    def write_initial_offsets(spark: Any, location: str, number: int, first: Any) -> None:
        text = json.dumps(
            {name: {str(p): at for p, at in of.items()} for name, of in first.items()}
        )
        MemoryFiles(spark, location).write(f"sources/{number}/0", f"\0v1\n{text}")

    def supervised(
        start_query: Callable[[], Any], guard: Any, *_: Any, check_again: Callable[[], None] | None,
        **__: Any,
    ) -> Query:  # fmt: skip
        return Query(start_query, guard, check_again)

    own = SimpleNamespace(Thread=_NoThread, Event=threading.Event, Lock=threading.Lock)
    patch.setattr(lease, "threading", own)
    patch.setattr(topic_watch, "INTERVAL_S", 0.0)
    patch.setattr(plan, "sources_of", source_of)
    patch.setattr(plan, "topics_read", lambda _: {TOPIC})
    patch.setattr(plan, "look_up", lambda kafka, names: CURRENT[-1].look_up(kafka, names))
    patch.setattr(plan, "Files", MemoryFiles)
    patch.setattr(specification, "require_jvm", nothing)
    patch.setattr(start, "route_failures", nothing)
    patch.setattr(start, "nodes", nothing)
    patch.setattr(start, "topic_ids_now", lambda *_: lambda: {TOPIC: CURRENT[-1].topic_id})
    patch.setattr(start, "LogWatch", lambda *_: None)
    patch.setattr(start, "destination_of", lambda *_: None)
    patch.setattr(start, "local_files", lambda *_: contextlib.nullcontext())
    patch.setattr(begin, "Lease", ModelLease)
    patch.setattr(begin, "write_initial_offsets", write_initial_offsets)
    _install_topics(patch)
    install_rejected(patch)
    install_truncations(patch)
    patch.setattr(batch, "Execution", FakeExecution)
    patch.setattr(batch, "log", BatchLog())
    patch.setattr(query, "supervised", supervised)
    patch.setattr(delta, "DeltaTable", FakeDeltaTable)
    patch.setattr(delta, "now_ms", lambda: CURRENT[-1].target.now_ms(CURRENT[-1].path))
    patch.setattr(delta, "mark", lambda frame, *_: frame)
    patch.setattr(jdbc, "mark", lambda frame, *_: frame)
    patch.setattr(merge, "DeltaTable", FakeDeltaTable)
    patch.setattr(merge, "is_same", lambda *_: False)
    patch.setattr(merge, "broadcast_limit_bytes", lambda _: 0)
    patch.setattr(delta, "StateAhead", lambda _: SimpleNamespace(give=nothing, prepare=nothing))
    patch.setattr(target, "DeltaTable", FakeDeltaTable)
    patch.setattr(target, "Files", MemoryFiles)
    patch.setattr(iceberg, "LoadedTable", FakeTable)
    patch.setattr(iceberg, "load", FakeTable)
    patch.setattr(iceberg, "require_catalog", nothing)
    patch.setattr(iceberg, "check_published", nothing)
    for sink in (delta.DeltaSink, iceberg.IcebergSink, jdbc.JdbcSink):
        patch.setattr(sink, "rejected_metadata", lambda _: ())
    patch.setattr(iceberg, "committing", committing)
    patch.setattr(iceberg, "set_written", set_written)
    patch.setattr(iceberg, "mark", lambda frame, *_: frame)
    patch.setattr(iceberg, "is_same", lambda *_: False)
    patch.setattr(jdbc, "Connection", FakeConnection)
    patch.setattr(jdbc, "copy_line", nothing)
    patch.setattr(jdbc, "chunks_of", lambda frame: frame.rows)
    patch.setattr(files, "Files", MemoryFiles)
    patch.setattr(files, "SparkFileSink", FakeFileSink)


class FakeBrokers:
    """`kafka.brokers.Brokers` of the topic that is written."""

    def __init__(self, kafka: Any) -> None:
        self._store = CURRENT[-1].target.store

    def committed(self, group: str, topic: str, partitions: Any) -> list[str]:
        return [self._store.marks.get((group, number), "") for number in partitions]

    settled = committed

    def setting(self, name: str) -> None:
        return None

    def topic_ids(self, names: list[str]) -> dict[str, str]:
        return {topics.NAME: self._store.id}


def _install_topics(patch: pytest.MonkeyPatch) -> None:
    for module in (begin, topic):
        patch.setattr(module, "Brokers", FakeBrokers)
    patch.setattr(topic, "look_up", lambda *of: CURRENT[-1].target.look_up(*of))
    patch.setattr(topic, "Files", MemoryFiles)
    patch.setattr(left_out, "find_part", lambda *_, **__: None)
    patch.setattr(topic, "in_tasks", topics.in_tasks)
    patch.setattr(topic, "fields_of", lambda tasks: tasks)
    patch.setattr(topic, "_send_by_value", nothing)
    patch.setattr(confluent_kafka, "Producer", topics.FakeProducer)
    patch.setattr(confluent_kafka, "Consumer", topics.FakeConsumer)
    patch.setattr(one_transaction, "BatchProducer", topics.FakeBatchProducer)
    patch.setattr(one_transaction, "has_producers", lambda _: True)
    patch.setattr(one_transaction, "computes_once", topics.computes_once)
    patch.setattr(one_transaction, "kafka_failure", lambda error: Cause("Fenced", str(error)))
    patch.setattr(one_transaction, "may_pass", lambda *_: False)
    write = one_transaction.OneTransaction.write
    patch.setattr(one_transaction.OneTransaction, "write", topics.running(write))


@contextlib.contextmanager
def in_world(kind: str, delivery: str = ONCE) -> Iterator[World]:
    """Give a new world, in which the shipped code runs until the end of the block."""
    world = World(kind, delivery)
    CURRENT.append(world)
    before = set(QUERIES)
    try:
        yield world
    finally:
        CURRENT.pop()
        for query_id in set(QUERIES) - before:
            del QUERIES[query_id]
