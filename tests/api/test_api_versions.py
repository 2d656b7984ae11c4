from typing import Any

import pytest

from ottla.api.api_versions import handle
from ottla.api.table import ADVERTISED
from ottla.controller.features import FeatureUpdate, UpgradeType
from ottla.network.client_session import ClientSession
from ottla.network.request_context import RequestContext
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of

KEY = 18


async def ask(node_call: Any, version: int, name: str = "tests", software: str = "1.0") -> Any:
    build = node_call.request(KEY, version)
    return await node_call.ask(
        build.ApiVersionsRequest(client_software_name=name, client_software_version=software)
    )


@pytest.mark.parametrize("version", range(6))
async def test_every_version_lists_the_supported_versions(node_call: Any, version: int) -> None:
    answer = await ask(node_call, version)
    assert answer.error_code is ErrorCode.none
    listed = [(each.api_key, each.min_version, each.max_version) for each in answer.api_keys]
    assert tuple(listed) == ADVERTISED


@pytest.fixture
def cluster(cluster: Any) -> Any:
    cluster.node.api_versions = ADVERTISED
    return cluster


@pytest.mark.parametrize("version", range(6))
async def test_the_levels_of_features(cluster: Any, version: int) -> None:
    """KIP-584. Clients below version 4 cannot read a supported range that begins at 0."""
    answer = await ask(cluster, version)
    if version < 3:
        assert not hasattr(answer, "finalized_features")
        return
    supported = [
        (each.name, each.min_version, each.max_version) for each in answer.supported_features
    ]
    wanted = [
        ("group.version", 0, 1),
        ("share.version", 0, 2),
        ("streams.version", 0, 1),
        ("transaction.version", 0, 2),
    ]
    assert supported == ([] if version == 3 else wanted)
    assert answer.finalized_features_epoch == 0
    finalized = {
        (each.name, each.min_version_level, each.max_version_level)
        for each in answer.finalized_features
    }
    assert finalized == {
        ("group.version", 1, 1),
        ("share.version", 2, 2),
        ("streams.version", 1, 1),
        ("transaction.version", 2, 2),
    }


async def test_the_epoch_of_the_features_grows(cluster: Any) -> None:
    for epoch, level in ((1, 1), (2, 0)):
        update = FeatureUpdate("transaction.version", level, UpgradeType.SAFE_DOWNGRADE)
        assert not (await cluster.controller.update_features([update])).failed
        answer = await ask(cluster, 4)
        assert answer.finalized_features_epoch == epoch
        levels = {each.name: each.max_version_level for each in answer.finalized_features}
        assert [levels.pop(f"{each}.version") for each in ("group", "share", "streams")] == [
            1,
            2,
            1,
        ]
        assert levels == ({"transaction.version": level} if level else {})


async def test_software_without_a_name_is_refused(node_call: Any) -> None:
    for name, software in (("", "1"), ("a", ""), ("-a", "1"), ("a b", "1"), ("a", "1-")):
        answer = await ask(node_call, 3, name, software)
        assert (answer.error_code, answer.api_keys) == (ErrorCode.invalid_request, ())
    assert (await ask(node_call, 2, "", "")).error_code is ErrorCode.none


async def ask_for(node_call: Any, cluster_id: str | None, node_id: int) -> Any:
    build = node_call.request(KEY, 5)
    return await node_call.ask(
        build.ApiVersionsRequest(
            client_software_name="tests",
            client_software_version="1",
            cluster_id=cluster_id,
            node_id=node_id,
        )
    )


async def test_another_broker_than_the_client_means_tells_it_so(node_call: Any) -> None:
    """KIP-1242. Without the list, so that the client does not go on."""
    broker = node_call.node
    mine, node_id = broker.image.cluster_id, broker.config.id
    assert mine
    assert (await ask_for(node_call, mine, node_id)).error_code is ErrorCode.none
    for cluster_id, other in ((mine, node_id + 1), ("other", node_id), (mine, -2), ("", node_id)):
        answer = await ask_for(node_call, cluster_id, other)
        assert answer.error_code is ErrorCode.rebootstrap_required
        assert (answer.api_keys, answer.supported_features) == ((), ())


async def test_a_client_names_both_the_cluster_and_the_broker_or_neither(node_call: Any) -> None:
    for cluster_id, node_id in (
        (node_call.node.image.cluster_id, -1),
        (None, node_call.node.config.id),
    ):
        answer = await ask_for(node_call, cluster_id, node_id)
        assert (answer.error_code, answer.api_keys) == (ErrorCode.invalid_request, ())
    assert (await ask_for(node_call, None, -1)).error_code is ErrorCode.none


async def test_an_unknown_version_gets_the_supported_versions(node_call: Any) -> None:
    session = ClientSession(1, "127.0.0.1", "PLAINTEXT", "h", 1)
    context = RequestContext(node_call.node, session, 0, "", messages_of(KEY, 0))
    answer = await handle(None, context)
    assert answer.error_code is ErrorCode.unsupported_version
    assert len(answer.api_keys) == len(ADVERTISED)
