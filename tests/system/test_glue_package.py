"""A packaged job, run by spark-submit as AWS Glue does, where nothing else of Ottla is installed.

The environment has PySpark, delta-spark, confluent-kafka and the job's wheel. Glue's own Spark, its
Delta and its network are not here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from importlib.util import find_spec
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.pipelines.environment import serve
from tests.pipelines.jars import fetch_jars_once

from ottla.pipelines.glue.package import package
from ottla.pipelines.spark.jars import wanted_packages
from ottla.pipelines.spark.java import find_java
from ottla.pipelines.spark.start import find_installed

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.timeout(900)]

INSTALLED = ("pyspark", "py4j", "delta", "confluent_kafka", "importlib_metadata", "zipp")
FILE = """
[source]
topic = "numbers"
bootstrap_servers = "{bootstrap}"
schema = "id BIGINT NOT NULL"

[transform]
sql = "SELECT value.id, partition, offset FROM numbers"

[sink]
target = "{folder}/table"

[delivery]
checkpoint = "{folder}/state"
trigger = "available-now"

[spark.conf]
"spark.sql.shuffle.partitions" = 3
"""
CHECK = """
import sys
sys.path.insert(0, {place!r})
import ottla, pyspark
assert {place!r} in ottla.__file__, ottla.__file__
try:
    import ottla.node
except ModuleNotFoundError:
    print("bare")
"""


def bare_environment(folder: Path) -> Path:
    """Make an environment with the packages above only; returns its Python."""
    venv.create(folder, with_pip=False)
    site = next((folder / "lib").glob("python*/site-packages"))
    for name in INSTALLED:
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            (site / name).symlink_to(Path(spec.origin).parent)
            for beside in Path(spec.origin).parent.parent.glob(f"{name}*"):
                if beside.suffix in (".dist-info", ".libs"):
                    (site / beside.name).symlink_to(beside)
    return folder / "bin" / "python"


def test_the_packaged_script_runs_in_a_bare_environment(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    fetch_jars_once(tmp_path_factory)
    python = bare_environment(tmp_path / "bare")
    site = next((tmp_path / "bare" / "lib").glob("python*/site-packages"))
    with serve(tmp_path / "broker") as bootstrap:
        producer = Producer({"bootstrap.servers": bootstrap})
        for number in range(100):
            producer.produce("numbers", json.dumps({"id": number}))
        producer.produce("numbers", "no number")
        assert producer.flush(60) == 0
        file = tmp_path / "numbers.toml"
        file.write_text(FILE.format(bootstrap=bootstrap, folder=tmp_path))
        made = package(file, tmp_path / "job", "6.0", environ={})
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        options = ["--no-index", "--no-deps", "--target", str(site)]
        subprocess.run([*pip, *options, str(made.wheel)], check=True, timeout=120)
        bare = subprocess.run(
            [python, "-I", "-c", CHECK.format(place=str(site))],
            text=True,
            capture_output=True,
            timeout=60,
        )
        assert bare.stdout == "bare\n", bare.stderr

        done = submit(python, made.script, made.definition)

    assert done.returncode == 0, done.stdout + done.stderr
    log = sorted((tmp_path / "table" / "_delta_log").glob("*.json"))
    commits = [json.loads(line) for entry in log for line in entry.read_text().splitlines()]
    rows = [json.loads(line["add"]["stats"])["numRecords"] for line in commits if "add" in line]
    assert sum(rows) == 100
    assert (tmp_path / "table_rejected" / "_delta_log").is_dir()


def submit(python: Path, script: Path, definition: Path) -> subprocess.CompletedProcess[str]:
    """Run the script as Glue does: the JVM is there first, with the definition's settings."""
    arguments = json.loads(definition.read_text())["DefaultArguments"]
    settings = arguments["--conf"].split(" --conf ")
    conf = [word for setting in settings for word in ("--conf", setting)]
    packages = ",".join(wanted_packages(find_installed(), [], []))
    home = find_spec("pyspark")
    assert home is not None
    assert home.origin is not None
    java = find_java(os.environ)
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    if java.home:
        environment["JAVA_HOME"] = str(java.home)
    submit = [str(Path(home.origin).parent / "bin" / "spark-submit"), "--master", "local[2]"]
    return subprocess.run(
        [*submit, "--packages", packages, *conf, str(script), "--JOB_NAME", "numbers"],
        capture_output=True,
        text=True,
        timeout=500,
        cwd=script.parent,
        env=environment | {"PYSPARK_PYTHON": str(python), "OTTLA_CLASS_ARCHIVE": "off"},
    )
