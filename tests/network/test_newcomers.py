from ottla.network.newcomers import Newcomers


def test_the_oldest_makes_room() -> None:
    ended: list[int] = []
    newcomers = Newcomers(2)
    for number in range(3):
        newcomers.add(number, lambda number=number: ended.append(number))  # type: ignore[misc]
    assert (ended, newcomers.expelled, len(newcomers)) == ([0], 1, 2)
    newcomers.remove(0)
    newcomers.remove(1)
    newcomers.add(3, lambda: ended.append(3))
    assert (ended, len(newcomers)) == ([0], 2)
