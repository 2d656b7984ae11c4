"""Operations of requests on resources, in the codes of Kafka's ACLs (KIP-11, KIP-140).

Codes: `AclOperation` and `ResourceType` of Kafka's clients.
"""

from enum import IntEnum
from typing import Final, NamedTuple


class Operation(IntEnum):
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14


class Resource(IntEnum):
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""


class Access(NamedTuple):
    """One permission that a request type needs, for each resource of that type that it names."""

    operation: Operation
    resource: Resource


BETWEEN_BROKERS: Final = (Access(Operation.CLUSTER_ACTION, Resource.CLUSTER),)
"""The permission for requests between brokers."""

_O = Operation
OPERATIONS_OF: Final = {
    Resource.TOPIC: (
        _O.READ, _O.WRITE, _O.CREATE, _O.DESCRIBE, _O.DELETE, _O.ALTER, _O.DESCRIBE_CONFIGS,
        _O.ALTER_CONFIGS,
    ),
    Resource.GROUP: (_O.READ, _O.DESCRIBE, _O.DELETE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS),
    Resource.CLUSTER: (
        _O.CREATE, _O.CLUSTER_ACTION, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS, _O.IDEMPOTENT_WRITE,
        _O.ALTER, _O.DESCRIBE,
    ),
    Resource.TRANSACTIONAL_ID: (_O.DESCRIBE, _O.WRITE),
    Resource.DELEGATION_TOKEN: (_O.DESCRIBE,),
    Resource.USER: (_O.CREATE_TOKENS, _O.DESCRIBE_TOKENS),
}  # fmt: skip
"""The operations that a resource of each type has (AclEntry.supportedOperations)."""
