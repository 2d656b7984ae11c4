"""Beam's Java SDK with the direct runner, and its Python SDK: the programs of
docs/engines/beam.md."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
from tests.system.engine_orders import Engine, Orders, Written, running

from components import beam, engine_page, ivy, java, packages
from ottla.testing.ports import free_ports

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def jars() -> Path:
    if shutil.which("javac") is None:
        pytest.skip("no Java compiler on the PATH; install a JDK")
    try:
        return beam.fetched_jars()
    except (ivy.FetchError, java.NoJavaError) as error:
        pytest.skip(f"Beam could not be fetched: {error}")


@pytest.mark.parametrize("count", [1, 3])
def test_each_large_order_is_written(jars: Path, tmp_path: Path, count: int) -> None:
    source, classes = tmp_path / "LargeOrders.java", tmp_path / "classes"
    source.write_text(engine_page.program("beam.md", "java"))
    compiled = ["javac", "-cp", f"{jars}/*", "-d", str(classes), str(source)]
    subprocess.run(compiled, check=True, timeout=120)
    with running(count, tmp_path) as brokers:
        orders = Orders(brokers.bootstrap, brokers.replicas, "large-orders")
        paths = f"{classes}:{jars}/*"
        command = [java.find(), "-Xmx512m", "-cp", paths, "LargeOrders", brokers.bootstrap]
        engine = Engine(command, tmp_path / "beam.log")
        written = Written(brokers.bootstrap, "large-orders")

        def arrived() -> set[int]:
            return {order["id"] for order in written.read()}

        orders.send(500)
        engine.start()
        try:
            engine.wait("the first orders", lambda: bool(written.read()))
            brokers.kill_one_of(engine, orders)
            wanted = {order["id"] for order in orders.large}
            engine.wait("all large orders", lambda: arrived() == wanted)
        finally:
            engine.kill()
            written.close()
        by_id = {order["id"]: order for order in orders.large}
        assert all(order == by_id[order["id"]] for order in written.values)


def test_each_large_order_is_written_once_from_python(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    try:
        python, command = beam.fetched_python(), beam.service_command(port)
    except (packages.PackageError, ivy.FetchError, java.NoJavaError) as error:
        pytest.skip(f"Beam could not be fetched: {error}")
    program = tmp_path / "large_orders.py"
    program.write_text(engine_page.program("beam.md", "python"))

    def is_open() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    with running(1, tmp_path) as brokers:
        orders = Orders(brokers.bootstrap, brokers.replicas, "large-orders")
        orders.send(300)
        service = Engine(command, tmp_path / "service.log")
        service.start()
        try:
            service.wait("the service", is_open)
            asked = [str(python), str(program), brokers.bootstrap, f"localhost:{port}", "300"]
            subprocess.run(asked, check=True, timeout=300, cwd=tmp_path)
        finally:
            service.kill()
        written = Written(brokers.bootstrap, "large-orders")
        with contextlib.closing(written):
            until = time.monotonic() + 30
            while len(written.read()) < len(orders.large) and time.monotonic() < until:
                pass
            found = sorted(written.read(), key=lambda order: int(order["id"]))
        assert found == orders.large
