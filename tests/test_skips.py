import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = """
import pytest

def test_passes():
    pass

def test_skips():
    pytest.skip("nothing to test with")

def test_begins_after_the_end_of_ci():
    pytest.skip("no time left in CI")

@pytest.mark.skipif(True, reason="never")
def test_is_never_run():
    pass

@pytest.mark.xfail
def test_fails_as_expected():
    assert False
"""


@pytest.mark.parametrize(
    ("ci", "ended"),
    [
        ("true", "1 failed, 1 passed, 1 skipped, 1 xfailed, 1 error"),
        ("", "1 passed, 3 skipped, 1 xfailed"),
    ],
)
def test_a_skip_in_ci_is_a_failure(tmp_path: Path, ci: str, ended: str) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.skips", "-c", "/dev/null", str(tmp_path)],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "CI": ci},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == bool(ci), done.stdout
    assert ended in done.stdout
    assert ("nothing to test with. In CI a skip is a failure" in done.stdout) == bool(ci)
