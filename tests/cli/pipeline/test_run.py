"""`ottla pipeline run` before anything runs."""

import subprocess
import sys


def test_the_command_line_starts_without_pyspark() -> None:
    code = (
        "import sys; from ottla.cli.main import main\n"
        "try: main(['pipeline', '--help'])\n"
        "finally: print({'pyspark', 'confluent_kafka'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr == "set()\n"
