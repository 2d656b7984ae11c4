"""The wheel of the pipelines alone."""

import base64
import csv
import hashlib
import io
import subprocess
import sys
import zipfile
from pathlib import Path

from ottla.pipelines.glue import wheel


def test_it_holds_the_pipelines_and_nothing_of_the_broker(tmp_path: Path) -> None:
    made = wheel.write(tmp_path)

    assert [file.name for file in tmp_path.iterdir()] == [made.name]
    with zipfile.ZipFile(made) as archive:
        names = archive.namelist()
        metadata = archive.read(next(name for name in names if name.endswith("METADATA")))
    modules = [name for name in names if ".dist-info/" not in name]
    assert "ottla/pipelines/glue/job.py" in modules
    assert [
        name for name in modules if not name.startswith(("ottla/pipelines/", "ottla/registry/"))
    ] == [
        "ottla/__init__.py",
        "ottla/accelerator.py",
    ]
    required = [line for line in metadata.decode().splitlines() if line.startswith("Requires-Dist")]
    assert [line.split()[1].split(">")[0] for line in required] == ["confluent-kafka"]


def test_its_record_names_each_file_with_its_hash(tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel.write(tmp_path)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    record = next(name for name in files if name.endswith("RECORD"))

    rows = list(csv.reader(io.StringIO(files[record].decode())))

    assert {row[0] for row in rows} == set(files)
    for name, recorded, size in rows:
        if name != record:
            digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest())
            assert recorded == "sha256=" + digest.decode().rstrip("=")
            assert int(size) == len(files[name])


def test_the_same_modules_give_the_same_bytes(tmp_path: Path) -> None:
    first = wheel.write(tmp_path).read_bytes()

    assert wheel.write(tmp_path).read_bytes() == first


def test_pip_installs_it_and_it_is_imported_from_there(tmp_path: Path) -> None:
    made = wheel.write(tmp_path)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    options = ["--no-index", "--no-deps", "--target", str(tmp_path / "site")]
    subprocess.run([*pip, *options, str(made)], check=True, timeout=120)

    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import ottla.pipelines.glue.job as job; "
        "print(job.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program, str(tmp_path / "site")],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path / "site"))
