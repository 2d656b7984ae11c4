"""Gives groups settings of their own, and waits until they are in force."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from conformance.differential.session import PAUSE_SECONDS, Session

ALTER, DESCRIBE = 44, 32
GROUP: Final = 32
"""The type of the resource that has a group's settings."""
SET: Final = 0


def set_group_settings(session: Session, settings: Mapping[str, Mapping[str, str]]) -> None:
    """In one request: the settings of each group."""
    build = session.build(ALTER, 1)
    request = build.IncrementalAlterConfigsRequest(
        resources=tuple(
            build.AlterConfigsResource(
                resource_type=GROUP,
                resource_name=session.name(group),
                configs=tuple(
                    build.AlterableConfig(name=name, config_operation=SET, value=value)
                    for name, value in its.items()
                ),
            )
            for group, its in settings.items()
        )
    )
    session.ask("settings of the groups", request)
    last, its = list(settings.items())[-1]

    def are_set() -> bool:
        build = session.build(DESCRIBE, 4)
        resource = build.DescribeConfigsResource(
            resource_type=GROUP, resource_name=session.name(last), configuration_keys=tuple(its)
        )
        request = build.DescribeConfigsRequest(resources=(resource,))
        (found,) = session.ask("settings", request, is_recorded=False).results
        return {each.name: each.value for each in found.configs} == its

    session.wait("the groups have their settings", are_set)
    # Kafka tells the coordinators of them a moment later.
    time.sleep(5 * PAUSE_SECONDS)
