"""What is closed and committed when something fails; a real database comes last."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from components.postgres import PASSWORD, USER, Postgres, fetched_driver
from py4j.protocol import Py4JJavaError

from components import fixture
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.sinks.postgresql.settings import read_database
from ottla.pipelines.spark.jvm import jdbc_connection
from ottla.pipelines.spark.jvm.jdbc_connection import DRIVER, KEEPALIVE, Connection

postgres = fixture.postgres

COPY_STREAM = "org.postgresql.copy.PGCopyOutputStream"
DATABASE = ("jdbc:postgresql://h/db", {"user": "me"})


@pytest.fixture(autouse=True)
def no_gateway(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test without Spark runs also where no other one has started it."""
    if request.node.get_closest_marker("spark") is None:
        arrays = SimpleNamespace(new_array=lambda _, length: [None] * length)
        monkeypatch.setattr(jdbc_connection, "gateway", lambda: arrays)


class JavaError(Py4JJavaError):
    """An exception of the JVM, without a JVM."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


class Statement:
    def __init__(self, log: list[Any], outcome: Any) -> None:
        self.log, self.outcome = log, outcome

    def setString(self, number: int, value: str) -> None:  # noqa: N802 - Java's names
        self.log.append((number, value))

    def executeUpdate(self) -> int:  # noqa: N802
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return int(self.outcome)

    def executeQuery(self) -> Any:  # noqa: N802
        if isinstance(self.outcome, Exception):
            raise self.outcome
        rows = iter(self.outcome)
        current: list[Any] = []

        def step() -> bool:
            current[:] = next(rows, [])
            return bool(current)

        return SimpleNamespace(
            getMetaData=lambda: SimpleNamespace(getColumnCount=lambda: 2),
            next=step,
            getString=lambda column: current[column - 1],
        )

    def close(self) -> None:
        self.log.append("statement closed")


class World:
    """Spark with a JVM whose driver connects to this log."""

    def __init__(self, *, loads: tuple[Exception | None, ...] = (None,)) -> None:
        self.log: list[Any] = []
        self.outcome: Any = 0
        self.settings_outcome: Any = 0
        self.close_outcome: Exception | None = None
        self.loads = list(loads)
        java = SimpleNamespace(
            setAutoCommit=lambda on: self.log.append(("auto commit", on)),
            prepareStatement=lambda text: self.prepare(text),
            commit=lambda: self.log.append("committed"),
            close=self.close,
        )
        driver = SimpleNamespace(
            connect=lambda url, given: self.log.append((url, given)) or java,
            getClass=lambda: SimpleNamespace(getClassLoader=lambda: "loader of the driver"),
        )

        def load(name: str, initialize: bool, loader: str) -> Any:
            assert initialize
            self.log.append(loader)
            if name == COPY_STREAM:
                return SimpleNamespace(
                    getConstructors=lambda: [_Constructor(), _Constructor("int")]
                )
            assert name == DRIVER
            if (failure := self.loads.pop(0)) is not None:
                raise failure
            return SimpleNamespace(newInstance=lambda: driver)

        thread = SimpleNamespace(getContextClassLoader=lambda: "loader of the thread")
        jvm = _Hashable(
            **{
                "java.util.Properties": _Properties,
                "java.lang.Class": SimpleNamespace(forName=load),
                "java.lang.Thread": SimpleNamespace(currentThread=lambda: thread),
                "java.lang.Object": object,
            }
        )
        state = SimpleNamespace(jarClassLoader=lambda: "loader of added jars")
        self.spark: Any = _Hashable(
            _jvm=jvm,
            _jsparkSession=SimpleNamespace(sharedState=lambda: state),
        )

    def close(self) -> None:
        self.log.append("closed")
        if self.close_outcome is not None:
            raise self.close_outcome

    def prepare(self, text: str) -> Statement:
        if text.startswith("SET LOCAL"):
            return Statement(self.log, self.settings_outcome)
        return Statement(self.log, self.outcome)

    def connect(self) -> Connection:
        made = Connection(self.spark, *DATABASE)
        self.log.clear()
        return made


class _Hashable(SimpleNamespace):
    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)


class _Constructor:
    def __init__(self, *more: str) -> None:
        self.kinds = ["PGConnection", "String", *more]

    def getParameterTypes(self) -> list[Any]:  # noqa: N802
        return [SimpleNamespace(getSimpleName=lambda kind=kind: kind) for kind in self.kinds]


class _Properties(dict[str, str]):
    def setProperty(self, name: str, value: str) -> None:  # noqa: N802
        self[name] = value


def test_a_connection_is_one_transaction() -> None:
    world = World()
    Connection(world.spark, *DATABASE)
    assert world.log == [
        "loader of the thread",
        "loader of the driver",
        ("jdbc:postgresql://h/db", {"user": "me"}),
        ("auto commit", False),
        "statement closed",
    ]
    world.log.clear()
    Connection(world.spark, *DATABASE)
    assert "loader of the driver" not in world.log


def test_a_connection_that_takes_no_setting_is_closed() -> None:
    world = World()
    world.settings_outcome = JavaError("the database is gone")
    with pytest.raises(Py4JJavaError):
        Connection(world.spark, *DATABASE)
    assert world.log[-2:] == ["statement closed", "closed"]


def test_what_is_not_committed_is_closed_without_a_word() -> None:
    """In the middle of a COPY the driver would wait for its end before a ROLLBACK."""
    world = World()
    connection = world.connect()
    with pytest.raises(ValueError, match="cut"), connection:
        raise ValueError("cut")
    assert world.log == ["closed"]
    world.log.clear()
    with connection:
        connection.commit()
    assert world.log == ["committed", "closed"]


def test_a_connection_that_is_gone_does_not_hide_what_failed_or_was_done() -> None:
    world = World()
    connection = world.connect()
    world.close_outcome = JavaError("Unable to close connection properly")
    with pytest.raises(ValueError, match="cut"), connection:
        raise ValueError("cut")
    with connection:
        connection.commit()
    assert world.log == ["closed", "committed", "closed"]


@pytest.mark.parametrize(("outcome", "changed"), [(3, 3), (0, 0), (-1, 0)])
def test_a_statement_with_its_values(outcome: int, changed: int) -> None:
    world = World()
    connection = world.connect()
    world.outcome = outcome
    assert connection.execute("UPDATE t SET a = ?, b = ?", "1", "x") == changed
    assert world.log == [(1, "1"), (2, "x"), "statement closed"]


def test_rows_as_text() -> None:
    world = World()
    connection = world.connect()
    world.outcome = [["1", None], ["2", "b"]]
    assert connection.query("SELECT a, b FROM t WHERE c = ?", "z") == [("1", None), ("2", "b")]
    assert world.log == [(1, "z"), "statement closed"]


def test_a_statement_that_fails_is_closed_too() -> None:
    world = World()
    connection = world.connect()
    world.outcome = JavaError("the database is gone")
    for run in (connection.execute, connection.query):
        world.log.clear()
        with pytest.raises(Py4JJavaError):
            run("SELECT 1")
        assert world.log == ["statement closed"]


def test_the_driver_may_come_with_an_added_jar() -> None:
    world = World(loads=(JavaError("java.lang.ClassNotFoundException: org..."), None))
    Connection(world.spark, *DATABASE)
    assert world.log[:2] == ["loader of the thread", "loader of added jars"]


def test_without_the_driver_the_error_says_what_to_do() -> None:
    missing = JavaError("java.lang.ClassNotFoundException: org...")
    with pytest.raises(PipelineError, match=r"packages=\['org.postgresql:postgresql:"):
        Connection(World(loads=(missing, missing)).spark, *DATABASE)


def test_a_driver_that_is_broken_is_no_missing_one() -> None:
    broken = JavaError("java.lang.UnsupportedClassVersionError")
    with pytest.raises(Py4JJavaError):
        Connection(World(loads=(broken,)).spark, *DATABASE)


@pytest.fixture
def real_connection(spark: Any, postgres: Postgres) -> Any:
    spark.sql(f"ADD JAR '{fetched_driver()}'")
    postgres.query(f"ALTER ROLE {USER} SET synchronous_commit = off")
    database = read_database(postgres.url, USER, PASSWORD)
    with Connection(spark, database.url, database.properties()) as made:
        yield made


@pytest.mark.spark
@pytest.mark.full
def test_a_transaction_asks_for_the_other_side_and_waits_for_the_disk(
    real_connection: Connection,
) -> None:
    def shown() -> dict[str, str | None]:
        names = (*KEEPALIVE, "synchronous_commit")
        return {name: real_connection.query(f"SHOW {name}")[0][0] for name in names}

    assert shown() == {
        "tcp_keepalives_idle": "30",
        "tcp_keepalives_interval": "10",
        "tcp_keepalives_count": "3",
        "tcp_user_timeout": "60000",
        "synchronous_commit": "local",
    }
    real_connection.commit()
    # A pool hands the session on as it was.
    assert shown()["tcp_keepalives_idle"] != "30"
    assert shown()["synchronous_commit"] == "off"


@pytest.mark.spark
@pytest.mark.full
def test_what_is_not_committed_is_not_there(
    real_connection: Connection, postgres: Postgres
) -> None:
    real_connection.execute("CREATE TABLE t (id int)")
    real_connection.commit()
    assert real_connection.execute("INSERT INTO t VALUES (1), (2)") == 2
    assert real_connection.query("SELECT id, ? FROM t ORDER BY id", "x") == [("1", "x"), ("2", "x")]
    real_connection.__exit__(None, None, None)
    assert postgres.query("SELECT count(*) FROM t") == [["0"]]
