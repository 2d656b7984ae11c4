"""A cluster with users and ACLs, which requests change, for tests of what asks about them."""

from __future__ import annotations

from typing import Any

from tests.client.fake_cluster import Answer

from ottla.client.admin.acls import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS
from ottla.client.admin.configs import DESCRIBE_CONFIGS
from ottla.client.admin.users import ALTER_USERS, DESCRIBE_USERS
from ottla.protocol.access import Operation, Resource
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.security.acl import Acl, Entry, Pattern, PatternType, Permission
from ottla.security.acl_filter import AclFilter


class Credentials:
    """`passwords` has the iterations by user and mechanism's number."""

    def __init__(self) -> None:
        self.passwords: dict[str, dict[int, int]] = {}
        self.acls: list[Acl] = []
        self.settings: dict[str, str | None] = {
            "authorizer.class.name": "A",
            "super.users": "User:root",
            "allow.everyone.if.no.acl.found": "false",
        }
        self.refused: dict[int, ErrorCode] = {}
        """By request type."""

    def answers(self) -> dict[int, list[Answer]]:
        return {
            DESCRIBE_USERS: [self._described],
            ALTER_USERS: [self._altered],
            DESCRIBE_ACLS: [self._listed],
            CREATE_ACLS: [self._created],
            DELETE_ACLS: [self._deleted],
            DESCRIBE_CONFIGS: [self._configs],
        }

    def _code(self, key: int) -> ErrorCode:
        return self.refused.get(key, ErrorCode.none)

    def _described(self, address: str, request: Any) -> Any:
        build = messages_of(DESCRIBE_USERS, 0)
        names = self.passwords if request.users is None else [each.name for each in request.users]
        results = []
        for name in names:
            found = self.passwords.get(name, {})
            infos = tuple(
                build.CredentialInfo(mechanism=mechanism, iterations=iterations)
                for mechanism, iterations in found.items()
            )
            code = ErrorCode.none if found else ErrorCode.resource_not_found
            results.append(
                build.DescribeUserScramCredentialsResult(
                    user=name, error_code=code, error_message=None, credential_infos=infos
                )
            )
        return build.DescribeUserScramCredentialsResponse(
            error_code=self._code(DESCRIBE_USERS), error_message=None, results=tuple(results)
        )

    def _altered(self, address: str, request: Any) -> Any:
        build = messages_of(ALTER_USERS, 0)
        code = self._code(ALTER_USERS)
        for each in request.upsertions if code is ErrorCode.none else ():
            self.passwords.setdefault(each.name, {})[each.mechanism] = each.iterations
        for each in request.deletions if code is ErrorCode.none else ():
            del self.passwords[each.name][each.mechanism]
        return build.AlterUserScramCredentialsResponse(
            results=tuple(
                build.AlterUserScramCredentialsResult(
                    user=each.name, error_code=code, error_message=None
                )
                for each in (*request.deletions, *request.upsertions)
            )
        )

    def _listed(self, address: str, request: Any) -> Any:
        build = messages_of(DESCRIBE_ACLS, request.__version__)
        return build.DescribeAclsResponse(
            error_code=self._code(DESCRIBE_ACLS),
            error_message=None,
            resources=tuple(
                build.DescribeAclsResource(
                    resource_type=pattern.resource,
                    resource_name=pattern.name,
                    pattern_type=pattern.type,
                    acls=(
                        build.AclDescription(
                            principal=entry.principal,
                            host=entry.host,
                            operation=entry.operation,
                            permission_type=entry.permission,
                        ),
                    ),
                )
                for pattern, entry in self.acls
                if filter_in(request).matches(Acl(pattern, entry))
            ),
        )

    def _created(self, address: str, request: Any) -> Any:
        build = messages_of(CREATE_ACLS, request.__version__)
        code = self._code(CREATE_ACLS)
        for each in request.creations if code is ErrorCode.none else ():
            pattern = Pattern(
                Resource(each.resource_type),
                each.resource_name,
                PatternType(each.resource_pattern_type),
            )
            operation, permission = Operation(each.operation), Permission(each.permission_type)
            self.acls.append(Acl(pattern, Entry(each.principal, each.host, operation, permission)))
        result = build.AclCreationResult(error_code=code, error_message=None)
        return build.CreateAclsResponse(results=tuple(result for _ in request.creations))

    def _deleted(self, address: str, request: Any) -> Any:
        build = messages_of(DELETE_ACLS, request.__version__)
        wanted = [filter_in(each) for each in request.filters]
        self.acls = [acl for acl in self.acls if not any(each.matches(acl) for each in wanted)]
        result = build.DeleteAclsFilterResult(
            error_code=self._code(DELETE_ACLS), error_message=None, matching_acls=()
        )
        return build.DeleteAclsResponse(filter_results=tuple(result for _ in wanted))

    def _configs(self, address: str, request: Any) -> Any:
        build = messages_of(DESCRIBE_CONFIGS, request.__version__)
        code = self._code(DESCRIBE_CONFIGS)
        found = tuple(
            build.DescribeConfigsResourceResult(
                name=name, value=value, config_source=4, is_sensitive=value is None
            )
            for name, value in self.settings.items()
        )
        result = build.DescribeConfigsResult(
            error_code=code, error_message=None, resource_type=4, resource_name="1", configs=found
        )
        return build.DescribeConfigsResponse(results=(result,))


def filter_in(request: Any) -> AclFilter:
    return AclFilter(
        request.resource_type_filter,
        request.resource_name_filter,
        request.pattern_type_filter,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )
