"""Writes RESULTS.md, and prints the same table on the terminal."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import results
from bench.measure import Figure
from bench.results import Row, spread

COLUMNS = ("figure", "unit", "Ottla", "Apache Kafka", "ratio", "goal", "met")
VERDICTS = {True: "yes", False: "**no**", None: ""}
INTRODUCTION = """# What `make bench` measured

`make bench` runs Ottla and Apache Kafka in turn on one machine, each alone, with the same clients
and settings, and with a fresh data folder for every run. The order within each pair alternates,
because machines are shared and noisy: compare the ratios, not the absolute values. The table shows
the median, with the minimum and the maximum in brackets. The ratio is Ottla's median over Kafka's.
If a goal has a limit and a ratio, both must be met. `results.json` has all single values.

`load` below is the machine's load average before and after; the bench itself causes 2 to 3 of it.
If it is far above the number of cores, other work shared the machine. That favours one side: a
broker with one busy thread gets a smaller share of crowded cores than one with many. `nice` is the
priority of brokers and clients alike; a value below 0 keeps other work away from a light figure.

The figures of Spark pipelines have three jobs. `plain` is the job that a good engineer writes
first, with the defaults of Spark and Delta. `tuned` is the same job with the settings that
measuring finds: two shuffle partitions, two snapshot partitions, jars in the class path; deletion
vectors and `max_by` for an upsert; large batches for JDBC and the producer. `ottla` is the
pipeline. A share is Ottla's value over that of the tuned job. Where a tuned value is missing, the
figure was measured before there was a tuned job, and its share is over the plain one.
"""


def cells(row: Row) -> tuple[str, ...]:
    """One line of the table."""
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    return (
        row.measure.name,
        row.measure.unit,
        spread(row.ottla),
        spread(row.kafka),
        ratio,
        row.goal(),
        VERDICTS[row.met],
    )


def _line(texts: Sequence[str]) -> str:
    return "| " + " | ".join(texts) + " |\n"


def _profiles(folder: Path, missed: Sequence[str]) -> str:
    """The saved profiles of figures with a missed goal, verbatim."""
    told = ""
    for name in missed:
        file = folder / f"{name}.txt"
        if file.is_file():
            told += f"\n### {name}\n\n```\n{file.read_text().strip()}\n```\n"
    return f"\n## Profiles of figures with a missed goal\n{told}" if told else ""


def markdown(figures: Sequence[Figure], kept: Mapping[str, Any], profiles: Path) -> str:
    """The whole report, from the stored results."""
    measured = [figure for figure in figures if figure.name in kept]
    text = INTRODUCTION + "\n" + _line(COLUMNS) + _line(["---"] * len(COLUMNS))
    missed = []
    for figure in measured:
        found = results.rows(figure.measures, kept[figure.name]["values"])
        text += "".join(_line(cells(row)) for row in found)
        if any(row.met is False for row in found):
            missed.append(figure.name)
    text += "\n## Settings\n\n"
    for figure in measured:
        entry = kept[figure.name]
        text += f"- **{figure.name}** ({entry['runs']} runs each, load {entry['load']},"
        text += f" nice {entry.get('nice', 0)}, {entry['date']}): {figure.settings}\n"
    text += _machines(measured, kept)
    return text + _profiles(profiles, missed)


def _machines(measured: Sequence[Figure], kept: Mapping[str, Any]) -> str:
    """What each figure was measured on, newest versions first: not all are measured again with
    each of them.
    """
    figures: dict[tuple[tuple[str, str], ...], list[str]] = {}
    newest: dict[tuple[tuple[str, str], ...], str] = {}
    for figure in measured:
        entry = kept[figure.name]
        machine = tuple(entry["machine"].items())
        figures.setdefault(machine, []).append(figure.name)
        newest[machine] = max(newest.get(machine, ""), entry["date"])
    text = "\n## Machines and versions\n\n"
    for machine in sorted(figures, key=lambda each: newest[each], reverse=True):
        told = "; ".join(f"{name}: {value}" for name, value in machine)
        text += f"- **{', '.join(figures[machine])}**: {told}\n"
    return text


def show(console: Console, figures: Sequence[Figure], kept: Mapping[str, Any]) -> None:
    """Print the table."""
    table = Table(title="Ottla and Apache Kafka")
    for column in COLUMNS:
        table.add_column(column)
    for figure in figures:
        if figure.name in kept:
            for row in results.rows(figure.measures, kept[figure.name]["values"]):
                table.add_row(*(cell.replace("**", "") for cell in cells(row)))
    console.print(table)
