"""The page about readers: each is installed as it says, alone, and reads as it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.pipelines.jars import fetch_jars_once
from website.pages import ROOT

from ottla.pipelines import session

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.timeout(900)]

PAGE = (ROOT / "docs/table-readers.md").read_text()
SECTION = re.compile(r"^### (.+?)\n(.*?)(?=^### |\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(bash|py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FROM_PACKAGE = """
pip install duckdb-extensions duckdb-extension-delta
python -c 'import duckdb_extensions; duckdb_extensions.import_extension("delta")'
"""
"""What the page says for a machine that does not reach DuckDB's server."""


def readers() -> Iterator[Any]:
    for name, text in SECTION.findall(PAGE.partition("## What to install")[2]):
        blocks = dict(BLOCK.findall(text))
        if blocks:
            yield pytest.param(blocks["bash"], blocks["py"], id=name)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with a deleted row in a deletion vector, and one without that feature."""
    fetch_jars_once(tmp_path_factory)
    folder = tmp_path_factory.mktemp("readers")
    conf = {"spark.ui.enabled": False, "spark.local.dir": str(folder / "local")}
    spark = session("readers", master="local[2]", conf=conf)
    for name, vectors in (("last", "true"), ("last-for-all", "false")):
        table = f"delta.`{folder}/lake/{name}`"
        spark.sql(
            f"CREATE TABLE {table} (carrier STRING, dep_delay DOUBLE) USING delta"
            f" TBLPROPERTIES (delta.enableDeletionVectors = {vectors})"
        )
        # In one file.
        spark.sql(
            f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ * FROM VALUES"
            " ('HA', 1301D), ('AA', 777D), ('UA', 2D)"
        )
        spark.sql(f"DELETE FROM {table} WHERE carrier = 'AA'")
    spark.stop()
    assert list((folder / "lake" / "last").glob("*deletion_vector*"))
    assert not list((folder / "lake" / "last-for-all").glob("*deletion_vector*"))
    return folder


@pytest.mark.parametrize(("install", "program"), list(readers()))
def test_a_reader_needs_what_the_page_says(
    lake: Path, tmp_path: Path, install: str, program: str
) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PATH"] = f"{tmp_path}/venv/bin{os.pathsep}{environment['PATH']}"
    environment["HOME"] = str(tmp_path)  # DuckDB keeps extensions there
    if "duckdb" in install:
        assert all(word in PAGE for word in ("duckdb-extension-delta", "import_extension"))
        install += FROM_PACKAGE
    commands = (["bash", "-euc", install], ["python", "-c", program])
    for command in commands:
        done = subprocess.run(
            command, cwd=lake, env=environment, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert "1301" in done.stdout
    assert "777" not in done.stdout
    assert "UA" not in done.stdout


def test_the_page_has_every_reader_of_python() -> None:
    assert len(list(readers())) == 4
