"""The command line at a terminal, at the end of a pipe, and when something ends in the middle."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

OTTLA = [sys.executable, "-m", "ottla"]
WITHIN_S = 120
RECORDS = 200_000


def environment(broker: Any, **more: str) -> dict[str, str]:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")
    }
    return {**inherited, "OTTLA_BOOTSTRAP": broker.bootstrap, "TERM": "xterm-256color", **more}


def run(broker: Any, *words: str, data: bytes = b"", code: int = 0) -> bytes:
    done = subprocess.run(
        [*OTTLA, *words],
        input=data,
        capture_output=True,
        env=environment(broker),
        timeout=WITHIN_S,
        check=False,
    )
    assert done.returncode == code, done.stderr.decode()
    return done.stdout


def at_terminal(
    broker: Any, *words: str, columns: int = 80, stdin: bytes | None = None, **more: str
) -> tuple[int, str]:
    """Run at a terminal of that many columns; gives the exit code and all that was shown."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(
        [*OTTLA, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(broker, **more),
        start_new_session=True,
    )
    os.close(theirs)
    if stdin is not None:
        os.write(ours, stdin)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 65536)
        except OSError:
            # The last process that had the terminal open has ended.
            break
    os.close(ours)
    return process.wait(WITHIN_S), shown.decode().replace("\r\n", "\n")


@pytest.fixture(scope="module")
def many(broker: Any) -> str:
    """A topic with enough records that reading it can be interrupted."""
    data = b"".join(b"%d\n" % number for number in range(RECORDS))
    run(broker, "topic", "create", "many", "-p", "1")
    run(broker, "produce", "many", data=data)
    return "many"


def test_colours_are_for_terminals_that_want_them(broker: Any, many: str) -> None:
    assert "\x1b[1" in at_terminal(broker, "topic", "list")[1]
    assert "\x1b[3" not in at_terminal(broker, "topic", "list", NO_COLOR="1")[1]
    assert b"\x1b" not in run(broker, "topic", "list")


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_tables_fit_the_terminal_and_lose_nothing(broker: Any, columns: int) -> None:
    name = "a-topic-with-a-name-that-is-longer-than-many-a-terminal-is-wide"
    run(broker, "topic", "create", name, "-p", "1", "--if-not-exists")
    code, shown = at_terminal(broker, "topic", "list", columns=columns, NO_COLOR="1", TERM="dumb")
    assert code == 0
    assert max(map(len, shown.splitlines())) <= columns
    letters = "".join(line.split("  ")[-1 if columns == 20 else 0] for line in shown.splitlines())
    assert name in letters.replace(" ", "")


@pytest.mark.full
@pytest.mark.parametrize("columns", [40, 80])
def test_a_benchmark_draws_a_chart_that_fits(broker: Any, columns: int) -> None:
    words = ["bench", "produce", f"charted-{columns}", "--create", "--for", "3", "--rate", "2000"]
    code, shown = at_terminal(broker, *words, columns=columns, LANG="C.UTF-8")
    assert code == 0, shown
    assert "█" in shown
    assert "p99 " in shown
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert max(map(len, re.split(r"[\r\n]+", plain))) <= columns
    # The chart is gone at the end, and the result stays.
    assert "latency" in plain.split("█")[-1]


def test_question_before_a_deletion(broker: Any) -> None:
    run(broker, "topic", "create", "asked", "-p", "1")
    code, shown = at_terminal(broker, "topic", "delete", "asked", stdin=b"n\n")
    assert code == 1
    assert "Delete asked with all records? [y/N]" in shown
    assert "Nothing was deleted." in shown
    code, shown = at_terminal(broker, "topic", "delete", "asked", stdin=b"y\n")
    assert code == 0
    assert "Deleted topic asked." in shown


def test_typing_records_at_a_terminal(broker: Any) -> None:
    run(broker, "topic", "create", "typed", "-p", "1")
    code, shown = at_terminal(broker, "produce", "typed", stdin=b"one\ntwo\n\x04")
    assert code == 0
    assert "Ctrl-D ends" in shown
    assert "Delivered 2 records" in shown
    assert run(broker, "consume", "typed") == b"one\ntwo\n"


def test_control_characters_of_a_record_do_not_reach_the_terminal(broker: Any) -> None:
    run(broker, "topic", "create", "wild", "-p", "1")
    run(broker, "produce", "wild", data=b"\x1b[31mred\xff\n")
    _, shown = at_terminal(broker, "consume", "wild")
    assert "\\x1b[31mred\\xff\n" in shown
    assert run(broker, "consume", "wild") == b"\x1b[31mred\xff\n"


def test_reader_that_leaves_is_no_failure_to_shout_about(broker: Any, many: str) -> None:
    for words in (["consume", many], ["consume", many, "--json"], ["topic", "list"], ["--help"]):
        command = subprocess.Popen(
            [*OTTLA, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(broker),
        )
        assert command.stdout is not None
        command.stdout.close()
        _, said = command.communicate(timeout=WITHIN_S)
        assert said == b""
        assert command.returncode in (141, 1 if words == ["--help"] else 141)


def test_broken_pipe_leaves_the_groups_place_at_what_was_written(broker: Any, many: str) -> None:
    command = subprocess.Popen(
        [*OTTLA, "consume", many, "-g", "leaver"],
        stdout=subprocess.PIPE,
        env=environment(broker),
    )
    assert command.stdout is not None
    assert command.stdout.readline() == b"0\n"
    command.stdout.close()
    assert command.wait(WITHIN_S) == 141
    rest = run(broker, "consume", many, "-g", "leaver").splitlines()
    assert rest[-1] == b"%d" % (RECORDS - 1)
    assert rest == [b"%d" % number for number in range(RECORDS - len(rest), RECORDS)]


def interrupted(
    broker: Any, *words: str, when: Callable[[], bool], **streams: Any
) -> tuple[int, bytes, float]:
    """Start, press Ctrl-C when it is time; gives exit code, standard error, seconds to the end."""
    command = subprocess.Popen(
        [*OTTLA, *words], stderr=subprocess.PIPE, env=environment(broker), **streams
    )
    until = time.monotonic() + WITHIN_S
    while not when():
        assert time.monotonic() < until, "the moment did not come"
        time.sleep(0.05)
    pressed = time.monotonic()
    command.send_signal(signal.SIGINT)
    _, said = command.communicate(timeout=WITHIN_S)
    return command.returncode, said, time.monotonic() - pressed


def end_offset(broker: Any, topic: str) -> int:
    import json

    (document,) = json.loads(run(broker, "topic", "describe", topic, "--json"))
    return sum(each["end_offset"] for each in document["partitions"])


def test_ctrl_c_ends_a_producer_with_an_account(broker: Any, tmp_path: Path) -> None:
    run(broker, "topic", "create", "endless", "-p", "1")
    source, sink = os.pipe()
    os.write(sink, b"a\nb\nc\n")
    with (tmp_path / "out").open("wb") as out:
        code, said, _ = interrupted(
            broker,
            "produce",
            "endless",
            when=lambda: end_offset(broker, "endless") == 3,
            stdin=source,
            stdout=out,
        )
    os.close(source)
    os.close(sink)
    assert (code, said) == (130, b"ottla produce: interrupted.\n")
    assert (tmp_path / "out").read_bytes() == b"Delivered 3 records to partition 0 of endless.\n"


def test_ctrl_c_ends_a_follower_without_a_word(broker: Any, many: str, tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        code, said, _ = interrupted(
            broker,
            "consume",
            many,
            "--follow",
            when=lambda: (tmp_path / "out").read_bytes().endswith(b"%d\n" % (RECORDS - 1)),
            stdout=out,
        )
    assert (code, said) == (130, b"")


def test_broker_that_dies_under_a_producer_is_told(new_broker: Callable[..., Any]) -> None:
    broker = new_broker()
    run(broker, "topic", "create", "t", "-p", "1")
    command = subprocess.Popen(
        [*OTTLA, "produce", "t", "--timeout", "3"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(broker),
    )
    assert command.stdin is not None
    command.stdin.write(b"before\n")
    command.stdin.flush()
    until = time.monotonic() + WITHIN_S
    while end_offset(broker, "t") < 1:
        assert time.monotonic() < until
    broker.kill()
    out, said = command.communicate(b"after\n", timeout=WITHIN_S)
    assert command.returncode == 1
    assert out == b"Delivered 1 record to t, partition 0, offset 0.\n"
    assert b"1 of 2 records not delivered" in said
    assert b"(line 2)" in said


def test_follower_waits_for_a_broker_that_comes_back(
    new_broker: Callable[..., Any], tmp_path: Path
) -> None:
    broker = new_broker()
    run(broker, "topic", "create", "t", "-p", "1")
    out = tmp_path / "out"

    def comes(text: bytes) -> Callable[[], bool]:
        return lambda: out.read_bytes() == text

    with out.open("wb") as file:
        follower = subprocess.Popen(
            [*OTTLA, "consume", "t", "-f"],
            stdout=file,
            stderr=subprocess.PIPE,
            env=environment(broker),
        )
        run(broker, "produce", "t", data=b"one\n")
        wait_for(comes(b"one\n"))
        broker.kill()
        broker.start()
        run(broker, "produce", "t", data=b"two\n")
        wait_for(comes(b"one\ntwo\n"))
        follower.send_signal(signal.SIGINT)
        _, said = follower.communicate(timeout=WITHIN_S)
    assert follower.returncode == 130
    assert said in (b"", b"No broker responds. Waiting for one ...\n")


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + WITHIN_S
    while not what():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.1)


def test_tab_completes_topics_and_groups(broker: Any, many: str) -> None:
    run(broker, "consume", many, "-n", "1", "-g", "mane")
    for line, expected in {
        "ottla consume man": b"plain,many",
        "ottla group describe man": b"plain,mane",
        "ottla consume many --group man": b"plain,mane",
        "ottla config describe topic man": b"plain,many",
        "ottla topic describe --bootstrap 127.0.0.1:1 man": b"",
    }.items():
        done = subprocess.run(
            OTTLA,
            capture_output=True,
            timeout=WITHIN_S,
            check=False,
            env=environment(
                broker,
                _OTTLA_COMPLETE="bash_complete",
                COMP_WORDS=line,
                COMP_CWORD=str(line.count(" ")),
            ),
        )
        assert (done.stdout.strip(), done.stderr) == (expected, b""), line
