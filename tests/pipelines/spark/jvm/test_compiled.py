"""The classes of the JVM's room are compiled once, and are a jar of the context."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines.spark.jvm import compiled
from ottla.pipelines.spark.jvm.attributes import java_class, java_context
from ottla.pipelines.spark.jvm.compiled import has_compiler, new_object

pytestmark = pytest.mark.spark


def test_a_context_has_the_jar_once(spark: Any) -> None:
    assert has_compiler(spark)
    for _ in range(2):
        made = new_object(spark, "BatchSender", "127.0.0.1", 9, b"token", 43)
        assert made.getClass().getName() == "ottla.pipelines.BatchSender"
    jars = str(java_context(spark.sparkContext).sc().listJars())
    assert jars.count("classes-") == 1
    name = java_class(spark, "java.io.ObjectOutputStream")
    name(java_class(spark, "java.io.ByteArrayOutputStream")()).writeObject(made)  # as tasks get it


def test_the_jar_is_made_once_and_without_a_cache_for_the_session(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = compiled._jar(spark)
    assert [one.name for one in made.parent.iterdir()] == [made.name]
    assert made.is_relative_to(tmp_path)
    whole, written = made.read_bytes(), made.stat().st_mtime_ns
    assert compiled._jar(spark) == made
    assert made.stat().st_mtime_ns == written
    made.write_bytes(whole[:-9])  # a crash cut it off
    assert compiled._jar(spark) == made
    with zipfile.ZipFile(made) as jar:
        names = {one.rpartition("/")[2] for one in jar.namelist()}
    assert names == {
        "BatchSender.class",
        "KnownTransactions.class",
        "PlainObject.class",
        "PlainObject$Kind.class",
    }
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert compiled._jar(spark).name == made.name
