"""Runs the demo from start to end and shows it in the terminal."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from calendar import month_abbr
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

from confluent_kafka import KafkaException
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from demo.flights import FLIGHTS, TOPIC, NoDataError, data_folder, read_flights
from demo.processes import (
    PIPELINE_FILE,
    Child,
    DemoError,
    Pipeline,
    pipeline_environment,
    start_broker,
)
from demo.publish import Broker

GROUP: Final = "flights-delta"
_SPARK_STARTS_S: Final = 600  # its first start fetches jars
_DELIVERED_S: Final = 300
_STOPPED_S: Final = 90
_EXIT_INTERRUPTED: Final = 130


class Demo:
    """The started processes and the measured times."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.console = Console(highlight=False)
        self.children: list[Child] = []
        self.times: list[tuple[str, float]] = []

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.times.append((name, time.monotonic() - began))

    @contextlib.contextmanager
    def bar(self, words: str, total: int) -> Iterator[tuple[Progress, Any]]:
        columns = (
            TextColumn("{task.description:<44}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self.console) as progress:
            yield progress, progress.add_task(words, total=total)

    def run(self) -> None:
        data_folder()
        with self.step("broker starts"):
            bootstrap = self.start()
        self.console.print(f"Ottla is ready on {bootstrap} after {self.times[0][1]:.2f} s")
        broker = Broker(bootstrap, TOPIC, self.client())
        broker.create_topic()
        # Spark takes some seconds to start, so it starts while the flights are published.
        environment = pipeline_environment(bootstrap, self.folder)
        file = self.pipeline_file()
        pipeline = Pipeline(self.folder, self.children, file, environment)
        with self.step("publish"), self.bar("Publishing the flights", FLIGHTS) as (bar, task):
            sent = broker.publish(read_flights(), lambda count: bar.update(task, completed=count))
        with self.step("Spark starts (beyond publishing)"):
            self.wait_for_spark(pipeline, file)
        with self.step("into Delta"), self.bar("Streaming them into Delta", sent) as (bar, task):
            self.wait_for_lag(broker, pipeline, bar, task)
        with self.step("pipeline stops"), self.console.status("Stopping the pipeline"):
            stopped = self.command("pipeline", "stop", file, within=pipeline.environment)
        self.console.print(stopped)
        with self.step("queries on the table"), self.console.status("Asking the table") as status:
            found = self.ask_the_table(status.update)
        with self.step("journey"):
            journey = self.ottla("journey", bootstrap, *self.worst_message(found))
        self.report(sent, found, journey, bootstrap)

    def start(self) -> str:
        """Start the broker; returns its address."""
        return start_broker(self.folder, self.children)

    def client(self) -> dict[str, str]:
        """librdkafka's settings for the broker, without its address."""
        return {}

    def pipeline_file(self) -> Path:
        return PIPELINE_FILE

    def reach(self, bootstrap: str) -> tuple[str, str]:
        """The option by which a command reaches the broker."""
        return "--bootstrap", bootstrap

    def wait_for_spark(self, pipeline: Pipeline, file: Path) -> None:
        with self.console.status("Spark starts") as status:
            pipeline.wait_for_start(_SPARK_STARTS_S, status.update)
        self.console.print(f"It runs: ottla pipeline run {file.parent.name}/{file.name}")

    def wait_for_lag(self, broker: Broker, pipeline: Pipeline, bar: Progress, task: Any) -> None:
        until = time.monotonic() + _DELIVERED_S
        while time.monotonic() < until:
            end, committed = broker.committed(GROUP)
            words = (
                "Streaming them into Delta" if committed else "Spark plans and runs its first batch"
            )
            bar.update(task, completed=committed, description=words)
            if end == committed:
                return
            pipeline.state(0.2)
        raise DemoError(f"The lag does not end: Spark's words are in {self.folder}/spark.log")

    def ask_the_table(self, show: Callable[[str], None]) -> dict[str, Any]:
        asked = Child(
            ["demo.summary", str(self.folder / "flights")],
            self.folder / "summary.log",
            self.children,
        )
        line = asked.answer(_DELIVERED_S, show, "Spark starts again, and reads the whole table")
        if line is None:
            raise DemoError(f"The table does not answer: Spark's words are in {asked.log}")
        found: dict[str, Any] = json.loads(line)
        return found

    @staticmethod
    def worst_message(found: dict[str, Any]) -> tuple[str, str, str]:
        worst = found["airlines"][0]["worst"]
        return TOPIC, str(worst["partition"]), str(worst["offset"])

    def ottla(self, command: str, bootstrap: str, *arguments: str) -> str:
        """Run a command of Ottla's own, as a person would; returns what it printed."""
        return self.command(*command.split(), *arguments, *self.reach(bootstrap))

    def command(self, *words: str | Path, within: dict[str, str] | None = None) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "ottla", *map(str, words)],
            capture_output=True,
            text=True,
            timeout=_STOPPED_S,
            env=within,
        )
        return (done.stdout + done.stderr).rstrip()

    def report(self, sent: int, found: dict[str, Any], journey: str, bootstrap: str) -> None:
        out = self.console.print
        out()
        equal = "equal" if sent == found["rows"] else "NOT EQUAL"
        out(f"[bold]{sent:,} flights in, {found['rows']:,} rows out: {equal}[/bold]")
        out()
        out(delays(found["airlines"]))
        out()
        worst = found["airlines"][0]
        out(f"[bold]The journey of {worst['airline']} {worst['worst']['flight']}[/bold]")
        sys.stdout.write(f"{journey}\n\n")
        sys.stdout.write(f"{self.ottla('group describe', bootstrap, GROUP)}\n\n")
        sys.stdout.flush()
        self.show_times()
        out(f"The Delta table is {self.folder / 'flights'}", soft_wrap=True)
        if sent != found["rows"]:
            raise DemoError("The rows in and out differ")

    def show_times(self) -> None:
        out = self.console.print
        out("[bold]Time[/bold]")
        for name, seconds in self.times:
            out(f"  {name:<34}{seconds:7.1f} s")
        out(f"  {'all':<34}{sum(seconds for _, seconds in self.times):7.1f} s")
        out()

    def stop(self) -> None:
        """End all children; a second Ctrl-C does not leave one behind."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for child in reversed(self.children):
            child.stop()
        self.children.clear()


def delays(airlines: list[dict[str, Any]]) -> Table:
    """Return the table of the worst delays, worst first."""
    table = Table(
        title="Departure delays: the worst (hours) and the mean (minutes) of each airline",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1, 0, 0),
    )
    for name in ("Airline", "Flights", "Mean", "Worst", "Flight", "Route", "Day"):
        right = name in ("Flights", "Mean", "Worst", "Flight")
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    for row in airlines:
        worst = row["worst"]
        hours, minutes = divmod(int(worst["dep_delay"]), 60)
        table.add_row(
            row["airline"] or "?",
            f"{row['flights']:,}",
            f"{row['mean']:.1f}",
            f"{hours}:{minutes:02}",
            str(worst["flight"]),
            f"{worst['origin']}-{worst['dest']}",
            f"{worst['day']:2} {month_abbr[worst['month']]}",
        )
    return table


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def main(kind: type[Demo] = Demo) -> int:
    """Run a demo in a folder of its own; return the exit code."""
    # Also where a shell started it in the background, which has SIGINT ignored.
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, _interrupt)
    folder = Path(tempfile.mkdtemp(prefix="ottla-demo-"))
    demo = kind(folder)
    code = 1
    try:
        demo.run()
        code = 0
    except KeyboardInterrupt:
        demo.console.print("\nStopped.")
        code = _EXIT_INTERRUPTED
    except (DemoError, NoDataError) as error:
        print(f"demo: {error}", file=sys.stderr)
    except KafkaException as error:
        print(f"demo: the broker does not respond: {error.args[0].str()}", file=sys.stderr)
    finally:
        demo.stop()
    demo.console.print(f"All that the demo made is in {folder}", soft_wrap=True)
    return code
