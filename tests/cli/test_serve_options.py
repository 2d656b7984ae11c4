"""The short way into `ottla serve` and its properties."""

import sys
from pathlib import Path
from typing import Any

import pytest

from ottla.cli.failures import EXIT_FAILED, UsageFailed
from ottla.cli.serve_options import (
    FLAGS,
    OPTION_NAMES,
    ServeOptions,
    level_of,
    listener,
    parse,
    run,
    to_properties,
)
from ottla.config import BrokerConfig, ConfigError


def test_every_option_is_read() -> None:
    words = ["--listen", "h:1", "--advertise=a:2", "--data", "d", "--properties=p"]
    assert parse(words) == ServeOptions("h:1", "a:2", "d", "p")


def test_config_may_repeat_and_keeps_its_equals_signs() -> None:
    options = parse(["--config", "a=1", "-c", "b=x=y", "--config=c=3"])
    assert options == ServeOptions(config=["a=1", "b=x=y", "c=3"])


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--listen"],
        ["--listen", "a:1", "--listen", "b:2"],
        ["--nonsense", "x"],
        ["word", "x"],
        ["-c=a=b"],
        ["--data", "d", "-h"],
    ],
)
def test_unknown_options_are_left_to_click(words: list[str]) -> None:
    assert parse(words) is None


def test_the_fast_path_and_click_have_the_same_options() -> None:
    from ottla.cli.app import root

    command = root().load("serve")
    assert command is not None
    options = {name for parameter in command.params for name in parameter.opts}
    assert options == set(OPTION_NAMES) | set(FLAGS)


def test_options_become_kafkas_names() -> None:
    options = ServeOptions(
        "127.0.0.1:0", "example.org:9", "there", None, config=["num.partitions = 3"]
    )
    assert to_properties(options) == {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "advertised.listeners": "PLAINTEXT://example.org:9",
        "log.dirs": "there",
        "num.partitions": "3",
    }


def test_without_options_the_broker_uses_its_defaults() -> None:
    assert to_properties(ServeOptions()) == {}


def test_options_override_config_and_config_overrides_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "log.dir=/file\nnum.partitions=1\nmin.insync.replicas=2\nlisteners=PLAINTEXT://:1\n"
        "advertised.listeners=PLAINTEXT://file:1\n"
    )
    options = ServeOptions(":5", None, "mine", str(file), config=["num.partitions=7"])
    assert to_properties(options) == {
        "listeners": "PLAINTEXT://:5",
        "log.dirs": "mine",
        "num.partitions": "7",
        "min.insync.replicas": "2",
    }


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("localhost:9092", "PLAINTEXT://localhost:9092"),
        ("::1:9092", "PLAINTEXT://[::1]:9092"),
        ("[::1]:9092", "PLAINTEXT://[::1]:9092"),
        (":0", "PLAINTEXT://:0"),
    ],
)
def test_listener_forms_that_the_broker_accepts(address: str, expected: str) -> None:
    assert listener("--listen", address) == expected
    assert BrokerConfig.from_properties({"listeners": expected}).endpoints[0].port in (0, 9092)


@pytest.mark.parametrize("address", ["localhost", "localhost:", "localhost:x", "h:70000", ""])
def test_wrong_address_names_the_option_and_the_form(address: str) -> None:
    with pytest.raises(UsageFailed, match="--listen must be HOST:PORT"):
        listener("--listen", address)


@pytest.mark.parametrize("pair", ["x", "=x", ""])
def test_config_without_a_name_or_value_is_refused(pair: str) -> None:
    with pytest.raises(UsageFailed, match="--config must be name=value"):
        to_properties(ServeOptions(config=[pair]))


def test_conflicting_options_are_rejected() -> None:
    with pytest.raises(UsageFailed, match=r"--data and --config log\.dirs"):
        to_properties(ServeOptions(data="d", config=["log.dirs=e"]))


def test_a_missing_file_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        to_properties(ServeOptions(properties=str(tmp_path / "missing")))


def test_a_failure_fits_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("COLUMNS", "67")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert run(ServeOptions(listen="127.0.0.1:0", data=str(file / "of a file"))) == EXIT_FAILED
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 1
    assert max(map(len, lines)) <= 67


def test_a_usage_error_exits_with_2_and_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(ServeOptions(listen="nowhere")) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("ottla serve: --listen must be HOST:PORT")


def test_the_fast_path_imports_no_client_and_no_click() -> None:
    import subprocess

    code = (
        "import sys; from ottla.cli.main import main; code = main(['serve', '--listen', 'x']);"
        "print(code, sorted({'rich', 'confluent_kafka', 'click'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "2 []\n"


@pytest.mark.parametrize("option", ["zookeeper", "rack"])
def test_an_empty_variable_makes_no_broker_of_its_own(option: str) -> None:
    empty: dict[str, Any] = {option: ""}
    options = ServeOptions(node_id="1", **empty)
    with pytest.raises(UsageFailed, match=f"--{option} is empty"):
        to_properties(options)


@pytest.mark.parametrize(
    ("words", "level", "quiet"),
    [
        ([], "info", False),
        (["--quiet"], "warning", True),
        (["-q", "--log-level", "Debug"], "debug", True),
        (["--log-level=error"], "error", False),
    ],
)
def test_what_is_logged(words: list[str], level: str, quiet: bool) -> None:
    options = parse(words)
    assert options is not None
    assert (level_of(options), options.quiet) == (level, quiet)


def test_an_unknown_log_level_names_the_known_ones() -> None:
    with pytest.raises(UsageFailed, match="must be one of debug, info, warning, error, not 'all'"):
        level_of(ServeOptions(log_level="all"))
