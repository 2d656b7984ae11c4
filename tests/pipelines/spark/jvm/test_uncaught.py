"""A query whose thread runs out of memory: one line, a trace file, and nothing on the screen."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines import PipelineError, to_delta, topic

pytestmark = pytest.mark.spark


def test_a_lack_of_memory_in_the_querys_thread_is_one_line(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    state_folder: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    name = new_topic(1)
    produce(name, [(None, json.dumps({"id": 1}))])
    rows = topic(spark, name, bootstrap_servers=bootstrap, schema="id BIGINT")
    # Spark computes a constant while it plans the batch, in the query's own thread.
    heap = int(spark._jvm.java.lang.Runtime.getRuntime().maxMemory())
    frame = rows.selectExpr("value.id", f"space({min(2_000_000_000, heap)}) AS spaces")

    with pytest.raises(PipelineError) as caught:
        to_delta(
            frame, tmp_path / "table", checkpoint=tmp_path / "cp", trigger={"availableNow": True}
        ).awaitTermination()

    said = str(caught.value)
    assert said.startswith("table stopped: Spark ran out of memory (Java heap space). Give it more")
    assert "\n" not in said
    trace = Path(said.partition("(Spark's trace: ")[2].rstrip(")"))
    assert trace.parent == state_folder / "traces"
    assert "java.lang.OutOfMemoryError" in trace.read_text()
    assert capfd.readouterr() == ("", "")
