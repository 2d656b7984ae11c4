"""A cluster's folder and ports, before anything is started."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from ottla.devcluster.errors import DevClusterError, OptionError
from ottla.devcluster.layout import Layout, chosen_layout, claimed, write_layout
from ottla.testing.ports import HOST, claim, free_ports
from ottla.testing.zookeeper_server import ZooKeeperServer


def test_a_new_folder_gets_the_defaults(tmp_path: Path) -> None:
    layout = chosen_layout(tmp_path / "new", None, None)
    assert (layout.brokers, layout.ports) == (3, [9092, 9093, 9094])
    assert layout.zookeeper_port == 2181


def test_the_next_start_uses_the_first_ones_layout(tmp_path: Path) -> None:
    first = Layout(2, 12000, 12100)
    write_layout(tmp_path, first)
    assert chosen_layout(tmp_path, None, None) == first
    assert chosen_layout(tmp_path, 4, None) == Layout(4, 12000, 12100)
    assert chosen_layout(tmp_path, None, 13000) == Layout(2, 13000, 12100)


def test_brokers_with_data_may_not_be_left_out(tmp_path: Path) -> None:
    write_layout(tmp_path, Layout(3, 12000, 12100))
    with pytest.raises(DevClusterError, match="holds a cluster of 3 brokers"):
        chosen_layout(tmp_path, 2, None)


def test_racks_are_given_in_the_order_of_the_brokers_and_kept(tmp_path: Path) -> None:
    first = chosen_layout(tmp_path, None, None, "a, b,a")
    assert first.racks == ("a", "b", "a")
    write_layout(tmp_path, first)
    assert chosen_layout(tmp_path, None, None) == first
    assert chosen_layout(tmp_path, None, None, "x,y,z").racks == ("x", "y", "z")
    assert chosen_layout(tmp_path / "new", 1, None, "east").racks == ("east",)


@pytest.mark.parametrize("given", ["", ",", "a,,c", "a,b, "])
def test_racks_without_a_name_are_rejected(tmp_path: Path, given: str) -> None:
    with pytest.raises(OptionError, match=f"--racks must be names .* not {given!r}"):
        chosen_layout(tmp_path, None, None, given)


def test_each_broker_needs_a_rack(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"--racks names 2 \(a,b\) for 3 brokers") as raised:
        chosen_layout(tmp_path, None, None, "a,b")
    assert str(raised.value.hint).endswith("--racks a,b,a")
    with pytest.raises(OptionError, match=r"--racks names 2 \(a,b\) for 1 broker;"):
        chosen_layout(tmp_path, 1, None, "a,b")
    write_layout(tmp_path, Layout(2, 12000, 12100, ("a", "b")))
    with pytest.raises(OptionError, match=r"cluster has 2 racks \(a,b\) for 3 brokers"):
        chosen_layout(tmp_path, 3, None)
    assert chosen_layout(tmp_path, 3, None, "a,b,c").racks == ("a", "b", "c")


def test_an_older_folder_has_no_racks(tmp_path: Path) -> None:
    numbers = '{"brokers": 2, "first_port": 12000, "zookeeper_port": 12100}'
    (tmp_path / "cluster.json").write_text(numbers)
    assert chosen_layout(tmp_path, None, None) == Layout(2, 12000, 12100, ())


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"brokers": "many"}'])
def test_an_unknown_file_is_rejected(tmp_path: Path, content: str) -> None:
    (tmp_path / "cluster.json").write_text(content)
    with pytest.raises(DevClusterError, match=r"cluster\.json was not written by"):
        chosen_layout(tmp_path, None, None)


def test_a_port_in_use_is_reported_in_one_line(tmp_path: Path) -> None:
    zookeeper, port = free_ports(2)
    with socket.create_server((HOST, port)):
        with pytest.raises(DevClusterError, match=f"port {port}, for broker 1, is in use"):
            claimed(Layout(1, port, zookeeper), tmp_path, own_zookeeper=True).__enter__()
        # An ensemble of somebody's own has no port of ours.
        with claimed(Layout(1, zookeeper, port), tmp_path, own_zookeeper=False) as layout:
            assert layout.zookeeper_port == port


def test_of_two_concurrent_starts_one_gets_the_ports(tmp_path: Path) -> None:
    zookeeper, port = free_ports(2)
    wanted = Layout(1, port, zookeeper)
    with claimed(wanted, tmp_path, own_zookeeper=True) as layout:
        assert layout == wanted
        with pytest.raises(DevClusterError, match=f"port {port}, for broker 1, is in use"):
            claimed(wanted, tmp_path / "other", own_zookeeper=True).__enter__()
    with claimed(wanted, tmp_path / "other", own_zookeeper=True) as layout:
        assert layout == wanted


def test_zookeeper_takes_another_port_if_its_own_is_in_use(tmp_path: Path) -> None:
    first, second, zookeeper = free_ports(3)
    with claimed(Layout(1, first, zookeeper), tmp_path, own_zookeeper=True):
        wanted = Layout(1, second, zookeeper)
        with claimed(wanted, tmp_path / "other", own_zookeeper=True) as layout:
            assert layout.ports == [second]
            assert layout.zookeeper_port not in (first, second, zookeeper)
            assert claim(layout.zookeeper_port) is None


def test_a_running_zookeeper_is_not_started_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, zookeeper = free_ports(2)
    data = (tmp_path / "zookeeper-1" / "data").resolve()
    answers = {"srvr": "Mode: standalone\n", "conf": f"dataDir={data}/version-2\n"}
    monkeypatch.setattr(ZooKeeperServer, "ask", lambda _server, word: answers[word])
    with socket.create_server((HOST, zookeeper)):
        wanted = Layout(1, port, zookeeper)
        with pytest.raises(
            DevClusterError, match=f"still runs on port {zookeeper}: its `cluster start` was killed"
        ):
            claimed(wanted, tmp_path, own_zookeeper=True).__enter__()
        with claimed(wanted, tmp_path / "other", own_zookeeper=True) as layout:
            assert layout.zookeeper_port != zookeeper


def test_a_secure_cluster_stays_secure(tmp_path: Path) -> None:
    assert not chosen_layout(tmp_path, None, None).secure
    chosen = chosen_layout(tmp_path, None, None, secure=True)
    write_layout(tmp_path, chosen)
    assert chosen_layout(tmp_path, None, None) == chosen
    assert chosen.secure
