"""What a wrong word gets for an answer: what was wrong and what to type, and never a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.cli.app import COMMANDS, command_path, root
from ottla.cli.command import Group
from ottla.cli.completion import COMPLETION_VARIABLE
from ottla.cli.main import main


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize(
    ("words", "answer", "more"),
    [
        (["topik"], "No such command 'topik'. Did you mean 'topic'?", "ottla --help"),
        (["topic", "creat"], "Did you mean 'create'", "ottla topic --help"),
        (["topic", "create"], "Missing argument 'TOPIC'", "ottla topic create --help"),
        (
            ["topic", "create", "t", "--partition", "3"],
            "No such option: --partition. Did you mean --partitions?",
            "ottla topic create --help",
        ),
        (
            ["topic", "create", "t", "-p", "x"],
            "Invalid value for '--partitions' / '-p': must be a whole number, not 'x'.",
            "--help",
        ),
        (["topic", "create", "t", "-p", "0"], "must be 1 or more, not 0.", "--help"),
        (["cluster", "start", "--port", "70000"], "must be 65535 or less, not 70000.", "--help"),
        (["produce", "t", "--timeout", "soon"], "must be a number, not 'soon'.", "--help"),
        (["journey", "t", "x"], "'PARTITION': must be a whole number, not 'x'.", "--help"),
        (["topic", "trim", "t", "--to", "5"], "No such option: --to.\n", "topic trim --help"),
        (["journey", "t", "0", "-15"], "-15 is not an option, and a number without one", "--help"),
        (["serve", "--port", "9093"], "Did you mean --listen 127.0.0.1:PORT?", "--help"),
        (["consume", "t", "--from-beginning"], "Did you mean --from beginning", "--help"),
        (["consume", "--topic", "t"], "Did you mean ottla consume TOPIC?", "--help"),
        (["produce", "--topic", "t"], "Did you mean ottla produce TOPIC?", "--help"),
        (["topic", "create", "--topic", "t"], "mean ottla topic create TOPIC?", "--help"),
        (["topic", "list", "--bootstrap-server", "h:1"], "Did you mean --bootstrap?", "--help"),
        (
            ["group", "reset", "g", "--to", "earliest"],
            "--to. Did you mean --to-earliest?",
            "--help",
        ),
        (
            ["group", "reset", "g", "--to=latest"],
            "No such option: --to. Did you mean --to-latest?",
            "",
        ),
        (["group", "reset", "g", "--to", "5"], "--to-offset N or --to-time WHEN?", "--help"),
        (["group", "reset", "g", "--to-datetime", "x"], "Did you mean --to-time WHEN?", "--help"),
        (["produce", "t", "a.jsonl"], "Did you mean --file a.jsonl?", "ottla produce --help"),
        (["topic", "list", "extra"], "extra", "ottla topic list --help"),
        (["serve", "--data"], "'--data' requires an argument", "ottla serve --help"),
        (["serve", "--listn", "x"], "Did you mean --listen?", "ottla serve --help"),
        (["config", "describe", "topics", "x"], "not one of 'topic', 'broker'", "--help"),
        (["produce", "t", "--compression", "zip"], "ssion': 'zip' is not one of 'none'", "--help"),
    ],
)
def test_wrong_arguments(
    capsys: pytest.CaptureFixture[str], words: list[str], answer: str, more: str
) -> None:
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert answer in err
    assert more in err
    assert len(err.splitlines()) == 2


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["topic", "alter", "t"], "no change given."),
        (["topic", "delete", "__consumer_offsets", "-y"], "has the committed offsets of all"),
        (["topic", "delete", "t", "__transaction_state", "-y"], "t __transaction_state --internal"),
        (["transaction", "list", "--open-for", "soon"], "--open-for: 'soon' is not an age."),
        (
            ["transaction", "list", "--open-for", "5m", "--state", "Empty"],
            "--open-for allows only the states of open transactions",
        ),
        (["transaction", "hanging", "--written-before", "5"], "'5' is not an age."),
        (["transaction", "abort"], "which transaction?"),
        (["transaction", "abort", "x", "--topic", "t"], "which transaction?"),
        (["transaction", "abort", "--topic", "t", "-p", "0"], "which transaction?"),
        (["topic", "create", "t", "-c", "x"], "--config must be NAME=VALUE"),
        (["topic", "create", "t", "-c", "x=1", "-c", "x=2"], "--config sets x twice"),
        (["topic", "list", "-b", "host:port"], "--bootstrap must be HOST:PORT"),
        (["topic", "list", "-b", "http://h:9092"], "HOST:PORT, not 'http://h:9092'"),
        (["topic", "list", "-b", "HTTPS://h:9092"], "Kafka's protocol is not HTTP"),
        (["topic", "list", "--client-config", "a"], "--client-config must be NAME=VALUE"),
        (["produce", "t", "--key", "a", "-k", ":"], "--key and --key-separator"),
        (["produce", "t", "--json", "--key", "a"], "--key is for plain lines"),
        (["produce", "t", "--repartition"], "--repartition needs --json"),
        (["produce", "t", "-k", ""], "--key-separator is empty"),
        (["produce", "t", "-H", "x"], "--header must be NAME=VALUE"),
        (["consume", "t", "--offset", "3"], "--offset needs --partition"),
        (["consume", "t", "--offset", "3", "-p", "0", "--from", "end"], "exclude each other"),
        (["consume", "t", "-g", "g", "-p", "0"], "--group cannot be combined"),
        (["consume", "t", "-g", ""], "--group is empty"),
        (["consume", "t", "--until", "1h", "--last", "3"], "--until and --last exclude"),
        (["consume", "t", "--last", "3", "--from", "1h"], "--last and --from exclude"),
        (["consume", "t", "--last", "3", "--follow"], "--last and --follow exclude"),
        (["consume", "t", "--until", "1h", "-g", "g"], "--until and --group exclude"),
        (["consume", "t", "--until", "tomorrow"], "--until: 'tomorrow' is not a time"),
        (["consume", "t", "--until-offset", "3"], "--until-offset needs --partition"),
        (["consume", "t", "--grep", "("], "is not a regular expression: missing )"),
        (["consume", "t", "--format", "%x"], "no placeholder '%x'"),
        (["consume", "t", "--format", "%s", "--json"], "--format replaces --json"),
        (["consume", "t", "--format", "%s", "--keys"], "--format replaces --keys"),
        (["consume", "t", "--from", "yesterday"], "'yesterday' is not beginning, end or a time"),
        (["group", "reset", "g"], "no target given"),
        (["group", "reset", "g", "--to-latest", "--to-offset", "0"], "exclude each other"),
        (["group", "reset", "g", "--to-time", "noon"], "'noon' is not a time"),
        (["config", "alter", "topic", "t"], "no setting given"),
    ],
)
def test_usage_errors_are_found_before_any_request(
    capsys: pytest.CaptureFixture[str], words: list[str], answer: str
) -> None:
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert answer in err
    assert err.startswith("ottla ")
    assert "Traceback" not in err


def test_no_broker_is_one_line_and_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    # Port 1 is reserved and nothing listens there.
    code, out, err = run(capsys, "topic", "list", "--bootstrap", "127.0.0.1:1")
    assert (code, out) == (1, "")
    first, second = err.splitlines()
    assert first == ("ottla topic list: cannot reach a broker at 127.0.0.1:1: connection refused.")
    assert "ottla serve" in second


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["help"], "Usage: ottla [OPTIONS]"),
        (["help", "topic"], "Usage: ottla topic [OPTIONS]"),
        (["help", "topic", "create"], "Usage: ottla topic create [OPTIONS] TOPIC..."),
        (["help", "serve"], "Usage: ottla serve [OPTIONS]"),
    ],
)
def test_help_is_a_command_too(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    assert said in out


def test_help_of_an_unknown_command(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "help", "topik")
    assert (code, out) == (2, "")
    assert "Did you mean 'topic'?" in err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    from ottla import __version__

    assert run(capsys, "--version") == (0, f"ottla {__version__}\n", "")


@pytest.mark.parametrize("columns", ["40", "200"])
def test_help_lists_the_commands_in_order(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    code, out, _ = run(capsys, "--help")
    assert code == 0
    listed = out[out.index("Commands") :]
    places = [listed.index(f" {name} ") for name in COMMANDS]
    assert places == sorted(places)
    assert max(map(len, out.splitlines())) <= int(columns)


@pytest.mark.parametrize(
    "name", [name for name, command in root().all().items() if isinstance(command, Group)]
)
def test_group_without_a_command_shows_its_help(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    code, out, err = run(capsys, name)
    assert code == 2
    assert "Usage" in out + err


def test_a_group_in_a_group_is_named_in_what_failed(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "log", "stray", "list", "no such folder")
    assert code == 1
    assert err.startswith("ottla log stray list: ")


def test_every_command_has_help() -> None:
    for name, command in root().all().items():
        assert str(command.help).split("\n")[0] == COMMANDS[name], name
    for name, leaf in root().leaves().items():
        assert leaf.help, name
        for parameter in leaf.params:
            assert getattr(parameter, "help", None), f"{name} {parameter.name}"


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (["topic", "list", "x"], "ottla topic list"),
        (["log", "stray", "list", "x"], "ottla log stray list"),
        (["produce", "t"], "ottla produce"),
        (["nothing", "list"], "ottla nothing"),
        ([], "ottla"),
    ],
)
def test_the_words_that_name_a_command(words: list[str], path: str) -> None:
    assert command_path(words) == path


def test_completion_of_a_word_without_a_broker(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMPLETION_VARIABLE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "ottla topic cr")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert main(["topic", "cr"]) == 0
    assert capsys.readouterr().out == "plain,create\n"


IMPORTED = """
import sys
sys.modules["hypothesis"] = None  # As `main` does: kio would import it.
from ottla.cli.app import run_command
heavy = {"pyspark", "pydantic", "re2", "rich", "ottla.config", "ottla.node", "asyncio", "ssl"}
client = {"kio", "ottla.protocol", "ottla.client.client", "confluent_kafka"}
librdkafka = {"confluent_kafka"}
pages = heavy - {"asyncio", "ssl"}  # as confluent_kafka imports them, `main` does not
for words, wrong, most in (
    (["--help"], heavy | client | {"ottla.cli.topic"}, 150),
    (["profile", "list"], heavy | client | {"ottla.cli.topic"}, 175),
    (["pipeline", "--help"], heavy | client | {"ottla.pipelines"}, 175),
    (["topic", "list", "--bootstrap", "127.0.0.1:1"], heavy | librdkafka, 220),
    (["group", "list", "--bootstrap", "127.0.0.1:1"], heavy | librdkafka, 230),
    (["consume", "--help"], pages, 310),
    (["consume", "t", "--bootstrap", "127.0.0.1:1"], pages, 310),
):
    run_command(words)
    found = wrong & sys.modules.keys()
    assert not found, f"{words} imports {found}"
    assert len(sys.modules) <= most, f"{words}: {len(sys.modules)} modules"
"""


JOURNEY = """
import sys
sys.modules["hypothesis"] = None
from ottla.cli.app import run_command
run_command(["journey", "t", "0", "0", "--bootstrap", "127.0.0.1:1"])
found = {"confluent_kafka", "ssl", "hashlib"} & sys.modules.keys()
assert not found, found
"""


def test_a_journey_needs_no_librdkafka_and_no_tls() -> None:
    done = subprocess.run([sys.executable, "-c", JOURNEY], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_command_imports_little(tmp_path: Path) -> None:
    """Modules are counted, since times differ: a command starts in 0.15 s with these."""
    environment = {**os.environ, "OTTLA_PROFILES": str(tmp_path / "none"), "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
