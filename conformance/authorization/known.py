"""The differences that remain, each with its reason. One that no longer occurs fails the suite."""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Known(NamedTuple):
    """Differences in the answers to requests with such a label."""

    label: str
    """A pattern of the whole label."""
    difference: str
    """A pattern of the whole difference, `path: ours, theirs`."""
    reason: str
    situation: str = ""
    """The only one in which it occurs; empty: any."""

    def explains(self, situation: str, label: str, difference: str) -> bool:
        """Whether it is this one."""
        return (
            self.situation in ("", situation)
            and re.fullmatch(self.label, label) is not None
            and re.fullmatch(self.difference, difference) is not None
        )


_OF_BROKERS: Final = (
    "A request that only brokers send is answered to brokers of the cluster that have proven to be "
    "these, and not to a client with ClusterAction (or any client, without an authorizer). Apache "
    "Kafka believes the replica id in it."
)
_DESCRIPTIONS: Final = (
    "Apache Kafka takes the description of a topology (KIP-1331) only with a plug-in that keeps "
    "it. Ottla keeps it with the group."
)
KNOWN: Final[tuple[Known, ...]] = (
    Known(
        r"streams_group_topology_description_update 0",
        r".*error_code: \w+, unsupported_version",
        _DESCRIPTIONS,
    ),
    Known(
        r"api_versions [345]",
        r"(supported|finalized)_features\[.*",
        "Features of the cluster that only KRaft has, or that Ottla does not have.",
    ),
    Known(
        r"add_partitions_to_txn [45]",
        r"error_code: cluster_authorization_failed, none",
        _OF_BROKERS,
    ),
    Known(r"add_partitions_to_txn [45]", r"results_by_transaction\[.*: nothing, .*", _OF_BROKERS),
    Known(
        r"(fetch|list_offsets) \d+ as a follower",
        r".*error_code: cluster_authorization_failed, "
        r"(none|not_leader_or_follower|topic_authorization_failed)",
        _OF_BROKERS,
    ),
    Known(
        r"write_txn_markers \d of a commit",
        r".*error_code: cluster_authorization_failed, none",
        "A commit is a coordinator's. An administrator may abort, as kafka-transactions does.",
    ),
    Known(
        r"describe_quorum 2",
        r"nodes\[\]\.listeners\[.*",
        "The controllers of KRaft have a listener of their own; here every broker may become one.",
    ),
    Known(
        r"describe_user_scram_credentials 0",
        r"results\[.*",
        "Refused, Kafka lists each user without its name. Ottla names them. Both have the error of "
        "the whole answer, too, and clients read that first.",
    ),
    Known(
        r"list_partition_reassignments 0",
        r"topics\[.*: nothing, is there",
        "Refused, Kafka lists the partitions that were asked for as if they were being moved. "
        "Ottla lists none. Both have the error of the whole answer.",
    ),
    Known(
        r"metadata \d+ that creates a topic",
        r"topics\[auto\].*: (none|is there), "
        r"(nothing|unknown_topic_or_partition|leader_not_available)",
        "Ottla answers with the partitions of the new topic; Kafka has the client ask again.",
    ),
    Known(
        r"(initialize|read|write|delete)_share_group_state(_summary)? \d",
        r"results\[.*error_code: cluster_authorization_failed, (none|fenced_state_epoch)",
        _OF_BROKERS,
    ),
    Known(
        r"(alter|delete)_share_group_offsets 0",
        r"(error_code: none, (non_empty_group|group_id_not_found)"
        r"|responses\[t\].*: (topic_authorization_failed|is there), nothing)",
        "Where the client may use none of the topics, Ottla refuses each of them; Kafka asks the "
        "group all the same, and answers with its error.",
    ),
    Known(
        r"share_(fetch|acknowledge) \d",
        r"(responses|node_endpoints)\[.*: .*, .*",
        "What the first requests of a share session get depends on the time: Kafka loads a share "
        "partition after it has answered, and a state that is not made yet is UNKNOWN_SERVER_ERROR "
        "(SharePartition.fetchPersisterError). The error of the whole answer is the same.",
    ),
)
