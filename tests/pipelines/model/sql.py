"""The statements of the pipelines, as they are shipped, run by SQLite.

Spark's and PostgreSQL's words that SQLite lacks are put into its own: `struct`, `max_by`, `<=>`,
`explode` of one form, MERGE by its clauses, DELETE ... USING. Times are whole numbers here.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from pyspark.errors import UnsupportedOperationException
from tests.pipelines.model.errors import NotUnderstoodError, QueryFailedError

from ottla.pipelines.sinks.delta.in_order_statement import OUT_OF_ORDER

Rows = tuple[tuple[Any, ...], ...]
Columns = Sequence[str]

_ZERO: Final = 1 << 62
_STOPPED: list[str] = []
"""What raise_error said: SQLite forgets the words of a function that fails."""


class TwiceMatchedError(UnsupportedOperationException):
    """Two rows of the source match one row of the table."""

    def __init__(self) -> None:
        Exception.__init__(self, OUT_OF_ORDER)

    def getCondition(self) -> str:  # noqa: N802
        return OUT_OF_ORDER


def _packed(*values: Any) -> str:
    """Return a struct as a text that is ordered as the struct is."""
    return "\x1f".join(map(_one_packed, values))


def _one_packed(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, int):
        return f"i{value + _ZERO:020d}"
    return f"r{value!r}" if isinstance(value, float) else f"s{value}"


def _unpacked(text: str | None, place: int) -> Any:
    if text is None:
        return None
    found = text.split("\x1f")[place]
    if found[:1] == "i":
        return int(found[1:]) - _ZERO
    return float(found[1:]) if found[:1] == "r" else found[1:] or None


def _place(order: str, kind: str) -> str:
    """Return a struct of whole numbers from JSON, in the order of its type."""
    values = json.loads(order)
    names = re.findall(r"[<,] ?`?(\w+)`?:", kind)
    return _packed(*(values[name] for name in names))


class _MaxBy:
    def __init__(self) -> None:
        self._found: tuple[Any, Any] | None = None

    def step(self, value: Any, order: Any) -> None:
        if self._found is None or order > self._found[0]:
            self._found = order, value

    def finalize(self) -> Any:
        return None if self._found is None else self._found[1]


def _stop(words: str) -> None:
    _STOPPED.append(words)
    raise ValueError(words)


def _connect(tables: dict[str, tuple[Columns, Rows]], keys: Columns = ()) -> sqlite3.Connection:
    found = sqlite3.connect(":memory:")
    functions: tuple[tuple[str, int, Callable[..., Any]], ...] = (
        ("struct", -1, _packed),
        ("field", 2, _unpacked),
        ("raise_error", 1, _stop),
        ("concat", -1, lambda *parts: "".join(map(str, parts))),
        ("to_json", 1, lambda text: _unpacked(text, 0)),
        ("from_json", 2, _place),
    )
    for name, count, function in functions:
        found.create_function(name, count, function)
    found.create_aggregate("max_by", 2, _MaxBy)  # type: ignore[arg-type]
    for name, (columns, rows) in tables.items():
        unique = f", PRIMARY KEY ({', '.join(keys)})" if keys and name == TARGET else ""
        found.execute(f'CREATE TABLE "{name}" ({", ".join(columns)}{unique})')
        marks = ", ".join("?" * len(columns))
        found.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)
    return found


def _run(connection: sqlite3.Connection, statement: str) -> Any:
    try:
        return connection.execute(statement)
    except sqlite3.Error as error:
        raise _why(error) from error


def _why(error: sqlite3.Error) -> BaseException:
    if _STOPPED:
        return QueryFailedError(_STOPPED.pop())
    return NotUnderstoodError(str(error))


# ---- Spark's

TARGET: Final = "target"
_EXPLODED: Final = re.compile(
    r"SELECT \*, explode\(if\((\w+), array\(true, false\), array\(false\)\)\) AS (\w+) FROM (\w+)"
)
_INNER: Final = re.compile(r"SELECT row\.\* FROM \((.*)\)", re.DOTALL)
_OF_ROW: Final = re.compile(r"(?:max_by\(struct\(([^)]*)\)|struct\(([^)]*)\) AS row)")


def _in_sqlite(statement: str) -> str:
    statement = _EXPLODED.sub(
        r"SELECT \3.*, each.value AS \2 FROM \3, "
        r"json_each(iif(\1, '[1,0]', '[0]')) AS each",
        statement,
    )
    statement = re.sub(r", map\('timestampFormat'.*?SSS'\)\)", ")", statement)
    statement = re.sub(r"delta\.`[^`]*`", TARGET, statement)
    statement = re.sub(r"\bif\(", "iif(", statement)
    return statement.replace("<=>", "IS")


def _names(listed: str) -> list[str]:
    return [name.strip(" `") for name in listed.split(",")]


def select(statement: str, views: dict[str, tuple[Columns, Rows]]) -> tuple[list[str], Rows]:
    """Return the columns and rows of a query of Spark's over views and TARGET."""
    connection = _connect(views)
    inner = _INNER.fullmatch(statement)
    if inner is None:
        cursor = _run(connection, _in_sqlite(statement))
        rows = tuple(_fetched(cursor))
        return [column[0] for column in cursor.description], rows
    found = _OF_ROW.search(statement)
    assert found is not None, statement
    names = _names(found[1])
    packed = list(_fetched(_run(connection, _in_sqlite(inner[1]))))
    return names, tuple(
        tuple(_unpacked(text, place) for place in range(len(names))) for (text,) in packed
    )


def _fetched(cursor: Any) -> Iterator[tuple[Any, ...]]:
    try:
        yield from cursor
    except sqlite3.Error as error:
        raise _why(error) from error


def merge(
    statement: str, target: tuple[Columns, Rows], views: dict[str, tuple[Columns, Rows]]
) -> Rows:
    """Return what the rows of TARGET become by a MERGE. Raises TwiceMatchedError, as Delta does."""
    columns, rows = target
    _, rest = statement.split("\nUSING (", 1)
    source, rest = rest.split(") AS s\nON ", 1)
    on, *clauses = _in_sqlite(rest).split("\nWHEN ")
    names, of_source = select(source, {**views, TARGET: target})
    connection = _connect({TARGET: target, "s": (names, of_source)})
    if of_row := _OF_ROW.search(source):
        listed = _names(of_row[1] or of_row[2])
        clauses = [
            re.sub(r"s\.row\.`(\w+)`", lambda at: f"field(s.row, {listed.index(at[1])})", one)
            for one in clauses
        ]
    changed: dict[int, dict[str, Any] | None] = {}
    added: list[dict[str, Any]] = []
    done: set[int] = set()  # the rows of the source for which a clause was taken
    for clause in clauses:
        when, action = clause.split(" THEN ")
        kind, _, also = when.partition(" AND ")
        condition = f"({on}) AND ({also})" if also else on
        if kind == "MATCHED":
            pairs = f"FROM {TARGET} AS t JOIN s ON {condition}"
            taken: dict[str, str] = {}
            if action != "DELETE":
                taken = _assignments(action.removeprefix("UPDATE SET "))
            values = ", ".join(("t.rowid", "s.rowid", *taken.values()))
            for at, by, *cells in _fetched(_run(connection, f"SELECT {values} {pairs}")):
                if by in done and at in changed:
                    continue
                if at in changed:
                    raise TwiceMatchedError
                done.add(by)
                changed[at] = dict(zip(taken, cells, strict=True)) if taken else None
        elif kind == "NOT MATCHED BY SOURCE":
            assert action == "DELETE", action
            only = f"NOT EXISTS (SELECT 1 FROM s WHERE {on}) AND {also}"
            gone = _fetched(_run(connection, f"SELECT t.rowid FROM {TARGET} AS t WHERE {only}"))
            changed |= {at: None for (at,) in gone}
        else:
            into, values = re.fullmatch(r"INSERT \((.*?)\) VALUES \((.*)\)", action).groups()  # type: ignore[union-attr]
            only = f"NOT EXISTS (SELECT 1 FROM {TARGET} AS t WHERE {on})"
            only += f" AND {also}" if also else ""
            query = f"SELECT {values} FROM s WHERE {only}"
            added += [
                dict(zip(_names(into), row, strict=True))
                for row in _fetched(_run(connection, query))
            ]
    kept = []
    for number, row in enumerate(rows, 1):
        change = changed.get(number, {})
        if change is not None:
            of_row = dict(zip(columns, row, strict=True)) | change  # type: ignore[assignment]
            kept.append(tuple(of_row[name] for name in columns))  # type: ignore[index]
    return (*kept, *(tuple(row.get(name) for name in columns) for row in added))


def _assignments(listed: str) -> dict[str, str]:
    parts = (part.split(" = ", 1) for part in re.split(r", (?=t\.)", listed))
    return {name.removeprefix("t.").strip("`"): value for name, value in parts}


# ---- PostgreSQL's


def change(
    statement: str, target: tuple[Columns, Rows], rows: tuple[Columns, Rows], keys: Columns
) -> Rows:
    """Return what the rows of a table become by a DELETE or an INSERT from the temporary one."""
    statement = _of_postgres(statement)
    connection = _connect({TARGET: target, "ottla_rows": rows}, keys)
    found = re.fullmatch(r"DELETE FROM (\w+ AS t) USING (.+?) WHERE (.*)", statement)
    if found is not None:
        statement = (
            f"DELETE FROM {found[1]} WHERE EXISTS (SELECT 1 FROM {found[2]} WHERE {found[3]})"
        )
    elif " WHERE " not in statement.split(" ON CONFLICT ")[0]:
        statement = statement.replace(" ON CONFLICT ", " WHERE true ON CONFLICT ", 1)
    _run(connection, statement)
    return tuple(connection.execute(f"SELECT * FROM {TARGET}"))


def truncate(statement: str, target: tuple[Columns, Rows], order: Sequence[str]) -> Rows:
    """Return what the rows of a table become by a DELETE of those before a place, if one is given,
    as JSON.
    """
    columns, rows = target
    if statement.endswith(" WHERE false"):
        return rows
    if not order:
        assert " WHERE " not in statement, statement
        return ()
    (values,) = json.loads(order[0])
    place = (tuple(values), (tuple(values.values()),))
    statement = re.sub(
        r"json_populate_recordset\(.*? AS json\)\)", "place", _of_postgres(statement)
    )
    found = re.fullmatch(r"DELETE FROM (\w+ AS t) USING (.+?) WHERE (.*)", statement)
    assert found is not None, statement
    connection = _connect({TARGET: (columns, rows), "place": place})
    _run(
        connection,
        f"DELETE FROM {found[1]} WHERE EXISTS (SELECT 1 FROM {found[2]} WHERE {found[3]})",
    )
    return tuple(connection.execute(f"SELECT * FROM {TARGET}"))


def query(
    statement: str, target: tuple[Columns, Rows], rows: tuple[Columns, Rows]
) -> list[tuple[Any, ...]]:
    """Return the rows of a query over a table and the temporary one."""
    connection = _connect({TARGET: target, "ottla_rows": rows})
    return list(_run(connection, _of_postgres(statement)))


def _of_postgres(statement: str) -> str:
    statement = statement.replace("pg_temp.", "").replace('"public"."t"', TARGET)
    return statement.replace("json_build_object", "json_object")
