"""The versions of a request that a broker supports (ApiVersions), for plain connections."""

from __future__ import annotations

from typing import Any, Final

from ottla.cli.cluster_client import NoAnswer, ask
from ottla.cli.failures import Failed
from ottla.cli.plain_security import Security
from ottla.protocol.messages import messages_of

API_VERSIONS: Final = 18


def newest_version(address: str, key: int, security: Security) -> int:
    """The newest version of a request type, -1 if the broker does not know it. Raises Failed."""
    request = messages_of(API_VERSIONS, 0, "request").ApiVersionsRequest()
    response = ask(address, request, security=security)
    return max((each.max_version for each in response.api_keys if each.api_key == key), default=-1)


def knows(address: str, key: int, version: int, security: Security) -> bool:
    """Whether a broker supports a request in this version. Raises Failed."""
    request = messages_of(API_VERSIONS, 0, "request").ApiVersionsRequest()
    return any(
        each.api_key == key and each.min_version <= version <= each.max_version
        for each in ask(address, request, security=security).api_keys
    )


def ask_supported(address: str, request: Any, security: Security, since: str | None) -> Any:
    """The response. Raises Failed that names the first Apache Kafka with the request, `since`, if
    the broker does not know it: brokers close the connection then.
    """
    key, version = request.__api_key__, request.__version__
    try:
        return ask(address, request, security=security)
    except NoAnswer:
        if since is None or knows(address, key, version, security):
            raise
    name = type(request).__name__.removesuffix("Request")
    raise Failed(
        f"the broker at {address} does not support {name} in version {version}.",
        f"Apache Kafka {since} and later do.",
    )
