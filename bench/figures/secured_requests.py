"""Requests with one record each over TLS, and under 1,000 ACLs: the fixed cost of a request."""

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from bench.figures import small_requests
from bench.figures.small_requests import CLIENTS, ONE_A_REQUEST, RECORD_BYTES, WARM_UP_SHARE
from bench.figures.start import first_produce
from bench.measure import Bench, Measure
from bench.secured import (
    AUTHORIZERS,
    MECHANISM,
    SASL_PLAINTEXT,
    SASL_SSL,
    TLS,
    USER,
    Secured,
    running,
)

PRODUCED = 100_000
ACLS = 1000
ACLS_AT_ONCE = 100
ADMIN_SECONDS = 60


class SecuredRequests:
    """Many requests of one record, by one client and by several."""

    name = "secured-requests"
    runs = None
    settings = (
        f"rdkafka_performance: {PRODUCED:,} records of {RECORD_BYTES} B, acks=1, one a request"
        f" ({' '.join(ONE_A_REQUEST)}), one client and {CLIENTS} with a topic each, all in all as"
        f" many; before each a tenth of it to warm up. Over TLS: {SASL_SSL}, {TLS}, {MECHANISM}."
        f" With ACLs: {SASL_PLAINTEXT}, {MECHANISM}, the authorizer of each broker, {ACLS:,} ACLs"
        " of which one lets the user write, the others are of other topics and users"
    )
    measures = (
        Measure("small requests over TLS, one client", "requests/s", True, ratio=1.3),
        Measure("broker CPU over TLS, one client", "µs/request", False),
        Measure("small requests over TLS, four clients", "requests/s", True, ratio=1.3),
        Measure("broker CPU over TLS, four clients", "µs/request", False),
        Measure("small requests with 1,000 ACLs", "requests/s", True, ratio=1.0),
        Measure("broker CPU with 1,000 ACLs", "µs/request", False),
    )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        count = bench.amount(PRODUCED)
        values: list[float] = []
        with running(contestant, bench) as secured:
            begin(secured)
            for clients in (1, CLIENTS):
                produce(secured, bench, clients, count // WARM_UP_SHARE)
                values += produce(secured, bench, clients, count)
        rules = {"authorizer.class.name": AUTHORIZERS[contestant], "super.users": "User:ANONYMOUS"}
        with running(contestant, bench, SASL_PLAINTEXT, rules) as secured:
            add_acls(secured.broker.address)
            begin(secured)
            produce(secured, bench, 1, count // WARM_UP_SHARE)
            values += produce(secured, bench, 1, count)
        return dict(zip((measure.name for measure in self.measures), values, strict=True))


def begin(secured: Secured) -> None:
    """Create the topics."""
    for number in range(CLIENTS):
        first_produce(secured.broker.address, f"small-{number}", 0)


def produce(secured: Secured, bench: Bench, clients: int, count: int) -> tuple[float, float]:
    return small_requests.produce(
        secured.broker, bench, clients, count, secured.address, secured.options
    )


def add_acls(address: str) -> None:
    """One ACL lets the user do all with its topics; the others are of others."""

    def allow(name: str, user: str, pattern: ResourcePatternType) -> AclBinding:
        return AclBinding(
            *(ResourceType.TOPIC, name, pattern, f"User:{user}", "*"),
            *(AclOperation.ALL, AclPermissionType.ALLOW),
        )

    wanted = [allow("small-", USER, ResourcePatternType.PREFIXED)]
    for number in range(ACLS - 1):
        # A fifth is of prefixes of the name, which every request has to look at.
        is_near = number % 5 == 0
        pattern = ResourcePatternType.PREFIXED if is_near else ResourcePatternType.LITERAL
        wanted.append(allow("small" if is_near else f"topic-{number}", f"user-{number}", pattern))
    admin = AdminClient({"bootstrap.servers": address})
    for first in range(0, ACLS, ACLS_AT_ONCE):
        some = wanted[first : first + ACLS_AT_ONCE]
        for future in admin.create_acls(some, request_timeout=ADMIN_SECONDS).values():
            future.result(ADMIN_SECONDS)
