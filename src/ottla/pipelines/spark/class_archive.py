"""A class archive (AppCDS) for Spark's JVM: classes are mapped instead of loaded and verified.

The first session without an archive has its JVM write one when it exits (JEP 350). That takes
some seconds of one core after the program has ended. A process of its own waits for the JVM,
has Java verify the archive, and only then gives it its name:

    archive-<key>.<size>.jsa  ready; the next sessions use it while it has this size in bytes
    archive-<key>.<pid>.new   being written; a kill leaves it, and a later start removes it

The key covers the runtime, each jar of the class path with its size and time, and the JVM's
options. So an archive never outlives what it was made from; the JVM checks that once more and
starts without the archive where it does not fit. A JVM that maps a truncated archive dies, which
is why the size is in the name. OTTLA_CLASS_ARCHIVE=off switches all of this off.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

OFF: Final = "OTTLA_CLASS_ARCHIVE"
MAX_ARCHIVES: Final = 2  # 170 to 200 MB each, for at least 3 s: docs/decisions/class-archive.md
WRITTEN_WITHIN_S: Final = 180
_QUIET: Final = "-Xlog:cds*=off -Xlog:class+path*=off"
_MORE_CLASS_PATH: Final = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH")
# The JVM does not start where it is to write an archive beside a Java agent.
_CONFLICTING: Final = (
    "-Xshare",
    "SharedArchiveFile",
    "ArchiveClassesAtExit",
    "-Xlog",
    "-javaagent",
)
_OPTION_VARIABLES: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """Where the archive of one runtime and class path is; `options` are for a session's JVM."""

    java: Path
    key: str
    file: Path  # to be used, or where this session's JVM writes one
    is_ready: bool

    @property
    def options(self) -> str:
        use = "SharedArchiveFile" if self.is_ready else "ArchiveClassesAtExit"
        return f"{_QUIET} -XX:{use}={self.file}"


def find(
    folder: Path,
    java: Path,
    jars: Sequence[str],
    spark_home: Path,
    options: str,
    environ: Mapping[str, str],
) -> ClassArchive | None:
    """Return the archive to use or to write; None where the JVM cannot have one.

    `jars` come before Spark's own on the class path; `options` are the JVM's other options, to
    which it adds those of the environment.
    """
    options = " ".join((options, *(environ.get(name, "") for name in _OPTION_VARIABLES)))
    runtime = _runtime(java)
    if environ.get(OFF, "").lower() in ("off", "0", "false", "no") or runtime is None:
        return None
    if any(word in options for word in _CONFLICTING):
        return None
    conf = Path(environ.get("SPARK_CONF_DIR") or spark_home / "conf")
    # The JVM archives nothing when a folder with files is on the class path.
    if any(
        name in environ for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH")
    ):
        return None
    if conf.is_dir() and any(conf.iterdir()):
        return None
    own = sorted(str(jar) for jar in (spark_home / "jars").glob("*.jar"))
    facts = [runtime, options, str(conf)]
    for jar in (*jars, *own):
        status = os.stat(jar)
        facts.append(f"{jar} {status.st_size} {status.st_mtime_ns}")
    key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:24]
    for file in folder.glob(f"archive-{key}.*.jsa"):
        if file.suffixes[0] == f".{file.stat().st_size}":
            os.utime(file)
            return ClassArchive(java, key, file, is_ready=True)
        file.unlink(missing_ok=True)
    _remove_leftovers(folder)
    if list(folder.glob(f"archive-{key}.*.new")):
        return None  # another session writes it
    return ClassArchive(java, key, folder / f"archive-{key}.{os.getpid()}.new", is_ready=False)


def _runtime(java: Path) -> str | None:
    """Name the runtime and its build; None where it has no archive of its own to build on."""
    home = java.resolve().parent.parent
    release = home / "release"
    base = home / "lib" / "server" / "classes.jsa"
    if not release.is_file() or not base.is_file():
        return None
    return f"{home}\n{release.read_text()}\n{base.stat().st_size} {base.stat().st_mtime_ns}"


def remove_old(folder: Path) -> None:
    """Remove archives beyond MAX_ARCHIVES, the least recently used first."""
    ready = sorted(folder.glob("archive-*.jsa"), key=_used, reverse=True)
    for file in ready[MAX_ARCHIVES:]:
        file.unlink(missing_ok=True)


def _remove_leftovers(folder: Path) -> None:
    for file in folder.glob("archive-*.new"):
        writer = file.suffixes[0].removeprefix(".")
        gone = not (writer.isdigit() and _is_running(int(writer)))
        if gone and time.time() - _used(file) > WRITTEN_WITHIN_S:
            file.unlink(missing_ok=True)


def _used(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def finish_later(archive: ClassArchive, jvm: int, class_path: str) -> None:
    """Start the process that names the archive once the JVM has exited.

    `jvm` is its process id, `class_path` what it says that its class path is.
    """
    arguments = [str(jvm), str(archive.file), archive.key, str(archive.java), class_path]
    subprocess.Popen(
        [sys.executable, "-m", __name__, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def finish(jvm: int, new: Path, key: str, java: Path, class_path: str) -> Path | None:
    """Wait until the JVM has exited, verify what it wrote and give it its name.

    Return the archive; what is not whole is removed.
    """
    until = time.monotonic() + WRITTEN_WITHIN_S
    while _is_running(jvm) and time.monotonic() < until:
        time.sleep(0.2)
    if _is_running(jvm) or not new.is_file() or not _is_whole(new, java, class_path):
        new.unlink(missing_ok=True)
        return None
    ready = new.with_name(f"archive-{key}.{new.stat().st_size}.jsa")
    os.replace(new, ready)
    remove_old(ready.parent)
    return ready


def _is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def _is_whole(new: Path, java: Path, class_path: str) -> bool:
    command = [str(java), "-Xshare:on", "-XX:+VerifySharedSpaces", f"-XX:SharedArchiveFile={new}"]
    # A JVM that dies of an archive would leave a report in the folder of the program.
    command += [f"-XX:ErrorFile={os.devnull}", "-cp", class_path, "-version"]
    try:
        checked = subprocess.run(command, capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return checked.returncode == 0


def main() -> None:
    jvm, new, key, java, class_path = sys.argv[1:]
    finish(int(jvm), Path(new), key, Path(java), class_path)


if __name__ == "__main__":
    main()
