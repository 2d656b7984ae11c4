"""Flink, with SQL and with DataStream, exactly once: the programs of docs/engines/flink.md."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from components.flink import Flink
from tests.system.engine_orders import Engine, Orders, Written, running

from components import engine_page, flink, ivy, java, packages

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def fetched() -> Flink:
    try:
        return flink.fetched()
    except (packages.PackageError, ivy.FetchError, java.NoJavaError) as error:
        pytest.skip(f"Flink could not be fetched: {error}")


def engine_of(
    fetched: Flink, name: str, bootstrap: str, folder: Path, *, pools: bool = False
) -> Engine:
    text = engine_page.program("flink.md", "python", f"{name}.py")
    program = folder / f"{name}.py"
    program.write_text(with_pooling(text) if pools else text)
    arguments = (bootstrap, str(folder / "checkpoints"), str(fetched.connector))
    command = [str(fetched.python), str(program), *arguments]
    return Engine(command, folder / "flink.log", fetched.environment)


def with_pooling(program: str) -> str:
    """The program with transactional ids that are used again: Flink asks which are open."""
    prefix = "'sink.transactional-id-prefix'"
    assert program.count(prefix) == 1
    return program.replace(prefix, f"'sink.transaction-naming-strategy' = 'POOLING', {prefix}")


@pytest.mark.parametrize(
    ("count", "pools"), [(1, False), (3, False), (1, True)], ids=["1", "3", "1 with pooling"]
)
def test_sql_writes_each_large_order_once(
    fetched: Flink, tmp_path: Path, count: int, pools: bool
) -> None:
    with running(count, tmp_path) as brokers:
        orders = Orders(brokers.bootstrap, brokers.replicas, "large-orders")
        engine = engine_of(fetched, "large_orders", brokers.bootstrap, tmp_path, pools=pools)
        written = Written(brokers.bootstrap, "large-orders")
        orders.send(500)
        engine.start()
        try:
            engine.wait("the first orders", lambda: bool(written.read()))
            brokers.kill_one_of(engine, orders)
            engine.wait("all orders", lambda: len(written.read()) >= len(orders.large))
            orders.send(100)
            engine.wait("the last orders", lambda: len(written.read()) >= len(orders.large))
        finally:
            engine.kill()
        assert sorted(written.read(), key=lambda order: order["id"]) == orders.large
        written.close()


@pytest.mark.parametrize("count", [1, 3])
def test_datastream_counts_each_order_once(fetched: Flink, tmp_path: Path, count: int) -> None:
    with running(count, tmp_path) as brokers:
        orders = Orders(brokers.bootstrap, brokers.replicas, "totals")
        engine = engine_of(fetched, "order_totals", brokers.bootstrap, tmp_path)
        written = Written(brokers.bootstrap, "totals")
        orders.send(500)
        engine.start()
        try:
            engine.wait("the first orders", lambda: bool(written.read()))
            brokers.kill_one_of(engine, orders)
            engine.wait("all orders", lambda: len(written.read()) >= len(orders.sent))
        finally:
            engine.kill()
        assert len(written.read()) == len(orders.sent), "one total for each order"
        totals: dict[str, set[int]] = defaultdict(set)
        for total in written.values:
            totals[total["customer"]].add(total["total"])
        expected: dict[str, set[int]] = defaultdict(set)
        so_far: dict[str, int] = defaultdict(int)
        for order in orders.sent:
            so_far[order["customer"]] += order["amount"]
            expected[order["customer"]].add(so_far[order["customer"]])
        assert totals == expected, "each total is of the orders so far, each counted once"
        written.close()
