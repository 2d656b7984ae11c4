"""The main job of the tables, as `make demo ARGS=tables` runs it: all rows are compared."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.demo.test_run import left_behind
from tests.pipelines.jars import fetch_jars_once

from components import fixture

postgres = fixture.postgres  # skips the test where there is no PostgreSQL
pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.timeout(1_800)]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that others may enter: where root runs the test, the database is another user's."""
    made = Path(tempfile.mkdtemp(prefix="ottla-tables-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.mark.usefixtures("postgres")
def test_both_tables_of_each_topic_equal_the_batch_computation(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    fetch_jars_once(tmp_path_factory)
    done = subprocess.run(
        [sys.executable, "-m", "demo", "tables"],
        capture_output=True,
        text=True,
        timeout=1_700,
        env=os.environ | {"TMPDIR": str(folder), "COLUMNS": "160"},
        cwd=Path(__file__).parents[2],
    )

    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout
    assert "four tables: equal to the batch computation" in said
    for table in ("Delta", "PostgreSQL"):
        assert re.search(rf"flights\s+{table}\s+328,521\s+8,255\s+0\s+0", said)
        assert re.search(rf"weather\s+{table}\s+[\d,]+\s+[\d,]+\s+0\s+0", said)
    # The journey of an announcement that came after its flight, and of a withdrawn measurement.
    for kind, place in (("delta", "in Delta version"), ("postgresql", "into PostgreSQL")):
        for topic in ("flights", "weather"):
            assert re.search(rf"pipeline \S*{topic}\S* +{place}", said), (kind, topic)
    assert re.search(r"row +none: the row is newer, that of offset \d+", said)
    assert re.search(r"row +deleted that of offset \d+", said)
    (own,) = folder.glob("ottla-demo-*")
    assert left_behind(own) == []
