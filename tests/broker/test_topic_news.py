from typing import Any
from uuid import UUID

from ottla.log.partition_metadata import read_topic_id, write_topic_id


async def delete(node_call: Any, topic: str) -> None:
    build = node_call.request(20, 6)
    topics = (build.DeleteTopicState(name=topic),)
    await node_call.ask(build.DeleteTopicsRequest(topics=topics, timeout=1000))


def folders(node_call: Any) -> set[str]:
    return {each.name for each in node_call.node.config.data_folder.iterdir() if each.is_dir()}


async def test_a_new_topic_has_its_folders_and_more_with_more_partitions(node_call: Any) -> None:
    await node_call.create("u", 2)
    assert folders(node_call) == {"t-0", "u-0", "u-1"}
    build = node_call.request(37, 3)
    topics = (build.CreatePartitionsTopic(name="u", count=4, assignments=None),)
    await node_call.ask(
        build.CreatePartitionsRequest(topics=topics, timeout=1000, validate_only=False)
    )
    assert len(node_call.node.partitions.of_topic("u")) == 4
    topic_id = node_call.topic_id("u")
    for each in node_call.node.partitions.of_topic("u"):
        assert read_topic_id(each.log.folder) == topic_id


async def test_a_deleted_topic_is_set_aside_at_once(node_call: Any) -> None:
    await delete(node_call, "t")
    assert len(node_call.node.partitions) == 0
    (left,) = folders(node_call)
    assert left.startswith("t-0.")
    assert left.endswith("-delete")
    await node_call.create("t")
    assert node_call.node.partitions.find("t", 0).high_watermark == 0


async def test_settings_are_in_force_at_once(node_call: Any) -> None:
    build = node_call.request(44, 1)
    change = build.AlterableConfig(name="max.message.bytes", config_operation=0, value="100")
    resource = build.AlterConfigsResource(resource_type=2, resource_name="t", configs=(change,))
    await node_call.ask(
        build.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    )
    partition = node_call.node.partitions.find("t", 0)
    assert partition.log.config.max_message_bytes == 100


async def test_folders_are_taken_up_again_and_those_of_no_topic_go(start_node: Any) -> None:
    first = await start_node()
    await first.create("kept")
    await first.create("stray")
    for topic in ("kept", "stray"):
        await first.produce(topic, first.batch(b"a"))
    data = first.node.config.data_folder
    await first.node.close()
    # As if the topic had been deleted and made again, and its old folder not yet removed.
    write_topic_id(str(data / "stray-0"), UUID(int=77))
    (data / "unknown-0").mkdir()
    second = await start_node()
    assert second.node.partitions.find("kept", 0).high_watermark == 1
    assert second.node.partitions.find("stray", 0).high_watermark == 0
    assert "unknown-0" not in folders(second)
    assert {"kept-0", "stray-0"} <= folders(second)
