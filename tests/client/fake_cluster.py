"""A cluster without sockets: a client of it is the real one, with answers that a test gives.

`answers` has, by request type, what each request gets in turn: a function of the broker's address
and the request that returns the response or raises. The last one stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from ottla.client.addresses import Address
from ottla.client.client import Client
from ottla.client.coordinators import FIND_COORDINATOR
from ottla.client.errors import ClosedError, NoAnswerError, UnreachableError
from ottla.client.metadata import METADATA
from ottla.client.patience import Patience
from ottla.client.question import Question
from ottla.client.security import Security
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import APIS

Answer = Callable[[str, Any], Any]
PORT = 9092
VERSIONS = {key: (api.min_version, api.max_version) for key, api in APIS.items()}


class FakeConnection:
    """One connection of a client to a broker of a FakeCluster."""

    def __init__(self, cluster: FakeCluster, address: Address) -> None:
        self.address = address
        self.certificate_ends_s = cluster.certificate_ends_s
        self._cluster = cluster

    def ask(self, question: Question, within_s: float) -> Any:
        versions = VERSIONS | self._cluster.versions.get(str(self.address), {})
        return self._cluster.answer(self.address, question.request(versions, self.address))

    def ask_bytes(self, key: int, body: bytes, within_s: float) -> bytes:
        answer: bytes = self._cluster.next_answer(key)(str(self.address), body)
        return answer

    def check(self, within_s: float) -> None:
        self._cluster.check(self.address)

    def close(self) -> None:
        self._cluster.closed.append(str(self.address))


class FakeCluster:
    """Brokers b1 and b2 at port 9092; b1 is the controller. `t` has a partition on each, and one
    without a leader. b2 coordinates all groups and transactional ids. Time does not pass by itself.
    """

    def __init__(self, answers: Mapping[int, Sequence[Answer]] | None = None) -> None:
        self.brokers = [1, 2]
        self.controller = 1
        self.leaders = {("t", 0): 1, ("t", 1): 2, ("t", 2): -1}
        self.replicas: dict[tuple[str, int], tuple[int, ...]] = {}
        """(1, 2) for those that are not there."""
        self.in_sync: dict[tuple[str, int], tuple[int, ...]] = {}
        """(1,) for those that are not there."""
        self.answers: dict[int, list[Answer]] = {
            METADATA: [self.metadata],
            FIND_COORDINATOR: [coordinators()],
        }
        for key, some in (answers or {}).items():
            self.answers[key] = list(some)
        self.versions: dict[str, dict[int, tuple[int, int]]] = {}
        """Of brokers that do not know all versions, by address."""
        self.certificate_ends_s: int | None = None
        self.unreachable: set[str] = set()
        self.silent: set[str] = set()
        self.asked: list[tuple[str, Any]] = []
        self.connected: list[str] = []
        self.closed: list[str] = []
        self.slept_s = 0.0

    def client(self, bootstrap: str = f"b1:{PORT}", **options: Any) -> Client:
        patience = {"now": lambda: self.slept_s, "sleep": self._sleep} | options
        return Client(bootstrap, patience=Patience(**patience), connect=self.connect)

    def requests(self, key: int) -> list[Any]:
        """The requests of this type, in the order in which they came."""
        return [request for _, request in self.asked if request.__api_key__ == key]

    def asked_of(self, key: int) -> list[str]:
        """The addresses that got a request of this type."""
        return [address for address, request in self.asked if request.__api_key__ == key]

    def answer(self, address: Address, request: Any) -> Any:
        self.check(address)
        self.asked.append((str(address), request))
        return self.next_answer(request.__api_key__)(str(address), request)

    def next_answer(self, key: int) -> Answer:
        answers = self.answers[key]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def check(self, address: Address) -> None:
        if str(address) in self.unreachable:
            raise ClosedError(f"the broker at {address} closed the connection.")
        if str(address) in self.silent:
            raise NoAnswerError(f"no response from {address}.")

    def connect(
        self,
        address: Address,
        security: Security,
        client_id: str,
        connect_s: float,
        answer_s: float,
    ) -> FakeConnection:
        if str(address) in self.unreachable:
            raise UnreachableError(f"cannot reach a broker at {address}: connection refused.")
        self.check(address)
        self.connected.append(str(address))
        return FakeConnection(self, address)

    def _sleep(self, seconds: float) -> None:
        self.slept_s += seconds

    def metadata(self, address: str, request: Any) -> Any:
        """The answer to Metadata."""
        build = messages_of(METADATA, request.__version__)
        wanted = None if request.topics is None else {each.name for each in request.topics}
        topics = []
        for name in sorted({topic for topic, _ in self.leaders}):
            if wanted is not None and name not in wanted:
                continue
            partitions = tuple(
                build.MetadataResponsePartition(
                    partition_index=index,
                    leader_id=leader,
                    replica_nodes=self.replicas.get((topic, index), (1, 2)),
                    isr_nodes=self.in_sync.get((topic, index), (1,)),
                )
                for (topic, index), leader in self.leaders.items()
                if topic == name
            )
            topics.append(
                build.MetadataResponseTopic(name=name, topic_id=UUID(int=1), partitions=partitions)
            )
        topics += [
            build.MetadataResponseTopic(name=each, error_code=ErrorCode.unknown_topic_or_partition)
            for each in sorted((wanted or set()) - {topic for topic, _ in self.leaders})
        ]
        return build.MetadataResponse(
            brokers=tuple(
                build.MetadataResponseBroker(node_id=number, host=f"b{number}", port=PORT)
                for number in self.brokers
            ),
            cluster_id="a cluster",
            controller_id=self.controller,
            topics=tuple(topics),
        )


def coordinators(code: ErrorCode = ErrorCode.none, message: str | None = None) -> Answer:
    """The answer to FindCoordinator: b2, or an error."""

    def answer(address: str, request: Any) -> Any:
        build = messages_of(FIND_COORDINATOR, request.__version__)
        place: dict[str, Any] = {"node_id": 2, "host": "b2", "port": PORT}
        errors = {"error_code": code, "error_message": message}
        if request.__version__ < 4:
            return build.FindCoordinatorResponse(**place, **errors)
        found = tuple(
            build.Coordinator(key=key, **place, **errors) for key in request.coordinator_keys
        )
        return build.FindCoordinatorResponse(coordinators=found)

    return answer


def closing(address: str, request: Any) -> Any:
    """A broker that closes the connection instead of a response."""
    raise ClosedError(f"the broker at {address} closed the connection.")


def silent(address: str, request: Any) -> Any:
    """A broker that does not respond."""
    raise NoAnswerError(f"no response from {address}.")
