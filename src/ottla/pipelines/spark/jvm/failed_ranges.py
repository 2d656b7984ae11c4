"""Where the records lie that a failed task was reading: topic, partition and range of offsets.

Spark's exception names the row's value at most. Its status store names the stage and the task,
and the lineage of the batch leads from that task to the range that the Kafka source gave it.
Nothing is read again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.spark.jvm.attributes import is_instance, java_frame, java_query
from ottla.pipelines.spark.jvm.plan import in_list

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

MAX_RANGES: Final = 3
MAX_RDDS: Final = 1_000
MAX_TASKS: Final = 2_000
# The status store is filled from a queue of events.
EVENTS_WITHIN_MS: Final = 5_000

_KAFKA_PARTITION: Final = "KafkaBatchInputPartition"
# The status store has not heard of the stage yet (LiveListenerBus.waitUntilEmpty), or no longer
# keeps it (spark.ui.retainedStages).
_NOT_KEPT: Final = ("java.util.concurrent.TimeoutException", "java.util.NoSuchElementException")


def failed_ranges(query: StreamingQuery, batch: DataFrame | None) -> str:
    """Return what the failed task of a query was reading, "" where Spark does not know it.

    `query`: the run that failed. `batch`: the frame that Spark gave to the sink, None where it
    failed before that. Raises Py4JError: this Spark has other methods than the ones called here.
    """
    from py4j.protocol import Py4JJavaError, Py4JNetworkError

    execution = java_query(query).streamingQuery()
    try:
        context = execution.sparkSession().sparkContext()
        failed = None if context.isStopped() else _failed_task(context, str(query.runId))
        if failed is None:
            return ""
        return _shown(_ranges(_shuffled(execution) if batch is None else [_rdd(batch)], *failed))
    except Py4JJavaError as error:
        if error.java_exception.getClass().getName() not in _NOT_KEPT:
            raise
        return ""
    except (Py4JNetworkError, OSError):
        return ""  # Spark's process is gone; the failure itself is reported all the same


def _failed_task(context: Any, run_id: str) -> tuple[int, int, set[int]] | None:
    """Return of the newest failed stage: the failed task, the number of tasks, its RDDs."""
    context.listenerBus().waitUntilEmpty(EVENTS_WITHIN_MS)
    tracker, store = context.statusTracker(), context.statusStore()
    for job in sorted(tracker.getJobIdsForGroup(run_id), reverse=True):
        info = tracker.getJobInfo(job)
        if not info.isDefined() or str(info.get().status()) != "FAILED":
            continue
        for stage in sorted(info.get().stageIds(), reverse=True):
            data = store.lastStageAttempt(stage)
            if str(data.status()) != "FAILED":
                continue
            for task in in_list(store.taskList(stage, data.attemptId(), MAX_TASKS)):
                if str(task.status()) == "FAILED":
                    return int(task.index()), int(data.numTasks()), set(in_list(data.rddIds()))
    return None


def _rdd(batch: DataFrame) -> Any:
    return java_frame(batch).queryExecution().analyzed().rdd()


def _shuffled(execution: Any) -> list[Any]:
    """Return what the shuffles of the batch's plan read that were begun.

    Since Spark 4.1 a plan without state is adaptive in a stream, too (SPARK-53941): its shuffles
    run before the sink is given a frame.
    """
    found: list[Any] = []
    batch = execution.lastExecution()
    plans = [] if batch is None else [batch.executedPlan()]
    while plans and len(found) < MAX_RDDS:
        node = plans.pop()
        kind = node.getClass().getSimpleName()
        if kind == "AdaptiveSparkPlanExec":
            plans.append(node.executedPlan())
        elif kind == "ShuffleQueryStageExec":
            found.append(node.shuffle().inputRDD())
            plans += in_list(node.shuffle().children())
        else:
            plans += in_list(node.children())
    return found


def _ranges(roots: list[Any], task: int, tasks: int, stage: set[int]) -> Iterator[Any]:
    """Yield the input partitions of Kafka's source that a task of a stage reads."""
    inside = [rdd for rdd in _lineage(roots) if rdd.id() in stage]
    # An RDD is made after its parents, so the newest one is what the stage computes. Above it
    # the write adds steps with the same partitions.
    top = max(inside, key=lambda rdd: int(rdd.id()), default=None)
    if top is not None and int(top.getNumPartitions()) == tasks:
        yield from _inputs(top, task)


def _lineage(roots: list[Any]) -> list[Any]:
    """Return some RDDs and all that they are computed from."""
    found: dict[int, Any] = {}
    waiting = list(roots)
    while waiting and len(found) < MAX_RDDS:
        one = waiting.pop()
        if one.id() not in found:
            found[one.id()] = one
            waiting += [dependency.rdd() for dependency in in_list(one.dependencies())]
    return list(found.values())


def _inputs(rdd: Any, index: int) -> Iterator[Any]:
    """Follow one partition of an RDD to the partitions of the source that it is made of."""
    if rdd.getClass().getSimpleName() == "DataSourceRDD":
        inputs = _input_partitions(rdd.partitions()[index])
        yield from (one for one in inputs if one.getClass().getSimpleName() == _KAFKA_PARTITION)
        return
    for dependency in in_list(rdd.dependencies()):
        if is_instance(dependency, "org.apache.spark.NarrowDependency"):
            for parent in in_list(dependency.getParents(index)):
                yield from _inputs(dependency.rdd(), parent)


def _input_partitions(partition: Any) -> list[Any]:
    """Return what a partition of Spark's DataSourceRDD reads: several inputs, one in Spark 4.2."""
    names = {str(method.getName()) for method in partition.getClass().getMethods()}
    if "inputPartitions" in names:
        return in_list(partition.inputPartitions())
    one = partition.inputPartition()
    return [one.get()] if one.isDefined() else []


def _shown(inputs: Iterator[Any]) -> str:
    ranges = []
    for one in inputs:
        span = one.offsetRange()
        partition, first, end = span.topicPartition(), span.fromOffset(), span.untilOffset()
        offsets = f"offset {first}" if end == first + 1 else f"offsets {first} to {end - 1}"
        ranges.append(f"{partition.topic()} partition {partition.partition()}, {offsets}")
        if len(ranges) > MAX_RANGES:
            return "; ".join(ranges[:MAX_RANGES]) + "; ..."
    return "; ".join(ranges)
