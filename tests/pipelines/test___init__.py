"""The guide's examples are run as they stand there."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from website.pages import PIPELINES, ROOT
from website.python_api import public_names

import ottla.pipelines
from ottla.pipelines import PipelineError

NAMES = set(public_names(ottla.pipelines))
GUIDE = "\n".join((ROOT / page).read_text() for page in PIPELINES)


def test_the_guide_names_every_public_call() -> None:
    assert {
        *("PipelineError", "deduplicate", "latest_by_key", "maintain"),
        *("rejected", "report_progress", "session", "topic"),
        *("to_delta", "to_files", "to_postgresql", "to_topic"),
    } <= NAMES
    for name in NAMES - {"PipelineError"}:
        assert f"`{name}" in GUIDE


def test_the_old_name_of_to_postgresql_warns() -> None:
    with (
        pytest.warns(DeprecationWarning, match="to_jdbc is to_postgresql"),
        pytest.raises(PipelineError),
    ):
        ottla.pipelines.to_jdbc(None, "t", url="", checkpoint="./cp")


def test_no_room_has_the_name_of_a_public_call() -> None:
    """Importing the room would put the module in the call's place."""
    folder = ROOT / "src/ottla/pipelines"
    assert {path.stem for path in folder.iterdir()}.isdisjoint(NAMES)


def test_importing_pipelines_and_asking_for_help_loads_no_spark() -> None:
    code = (
        "import sys; import ottla.pipelines; from ottla.cli.main import main\n"
        "try: main(['--help'])\n"
        "finally: print({'pyspark', 'delta', 'py4j'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr == "set()\n"


@pytest.mark.spark
def test_the_guides_examples_run(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name, late = new_topic(), new_topic()
    flights = [{"carrier": "HA", "dep_delay": 1301}, {"carrier": "UA", "dep_delay": 2}]
    produce(name, [(None, json.dumps(flight)) for flight in flights] + [(None, "no flight")])
    examples = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    assert len(examples) == 11
    script = "\n".join(examples).replace("localhost:9092", bootstrap)
    script = script.replace('"./', f'"{tmp_path}/')
    script = script.replace('    "flights",\n', f'    "{name}",\n')
    script = script.replace('"late-flights"', f'"{late}"')

    listeners = []
    report = ottla.pipelines.report_progress
    monkeypatch.setattr(
        ottla.pipelines,
        "report_progress",
        lambda *arguments, **options: listeners.append(report(*arguments, **options)),
    )

    exec(compile(script, "docs/pipelines.md", "exec"), {})

    spark.streams.removeListener(listeners[0])
    listeners[0].reporter.committer.close()
    rows = spark.read.format("delta").load(str(tmp_path / "lake" / "flights")).collect()
    assert [(row["carrier"], row["dep_delay"]) for row in rows] == [("HA", 1301.0)]
    assert spark.table("delays").count() == 2
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    (row,) = reader.option("subscribe", late).load().collect()
    assert bytes(row["key"]) == b"HA"
    assert json.loads(row["value"])["dep_delay"] == 1301.0
    assert spark.table("airlines").count() == 1
    assert spark.read.format("delta").load(str(tmp_path / "lake" / "all")).count() == 2
    assert spark.read.format("delta").load(str(tmp_path / "lake" / "last")).count() == 2
    (row,) = spark.read.format("delta").load(str(tmp_path / "lake" / "expected")).collect()
    assert row["carrier"] == "UA"
    counts = spark.read.format("delta").load(str(tmp_path / "lake" / "carriers"))
    assert {(row["carrier"], row["flights"]) for row in counts.collect()} == {("HA", 1), ("UA", 1)}
    for_all = spark.sql(f"DESCRIBE DETAIL delta.`{tmp_path}/lake/last-for-all`").first()
    assert for_all["minReaderVersion"] == 1, "a version that every reader has"
    files = spark.read.parquet(str(tmp_path / "lake" / "flights-by-carrier"))
    assert sorted(row["carrier"] for row in files.collect()) == ["HA", "UA"]
    assert "value is not a JS" in capsys.readouterr().out
