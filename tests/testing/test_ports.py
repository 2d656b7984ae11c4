"""Free ports."""

import socket
import subprocess
import sys

from ottla.testing.ports import HOST, claim, free_ports, is_free


def test_ports_are_free_and_given_once() -> None:
    first, second = free_ports(20), free_ports(20)
    assert len(set(first) | set(second)) == 40
    for port in first:
        socket.create_server((HOST, port)).close()


def test_a_port_where_someone_listens_is_not_free() -> None:
    (port,) = free_ports(1)
    assert is_free(port)
    with socket.create_server((HOST, port)):
        assert not is_free(port)


def test_a_port_is_held_for_a_child_once() -> None:
    (port,) = free_ports(1)
    holder = claim(port)
    assert holder is not None
    with holder:
        assert claim(port) is None
        # It is not in the way of the child.
        with socket.create_server((HOST, port)):
            pass
    again = claim(port)
    assert again is not None
    again.close()


def test_a_port_that_is_held_is_given_to_nobody_else() -> None:
    (port,) = free_ports(1, hold=True)
    look = f"from ottla.testing.ports import claim; print(claim({port}))"
    seen = subprocess.run([sys.executable, "-c", look], capture_output=True, check=True, timeout=60)
    assert seen.stdout == b"None\n"
    # Its server comes and goes.
    for _ in range(2):
        socket.create_server((HOST, port)).close()


def test_a_port_where_someone_listens_is_not_held() -> None:
    (port,) = free_ports(1)
    with socket.create_server((HOST, port)):
        assert claim(port) is None
    holder = claim(port)
    assert holder is not None
    holder.close()
