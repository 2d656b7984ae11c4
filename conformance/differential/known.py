"""The differences that remain between Ottla's answers and Apache Kafka's, each with its reason.

A difference that is listed and does not occur fails the suite, so that the list stays true.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Known(NamedTuple):
    """Differences in one field of the answers to one kind of request."""

    label: str
    """How the answer's label begins."""
    field: str
    """A part of the field's path."""
    reason: str
    script: str = ""
    """The only one in which it occurs; empty: any."""
    answers: str = ""
    """A pattern of both answers, `ours, theirs`; empty: any."""

    def explains(self, script: str, label: str, difference: str) -> bool:
        """Whether it is this one; `difference` begins with the field's path."""
        path, _, answers = difference.partition(": ")
        return (
            self.script in ("", script)
            and label.startswith(self.label)
            and self.field in path
            and (not self.answers or re.fullmatch(self.answers, answers) is not None)
        )


LATE_END: Final = "EndTxn 5 of the epoch before an older end's, "
"""How the label of such a request begins (`Session.end`)."""
_FENCED: Final = (
    "A request of version 5 repeats an EndTxn if its epoch is one below: that one had bumped the "
    "epoch. An EndTxn up to 4 does not bump it, and the epoch below is of a producer that another "
    "one has replaced. Kafka does not look at the version and answers as to a repeated request "
    "(TransactionCoordinator.endTransaction), with the other producer's epoch. Ottla fences it."
)

CLAIMED: Final = (
    "A process that claims the place of a static member of a streams group that has not left is "
    "refused by both. Kafka has given it the member's tasks by then, in the copy of the targets "
    "that it refines (StreamsGroup.relabelRefinedAssignment): until the next epoch the member is "
    "told to give up all its tasks, and nobody has them. Ottla changes nothing."
)
_TOLD_AGAIN: Final = (
    "A member of a streams group that says what it has, and lacks tasks that it was given, is told "
    "them again: the answer may have been lost. Kafka answers only what has changed since."
)
_JOINS_AGAIN: Final = (
    "A static member of a streams group that joins again without having left did not get the "
    "answer, or was fenced: it is told its tasks. Kafka refuses it with an error that ends Kafka "
    "Streams."
)
_ONLY_OFFSETS: Final = (
    "The heartbeat that makes a streams group is told endpoint epoch 0. Kafka tells 1 where "
    "offsets were committed before for a group of that id, and goes on from 0 all the same."
)
_CONFIGURED: Final = (
    "The heartbeat that makes a streams group compares its topology with the topics. Kafka forgets "
    "that, and describes the topology without numbers of partitions until the next heartbeat."
)
_DESCRIPTIONS: Final = (
    "Apache Kafka asks for the description of a topology (KIP-1331) only with a plug-in that keeps "
    "it. Ottla keeps it with the group."
)
_LEADER: Final = (
    "Beside a partition of a share group that has no error, Kafka names leader 0 in epoch 0, which "
    "is nobody meant: the fields have no default. Ottla says -1, as in a Fetch."
)
_START: Final = (
    "Where a share group begins that had no offset is stored once a member has fetched. Kafka "
    "stores it with the first acknowledgement, and until then describes none."
)

KNOWN: Final[tuple[Known, ...]] = (
    Known(
        "Produce ",
        "log_append_time",
        "Kafka answers a batch that is sent again with its timestamp as the time of the append, "
        "also where the producer's timestamps stay. Ottla answers as it did the first time.",
    ),
    Known(
        "Produce ",
        "log_start_offset",
        "With the errors that its log raises, Kafka names the start of the log, for producers that "
        "got UNKNOWN_PRODUCER_ID, which no broker sends since KIP-360. Ottla names it only with "
        "success.",
    ),
    Known(
        "Produce 12 t to a-0",
        "partition_responses[0]",
        "A batch of a future epoch is refused, but Kafka keeps its sequence as the lowest to come "
        "and refuses every later batch of the true producer as out of order. Ottla goes by the "
        "last batch that the partition has.",
        script="a_batch_of_a_future_epoch",
    ),
    Known(LATE_END, "error_code", _FENCED, answers="'producer_fenced', '(none|invalid_txn_state)'"),
    Known(LATE_END, "producer_id", _FENCED, answers=r"'-1', 'P\d+'"),
    Known(LATE_END, "producer_epoch", _FENCED, answers=r"-1, \d+"),
    Known("", "", CLAIMED, "a_claimed_place"),
    Known("streams heartbeat of 'a' in 0 again", "", _JOINS_AGAIN, "streams_static_members"),
    Known("streams heartbeat of 'b' in 0 again", "", _JOINS_AGAIN, "streams_static_members"),
    Known("", "_tasks", _TOLD_AGAIN, answers=r"\[.*\], None"),
    Known("topology of ", "error_code", _DESCRIPTIONS, answers=".*, 'unsupported_version'"),
    Known("", "topology_description_required", _DESCRIPTIONS, answers="True, False"),
    Known("seed", "endpoint_information_epoch", _ONLY_OFFSETS, answers="0, 1"),
    Known("seed", "changelog_topics[0].partitions", _CONFIGURED, answers="3, 0"),
    Known("share ", "current_leader", _LEADER, answers="-1, 0"),
    Known("share offsets", "", _START, answers=r"\d+, -1"),
    Known(
        "alter 'g': (('consumer.session.timeout.ms', 9",
        "error_code",
        "An unknown operation on a setting fails in Kafka's controller (OpType.forId gives "
        "null). Ottla calls the request invalid.",
        script="settings_of_groups",
        answers="'invalid_request', 'unknown_server_error'",
    ),
    Known(
        "share ",
        "error_code",
        "Two batches of acknowledgements that share one offset are in no order. Kafka lets them "
        "pass as such (it compares with `<`), and refuses the second one for its state.",
        script="acknowledgements_that_make_no_sense",
        answers="'invalid_request', 'invalid_record_state'",
    ),
)
