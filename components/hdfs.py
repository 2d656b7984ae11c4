"""HDFS itself: a NameNode and a DataNode from Hadoop's jars on Maven Central."""

import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from components import cache, ivy, java
from components.child import Child
from ottla.testing.ports import free_ports

COORDINATE = "org.apache.hadoop:hadoop-client-minicluster:3.4.1"
DISTCP = "org.apache.hadoop:hadoop-distcp:3.4.1"
START_WITHIN_S = 90
RUN_WITHIN_S = 180
_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_HDFS = "org.apache.hadoop.hdfs.server"


class HdfsError(Exception):
    """HDFS did not start; the message has its last output."""


def fetched_jars(settings: Path | None = None) -> Path:
    """The folder with the jars, fetched first if they are missing (90 MB). Raises FetchError."""
    folder = cache.folder(f"hadoop-{COORDINATE.rpartition(':')[2]}")
    if not cache.is_ready(folder):
        with cache.making(folder) as into:
            ivy.fetch([COORDINATE], into, settings)
    return folder


def fetched_distcp(settings: Path | None = None) -> Path:
    """The folder with distcp's jar, fetched first if it is missing (160 KB). Raises as above."""
    folder = cache.folder(f"hadoop-distcp-{DISTCP.rpartition(':')[2]}")
    if not cache.is_ready(folder):
        with cache.making(folder) as into:
            ivy.fetch([DISTCP], into, settings, alone=True)
    return folder


class Hdfs:
    """One NameNode and one DataNode, with their files in a folder."""

    def __init__(self, jars: Path, folder: Path) -> None:
        self._jars, self._folder = jars, folder
        self._name, self._web, *self._data = free_ports(5)
        self._children: list[Child] = []

    @property
    def url(self) -> str:
        return f"hdfs://127.0.0.1:{self._name}"

    def start(self) -> None:
        """Format and start; wait until the DataNode is there. Raises HdfsError."""
        self._write_settings()
        name = f"{_HDFS}.namenode.NameNode"
        done = subprocess.run(
            [*self._command(name), "-format", "-force", "-nonInteractive"],
            capture_output=True,
            text=True,
            timeout=START_WITHIN_S,
        )
        if done.returncode != 0:
            raise HdfsError(done.stderr[-2000:])
        for kind in (name, f"{_HDFS}.datanode.DataNode"):
            log = self._folder / f"{kind.rpartition('.')[2]}.log"
            self._children.append(Child(self._command(kind), log))
        until = time.monotonic() + START_WITHIN_S
        while not self._is_ready():
            ended = [one.last_words() for one in self._children if one.process.poll() is not None]
            if ended or time.monotonic() > until:
                raise HdfsError("\n".join(ended) or "HDFS is not operational")
            time.sleep(0.2)

    def stop(self) -> None:
        for child in reversed(self._children):
            child.stop()
        shutil.rmtree(self._folder / "hdfs", ignore_errors=True)

    @property
    def class_path(self) -> str:
        """Hadoop's classes and its settings: `fs.defaultFS` is this cluster."""
        return os.pathsep.join([str(self._folder / "conf"), f"{self._jars}/*"])

    def run(self, name: str, *arguments: str, more: str = "") -> str:
        """Run a program with Hadoop's classes, and `more`; return its stdout. Raises HdfsError."""
        paths = os.pathsep.join(filter(None, (self.class_path, more)))
        done = subprocess.run(
            [java.find(), *_JVM, "-cp", paths, name, *arguments],
            capture_output=True,
            text=True,
            timeout=RUN_WITHIN_S,
        )
        if done.returncode != 0:
            raise HdfsError(f"{name} ended with {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout

    def _command(self, name: str) -> list[str]:
        return [java.find(), *_JVM, "-cp", self.class_path, name]

    def _write_settings(self) -> None:
        data, web, ipc = self._data
        files = self._folder / "hdfs"
        core = {"fs.defaultFS": self.url}
        hdfs = {
            "dfs.replication": "1",
            "dfs.namenode.name.dir": f"file://{files}/name",
            "dfs.datanode.data.dir": f"file://{files}/data",
            "dfs.namenode.http-address": f"127.0.0.1:{self._web}",
            "dfs.datanode.address": f"127.0.0.1:{data}",
            "dfs.datanode.http.address": f"127.0.0.1:{web}",
            "dfs.datanode.ipc.address": f"127.0.0.1:{ipc}",
            "dfs.permissions.enabled": "false",
            "dfs.namenode.safemode.extension": "0",
        }
        (self._folder / "conf").mkdir(parents=True)
        for name, settings in (("core-site", core), ("hdfs-site", hdfs)):
            properties = "".join(
                f"<property><name>{key}</name><value>{value}</value></property>"
                for key, value in settings.items()
            )
            text = f"<configuration>{properties}</configuration>"
            (self._folder / "conf" / f"{name}.xml").write_text(text)

    def _is_ready(self) -> bool:
        query = "qry=Hadoop:service=NameNode,name=FSNamesystemState"
        try:
            address = f"http://127.0.0.1:{self._web}/jmx?{query}"
            with urllib.request.urlopen(address, timeout=5) as answer:
                (state,) = json.load(answer)["beans"]
        except (urllib.error.URLError, OSError, ValueError):
            return False
        return bool(state["NumLiveDataNodes"] >= 1 and state["FSState"] == "Operational")
