import asyncio
from types import SimpleNamespace
from uuid import UUID

from ottla.replica.isr_maintenance import IsrMaintenance
from ottla.replication.leader import InSyncChange

CHANGE = InSyncChange(UUID(int=1), 0, 0, 0, ((1, 11),))


class Held:
    def __init__(self, change: InSyncChange | None) -> None:
        self.change = change
        self.asked_ms: list[int] = []

    def in_sync_change(self, now_ms: int) -> InSyncChange | None:
        self.asked_ms.append(now_ms)
        return self.change


async def test_every_partition_is_checked_and_changes_are_proposed() -> None:
    held = [Held(None), Held(CHANGE), Held(None)]
    proposed: list[tuple[Held, InSyncChange]] = []
    clock = SimpleNamespace(now_ms=lambda: 1, monotonic_ms=lambda: 70)
    care: IsrMaintenance[Held] = IsrMaintenance(
        clock, 10_000, lambda: held, lambda each, change: proposed.append((each, change))
    )
    await care.check_all()
    assert proposed == [(held[1], CHANGE)]
    assert [each.asked_ms for each in held] == [[70]] * 3


async def test_it_checks_periodically_until_closed() -> None:
    held = Held(CHANGE)
    seen: list[Held] = []
    clock = SimpleNamespace(now_ms=lambda: 1, monotonic_ms=lambda: 70)
    care: IsrMaintenance[Held] = IsrMaintenance(
        clock, 2, lambda: [held], lambda each, change: seen.append(each)
    )
    care.start()
    while not seen:
        await asyncio.sleep(0.001)
    await care.close()
    count = len(seen)
    await asyncio.sleep(0.01)
    assert len(seen) == count
