import asyncio

from ottla.broker.producer_ids import ProducerIds


async def test_no_id_is_given_twice_and_a_block_is_reserved_only_when_used_up() -> None:
    reserved = []

    async def reserve() -> tuple[int, int]:
        await asyncio.sleep(0)
        first = 10 * len(reserved)
        reserved.append(first)
        return first, first + 10

    ids = ProducerIds(reserve)
    given = await asyncio.gather(*(ids.next() for _ in range(25)))
    assert sorted(given) == list(range(25))
    assert reserved == [0, 10, 20]
