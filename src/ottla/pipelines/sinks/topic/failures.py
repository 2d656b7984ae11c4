"""The failures of the tasks that write a topic; their traces also have librdkafka's. Pure."""

from __future__ import annotations

from typing import Final

from ottla.pipelines.failures.known import Known, Wait
from ottla.pipelines.failures.marks import SET_BACK

WRITE: Final = Wait("write", "A transaction of {target} was not committed", asks_brokers=True)

FAILURES: Final = (
    Known(
        "{target} could not be written: {1}. Check {servers}; the next start continues from the "
        "checkpoint",
        text=r"\bNotWrittenError: (.+)",
        retry=WRITE,
    ),
    Known(
        "{servers} refused the rows for {target}: {1}. Nothing of these transactions is visible; "
        "the next start continues from the checkpoint",
        text=r"\bRefusedError: (.+)",
    ),
    Known(
        SET_BACK.replace("{found}", "{1}"),
        text=r"\bSetBackError: (.+)",
    ),
)
