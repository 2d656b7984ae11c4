"""A Spark standalone cluster from PySpark's own jars: one master and its workers."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from ottla.pipelines.spark.java import find_java
from ottla.testing.ports import free_ports

START_WITHIN_S = 180
STOP_WITHIN_S = 30
HOST = "127.0.0.1"


@contextlib.contextmanager
def standalone_spark(folder: Path, workers: int = 2) -> Iterator[str]:
    """Run the cluster, each worker with one core; gives the master's URL."""
    (port,) = free_ports(1)
    url = f"spark://{HOST}:{port}"
    with contextlib.ExitStack() as stack:
        master = ["master.Master", "--host", HOST, "--port", str(port), "--webui-port", "0"]
        _run(stack, master, folder / "master", "Starting Spark master at")
        for number in range(workers):
            place = folder / f"worker-{number}"
            worker = ["worker.Worker", "--host", HOST, "--webui-port", "0", "--cores", "1"]
            worker += ["--memory", "1g", "--work-dir", str(place / "work"), url]
            _run(stack, worker, place, "Successfully registered with master")
        yield url


def _run(stack: contextlib.ExitStack, arguments: list[str], place: Path, ready: str) -> None:
    from pyspark.find_spark_home import _find_spark_home

    place.mkdir(parents=True)
    java = find_java(os.environ)
    home = {"JAVA_HOME": str(java.home)} if java.home else {}
    log = place / "log"
    command = [f"{_find_spark_home()}/bin/spark-class", f"org.apache.spark.deploy.{arguments[0]}"]
    with log.open("w") as file:
        process = subprocess.Popen(
            [*command, *arguments[1:]],
            stdout=file,
            stderr=subprocess.STDOUT,
            cwd=place,
            env=os.environ
            | home
            | {"SPARK_LOCAL_IP": HOST, "SPARK_DAEMON_MEMORY": "256m", "SPARK_LOG_LEVEL": "INFO"},
        )
    stack.callback(_stop, process)
    until = time.monotonic() + START_WITHIN_S
    while ready not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.2)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
