"""Bugs to plant in the pipelines: walks through a world must find each of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final

import pytest
from tests.pipelines.model.iceberg import FakeTable
from tests.pipelines.model.truncations import after
from tests.pipelines.model.walk import CHANGES, CUT_OFF, WEIGHTS, Weights, walk
from tests.pipelines.model.world import ONCE, ModelLease, SilentError

from ottla.pipelines.checkpoint import changes
from ottla.pipelines.checkpoint import next_batch as rule
from ottla.pipelines.checkpoint.next_batch import Answer, Held, Planned, Refuse, Skip, Write
from ottla.pipelines.delivery import DeliveryGuarantee
from ottla.pipelines.rejects.decided import DECIDED
from ottla.pipelines.run import (
    batch,
    begin,
    decisions,
    first_offsets,
    next_offsets,
    plan,
    start,
    truncations,
)
from ottla.pipelines.sinks.delta import commits_of_query, merge
from ottla.pipelines.sinks.delta import sink as delta
from ottla.pipelines.sinks.delta.sink import DeltaSink
from ottla.pipelines.sinks.iceberg import sink as iceberg
from ottla.pipelines.sinks.iceberg.sink import IcebergSink
from ottla.pipelines.sinks.postgresql import sink as jdbc
from ottla.pipelines.sinks.postgresql import statements
from ottla.pipelines.sinks.topic import one_transaction
from ottla.pipelines.sinks.topic import sink as topic
from ottla.pipelines.sinks.topic import task as topic_task
from ottla.pipelines.target import changed_columns
from ottla.pipelines.target.upsert_statement import upsert_statement

AT_MOST_ONCE: Final = "at-most-once"
KEEP_REJECTS: Final = ("delta", "iceberg", "postgresql", "files")

EMPTIED: Final = ("delta-emptied", "iceberg-emptied", "postgresql-emptied")

Plant = Callable[[pytest.MonkeyPatch], None]


def first_seed(
    plant: Plant, patch: pytest.MonkeyPatch, kind: str, delivery: str, below: int
) -> int:
    """Return the first seed whose walk finds the bug, -1 if none does."""
    plant(patch)
    for seed in range(FIRST.get(plant, 0), below):
        try:
            walk(seed, kind, delivery, weights=AMONG.get(plant, WEIGHTS))
        except SilentError:
            return seed
    return -1


def _decide(change: Callable[[Planned, Held], tuple[Planned, Held]]) -> Any:
    def decide(planned: Planned, held: Held) -> Answer:
        return rule.decide(*change(planned, held))

    return decide


def no_check_of_the_age(patch: pytest.MonkeyPatch) -> None:
    """A checkpoint that is older than its target goes on."""

    def decide(planned: Planned, held: Held) -> Answer:
        answer = rule.decide(planned, held)
        return Write() if isinstance(answer, Refuse) and held.batch is not None else answer

    patch.setattr(next_offsets, "decide", decide)


def no_comparison_of_a_skipped_batch(patch: pytest.MonkeyPatch) -> None:
    """A batch that the target skips is taken for the one of the checkpoint."""
    patch.setattr(batch, "decide", lambda planned, held: Skip())


def ends_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    """Batches are compared by their numbers alone, at the start and where they are skipped."""
    forget = _decide(lambda planned, held: (planned, replace(held, ends=None)))
    patch.setattr(next_offsets, "decide", forget)
    patch.setattr(batch, "decide", forget)


def no_check_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    """A query that starts again in its process goes on, whatever became of its target."""
    patch.setattr(start, "check_again", lambda *_: None)


def no_lease(patch: pytest.MonkeyPatch) -> None:
    """Two runs use one checkpoint at the same time."""

    class NoLease(ModelLease):
        def check(self, *, watch_s: float = 0.0) -> None: ...

        def check_kept(self) -> None: ...

        def renew(self) -> str | None:
            return None

    patch.setattr(begin, "Lease", NoLease)


def a_first_batch_trusts_its_start(patch: pytest.MonkeyPatch) -> None:
    """A run that lost its checkpoint while it started writes a batch."""

    class Trusting(ModelLease):
        def check_kept(self) -> None: ...

    patch.setattr(begin, "Lease", Trusting)


def no_check_of_what_is_promised(patch: pytest.MonkeyPatch) -> None:
    """A target that was set back is written on."""
    patch.setattr(
        next_offsets,
        "decide",
        _decide(lambda planned, held: (replace(planned, promised=None), held)),
    )


def restores_are_not_seen(patch: pytest.MonkeyPatch) -> None:
    """What RESTORE TABLE took out counts as held."""
    patch.setattr(delta, "still_held", iter)


def queries_are_not_known_as_continued(patch: pytest.MonkeyPatch) -> None:
    """A former checkpoint goes on beside the one that continues it."""
    forget = _decide(lambda planned, held: (planned, replace(held, continued_by="")))
    patch.setattr(next_offsets, "decide", forget)
    patch.setattr(jdbc, "decide", forget)


def lost_records_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    """A topic that was made again is read on."""
    patch.setattr(changes, "losses", lambda *_: [])
    patch.setattr(first_offsets, "losses", lambda *_: [])


def a_new_query_is_not_checked_again(patch: pytest.MonkeyPatch) -> None:
    """Who else wrote during the first batch of a query is not looked for."""
    patch.setattr(start, "check_first", lambda *_: None)


def a_topic_made_again_is_new_to_each_table(patch: pytest.MonkeyPatch) -> None:
    """A table that a copy has given the new topic gets it again."""
    patch.setattr(plan, "check_created_again", lambda *_: None)


def at_most_once_gives_no_numbers(patch: pytest.MonkeyPatch) -> None:
    """The target does not know the batches of at-most-once."""
    once = property(lambda delivery: delivery is DeliveryGuarantee.EXACTLY_ONCE)
    patch.setattr(DeliveryGuarantee, "doubles_nothing", once)


def what_is_left_out_has_no_number(patch: pytest.MonkeyPatch) -> None:
    """A batch that at-most-once leaves out is not noted in the target."""

    def leave_out(runner: batch.BatchRunner, *of: Any) -> None:
        batch.log.warning("at-most-once does not write it again")

    patch.setattr(batch.BatchRunner, "_leave_out", leave_out)


def no_check_of_marks(patch: pytest.MonkeyPatch) -> None:
    """A checkpoint that is older than its topic goes on, and each task writes."""
    for module in (next_offsets, topic, topic_task):
        patch.setattr(module, "decide", lambda planned, held: Write())


def marks_without_offsets(patch: pytest.MonkeyPatch) -> None:
    """A topic's marks do not say where a batch ends."""
    mark_of = topic_task.mark_of
    patch.setattr(topic_task, "mark_of", lambda number, rows, ends: mark_of(number, rows))


def tasks_do_not_end_a_whole_batch(patch: pytest.MonkeyPatch) -> None:
    """A task commits though the same batch may be committed as a whole after it."""
    init = topic_task._fence

    def fence(batch: Any, name: str) -> None:
        if name != topic_task.whole_batch_id(batch.group):
            init(batch, name)

    patch.setattr(topic_task, "_fence", fence)


def a_whole_batch_ends_no_tasks(patch: pytest.MonkeyPatch) -> None:
    """A batch is committed as a whole though a task of it may commit after it."""
    patch.setattr(one_transaction, "fence", lambda *_: None)


def a_whole_batch_reads_no_marks(patch: pytest.MonkeyPatch) -> None:
    """A batch is committed as a whole though a task of it has committed."""
    write = one_transaction.OneTransaction._write

    def write_always(whole: Any, records: Any, batch: Any, _: Any) -> bool:
        return write(whole, records, batch, lambda: False)

    patch.setattr(one_transaction.OneTransaction, "_write", write_always)


def a_whole_batch_has_one_mark(patch: pytest.MonkeyPatch) -> None:
    """A batch that is committed as a whole leaves the mark of one task."""
    write = one_transaction.OneTransaction._write

    def write_one(whole: Any, *of: Any) -> bool:
        tasks, whole.tasks = whole.tasks, 1
        try:
            return write(whole, *of)
        finally:
            whole.tasks = tasks

    patch.setattr(one_transaction.OneTransaction, "_write", write_one)


def types_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    """A table with keys whose column is narrower takes the rows."""
    patch.setattr(changed_columns, "narrower", lambda *_: iter(()))
    patch.setattr(jdbc, "compare", lambda *_: [])


def tombstones_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A tombstone deletes no row, and ends no version."""
    for name in ("upsert_statement", "history_statement", "in_order_statement"):
        _change(patch, name, r"coalesce\((?:s\.)?tombstone, false\)", "false")
    patch.setattr(statements, "delete_rows", lambda *_: None)


def partitions_that_are_added_are_not_seen(patch: pytest.MonkeyPatch) -> None:
    """A key may move to another partition, though a deletion leaves nothing that would show it."""
    for module in (changes, batch, first_offsets):
        patch.setattr(module, "more_partitions", lambda *_: None)


def older_records_replace_rows(patch: pytest.MonkeyPatch) -> None:
    """A record replaces the row of its key, whatever `order_by` says."""
    newer = r"\(t\.`at` IS NULL OR struct\([^)]*\) >= struct\([^)]*\)\)"
    _change(patch, "upsert_statement", newer, "true")


def late_records_are_not_seen(patch: pytest.MonkeyPatch) -> None:
    """A history takes each batch as one in order."""
    late = r"struct\([^)]*\) >= struct\([^)]*\)"
    _change(patch, "in_order_statement", late, "false")


def what_others_commit_meanwhile_is_not_seen(patch: pytest.MonkeyPatch) -> None:
    """A table of Iceberg is not looked at after the commit of a batch."""

    def trust(sink: IcebergSink, batch: Any, before: Any, *, once: bool) -> int:
        sink._last = FakeTable(sink.spark, sink.table).current_id()
        return 1

    patch.setattr(IcebergSink, "_find_written", trust)


def expired_snapshots_are_not_missed(patch: pytest.MonkeyPatch) -> None:
    """A table of Iceberg is taken for one that knows all its snapshots."""
    patch.setattr(IcebergSink, "forgets", lambda _: "")


def what_is_forgotten_is_not_missed(patch: pytest.MonkeyPatch) -> None:
    """A new query does not ask whether the table still shows what others wrote since it began."""
    for sink in (DeltaSink, IcebergSink):
        patch.setattr(sink, "newest_commit", lambda _: None)


def a_query_that_no_commit_shows_is_not_missed(patch: pytest.MonkeyPatch) -> None:
    """Who wrote to a Delta table since its history forgot a query's commits is not asked."""
    patch.setattr(DeltaSink, "_unsure", lambda *_: "")


def forgotten_commits_are_not_taken_out(patch: pytest.MonkeyPatch) -> None:
    """A RESTORE of a Delta table takes out no commit that its history has forgotten."""
    patch.setattr(commits_of_query, "may_take_out_older", lambda _: False)


def a_batch_in_two_commits_is_not_seen(patch: pytest.MonkeyPatch) -> None:
    """A start goes on after a batch that two runs have written to a table of Iceberg."""
    forget = _decide(lambda planned, held: (planned, replace(held, is_twice=False)))
    patch.setattr(next_offsets, "decide", forget)
    patch.setattr(batch, "decide", forget)


def delta_is_taken_at_its_word(patch: pytest.MonkeyPatch) -> None:
    """Whether a table that forgets its writers has a batch, Delta alone says."""
    patch.setattr(DeltaSink, "_has", lambda *_: False)


def a_table_without_writers_is_new(patch: pytest.MonkeyPatch) -> None:
    """A Delta table that has forgotten its writers counts as one that no query has written."""
    forgets = DeltaSink.forgets
    patch.setattr(
        DeltaSink,
        "forgets",
        lambda sink: forgets(sink) if sink.table.writers() else "",
    )


def what_a_start_has_seen_does_not_count(patch: pytest.MonkeyPatch) -> None:
    """A batch whose snapshot expires after the start has found it is written again."""
    shipped = IcebergSink.held

    def held(sink: IcebergSink, query_id: str) -> Held:
        found = shipped(sink, query_id)
        sink._seen.clear()
        return found

    patch.setattr(IcebergSink, "held", held)


def a_batch_that_was_cut_off_counts_as_compared(patch: pytest.MonkeyPatch) -> None:
    """What is forgotten before a batch whose run was killed after its commit is not asked."""
    forget = _decide(lambda planned, held: (planned, replace(held, unsure_before="")))
    patch.setattr(next_offsets, "decide", forget)
    patch.setattr(batch, "decide", forget)


def a_repeated_batch_is_decided_as_now(patch: pytest.MonkeyPatch) -> None:
    """Which rows of a batch were refused that the target has, the settings of now say."""
    patch.setattr(decisions.Decisions, "former", lambda *_: None)


def a_decision_is_noted_after_its_batch(patch: pytest.MonkeyPatch) -> None:
    """The checkpoint says by what a batch was decided when its rejected rows are written."""
    reject, former_of = batch.BatchRunner._reject, decisions.Decisions.former

    def late(
        runner: Any, frame: Any, execution: Any, of: Any, former: Any, *, skipped: bool
    ) -> None:
        reject(runner, frame, execution, of, former, skipped=skipped)
        former_of(runner.decisions, runner.files, runner.sink, of.query_id, of.number)

    def before(of_run: Any, files: Any, sink: Any, query_id: str, number: int) -> Any:
        found = DECIDED.read(files)
        if found is None or found.query_id != query_id or found.decision == of_run.now:
            return None
        return found.decision

    patch.setattr(decisions.Decisions, "former", before)
    patch.setattr(batch.BatchRunner, "_reject", late)


def truncations_are_not_noted(patch: pytest.MonkeyPatch) -> None:
    """A record that is read after a truncation, and is older, comes back."""
    patch.setattr(truncations, "NOTE", SimpleNamespace(write=lambda *_: None))


def the_truncation_read_last_counts(patch: pytest.MonkeyPatch) -> None:
    """A truncation that is read late takes the place of a later one."""
    patch.setattr(truncations, "later", lambda _, one, __: one)


def rows_of_a_batch_are_not_truncated(patch: pytest.MonkeyPatch) -> None:
    """What a batch has before a truncation is written."""
    patch.setattr(truncations, "after", lambda rows, keyed, _: after(rows, keyed, None))


def the_table_is_not_truncated(patch: pytest.MonkeyPatch) -> None:
    """The rows of keys that a batch does not have stay."""
    for module in (merge, iceberg):
        patch.setattr(module, "upsert_statement", lambda *of: upsert_statement(*of[:3]))
    patch.setattr(
        statements, "truncate_rows", lambda name, *_: f"DELETE FROM {name.sql()} WHERE false"
    )


def _change(patch: pytest.MonkeyPatch, name: str, words: str, to: str) -> None:
    """Put other words into a statement of a MERGE."""
    shipped = getattr(merge, name)

    def statement(*of: Any) -> str:
        text, count = re.subn(words, to, shipped(*of))
        assert count, name
        return text

    patch.setattr(merge, name, statement)


PLANTED: Final[tuple[tuple[str, Plant, str], ...]] = (
    ("delta", no_check_of_the_age, ONCE),
    ("postgresql", no_check_of_the_age, ONCE),
    ("files", no_check_of_the_age, ONCE),
    ("delta", no_comparison_of_a_skipped_batch, ONCE),
    ("postgresql", no_comparison_of_a_skipped_batch, ONCE),
    ("files", no_comparison_of_a_skipped_batch, ONCE),
    ("delta", ends_are_not_compared, ONCE),
    ("postgresql", ends_are_not_compared, ONCE),
    ("files", no_check_at_a_restart, ONCE),
    ("delta", no_lease, ONCE),
    ("postgresql", no_check_of_what_is_promised, ONCE),
    ("files", no_check_of_what_is_promised, ONCE),
    ("delta", restores_are_not_seen, ONCE),
    ("postgresql", queries_are_not_known_as_continued, ONCE),
    ("delta", lost_records_are_not_counted, ONCE),
    ("postgresql", a_new_query_is_not_checked_again, ONCE),
    ("delta", a_topic_made_again_is_new_to_each_table, ONCE),
    ("delta", at_most_once_gives_no_numbers, AT_MOST_ONCE),
    ("postgresql", at_most_once_gives_no_numbers, AT_MOST_ONCE),
    ("postgresql", what_is_left_out_has_no_number, AT_MOST_ONCE),
    ("delta", a_query_that_no_commit_shows_is_not_missed, ONCE),
    ("delta", forgotten_commits_are_not_taken_out, ONCE),
    ("delta-emptied", tombstones_are_forgotten, ONCE),
    *((kind, rows_of_a_batch_are_not_truncated, ONCE) for kind in EMPTIED),
    *((kind, the_table_is_not_truncated, ONCE) for kind in EMPTIED),
    ("iceberg", no_check_of_the_age, ONCE),
    ("iceberg", queries_are_not_known_as_continued, ONCE),
    ("iceberg", what_others_commit_meanwhile_is_not_seen, ONCE),
    ("iceberg", expired_snapshots_are_not_missed, ONCE),
    ("iceberg", what_is_forgotten_is_not_missed, ONCE),
    ("iceberg-upsert", no_check_of_the_age, ONCE),
    ("topic", no_check_of_marks, ONCE),
    ("topic", marks_without_offsets, ONCE),
    ("topic", no_check_of_marks, AT_MOST_ONCE),
    ("topic", tasks_do_not_end_a_whole_batch, ONCE),
    ("topic", a_whole_batch_ends_no_tasks, ONCE),
    ("topic", a_whole_batch_reads_no_marks, ONCE),
    ("topic", a_whole_batch_has_one_mark, ONCE),
    ("delta-marked", types_are_not_compared, ONCE),
    ("delta-history", types_are_not_compared, ONCE),
    ("postgresql-upsert", types_are_not_compared, ONCE),
    ("delta-upsert", tombstones_are_forgotten, ONCE),
    ("delta-marked", tombstones_are_forgotten, ONCE),
    ("delta-history", tombstones_are_forgotten, ONCE),
    ("postgresql-upsert", tombstones_are_forgotten, ONCE),
    ("delta-upsert", partitions_that_are_added_are_not_seen, ONCE),
    ("postgresql-upsert", partitions_that_are_added_are_not_seen, ONCE),
    ("delta-marked", older_records_replace_rows, ONCE),
    ("delta-history", late_records_are_not_seen, ONCE),
    ("delta-truncated", truncations_are_not_noted, ONCE),
    ("iceberg-truncated", truncations_are_not_noted, ONCE),
    ("postgresql-truncated", truncations_are_not_noted, ONCE),
    ("delta-truncated", the_truncation_read_last_counts, ONCE),
    ("delta-truncated", rows_of_a_batch_are_not_truncated, ONCE),
    ("delta-truncated", the_table_is_not_truncated, ONCE),
    ("iceberg-truncated", the_table_is_not_truncated, ONCE),
    ("postgresql-truncated", the_table_is_not_truncated, ONCE),
    ("delta-upsert", no_check_of_the_age, ONCE),
    ("delta-marked", restores_are_not_seen, ONCE),
    *((kind, a_repeated_batch_is_decided_as_now, ONCE) for kind in KEEP_REJECTS),
    ("delta", a_repeated_batch_is_decided_as_now, AT_MOST_ONCE),
    ("delta", a_decision_is_noted_after_its_batch, ONCE),
    ("delta", a_batch_that_was_cut_off_counts_as_compared, ONCE),
    ("delta", delta_is_taken_at_its_word, ONCE),
    ("iceberg", a_batch_in_two_commits_is_not_seen, ONCE),
    ("delta", a_table_without_writers_is_new, ONCE),
    ("iceberg", what_a_start_has_seen_does_not_count, ONCE),
)

AMONG: Final[dict[Plant, Weights]] = {
    a_repeated_batch_is_decided_as_now: CHANGES,
    a_decision_is_noted_after_its_batch: CHANGES,
    a_batch_that_was_cut_off_counts_as_compared: CUT_OFF,
    delta_is_taken_at_its_word: CUT_OFF,
    a_batch_in_two_commits_is_not_seen: CUT_OFF,
    a_table_without_writers_is_new: CUT_OFF,
    what_a_start_has_seen_does_not_count: CUT_OFF,
}
"""What is found among other steps."""

# Few walks find these: the search begins shortly before the first that does.
FIRST: Final[dict[Plant, int]] = {
    no_lease: 600,
    a_new_query_is_not_checked_again: 3_210,
    a_topic_made_again_is_new_to_each_table: 1_850,
    what_is_left_out_has_no_number: 945,
    partitions_that_are_added_are_not_seen: 1_630,
    queries_are_not_known_as_continued: 980,
    expired_snapshots_are_not_missed: 820,
    what_a_start_has_seen_does_not_count: 1_700,
    what_is_forgotten_is_not_missed: 3_190,
    tasks_do_not_end_a_whole_batch: 870,
    a_whole_batch_ends_no_tasks: 740,
}
