"""How much is in memory at a time, and what is restored; test_jdbc.py reads real texts."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.pipelines.spark.jvm import arrow_texts
from ottla.pipelines.spark.jvm.arrow_texts import chunks_of
from ottla.pipelines.spark.jvm.attributes import java_class

ARROW_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"


class Texts:
    """A frame whose partitions have one batch each, and the settings of its session."""

    def __init__(self, partitions: int, failure: Exception | None = None) -> None:
        self.settings = {ARROW_ROWS: "10000"}
        self.during: list[str] = []
        self.computed: list[list[int]] = []

        def to_arrow() -> Any:
            self.during.append(self.settings[ARROW_ROWS])
            if failure is not None:
                raise failure
            return SimpleNamespace(toJavaRDD=lambda: batches)

        def collect(numbers: list[int]) -> list[Any]:
            self.computed.append(list(numbers))
            return [SimpleNamespace(toArray=lambda number=each: number) for each in numbers]

        batches = SimpleNamespace(getNumPartitions=lambda: partitions, collectPartitions=collect)
        self._jdf = SimpleNamespace(toArrowBatchRdd=to_arrow)
        self.sparkSession = SimpleNamespace(
            sparkContext=SimpleNamespace(defaultParallelism=2),
            conf=SimpleNamespace(get=self.settings.__getitem__, set=self.settings.__setitem__),
        )


@pytest.fixture
def without_a_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    java = SimpleNamespace(ints=list, all_texts=lambda batches: iter([f"text {batches}"]))
    monkeypatch.setattr(arrow_texts, "reader_of", lambda context: java)


@pytest.mark.usefixtures("without_a_jvm")
def test_few_partitions_are_in_memory_at_a_time() -> None:
    frame: Any = Texts(5)
    chunks: Iterator[Any] = chunks_of(frame)
    assert [next(chunks), next(chunks)] == ["text 0", "text 1"]
    assert frame.computed == [[0, 1]]
    assert list(chunks) == ["text 2", "text 3", "text 4"]
    assert frame.computed == [[0, 1], [2, 3], [4]]


@pytest.mark.usefixtures("without_a_jvm")
@pytest.mark.parametrize("failure", [None, ValueError("no plan")])
def test_the_sessions_setting_is_restored(failure: Exception | None) -> None:
    frame: Any = Texts(0, failure)
    if failure is None:
        assert list(chunks_of(frame)) == []
    else:
        with pytest.raises(ValueError, match="no plan"):
            list(chunks_of(frame))
    assert (frame.during, frame.settings) == (["4000"], {ARROW_ROWS: "10000"})


@pytest.mark.spark
def test_the_texts_of_a_real_frame(spark: Any) -> None:
    texts = [f"line {number}\n" for number in range(10)]
    frame = spark.createDataFrame([(text,) for text in texts], "line STRING").repartition(3)
    stream = java_class(spark, "java.io.ByteArrayOutputStream")()
    rows = 0
    for chunk in chunks_of(frame):
        chunk.buffer.getBytes(0, stream, int(chunk.buffer.readableBytes()))
        rows += chunk.rows
    found = bytes(stream.toByteArray()).decode().splitlines(keepends=True)
    assert sorted(found) == texts
    assert rows == len(texts)
