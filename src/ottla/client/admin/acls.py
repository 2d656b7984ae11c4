"""ACLs: DescribeAcls, CreateAcls and DeleteAcls (KIP-140, KIP-290).

Any broker answers; those that did not change the ACLs themselves know it within a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ottla.client.admin.controller import code_of_each
from ottla.client.admin.partitions import in_chunks
from ottla.client.client import Client
from ottla.client.errors import Needs, RefusedError, UnsupportedError
from ottla.client.patience import poll_until
from ottla.client.question import Question
from ottla.protocol.access import Operation, Resource
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages
from ottla.security.acl import Acl, Entry, Pattern, PatternType, Permission
from ottla.security.acl_filter import ANY, MATCH, AclFilter

DESCRIBE_ACLS: Final = 29
CREATE_ACLS: Final = 30
DELETE_ACLS: Final = 31
SINCE: Final = "2.0"
MAX_ACLS: Final = 100
"""Of one request."""
APPLIED_WITHIN_S: Final = 5.0
APPLIED_PAUSE_S: Final = 0.05
SWITCH_ON: Final = (
    "Start the brokers with authorizer.class.name="
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer, and with super.users."
)
EVERY_ACL: Final = AclFilter(ANY, None, ANY, None, None, ANY, ANY)


def acls(client: Client, wanted: AclFilter = EVERY_ACL) -> list[Acl]:
    """Those that the filter matches, by pattern and principal. Raises RefusedError with
    SECURITY_DISABLED if the brokers have no authorizer.
    """

    def build(messages: Messages) -> Any:
        return messages.DescribeAclsRequest(
            resource_type_filter=wanted.resource,
            resource_name_filter=wanted.name,
            pattern_type_filter=wanted.pattern,
            principal_filter=wanted.principal,
            host_filter=wanted.host,
            operation=wanted.operation,
            permission_type=wanted.permission,
        )

    response = client.ask_any(Question(DESCRIBE_ACLS, 3, build, 1, SINCE))
    if response.error_code is not ErrorCode.none:
        raise refused("list the ACLs", response, "Describe")
    found = []
    for resource in response.resources:
        for each in resource.acls:
            found.append(
                _acl(
                    resource.resource_type,
                    resource.resource_name,
                    resource.pattern_type,
                    each,
                )
            )
    return sorted(acl for acl in found if acl is not None)


def refused(doing: str, answer: Any, operation: str) -> RefusedError:
    """With what to do where the brokers have no authorizer."""
    error = RefusedError(doing, answer.error_code, answer.error_message, Needs(operation))
    if error.code is ErrorCode.security_disabled:
        error.hint = SWITCH_ON
    return error


def acls_of_principal(client: Client, principal: str) -> list[Acl]:
    """Those that name it. Raises RefusedError."""
    return acls(client, EVERY_ACL._replace(principal=principal))


def acls_for(client: Client, resource: Resource, name: str) -> list[Acl]:
    """Those that decide on the resource with this name, for all principals. Raises RefusedError."""
    return acls(client, EVERY_ACL._replace(resource=resource, name=name, pattern=MATCH))


def filter_of(acl: Acl) -> AclFilter:
    """The filter that matches this ACL alone."""
    pattern, entry = acl
    return AclFilter(
        pattern.resource,
        pattern.name,
        pattern.type,
        entry.principal,
        entry.host,
        entry.operation,
        entry.permission,
    )


def create_acls(client: Client, wanted: Sequence[Acl]) -> None:
    """Adds them, and waits until the broker that is asked knows them; those that exist stay. Raises
    RefusedError.
    """
    client.metadata([])  # a broker that cannot be reached is no reason to wait for a controller
    for some in in_chunks(wanted, MAX_ACLS):
        _create(client, some)
    _wait(client, lambda known: known >= set(wanted))


def _create(client: Client, some: Sequence[Acl]) -> None:
    def build(messages: Messages) -> Any:
        return messages.CreateAclsRequest(
            creations=tuple(
                messages.AclCreation(
                    resource_type=pattern.resource,
                    resource_name=pattern.name,
                    resource_pattern_type=pattern.type,
                    principal=entry.principal,
                    host=entry.host,
                    operation=entry.operation,
                    permission_type=entry.permission,
                )
                for pattern, entry in some
            )
        )

    doing = "add ACLs"
    question = Question(CREATE_ACLS, 3, build, 1, SINCE)
    response = client.ask_controller(question, doing, code_of_each("results"))
    for each in response.results:
        if each.error_code is not ErrorCode.none:
            raise refused(doing, each, "Alter")


def delete_acls(client: Client, doomed: Sequence[Acl]) -> None:
    """Removes them, and waits until the broker that is asked knows it. Raises RefusedError."""
    for some in in_chunks(doomed, MAX_ACLS):
        _delete(client, [filter_of(acl) for acl in some])
    _wait(client, lambda known: known.isdisjoint(doomed))


def _delete(client: Client, filters: Sequence[AclFilter]) -> None:
    def build(messages: Messages) -> Any:
        return messages.DeleteAclsRequest(
            filters=tuple(
                messages.DeleteAclsFilter(
                    resource_type_filter=each.resource,
                    resource_name_filter=each.name,
                    pattern_type_filter=each.pattern,
                    principal_filter=each.principal,
                    host_filter=each.host,
                    operation=each.operation,
                    permission_type=each.permission,
                )
                for each in filters
            )
        )

    doing = "delete ACLs"
    question = Question(DELETE_ACLS, 3, build, 1, SINCE)
    response = client.ask_controller(question, doing, code_of_each("filter_results"))
    for result in response.filter_results:
        for each in (result, *result.matching_acls):
            if each.error_code is not ErrorCode.none:
                raise refused(doing, each, "Alter")


def _wait(client: Client, is_done: Callable[[set[Acl]], bool]) -> None:
    """Until a change is known, or for APPLIED_WITHIN_S. Who may change ACLs but not read them does
    not wait.
    """
    try:
        poll_until(
            lambda: set(acls(client)),
            is_done,
            within_s=APPLIED_WITHIN_S,
            pause_s=APPLIED_PAUSE_S,
            patience=client.patience,
        )
    except (RefusedError, UnsupportedError):
        return


def _acl(resource: int, name: str, pattern: int, entry: Any) -> Acl | None:
    """None for one with a code that is not known here: of a newer Kafka."""
    try:
        return Acl(
            Pattern(Resource(resource), name, PatternType(pattern)),
            Entry(
                entry.principal,
                entry.host,
                Operation(entry.operation),
                Permission(entry.permission_type),
            ),
        )
    except ValueError:
        return None
