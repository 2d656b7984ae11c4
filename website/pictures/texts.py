"""What the sequence diagrams show, as text."""

from __future__ import annotations

from typing import Final

RECORD: Final = """
    Producer | Leader | Follower | Consumer
    Producer: chooses a partition by the key
    Producer -> Leader: Produce, acks=all
    Leader: checks every record of the batch
    Leader: stamps offset and epoch, one writev
    Follower -> Leader: Fetch from 42
    Leader -> Follower: the batch, as stored
    Follower: appends it, byte for byte
    Follower -> Leader: Fetch from 43: it has 42
    Leader: high watermark passes 42
    Leader -> Producer: acknowledged, offset 42
    Consumer -> Leader: Fetch from 42
    Leader -> Consumer: the batch
    Consumer -> Leader: OffsetCommit 43 (to the group's coordinator)
"""

ELECTION: Final = """
    Producer | Broker 1 | Controller | Broker 2
    Producer -> Broker 1: Produce, epoch 0
    Broker 1: is killed; its sockets close
    Controller: sees it, probes it: dead
    Controller: writes leader 2, epoch 1 to ZooKeeper
    Controller -> Broker 2: metadata: you lead, epoch 1
    Broker 2: begins epoch 1 at its log end
    Producer -> Broker 2: Metadata: who leads?
    Broker 2 -> Producer: broker 2, epoch 1
    Producer -> Broker 2: Produce again
    Broker 2 -> Producer: acknowledged, once
    -- Broker 1 starts again
    Broker 1 -> Broker 2: where did epoch 0 end?
    Broker 1: truncates what only it has
    Broker 1 -> Broker 2: Fetch, as a follower
    Controller: broker 1 is in sync; later it leads again
"""
