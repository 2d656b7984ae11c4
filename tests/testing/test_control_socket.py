"""A broker that has gone, or fails while it answers, is an error in one line."""

from __future__ import annotations

import socket
from threading import Thread

import pytest

from ottla.testing.control_socket import ControlSocket
from ottla.testing.errors import KitError


@pytest.fixture
def control(tmp_path_factory: pytest.TempPathFactory) -> ControlSocket:
    # A Unix socket's path has at most 107 bytes.
    return ControlSocket(tmp_path_factory.mktemp("s") / "socket")


def answer_once(control: ControlSocket, answer: bytes) -> Thread:
    """A broker that reads one line, answers this, and ends."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(control.path))
    listening.listen()

    def serve() -> None:
        with listening, listening.accept()[0] as connection:
            assert connection.makefile("rb").readline().endswith(b"\n")
            connection.sendall(answer)

    thread = Thread(target=serve)
    thread.start()
    return thread


def test_no_broker(control: ControlSocket) -> None:
    assert not control.is_open()
    with pytest.raises(KitError, match=r"^cannot ask the broker to roll: .*No such file"):
        control.ask("roll", topic="t")


def test_a_socket_that_nobody_listens_on(control: ControlSocket) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(control.path))
    assert not control.is_open()
    with pytest.raises(KitError, match=r"^cannot ask the broker to roll: .*refused"):
        control.ask("roll", topic="t")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "^the broker failed or ended when asked to roll$"),
        (b'{"error": "there is no topic t"}\n', "^there is no topic t$"),
    ],
)
def test_a_broker_that_does_not_do_it(control: ControlSocket, answer: bytes, said: str) -> None:
    thread = answer_once(control, answer)
    with pytest.raises(KitError, match=said):
        control.ask("roll", topic="t")
    thread.join()


def test_a_result(control: ControlSocket) -> None:
    thread = answer_once(control, b'{"result": {"a": [null, 1]}}\n')
    assert control.ask("roll", topic="t") == {"a": [None, 1]}
    thread.join()
