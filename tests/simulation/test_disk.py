from uuid import UUID

from simulation.disk import Disk
from simulation.memory_log import Entry, Value

TOPIC = UUID(int=7)


def test_a_new_process_does_not_know_of_what_had_no_record() -> None:
    disk = Disk(UUID(int=1))
    disk.open("empty", TOPIC).assign(3, 0)
    log = disk.open("t", TOPIC)
    log.append([Entry(1, Value(0, 0)), Entry(2, Value(0, 1))])
    log.assign(4, 2)
    disk.process_began()
    assert disk.open("t", TOPIC).starts == [(1, 0), (2, 1)]
    assert disk.open("t", TOPIC).end_offset == 2
    assert disk.open("empty", TOPIC).starts == []


def test_what_is_forgotten_is_new_again() -> None:
    disk = Disk(UUID(int=1))
    disk.open("t", TOPIC).append([Entry(1, Value(0, 0))])
    disk.high_watermarks["t"] = 1
    disk.forget("t")
    assert disk.open("t", UUID(int=8)).end_offset == 0
    assert disk.high_watermarks == {}
