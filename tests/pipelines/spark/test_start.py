"""A session that works the first time, and says before the JVM starts why it would not."""

import json
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines import PipelineError, session
from ottla.pipelines.spark import class_archive
from ottla.pipelines.spark import start as module
from ottla.pipelines.spark.jars import wanted_packages
from ottla.pipelines.spark.java import find_java
from ottla.pipelines.spark.jvm import context
from ottla.pipelines.spark.versions import Installed

pytestmark = pytest.mark.spark


def test_a_session_reads_kafka_and_writes_delta(spark: Any, tmp_path: Path) -> None:
    spark.range(3).write.format("delta").save(str(tmp_path / "t"))

    assert spark.sql(f"SELECT * FROM delta.`{tmp_path}/t`").count() == 3
    assert module.check_classes(spark) is None
    assert spark.conf.get("spark.sql.extensions") == module.DELTA_EXTENSION
    given = spark.conf.get("spark.jars", "") + spark.conf.get(module.CLASS_PATH, "")
    assert "spark-sql-kafka-0-10_2.13" in given
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"
    assert os.environ.get("PYSPARK_SUBMIT_ARGS") is None


def test_a_running_session_is_left_as_it_is(spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    before = dict(spark.sparkContext.getConf().getAll())

    same = session("other", master="local[1]", conf={"spark.sql.shuffle.partitions": 7})

    assert same is spark
    assert dict(spark.sparkContext.getConf().getAll()) == before
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert "not in force: spark.sql.shuffle.partitions" in caplog.text


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process, where starting the JVM would fail the test."""

    def start(*_: Any) -> None:
        raise AssertionError("the JVM was started")

    monkeypatch.setattr(module, "running_session", lambda: None)
    monkeypatch.setattr(module, "jvm_runs", lambda: False)
    monkeypatch.setattr(module, "_start", start)


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize(
    ("installed", "options", "words"),
    [
        (Installed("4.0.0", "4.0.0", "2.13", "4.4.0"), {}, "do not belong together|needs PySpark"),
        (Installed("4.1.1", "4.1.1", "2.13", "4.0.1"), {}, "'delta-spark==4.2.0'"),
        (Installed("3.5.1", "3.5.1", "2.12", "3.3.0"), {}, "PySpark 3.5.1 is not supported"),
        (None, {"packages": ["io.delta:delta-spark_2.12:3.3.0"]}, "Scala 2.12"),
        (None, {"conf": {"spark.jars.packages": "io.delta:delta-spark_2.12:3.3.0"}}, "Scala 2.12"),
        (None, {"jars": "/nowhere"}, "there is no file /nowhere"),
        (None, {"ivy_settings": "/nowhere.xml"}, "ivy_settings: there is no file"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_jvm_starts(
    monkeypatch: pytest.MonkeyPatch,
    installed: Installed | None,
    options: dict[str, Any],
    words: str,
) -> None:
    if installed is not None:
        monkeypatch.setattr(module, "find_installed", lambda: installed)
    with pytest.raises(PipelineError, match=words) as caught:
        session("app", **options)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("nothing_runs")
def test_without_java_nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java(_: Any) -> None:
        raise PipelineError("no Java")

    monkeypatch.setattr(module, "find_java", no_java)
    with pytest.raises(PipelineError, match="no Java"):
        session("app")


def test_settings_add_up_and_the_users_own_win(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[tuple[str | None, dict[str, str], dict[str, str | None]]] = []

    def start(_app: str, master: str | None, settings: dict[str, str]) -> str:
        names = ("PYSPARK_SUBMIT_ARGS", "JAVA_HOME")
        started.append((master, settings, {name: os.environ.get(name) for name in names}))
        return "session"

    monkeypatch.setattr(module, "running_session", lambda: None)
    monkeypatch.setattr(module, "jvm_runs", lambda: False)
    monkeypatch.setattr(module, "_start", start)
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--packages a:b:1 --driver-memory 2g pyspark-shell")
    (tmp_path / "mine-1.0.jar").touch()

    made = session(
        "app",
        master="local[3]",
        packages=["c:d:2"],
        jars=[tmp_path / "mine-1.0.jar"],
        conf={
            "spark.jars.packages": "e:f:3",
            "spark.sql.extensions": "my.Extension",
            "spark.databricks.delta.snapshotPartitions": 9,
            "spark.ui.enabled": False,
        },
    )

    assert made == "session"
    master, settings, environment = started[0]
    assert master == "local[3]"
    packages = settings["spark.jars.packages"].split(",")
    assert packages[:3] == ["c:d:2", "e:f:3", "a:b:1"]
    assert [package.split(":")[0] for package in packages[3:]] == ["io.delta", "org.apache.spark"]
    assert "spark.jars" not in settings
    assert settings["spark.databricks.delta.snapshotPartitions"] == "9"
    assert settings["spark.ui.enabled"] == "false"
    with_delta = module._with_delta(settings)
    assert with_delta["spark.sql.extensions"] == f"my.Extension,{module.DELTA_EXTENSION}"
    assert environment["PYSPARK_SUBMIT_ARGS"] == (
        f"--jars {tmp_path}/mine-1.0.jar --driver-memory 2g pyspark-shell"
    )
    assert os.environ["PYSPARK_SUBMIT_ARGS"].startswith("--packages a:b:1")


WITH_A_JAR = """
import sys
from ottla.pipelines import session

spark = session("mine", jars=sys.argv[1], class_archive=False)
print("JARS", spark.conf.get("spark.jars", ""), spark.conf.get("spark.driver.extraClassPath", ""))
spark.stop()
"""


@pytest.mark.usefixtures("spark")  # the packages are in Ivy's cache
def test_a_jar_of_the_users_hides_none_of_the_packages(tmp_path: Path) -> None:
    """Ivy finds them for the first session; the second takes what the first has noted."""
    jar = tmp_path / "mine-1.0.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("mine.txt", "mine")
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("SPARK_CONF_DIR", None)
    for noted in (False, True):
        assert (tmp_path / "cache/ottla/spark/resolved.json").exists() == noted
        done = subprocess.run(
            [sys.executable, "-c", WITH_A_JAR, str(jar)],
            capture_output=True,
            text=True,
            timeout=120,
            env=environment,
        )

        assert done.returncode == 0, done.stderr
        assert "mine-1.0.jar" in done.stdout
        assert "delta-spark" in done.stdout
        assert "kafka-clients" in done.stdout


GLUE_JOB = """
import json
from ottla.pipelines import session

spark = session("mine", master="local[7]", conf={"spark.sql.shuffle.partitions": 3})
names = ("spark.master", "spark.jars.packages", "spark.sql.extensions",
         "spark.databricks.delta.snapshotPartitions", "spark.sql.shuffle.partitions")
print("FOUND" + json.dumps({name: spark.conf.get(name, None) for name in names}))
spark.stop()
"""


def test_a_users_function_runs_in_the_sessions_own_python(
    spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Another `python3` comes first on the PATH, which is what Spark takes by itself."""
    from pyspark.sql import functions as F  # noqa: N812

    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\nexit 7\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    @F.udf("string")
    def executable(_number: int) -> str:
        return sys.executable

    found = spark.range(1).select(executable("id")).first()[0]

    assert Path(found).resolve() == Path(sys.executable).resolve()
    assert spark.conf.get("spark.pyspark.python") == sys.executable


OLD_GLUE = """
import pyspark
from ottla.pipelines import PipelineError, session

pyspark.__version__ = "3.5.6"
try:
    session("job")
except PipelineError as error:
    print(error)
"""


def test_a_job_on_an_older_glue_is_refused_in_one_sentence() -> None:
    done = subprocess.run(
        [sys.executable, "-c", OLD_GLUE],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PYSPARK_GATEWAY_PORT": "1", "PYSPARK_GATEWAY_SECRET": "x"},
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Spark 3.5.6 runs here: ")
    assert done.stdout.count("\n") == 1


def test_a_jvm_that_spark_submit_started_keeps_its_settings(spark: Any, tmp_path: Path) -> None:
    """As on AWS Glue: the JVM is there first, with its jars, and runs the script."""
    script = tmp_path / "job.py"
    script.write_text(GLUE_JOB)
    given = {
        "spark.master": "local[1]",
        "spark.sql.extensions": "org.apache.spark.sql.DeltaIsNotHere",
        "spark.databricks.delta.snapshotPartitions": "5",
        "spark.sql.shuffle.partitions": "11",
        "spark.ui.enabled": "false",
        "spark.jars.packages": ",".join(wanted_packages(module.find_installed(), [], [])),
    }
    words = [argument for item in given.items() for argument in ("--conf", "=".join(item))]
    submit = Path(context.spark_home()) / "bin" / "spark-submit"

    done = subprocess.run(
        [submit, *words, script],
        capture_output=True,
        text=True,
        timeout=200,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
    )

    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("FOUND"))
    found = json.loads(line.removeprefix("FOUND"))
    added = {"spark.sql.extensions": f"{given['spark.sql.extensions']},{module.DELTA_EXTENSION}"}
    assert found == {name: (given | added)[name] for name in found}


FIRST_PROGRAM = """
from ottla.pipelines import session

spark = session("first", master="local[1]", conf={"spark.ui.enabled": False}, packages=%r)
print(spark.sparkContext._gateway.proc.pid, flush=True)
"""


def test_the_first_program_closes_its_output_before_the_archive_is_written(
    spark: Any, tmp_path: Path
) -> None:
    java = find_java(os.environ)
    if class_archive.find(tmp_path, java.executable, [], context.spark_home(), "", {}) is None:
        pytest.skip("no Java with an archive of its own")
    asked = wanted_packages(module.find_installed(), [], [])

    program = subprocess.run(
        [sys.executable, "-c", FIRST_PROGRAM % asked],
        capture_output=True,
        text=True,
        timeout=200,
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path), class_archive.OFF: ""},
    )

    # Its JVM still runs, without the pipes, which this test has read to their end.
    assert program.returncode == 0, program.stderr
    jvm = Path("/proc") / program.stdout.strip()
    assert [os.readlink(jvm / "fd" / number) for number in "12"] == ["/dev/null"] * 2
    until = time.monotonic() + class_archive.WRITTEN_WITHIN_S
    while not list(tmp_path.rglob("archive-*.jsa")) and time.monotonic() < until:
        time.sleep(0.2)
    assert list(tmp_path.rglob("archive-*.jsa"))


def test_a_plain_session_without_delta_is_refused(spark: Any) -> None:
    class Plain:
        _jvm = spark._jvm
        version = spark.version

        class conf:  # noqa: N801 - Spark's own name
            @staticmethod
            def get(_name: str, default: str) -> str:
                return default

    with pytest.raises(PipelineError, match="was started without Delta"):
        module.check_classes(Plain())
