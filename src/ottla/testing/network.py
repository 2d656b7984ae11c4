"""The network of a cluster under test: brokers reach each other and ZooKeeper only through proxies,
which can be cut. All proxies share one event loop in one background thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from typing import Any, Final, TypeVar

from ottla.testing.ports import HOST, free_ports
from ottla.testing.proxy import Proxy, read_broker

CALL_WITHIN_S: Final = 10.0
_T = TypeVar("_T")


class Network:
    """The proxies of one cluster; methods may be called from any thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="ottla-network", daemon=True
        )
        self._thread.start()
        self._between: dict[int, Proxy] = {}
        self._zookeeper: dict[int, list[Proxy]] = {}
        # The proxies read this on the loop's thread: replace it, never change it in place.
        self._cut_pairs: frozenset[frozenset[int]] = frozenset()
        self._cut_from_zookeeper: frozenset[int] = frozenset()

    def add_broker(self, broker_id: int, target_port: int) -> int:
        """Open a proxy for a broker's inter-broker listener; return the port to advertise."""
        (port,) = free_ports(1)
        proxy = Proxy(broker_id, port, (HOST, target_port), self._are_cut, read_caller=read_broker)
        self._between[broker_id] = proxy
        self._call(self._open(proxy))
        return port

    def add_way_to_zookeeper(self, broker_id: int, hosts: Sequence[tuple[str, int]]) -> str:
        """Open a proxy for the broker to each member of the ensemble; return the broker's
        `zookeeper.connect`, `HOST:PORT,HOST:PORT`."""
        ports = free_ports(len(hosts))
        way = [
            Proxy(broker_id, port, host, self._is_off_zookeeper)
            for port, host in zip(ports, hosts, strict=True)
        ]
        self._zookeeper[broker_id] = way
        for proxy in way:
            self._call(self._open(proxy))
        return ",".join(f"{HOST}:{port}" for port in ports)

    def _is_off_zookeeper(self, caller: int, _owner: int) -> bool:
        return caller in self._cut_from_zookeeper

    def _are_cut(self, caller: int, owner: int) -> bool:
        return frozenset((caller, owner)) in self._cut_pairs

    def cut(self, one: int, other: int, *, reset: bool = False) -> None:
        """Cut two brokers off from each other, in both directions, until `heal`."""
        self._cut_pairs |= {frozenset((one, other))}
        self._call(self._cut([self._between[one], self._between[other]], reset))

    def cut_zookeeper(self, broker_id: int, *, reset: bool = False) -> None:
        """Cut a broker off from ZooKeeper until `heal`."""
        self._cut_from_zookeeper |= {broker_id}
        self._call(self._cut(self._zookeeper[broker_id], reset))

    @property
    def is_cut(self) -> bool:
        """Whether a connection is cut, between brokers or to ZooKeeper."""
        return bool(self._cut_pairs or self._cut_from_zookeeper)

    def heal(self) -> None:
        """End every cut."""
        self._cut_pairs = frozenset()
        self._cut_from_zookeeper = frozenset()
        self._call(self._heal())

    def broker_is_down(self, broker_id: int) -> None:
        """Refuse connections to a broker until `broker_comes_up`.

        The port of a killed broker refuses connections at once, and so must its proxy.
        """
        self._call(self._shut(broker_id))

    def broker_comes_up(self, broker_id: int) -> None:
        """Accept connections to the broker as soon as it listens."""
        self._call(self._may_open(broker_id))

    def slow_zookeeper(self, broker_id: int, answer_delay_s: float) -> None:
        """Each piece of ZooKeeper's answers reaches the broker this much later; 0 ends that."""
        self._call(self._slow(self._zookeeper[broker_id], answer_delay_s))

    def drop_zookeeper(self, broker_id: int) -> None:
        """End the broker's connections to ZooKeeper; it may reconnect immediately."""
        self._call(self._drop(self._zookeeper[broker_id]))

    def close(self) -> None:
        """End all proxies and the thread."""
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CALL_WITHIN_S)
        if not self._thread.is_alive():
            self._loop.close()

    def _call(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(CALL_WITHIN_S)

    @property
    def _proxies(self) -> list[Proxy]:
        return [
            *self._between.values(),
            *(each for row in self._zookeeper.values() for each in row),
        ]

    @staticmethod
    async def _open(proxy: Proxy) -> None:
        proxy.open()

    @staticmethod
    async def _cut(proxies: Sequence[Proxy], reset: bool) -> None:
        for proxy in proxies:
            proxy.resets = reset
            proxy.cut_links()

    async def _heal(self) -> None:
        for proxy in self._proxies:
            proxy.resets = False
            proxy.heal_links()

    async def _shut(self, broker_id: int) -> None:
        self._between[broker_id].shut(stay=True)

    async def _may_open(self, broker_id: int) -> None:
        self._between[broker_id].may_open()

    @staticmethod
    async def _slow(proxies: Sequence[Proxy], answer_delay_s: float) -> None:
        for proxy in proxies:
            proxy.answer_delay_s = answer_delay_s

    @staticmethod
    async def _drop(proxies: Sequence[Proxy]) -> None:
        for proxy in proxies:
            proxy.abort_links(lambda link: True)

    async def _close(self) -> None:
        for proxy in self._proxies:
            await proxy.close()
        # Cancelled tasks end within one or two iterations of the loop.
        await asyncio.sleep(0.05)
