"""Puts a stray folder back, while its broker is stopped: locks the data folder, opens the tree."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from random import SystemRandom
from typing import Final

from ottla.cluster.stray_adoption import Adopted, AdoptionRefusedError, adopt
from ottla.controller import layout
from ottla.coordination.embedded import EmbeddedTree
from ottla.coordination.embedded_store import FILE_NAME as STORE
from ottla.coordination.embedded_store import StoreError
from ottla.coordination.tree import Coordination, CoordinationError
from ottla.log.errors import DataFolderError
from ottla.protocol.errors import ApiError
from ottla.storage.broker_metadata import BrokerMetadata, known_identity
from ottla.storage.folder_lock import FolderLock
from ottla.storage.stray_folder import StoredLog, StrayFolder, stray_folders
from ottla.wording.errors import ReportedError

ENSEMBLE_WITHIN_MS: Final = 10_000


class AdoptionError(ReportedError):
    """The folder cannot be put back. Nothing was changed."""


def put_back(
    stray: StrayFolder, stored: StoredLog, partitions: int | None, zookeeper: str | None
) -> Adopted:
    """See `ottla.cluster.stray_adoption`. Raises AdoptionError."""
    root = os.path.dirname(stray.path) or "."
    try:
        identity = known_identity(root)
        lock = FolderLock.take(root)
    except DataFolderError as error:
        raise AdoptionError(f"{error}.") from error
    except OSError as error:
        raise AdoptionError(f"cannot use {root}: {error.strerror}.") from error
    try:
        return asyncio.run(_adopted(root, identity, stray, stored, partitions, zookeeper))
    except AdoptionRefusedError as error:
        raise AdoptionError(f"{error}.", error.hint) from error
    except layout.LayoutError as error:
        raise AdoptionError(f"the coordination tree is damaged: {error}.") from error
    except (ApiError, CoordinationError, StoreError, OSError, ValueError) as error:
        raise AdoptionError(f"{error}.") from error
    finally:
        lock.release()


async def _adopted(
    root: str,
    identity: BrokerMetadata,
    stray: StrayFolder,
    stored: StoredLog,
    partitions: int | None,
    zookeeper: str | None,
) -> Adopted:
    """Opens the tree, checks that it is that of the folder's cluster, and adopts."""
    if zookeeper is None and not os.path.exists(f"{root}/{STORE}"):  # noqa: ASYNC240  the loop serves nobody yet
        raise AdoptionRefusedError(
            f"{root} is the folder of a broker in a cluster", "Add --zookeeper HOST:PORT/chroot."
        )

    async def work(session: Coordination) -> Adopted:
        node = await session.exists(layout.CLUSTER_ID)
        found = None if node is None else layout.read_cluster_id(node.data)
        if found != identity.cluster_id:
            raise AdoptionRefusedError(
                f"{root} belongs to cluster {identity.cluster_id}, and the tree to"
                f" {found or 'none'}"
            )
        return await adopt(
            session,
            root,
            identity.node_id,
            stray,
            stored,
            may_create=list(stray_folders(root)) if zookeeper is None else None,
            partitions=partitions,
            random=SystemRandom(),
        )

    if zookeeper is not None:
        from ottla.coordination.zookeeper import ZooKeeperTree

        ensemble = ZooKeeperTree(
            zookeeper,
            session_timeout_ms=ENSEMBLE_WITHIN_MS,
            connection_timeout_ms=ENSEMBLE_WITHIN_MS,
        )
        session = await ensemble.connect()
        try:
            return await work(session)
        finally:
            await session.close()
    tree = EmbeddedTree(Path(root))
    try:
        return await work(await tree.connect())
    finally:
        await tree.close()
