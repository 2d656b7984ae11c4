import argparse
import ast
from pathlib import Path

import pytest
from components.apache_kafka import KafkaJars
from components.packages import PackageError
from conformance.__main__ import chosen, suite_f

from components import cache, packages
from conformance import aiokafka

JARS = KafkaJars(Path("jars"), "java")


def checkout(folder: Path, version: str = aiokafka.VERSION) -> Path:
    """What a suite needs of aiokafka's repository."""
    for name in ("aiokafka", "tests"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").touch()
    (folder / "aiokafka" / "__init__.py").write_text(f'__version__ = "{version}"\n')
    (folder / "tests" / "conftest.py").write_text("import docker\n")
    (folder / "tests" / "test_a.py").touch()
    return folder


@pytest.fixture
def no_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, and no environment with packages from PyPI."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(packages, "python_environment", lambda name, needs: tmp_path / "python")


@pytest.mark.usefixtures("no_environment")
def test_the_tests_of_a_checkout_get_our_conftest_and_stay_in_the_cache(tmp_path: Path) -> None:
    suite = aiokafka.prepare(tmp_path, checkout(tmp_path / "from"))
    assert (suite.folder / "tests" / "test_a.py").is_file()
    assert (suite.folder / "tests" / "conftest.py").read_text() == aiokafka.CONFTEST
    # The installed package is tested, which has the extension, and not the sources beside it.
    assert not (suite.folder / "aiokafka").exists()
    assert aiokafka.prepare(tmp_path, None) == suite


@pytest.mark.usefixtures("no_environment")
def test_another_checkout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match=r"has aiokafka 0\.9\.0; wanted a checkout of v0\.14"):
        aiokafka.prepare(tmp_path, checkout(tmp_path / "old", "0.9.0"))
    with pytest.raises(PackageError, match="has no aiokafka"):
        aiokafka.prepare(tmp_path, tmp_path)
    assert not cache.is_ready(cache.folder(f"aiokafka-tests-{aiokafka.VERSION}"))


@pytest.mark.usefixtures("no_environment")
def test_without_a_checkout_the_other_suites_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    options = argparse.Namespace(bootstrap=None, only="", aiokafka=None)
    (one,) = suite_f([], JARS, options)
    assert (one.state, "--aiokafka FOLDER" in one.reason) == ("skipped", True)
    options.only = "F"
    with pytest.raises(PackageError, match="git is not installed"):
        list(suite_f([], JARS, options))


def test_brokers_that_run_already_have_other_settings() -> None:
    (one,) = suite_f([], JARS, argparse.Namespace(bootstrap="a:1", only="F", aiokafka=None))
    assert (one.state, one.reason) == ("skipped", "it starts a broker of Ottla itself")


def test_the_suite_can_be_chosen() -> None:
    assert chosen("F:test_commit") == {"F": ["test_commit"]}
    assert "F" in chosen("")


REPORT = """<testsuites><testsuite>
<testcase classname="tests.test_client" name="test_bootstrap" time="0.5"/>
</testsuite></testsuites>"""


def fake_suite(folder: Path, script: str) -> aiokafka.Suite:
    python = folder / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    return aiokafka.Suite(folder, python, folder)


def test_the_tests_are_told_the_address_and_what_to_leave_out(tmp_path: Path) -> None:
    (tmp_path / "made.xml").write_text(REPORT)
    suite = fake_suite(
        tmp_path, 'echo "$KAFKA_ADDRESS $KAFKA_TLS_PORT $*"; cp made.xml F-report.xml'
    )
    states = {
        one.name: one.state
        for one in aiokafka.run(suite, "127.0.0.1:9", {"KAFKA_TLS_PORT": "7"}, [])
    }
    assert states.pop("test_bootstrap") == "passed"
    assert states == dict.fromkeys(aiokafka.LEFT_OUT, "skipped")
    said = (tmp_path / "F.log").read_text()
    assert said.startswith("127.0.0.1:9 7 ")
    assert said.rstrip().endswith(" and ".join(f"not {name}" for name in aiokafka.LEFT_OUT))
    (only,) = aiokafka.run(suite, "127.0.0.1:9", {}, ["test_one", "test_two"])
    assert only.state == "passed"
    assert (tmp_path / "F.log").read_text().rstrip().endswith("and (test_one or test_two)")


def test_a_failure_counts_if_it_fails_again(tmp_path: Path) -> None:
    failure = '<failure message="2 != 3"/>'
    case = '<testcase classname="tests.test_a" name="test_{}" time="1">{}</testcase>'
    for name, of_slow in (("F", failure), ("F-repeated", "")):
        cases = case.format("slow", of_slow) + case.format("wrong", failure)
        (tmp_path / f"{name}.made").write_text(f"<testsuites>{cases}</testsuites>")
    script = """for word; do case $word in
  --junitxml=*-report.xml) file=${word#--junitxml=}; cp ${file%-report.xml}.made $file;; esac
done; echo $*"""
    slow, wrong = aiokafka.run(
        fake_suite(tmp_path, script), "127.0.0.1:9", {}, ["test_slow", "wrong"]
    )
    assert (slow.state, slow.reason) == ("passed", "when repeated; at first 2 != 3")
    assert wrong.state == "failed"
    said = (tmp_path / "F-repeated.log").read_text()
    assert said.rstrip().endswith("-k test_slow or test_wrong")


def test_a_run_without_a_test_is_a_failure(tmp_path: Path) -> None:
    suite = fake_suite(tmp_path, "echo collection failed; exit 4")
    (one,) = aiokafka.run(suite, "127.0.0.1:9", {}, ["test_one"])
    assert (one.state, "no test ran" in one.reason) == ("failed", True)
    assert "collection failed" in (tmp_path / "F.log").read_text()


def test_our_conftest_is_python() -> None:
    defined = {
        node.name for node in ast.walk(ast.parse(aiokafka.CONFTEST)) if hasattr(node, "name")
    }
    assert {"loop", "kafka_server", "setup_test_class", "setup_test_class_serverless"} <= defined
