"""`uniform`, the default: as evenly as subscriptions allow, and then with as few moves as possible.

Kafka's counterpart is UniformAssignor.
"""

from __future__ import annotations

from ottla.groups.consumer.assignors import heterogeneous, homogeneous
from ottla.groups.consumer.assignors.spec import Assignment, GroupSpec


def assign(spec: GroupSpec) -> Assignment:
    """The new target of each member; raises AssignorError for an unknown topic."""
    if not spec.members:
        return {}
    if spec.is_homogeneous:
        return homogeneous.assign(spec)
    return heterogeneous.assign(spec)
