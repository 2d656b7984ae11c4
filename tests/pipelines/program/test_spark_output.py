"""What Spark writes goes to a file."""

import subprocess
import sys
from pathlib import Path

CODE = """
import os, subprocess, sys, warnings
from pathlib import Path
from ottla.pipelines.program.spark_output import SparkOutput
log = Path(sys.argv[1]) if len(sys.argv) > 1 else None
with SparkOutput("flights", lambda screen: screen, log) as output:
    print("ours")
    print("our errors", file=sys.stderr)
    os.write(1, b"a library's\\n")
    warnings.warn("a library is new", FutureWarning)
    subprocess.run(["sh", "-c", "echo Spark; echo its errors >&2"])
print("after", output.file)
os.write(2, b"errors after\\n")
"""


def test_the_screen_has_python_alone(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "spark.log"
    done = subprocess.run([sys.executable, "-c", CODE, str(log)], capture_output=True, text=True)
    assert done.stdout == f"ours\nafter {log}\n"
    assert done.stderr == "our errors\nerrors after\n"
    assert log.read_text() == (
        "a library's\n<string>:10: FutureWarning: a library is new\nSpark\nits errors\n"
    )


def test_a_log_for_each_process_and_the_newest_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "ottla" / "logs"
    folder.mkdir(parents=True)
    for number in range(15):
        (folder / f"flights-{number}.log").write_text("")
    (folder / "weather-1.log").write_text("")
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert len(list(folder.glob("flights-*.log"))) == 10
    assert (folder / "weather-1.log").exists()
