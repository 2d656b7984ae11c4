"""A cluster's folder and ports, before anything is started."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from ottla.cli.cluster_start import Layout, check_ports, chosen_layout, write_layout
from ottla.cli.failures import Failed
from ottla.testing.ports import HOST, free_ports


def test_a_new_folder_gets_the_defaults(tmp_path: Path) -> None:
    layout = chosen_layout(tmp_path / "new", None, None)
    assert (layout.brokers, layout.ports) == (3, [9092, 9093, 9094])


def test_the_next_start_is_as_the_first_was(tmp_path: Path) -> None:
    first = Layout(2, 12000, 12100)
    write_layout(tmp_path, first)
    assert chosen_layout(tmp_path, None, None) == first
    assert chosen_layout(tmp_path, 4, None) == Layout(4, 12000, 12100)
    assert chosen_layout(tmp_path, None, 13000) == Layout(2, 13000, 12100)


def test_brokers_with_data_may_not_be_left_out(tmp_path: Path) -> None:
    write_layout(tmp_path, Layout(3, 12000, 12100))
    with pytest.raises(Failed, match="holds a cluster of 3 brokers"):
        chosen_layout(tmp_path, 2, None)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"brokers": "many"}'])
def test_a_file_that_is_not_ours_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "cluster.json").write_text(content)
    with pytest.raises(Failed, match=r"cluster\.json is not what"):
        chosen_layout(tmp_path, None, None)


def test_a_port_in_use_is_told_in_one_line() -> None:
    zookeeper, port = free_ports(2)
    with socket.create_server((HOST, port)):
        with pytest.raises(Failed, match=f"port {port}, wanted for broker 1, is in use"):
            check_ports(Layout(1, port, zookeeper), own_zookeeper=True)
        with pytest.raises(Failed, match=f"port {port}, this cluster's ZooKeeper's"):
            check_ports(Layout(1, zookeeper, port), own_zookeeper=True)
    check_ports(Layout(1, zookeeper, port), own_zookeeper=False)
