"""A step of the decider of share groups. Its only timers are the sessions of its members, which
are those of consumer groups: an id is that of one group.
"""

from __future__ import annotations

from typing import TypeAlias

from ottla.groups.consumer.step import SessionExpired
from ottla.groups.share.settings import ShareGroupSettings
from ottla.groups.share.stored import ShareRecord
from ottla.shards.step import Step as ShardStep

Step: TypeAlias = ShardStep[ShareRecord, SessionExpired, ShareGroupSettings]
