"""Brokers and topics as pytest fixtures; pytest loads this plugin wherever Ottla is installed.

def test_orders(ottla_topic):
    my_application(ottla_topic.bootstrap, ottla_topic.name)
    ottla_topic.assert_records(["first", "second"])

@pytest.mark.ottla(config={"auto.create.topics.enable": False})
def test_a_day_later(ottla_broker):
    ottla_broker.advance(hours=25)

@pytest.mark.ottla(brokers=3)
def test_failover(ottla_brokers):
    topic = ottla_brokers.create_topic()
    ottla_brokers.kill(ottla_brokers.leader(topic.name))

Nothing of Ottla is imported before a fixture is used: pytest loads this module in every project
that has Ottla.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from ottla.testing.broker import Broker, SharedBroker
    from ottla.testing.cluster import Cluster
    from ottla.testing.topic import Topic

SHARE: Final = "ottla_share_broker"
_WORKER_INPUT: Final = "ottla_broker"
_MARKS: Final = {
    "ottla": ("config", "brokers", "shared", "security"),
    "ottla_topic": ("partitions", "replicas", "config"),
}
_shared_by_workers: Final = pytest.StashKey[ExitStack]()
_address: Final = pytest.StashKey[tuple[str, str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        SHARE,
        "pytest-xdist: all workers share one broker; otherwise each has its own",
        type="bool",
        default=False,
    )


def pytest_configure(config: pytest.Config) -> None:
    for line in (
        "ottla(config, brokers, shared, security): a broker of its own for this test, with these"
        " settings; with shared=True one for all tests with the same mark",
        "ottla_topic(partitions, replicas, config): how ottla_topic creates its topic",
    ):
        config.addinivalue_line("markers", line)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """pytest-xdist starts a worker: it gets the address of the broker that all share."""
    config = node.config
    if not config.getini(SHARE):
        return
    if _address not in config.stash:
        from ottla.testing.broker import Broker

        ending = config.stash[_shared_by_workers] = ExitStack()
        broker = ending.enter_context(Broker())
        config.stash[_address] = broker.bootstrap, str(broker.controls()[0].path)
    node.workerinput[_WORKER_INPUT] = config.stash[_address]


def pytest_unconfigure(config: pytest.Config) -> None:
    if _shared_by_workers in config.stash:
        config.stash[_shared_by_workers].close()


@pytest.fixture(scope="session")
def ottla_session_broker(request: pytest.FixtureRequest) -> Iterator[SharedBroker]:
    """One broker for the whole run, started on first use; for fixtures of a wider scope than a
    test. With pytest-xdist each worker has its own, unless `ottla_share_broker` is set.
    """
    from ottla.testing.broker import Broker, SharedBroker
    from ottla.testing.control_socket import ControlSocket

    given = getattr(request.config, "workerinput", {}).get(_WORKER_INPUT)
    if given is not None:
        bootstrap, path = given
        yield SharedBroker(bootstrap, ControlSocket(Path(path)))
        return
    with Broker() as broker:
        yield SharedBroker(broker.bootstrap, broker.controls()[0])


@pytest.fixture
def ottla_broker(request: pytest.FixtureRequest) -> Iterator[SharedBroker | Broker]:
    """The broker of the run; a broker of its own if the test has `@pytest.mark.ottla`.

    Tests share the broker of the run, so each needs its own topics and groups. The faults of a test
    end with it.
    """
    from ottla.testing.broker import Broker, SharedBroker
    from ottla.testing.errors import KitError

    mark = _mark(request, "ottla")
    if mark is None:
        run: SharedBroker = request.getfixturevalue("ottla_session_broker")
        broker: SharedBroker | Broker = SharedBroker(run.bootstrap, run.controls()[0])
    elif mark.get("brokers", 1) != 1:
        raise KitError("the mark asks for several brokers: use the fixture ottla_brokers")
    else:
        broker = _marked(
            request, mark, lambda: Broker(mark.get("config"), security=mark.get("security"))
        )
    broker.clear_faults()
    try:
        yield broker
    finally:
        broker.remove_faults()


@pytest.fixture
def ottla_brokers(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The cluster that `@pytest.mark.ottla(brokers=3)` asks for: three brokers without a mark."""
    from ottla.testing.cluster import Cluster

    mark = _mark(request, "ottla") or {}
    cluster = _marked(
        request,
        mark,
        lambda: Cluster(
            mark.get("brokers", 3),
            mark.get("config"),
            control=True,
            security=mark.get("security"),
        ),
    )
    cluster.clear_faults()
    try:
        yield cluster
    finally:
        cluster.remove_faults()


@pytest.fixture
def ottla_topic(request: pytest.FixtureRequest) -> Topic:
    """A new topic, named after the test, on `ottla_broker`, or on `ottla_brokers` if the test is
    marked with several. `@pytest.mark.ottla_topic(partitions=3)` says how it is created.
    """
    from ottla.testing.topics import Topics, unique_name

    several = (_mark(request, "ottla") or {}).get("brokers", 1) != 1
    on: Topics = request.getfixturevalue("ottla_brokers" if several else "ottla_broker")
    return on.create_topic(unique_name(request.node.name), **(_mark(request, "ottla_topic") or {}))


@pytest.fixture
def ottla_cluster() -> Iterator[Callable[..., Cluster]]:
    """Starts clusters for one test: takes the arguments of `ottla.testing.Cluster`."""
    from ottla.testing.cluster import Cluster

    with ExitStack() as ending:

        def start(*arguments: Any, **options: Any) -> Cluster:
            return ending.enter_context(Cluster(*arguments, **options))

        yield start


@pytest.fixture(scope="session")
def _ottla_pool() -> Iterator[tuple[ExitStack, dict[str, Any]]]:
    """The brokers and clusters of marks with `shared=True`, by their settings."""
    with ExitStack() as ending:
        yield ending, {}


def _mark(request: pytest.FixtureRequest, name: str) -> Mapping[str, Any] | None:
    """The arguments of the closest mark. Raises KitError if it has others than it should."""
    mark = request.node.get_closest_marker(name)
    if mark is None:
        return None
    unknown = [repr(each) for each in mark.args]
    unknown += [each for each in mark.kwargs if each not in _MARKS[name]]
    if unknown:
        from ottla.testing.errors import KitError

        raise KitError(
            f"@pytest.mark.{name} does not take {', '.join(unknown)};"
            f" it takes {', '.join(_MARKS[name])}, each by name"
        )
    return dict(mark.kwargs)


def _marked(
    request: pytest.FixtureRequest, mark: Mapping[str, Any], make: Callable[[], Any]
) -> Any:
    """What `make` makes, opened for this test, or for all tests with the same settings."""
    if not mark.get("shared", False):
        ending = ExitStack()
        request.addfinalizer(ending.close)
        return ending.enter_context(make())
    ending, opened = request.getfixturevalue("_ottla_pool")
    settings = repr(
        (mark.get("brokers"), sorted((mark.get("config") or {}).items()), mark.get("security"))
    )
    if settings not in opened:
        opened[settings] = ending.enter_context(make())
    return opened[settings]
