"""A pipeline into a topic, run as a process of its own so that it can be killed.

`python -m tests.system.topic_job BOOTSTRAP SOURCE TARGET FOLDER [--delivery NAME]
[--by tasks|whole] [--die MOMENT [--seed N]]`

`--by tasks` lets tasks write each batch, `--by whole` one transaction of Spark's own sink.

Without `--die` it takes all there is and ends. With it, the second batch of the run kills this
process, its JVM and its Python workers, with SIGKILL, at that moment.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.system.pipeline_job import MAX_DELAY_S, SETTINGS

from ottla.pipelines import session, to_topic, topic
from ottla.pipelines.run.batch import BatchRunner
from ottla.pipelines.sinks.topic import task as topic_task
from ottla.pipelines.sinks.topic.jvm import BatchProducer

GROUP = os.getpgid(0)
COMMIT_S = 0.03
"""Within this time after its request a commit is cut off."""
OTHER_TASKS_S = 2.0
"""How long the first task that ends waits for others, before all are killed."""


def die() -> None:
    """Kill Python, the JVM, and a worker, which is in a process group of its own."""
    os.killpg(GROUP, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def in_tasks(moment: str, at_batch: int) -> None:
    """Have a task of this batch or a later one die."""
    write, die_there = topic_task._write, _die_of(GROUP)

    def dying(batch: Any, task: int, rows: Iterator[Any], producer: Any, consumer: Any) -> int:
        if batch.batch < at_batch:
            return write(batch, task, rows, producer, consumer)
        if moment == "among the rows":

            def cut(rows: Iterator[Any]) -> Iterator[Any]:
                yield from itertools.islice(rows, 1)
                producer.flush(10)
                die_there()

            return write(batch, task, cut(rows), producer, consumer)
        if moment == "before the commit":
            return write(batch, task, rows, _NoCommit(producer, die_there), consumer)
        if moment == "between tasks" and task != 0:
            time.sleep(OTHER_TASKS_S)
            die_there()
        count = write(batch, task, rows, producer, consumer)
        if moment == "after the commit":
            die_there()
        return count

    module: Any = topic_task
    module._write = dying


def _die_of(group: int) -> Callable[[], None]:
    def die_there() -> None:
        os.killpg(group, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    return die_there


class _NoCommit:
    """A producer that dies where it would commit."""

    def __init__(self, producer: Any, die_there: Callable[[], None]) -> None:
        self._producer = producer
        self._die = die_there

    def commit_transaction(self, _: float) -> None:
        self._die()

    def commitTransaction(self) -> None:  # noqa: N802
        self._die()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)


def in_whole_batches(moment: str, seed: int) -> None:
    """Die in the second batch that this run writes in one transaction."""
    write, commit = BatchProducer.write, BatchProducer.commit
    batches = itertools.count(1)
    number = 0

    def counted(producer: BatchProducer, *of: Any) -> None:
        nonlocal number
        number = next(batches)
        write(producer, *of)
        if number == 2 and moment == "among the rows":
            die()

    def dying(producer: BatchProducer, *of: Any) -> None:
        if number == 2 and moment == "before the commit":
            producer._client = _NoCommit(producer._client, die)
        if number == 2 and moment == "at the commit":
            wait_s = random.Random(seed).uniform(0, COMMIT_S)
            threading.Timer(wait_s, die).start()
        commit(producer, *of)
        if number == 2 and moment == "after the commit":
            die()

    producer_class: Any = BatchProducer
    producer_class.write, producer_class.commit = counted, dying


def note_whole_batches(folder: Path) -> None:
    """Append a line to `folder`/whole for each batch that is committed as a whole."""
    commit = BatchProducer.commit

    def noted(producer: BatchProducer, *of: Any) -> None:
        commit(producer, *of)
        with (folder / "whole").open("a") as whole:
            whole.write("committed\n")

    producer_class: Any = BatchProducer
    producer_class.commit = noted


def in_driver(moment: str, seed: int) -> None:
    """Die when the second batch of this run is written, or some time after it has begun."""
    call = BatchRunner.__call__
    batches = itertools.count(1)

    def counted(runner: BatchRunner, frame: Any, number: int) -> None:
        is_second = next(batches) == 2
        if is_second and moment == "seeded":
            threading.Timer(random.Random(seed).uniform(0, MAX_DELAY_S), die).start()
        call(runner, frame, number)
        if is_second and moment == "before the checkpoint":
            die()

    runner_class: Any = BatchRunner
    runner_class.__call__ = counted


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("bootstrap", "source", "target", "folder"):
        parser.add_argument(name)
    parser.add_argument("--delivery", default="exactly-once")
    parser.add_argument("--by", choices=("tasks", "whole"), default="tasks")
    parser.add_argument("--die")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    checkpoint = Path(chosen.folder) / "checkpoint"
    note_whole_batches(Path(chosen.folder))
    if chosen.die in ("seeded", "before the checkpoint"):
        in_driver(chosen.die, chosen.seed)
    elif chosen.die and chosen.die != "never" and chosen.by == "whole":
        in_whole_batches(chosen.die, chosen.seed)
    elif chosen.die and chosen.die != "never":
        planned = [int(file.name) for file in checkpoint.glob("offsets/[0-9]*")]
        in_tasks(chosen.die, max(planned, default=-1) + 2)

    # Where the master has a limit of failures, tasks write.
    master = "local[2]" if chosen.by == "whole" else "local[2,1]"
    spark = session("job", master=master, conf=SETTINGS)
    spark.sparkContext.setLogLevel("ERROR")
    frame = topic(
        spark,
        chosen.source,
        bootstrap_servers=chosen.bootstrap,
        schema="bigint",
        key_schema="string",
    )
    query = to_topic(
        frame,
        chosen.target,
        bootstrap_servers=chosen.bootstrap,
        checkpoint=checkpoint,
        key="key",
        value="value",
        delivery=chosen.delivery,
        trigger=None if chosen.die else {"availableNow": True},
    )
    query.awaitTermination()
    return 0


if __name__ == "__main__":
    sys.exit(main())
