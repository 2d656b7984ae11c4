"""Many reads in one request, byte for byte (zookeeper.jute: MultiHeader, GetDataResponse, Stat)."""

import inspect
import struct

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NoNodeError, ZookeeperError
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.states import ZnodeStat

from ottla.coordination.zookeeper_wire import Answer, Client, MultiRead, _Connection

GET_DATA, GET_CHILDREN, ERROR, SET_DATA = 4, 8, -1, 5
END = struct.pack(">i?i", -1, True, -1)
STAT = (11, 12, 1_000, 2_000, 3, 4, 5, 77, 6, 7, 13)
"""czxid, mzxid, times, versions, owner, length, children, pzxid."""


def header(kind: int, error: int = 0) -> bytes:
    return struct.pack(">i?i", kind, False, error)


def text(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def data(value: bytes | None) -> bytes:
    content = struct.pack(">i", -1) if value is None else text(value)
    return header(GET_DATA) + content + struct.pack(">qqqqiiiqiiq", *STAT)


def children(*names: bytes) -> bytes:
    return header(GET_CHILDREN) + struct.pack(">i", len(names)) + b"".join(map(text, names))


def failed(code: int) -> bytes:
    return header(ERROR, code) + struct.pack(">i", code)


def test_reads_are_encoded_in_order() -> None:
    request = MultiRead([("/brokers/topics/t", False), ("/brokers/ids", True)])
    assert request.type == 22
    assert request.serialize() == (
        struct.pack(">i?i", GET_DATA, False, -1)
        + text(b"/brokers/topics/t")
        + b"\0"  # no watch
        + struct.pack(">i?i", GET_CHILDREN, False, -1)
        + text(b"/brokers/ids")
        + b"\0"
        + END
    )


def test_results_are_in_the_order_of_the_reads() -> None:
    names = (b"1", "bröker".encode())
    answer = data(b"{}") + children(*names) + data(None) + data(b"") + children() + END
    found = MultiRead.deserialize(b"front" + answer, len(b"front"))
    stat = ZnodeStat(*STAT)
    assert found == [(b"{}", stat), ["1", "bröker"], (None, stat), (b"", stat), []]
    assert (found[0][1].czxid, found[0][1].version, found[0][1].ephemeralOwner) == (11, 3, 77)


def test_a_failed_read_does_not_affect_the_others() -> None:
    found = MultiRead.deserialize(failed(-101) + data(b"a") + failed(-102) + END, 0)
    assert isinstance(found[0], NoNodeError)
    assert found[1][0] == b"a"
    assert isinstance(found[2], NoAuthError)


def test_an_unexpected_operation_in_the_response_is_an_error() -> None:
    with pytest.raises(ZookeeperError, match="operation 5"):
        MultiRead.deserialize(header(SET_DATA) + END, 0)


def test_an_answer_passes_its_value_or_error_in_one_call() -> None:
    calls = []
    answer = Answer(lambda *what: calls.append(what))
    answer.set(5)
    answer.set()
    error = NoNodeError()
    answer.set_exception(error)
    assert calls == [(answer, 5, None), (answer, None, None), (answer, None, error)]
    assert not answer.abandoned


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("_connect", ["host", "hostip", "port"]),
        ("_read", ["length", "timeout"]),
        ("_read_socket", ["read_timeout"]),
        ("_send_request", ["read_timeout", "connect_timeout"]),
        ("_write", ["msg", "timeout"]),
        ("_socket_error_handling", []),
        ("zk_loop", []),
    ],
)
def test_kazoo_has_the_methods_that_are_overridden_or_called(
    method: str, parameters: list[str]
) -> None:
    """docs/decisions/kazoo.md says why each is needed."""
    assert list(inspect.signature(getattr(ConnectionHandler, method)).parameters)[1:] == parameters


def test_kazoo_has_the_attributes_that_are_used() -> None:
    theirs = KazooClient("127.0.0.1:1")
    for name in ("_queue", "_pending", "_connection", "_conn_retry", "_stopped"):
        assert hasattr(theirs, name)
    for name in ("_socket", "_read_sock", "_write_sock"):
        assert hasattr(theirs._connection, name)
    assert isinstance(Client("127.0.0.1:1", 6_000)._connection, _Connection)
