"""The failures that an Iceberg table alone has. Pure."""

from __future__ import annotations

from typing import Final

from ottla.pipelines.failures.known import Known
from ottla.pipelines.failures.table import COMMIT
from ottla.pipelines.failures.words import other_commit

_AGAIN: Final = "Use a new checkpoint to write all of it again"
_EXCEPTIONS: Final = r"^org\.apache\.iceberg\.exceptions\."

FAILURES: Final = (
    Known(
        f"The table {{target}} was deleted and created again while the query ran. {_AGAIN}",
        text=r"Table UUID does not match",
    ),
    Known(
        f"The table {{target}} was deleted while the query ran: {{plain}}. {_AGAIN}",
        kind=_EXCEPTIONS + r"NoSuchTableException$",
    ),
    Known(
        f"The table {{target}} was deleted while the query ran: {{plain}}. {_AGAIN}",
        text=r"Metadata file for version \d+ is missing",
    ),
    # Whether a commit of an unknown state is there, the next start finds in the table.
    Known(
        other_commit,
        kind=_EXCEPTIONS + r"(CommitFailed|CommitStateUnknown|Validation)Exception$",
        retry=COMMIT,
    ),
    Known(
        "The columns of {target} were changed while the query ran: {plain}. Start again to compare "
        "them",
        condition=r"INCOMPATIBLE_DATA_FOR_TABLE\.\w+|INSERT_COLUMN_ARITY_MISMATCH\.\w+|"
        r"UNRESOLVED_COLUMN\.\w+|CANNOT_UP_CAST_DATATYPE|DATATYPE_MISMATCH\.INVALID_ROW_LEVEL.*",
    ),
    Known(
        "There is no namespace of {target}: {plain}. Create it with CREATE NAMESPACE",
        kind=r"NoSuchNamespaceException$",
    ),
)
