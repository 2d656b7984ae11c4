"""Free ports."""

import socket

import pytest

from ottla.testing.ports import HOST, Blocks, claim, free_ports, free_row, is_free


def test_ports_are_free_and_unique() -> None:
    first, second = free_ports(20), free_ports(20)
    assert len(set(first) | set(second)) == 40
    for port in first:
        socket.create_server((HOST, port)).close()


def test_a_port_with_a_listener_is_not_free() -> None:
    (port,) = free_ports(1)
    assert is_free(port)
    with socket.create_server((HOST, port)):
        assert not is_free(port)


def test_a_port_is_reserved_once() -> None:
    (port,) = free_ports(1)
    holder = claim(port)
    assert holder is not None
    with holder:
        assert claim(port) is None
        # The reservation does not block the child.
        with socket.create_server((HOST, port)):
            pass
    again = claim(port)
    assert again is not None
    again.close()


def two_blocks() -> tuple[int, int, int]:
    """The first port, the end (exclusive) and the size of two blocks that no test run uses."""
    first = free_row(8)[0]
    return first, first + 8, 4


def test_two_processes_never_get_the_same_port() -> None:
    shared = two_blocks()
    one, other, late = Blocks(*shared), Blocks(*shared), Blocks(*shared)
    given = one.free(1) + other.free(1) + one.free(2) + other.free(2)
    assert len(set(given)) == 6
    # Not even while its server is down.
    socket.create_server((HOST, given[0])).close()
    for holder in (one, other, late):
        with pytest.raises(OSError, match=f"no free ports from {shared[0]} to {shared[1] - 1}"):
            holder.free(1)


def test_the_ports_of_a_row_are_consecutive() -> None:
    shared = two_blocks()
    blocks = Blocks(*shared)
    (lone,) = blocks.free(1)
    first = blocks.row(2)
    assert first == [lone + 1, lone + 2]
    # One port of the other block is not enough.
    in_use = shared[0] + 2 if lone > shared[0] + 4 else shared[0] + 6
    with socket.create_server((HOST, in_use)), pytest.raises(OSError, match="no free ports"):
        blocks.row(2)


def test_a_port_with_a_listener_is_not_reserved() -> None:
    (port,) = free_ports(1)
    with socket.create_server((HOST, port)):
        assert claim(port) is None
    holder = claim(port)
    assert holder is not None
    holder.close()
