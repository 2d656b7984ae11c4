"""The failures of a database; the codes are PostgreSQL's (appendix A of its manual). Pure."""

from __future__ import annotations

from typing import Final

from ottla.pipelines.failures.known import Found, Known, Wait
from ottla.pipelines.failures.table import CONSTRAINT
from ottla.pipelines.failures.words import reason_of

DATABASE: Final = Wait("database", "The database of {target} does not answer")
CHARACTER: Final = Wait(
    "character",
    "{target} cannot store a character, and rejects rows with U+0000 from now on",
    rejects_rows=True,
)
NO_CHARACTER: Final = "SQLSTATE 22021"
"""Text has bytes that are no character of the database: U+0000, or none of UTF-8."""

_START_IT: Final = "Start it: the next start continues from the checkpoint"
_DATABASE_AWAY: Final = "The database of {target} does not answer: {reason}. " + _START_IT
_REFUSED_ROW: Final = (
    "The database refused a row of {target}: {reason}. Filter such rows in the query, or drop the "
    "constraint"
)
_REFUSED_VALUE: Final = (
    "The database refused a value for {target}: {reason}. Cast it in the query, or filter such rows"
)


def _unknown_host(found: Found) -> str | None:
    host = found.of_kind(r"\bUnknownHostException$")
    if host is None:
        return None
    # The driver's own words are "The connection attempt failed".
    return (
        f"The host of the database of {found.about.target} is not known: {host.plain}. Correct "
        "url=, or the name service; the next start continues from the checkpoint"
    )


def _other_database(found: Found) -> str:
    return (
        f"The database refused to write {found.about.target}: {reason_of(found.cause)} "
        f"({found.cause.condition})"
    )


FAILURES: Final = (
    Known(
        "The database of {target} refused the login: {reason}. Check user= and password=",
        condition=r"SQLSTATE 28\w{3}",
    ),
    Known(_unknown_host, condition=r"SQLSTATE 08\w{3}"),
    Known(_DATABASE_AWAY, condition=r"SQLSTATE (08\w{3}|57P0[1-35]|53300)", retry=DATABASE),
    Known(_DATABASE_AWAY, condition=r"SQLSTATE 57P0\w"),
    Known(
        "There is no such database for {target}: {reason}. Create it, or correct url=",
        condition="SQLSTATE 3D000",
    ),
    Known(
        "The disk of the database of {target} is full: {reason}. Free some space: the next start "
        "continues from the checkpoint",
        condition="SQLSTATE 53100",
    ),
    Known(
        "This user may not write {target}: {reason}. GRANT the right in the database",
        condition="SQLSTATE 42501",
    ),
    Known(
        "{target} was changed or deleted while the query ran: {reason}. Start again to compare its "
        "columns",
        condition="SQLSTATE (42P01|42703)",
    ),
    # NOT NULL and the length of a text are constraints that are known at a start.
    Known(_REFUSED_ROW, condition="SQLSTATE 23502", retry=CONSTRAINT),
    Known(_REFUSED_ROW, condition=r"SQLSTATE 23\w{3}"),
    Known(_REFUSED_VALUE, condition="SQLSTATE 22001", retry=CONSTRAINT),
    Known(_REFUSED_VALUE, condition=NO_CHARACTER, retry=CHARACTER),
    Known(
        "The database of {target} has another encoding than UTF8, without a character of the rows: "
        "{reason}. Use a database with UTF8, or take such characters out in the query",
        condition="SQLSTATE 22P05",
    ),
    Known(_REFUSED_VALUE, condition=r"SQLSTATE (22\w{3}|42804)"),
    Known(
        "The unique index by which rows of {target} or of ottla_batches beside it are found is "
        "gone: {reason}. Create it again, on the columns of keys= or on (query, table_oid)",
        condition="SQLSTATE 42P10",
    ),
    Known(
        "The database of {target} takes no writes: {reason}. It may be a replica: correct url=; or "
        "set default_transaction_read_only = off",
        condition="SQLSTATE 25006",
    ),
    Known(
        "A batch has two rows whose keys Spark tells apart and {target} does not, such as 'a' and "
        "'A' in a citext, a uuid or a collation that ignores case: {reason}. Make such keys alike "
        "in the query, with lower() for example",
        condition="SQLSTATE 21000",
    ),
    # A transaction that met another one.
    Known(_other_database, condition="SQLSTATE (40001|40P01)", retry=DATABASE),
    Known(_other_database, condition=r"SQLSTATE \w{5}"),
)
