import pytest

from ottla.controller.image import ClusterImage, ProducerIdsReserved
from ottla.controller.producer_ids import BLOCK_SIZE, reserve_producer_ids
from ottla.coordination.tree import Create, SetData
from ottla.protocol.errors import ApiError


def test_blocks_follow_each_other_without_overlap(image: ClusterImage) -> None:
    plan = reserve_producer_ids(image, 1)
    assert plan.reply == (0, BLOCK_SIZE)
    assert plan.writes == (
        Create(
            "/latest_producer_id_block",
            b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}',
        ),
    )
    image.apply(plan.deltas[0])
    plan = reserve_producer_ids(image, 2)
    assert plan.reply == (BLOCK_SIZE, 2 * BLOCK_SIZE)
    (write,) = plan.writes
    assert isinstance(write, SetData)
    assert write.version == 0
    image.apply(plan.deltas[0])
    assert image.producer_ids_version == 1


def test_ids_run_out_with_an_error(image: ClusterImage) -> None:
    image.apply(ProducerIdsReserved(2**63 - 10, 4))
    with pytest.raises(ApiError, match="Exhausted"):
        reserve_producer_ids(image, 1)
