import argparse
import json
from pathlib import Path

import pytest
from components.packages import PackageError
from conformance.__main__ import suite_e

from conformance import sarama

OUTPUT = """=== RUN   TestOne
--- PASS: TestOne (0.25s)
=== RUN   TestTwo
    functional_producer_test.go:991: no answer
    --- FAIL: TestTwo/part (0.10s)
--- FAIL: TestTwo (1.50s)
=== RUN   TestThree
    functional_consumer_test.go:219: TODO
--- SKIP: TestThree (0.00s)
"""


def test_gos_output_becomes_one_outcome_a_test() -> None:
    found = {each.name: each for each in sarama.outcomes_of(OUTPUT + "FAIL\n", 1)}
    assert [each.state for each in found.values()] == ["passed", "failed", "skipped"]
    assert found["TestTwo"].reason == "functional_producer_test.go:991: no answer"
    assert found["TestTwo"].seconds == 1.5


def test_each_of_two_tests_beside_each_other_has_its_own_reason() -> None:
    output = """=== RUN   TestOne
=== PAUSE TestOne
=== RUN   TestTwo
=== PAUSE TestTwo
=== CONT  TestOne
    a_test.go:1: one
=== CONT  TestTwo/part
    a_test.go:2: two
=== NAME  TestOne
    a_test.go:3: one again
--- FAIL: TestTwo (0.10s)
--- FAIL: TestOne (0.10s)
FAIL
"""
    found = {each.name: each.reason for each in sarama.outcomes_of(output, 1)}
    assert found == {
        "TestTwo": "a_test.go:2: two",
        "TestOne": "a_test.go:1: one a_test.go:3: one again",
    }


def test_a_run_that_breaks_off_is_a_failure() -> None:
    begun = sarama.outcomes_of("=== RUN   TestOne\npanic: nil\n", 2)
    assert [(each.name, each.state) for each in begun] == [("TestOne", "failed")]
    (before,) = sarama.outcomes_of("panic: failed to connect\n", 2)
    assert (before.state, "failed to connect" in before.reason) == ("failed", True)


def suite(folder: Path, script: str = "") -> sarama.Suite:
    (folder / "functional_a_test.go").write_text(
        "func TestFuncOne(t *testing.T) {\nfunc TestJavaMurmur2PartitionerInterop(t *testing.T) {\n"
    )
    (folder / "sarama_test.go").write_text("func TestOfAUnit(t *testing.T) {\n")
    program = folder / sarama.TESTS
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return sarama.Suite(folder, folder)


def test_only_functional_tests_that_can_run_may_be_named(tmp_path: Path) -> None:
    assert suite(tmp_path).names() == ["TestFuncOne", "TestJavaMurmur2PartitionerInterop"]
    for name in ("TestOfAUnit", "TestJavaMurmur2PartitionerInterop"):
        with pytest.raises(ValueError, match=name):
            list(sarama.run(suite(tmp_path), [name]))


def test_the_program_is_told_the_addresses_and_the_tests(tmp_path: Path) -> None:
    one = suite(tmp_path, 'echo "$KAFKA_ADDRESSES $TOXIPROXY_ADDR $*"; exit 3')
    assert sarama._test(one, ["TestA", "TestB"], "a:1,b:2", "http://c:3") == 3
    said = (tmp_path / "E.log").read_text()
    assert said.startswith("a:1,b:2 http://c:3 ")
    assert "-test.run=^(TestA|TestB)$" in said


def test_another_module_is_refused() -> None:
    right = {"Sum": sarama.CHECKSUM, "Dir": "/a"}
    assert sarama._downloaded(f"go: downloading\n{json.dumps(right)}") == Path("/a")
    with pytest.raises(PackageError, match="checksum"):
        sarama._downloaded(json.dumps({**right, "Sum": "h1:other"}))


def test_the_tests_get_other_addresses(tmp_path: Path) -> None:
    module = tmp_path / "module"
    module.mkdir()
    file = module / "functional_test.go"
    file.write_text(f"for {{\n\t\t{sarama.ADDRESS}\n}}\n")
    file.chmod(0o444)
    module.chmod(0o555)
    sarama._take(module, tmp_path / "copy")
    assert "KAFKA_ADDRESSES" in (tmp_path / "copy" / "functional_test.go").read_text()
    module.chmod(0o755)
    file.chmod(0o644)
    file.write_text("other\n")
    with pytest.raises(PackageError, match="addresses"):
        sarama._take(module, tmp_path / "another")


def test_without_go_the_other_suites_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    (one,) = suite_e([], argparse.Namespace(bootstrap=None, only=""))
    assert (one.state, "go is not installed" in one.reason) == ("skipped", True)
    with pytest.raises(PackageError, match="go is not installed"):
        list(suite_e([], argparse.Namespace(bootstrap=None, only="E")))
