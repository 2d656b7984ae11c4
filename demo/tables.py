"""`make demo ARGS=tables`: two topics, out of order, each upserted into Delta and PostgreSQL."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from components.child import ChildDiedError
from components.postgres import PASSWORD, USER, Postgres, PostgresError, fetched_programs
from rich import box
from rich.table import Table

from demo.changes import FLIGHTS, TOPICS, WEATHER, Change, last_rows, read_changes
from demo.processes import Child, DemoError, Pipeline, pipeline_environment, start_broker
from demo.publish import Broker
from demo.run import Demo

TABLES_FILE: Final = Path(__file__).parent / "tables.toml"
KINDS: Final = ("delta", "postgresql")
_SPARK_STARTS_S: Final = 600
_DELIVERED_S: Final = 900
_KEPT: Final = {"retention.ms": "-1"}
"""The records have the timestamps of 2013."""


class TablesDemo(Demo):
    """Publishes the changes, runs `tables.toml`, and compares the tables."""

    def run(self) -> None:
        with self.database() as postgres:
            with self.step("broker starts"):
                bootstrap = start_broker(self.folder, self.children)
            self.deliver(bootstrap, postgres)

    @contextlib.contextmanager
    def database(self) -> Iterator[Postgres]:
        """A PostgreSQL server that ends with the demo."""
        try:
            with self.step("PostgreSQL starts"), self.console.status("PostgreSQL starts"):
                server = Postgres(fetched_programs())
                server.make()
        except (PostgresError, ChildDiedError) as error:
            raise DemoError(str(error)) from error
        try:
            yield server
        finally:
            server.stop()

    def deliver(self, bootstrap: str, postgres: Postgres) -> None:
        self.console.print(f"Ottla is ready on {bootstrap}, PostgreSQL on port {postgres.port}")
        brokers = {topic: Broker(bootstrap, topic) for topic in TOPICS}
        for broker in brokers.values():
            broker.create_topic(_KEPT)
        environment = pipeline_environment(bootstrap, self.folder) | {
            "OTTLA_DEMO_DATABASE": postgres.url,
            "OTTLA_DEMO_USER": USER,
            "OTTLA_DEMO_PASSWORD": PASSWORD,
        }
        pipeline = Pipeline(self.folder, self.children, TABLES_FILE, environment)
        with self.step("publish"):
            changes = read_changes()
            self.publish(brokers, changes)
        with self.step("the batch computation"):
            write_rows(self.folder / "expected", last_rows(changes))
        with self.step("Spark starts (beyond publishing)"):
            self.wait_for_spark(pipeline, TABLES_FILE)
        with (
            self.step("into Delta and PostgreSQL"),
            self.bar("Upserting them into four tables", 2 * len(changes)) as (bar, task),
        ):

            def show(done: int, words: str) -> None:
                bar.update(
                    task, completed=done, description=words or "Upserting them into four tables"
                )

            self.wait_for_groups(brokers, pipeline, show)
        with self.step("pipelines stop"), self.console.status("Stopping the pipelines"):
            stopped = self.command("pipeline", "stop", TABLES_FILE, within=environment)
        self.console.print(stopped)
        with self.step("comparison"), self.console.status("Comparing all rows") as status:
            found = self.compare(environment, status.update)
        with self.step("journeys"):
            journeys = [
                (
                    words,
                    self.ottla("journey", bootstrap, change.topic, "--key", change.key.decode()),
                )
                for words, change in told(changes).items()
            ]
        self.show(len(changes), found, journeys)

    def publish(self, brokers: dict[str, Broker], changes: list[Change]) -> None:
        for topic, broker in brokers.items():
            records = [change for change in changes if change.topic == topic]
            words = f"Publishing the changes of {topic}"
            with self.bar(words, len(records)) as (bar, task):
                broker.publish(
                    ((one.key, one.value) for one in records),
                    lambda count: bar.update(task, completed=count),
                    (one.timestamp_ms for one in records),
                )

    def wait_for_groups(self, brokers: dict[str, Broker], pipeline: Pipeline, show: Any) -> None:
        until = time.monotonic() + _DELIVERED_S
        while time.monotonic() < until:
            ends = [
                broker.committed(f"{topic}-{kind}")
                for topic, broker in brokers.items()
                for kind in KINDS
            ]
            delivered = sum(committed for _, committed in ends)
            show(delivered, "" if delivered else "Spark plans and runs its first batches")
            if all(end == committed for end, committed in ends):
                return
            pipeline.state(0.2)
        raise DemoError(f"The lag does not end: Spark's words are in {self.folder}/spark.log")

    def compare(
        self, environment: dict[str, str], show: Callable[[str], None]
    ) -> list[dict[str, Any]]:
        words = ["demo.compare", str(self.folder)]
        asked = Child(words, self.folder / "compare.log", self.children, environment)
        line = asked.answer(_DELIVERED_S, show, "Spark starts again, and compares all rows")
        if line is None:
            raise DemoError(f"The tables do not answer: Spark's words are in {asked.log}")
        found: list[dict[str, Any]] = json.loads(line)
        return found

    def show(
        self, count: int, found: list[dict[str, Any]], journeys: list[tuple[str, str]]
    ) -> None:
        out = self.console.print
        different = sum(one["missing"] + one["surplus"] for one in found)
        equal = "equal" if different == 0 else "NOT EQUAL"
        out(f"\n[bold]{count:,} changes in, four tables: {equal} to the batch computation[/bold]\n")
        out(tables(found))
        for words, journey in journeys:
            out(f"\n[bold]{words}[/bold]")
            # As it is: without rich's markup.
            self.console.out(journey, highlight=False)
        out()
        self.show_times()
        if different:
            raise DemoError("The tables differ from the batch computation")


def write_rows(folder: Path, rows: dict[str, list[dict[str, object]]]) -> None:
    folder.mkdir()
    for topic, found in rows.items():
        with (folder / f"{topic}.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in found)


def told(changes: list[Change]) -> dict[str, Change]:
    """The changes whose journeys are shown: each is the last of its key that was published.

    Between it and the one before it are as many others as there are for any key, so that the two
    are not delivered in one batch.
    """
    last = {(change.topic, change.key): number for number, change in enumerate(changes)}
    newest: dict[tuple[str, bytes], int] = {}
    late, withdrawn = (0, changes[0]), (0, changes[0])
    for number, change in enumerate(changes):
        key = change.topic, change.key
        before = newest.get(key, number)
        distance = number - before if last[key] == number else 0
        if change.timestamp_ms < changes[before].timestamp_ms:
            if change.topic == FLIGHTS and distance > late[0]:
                late = distance, change
            continue
        if change.topic == WEATHER and change.value is None and distance > withdrawn[0]:
            withdrawn = distance, change
        newest[key] = number
    return {
        "An announcement that came after its flight": late[1],
        "A measurement that was withdrawn": withdrawn[1],
    }


def tables(found: list[dict[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for name in ("Topic", "Table", "Rows", "Deleted", "Missing", "Too many"):
        table.add_column(name, justify="left" if name in ("Topic", "Table") else "right")
    for one in found:
        numbers = (f"{one[name]:,}" for name in ("rows", "deleted", "missing", "surplus"))
        table.add_row(one["topic"], one["table"], *numbers)
    return table
