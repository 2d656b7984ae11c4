import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.pipelines.environment import START_WITHIN_S

PROGRAM = """
import os, resource, sys
from ottla.pipelines import PipelineError, session, to_delta, topic

_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
files = [open(os.devnull) for _ in range(1_100)]
address, name, folder = sys.argv[1:]
spark = session("many", master="local[1]", conf={"spark.ui.enabled": False})
rows = topic(spark, name, bootstrap_servers=address, schema="id BIGINT").select("value.*")
try:
    to_delta(rows, f"{folder}/table", checkpoint=f"{folder}/cp", trigger={"availableNow": True})
except PipelineError as error:
    print(error)
"""


def test_a_query_that_spark_cannot_call_is_refused(
    spark: object, bootstrap: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    """It would start for ever. `spark` is there so that the jars are."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < 2_000:
        pytest.skip("this user may not have so many open files")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, bootstrap, new_topic(), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=4 * START_WITHIN_S,
    )
    assert done.stdout.startswith("This process had more than 1023 open files"), done.stderr
    assert not (tmp_path / "cp/offsets").exists()
