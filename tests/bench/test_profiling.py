import cProfile
from collections.abc import Callable
from pathlib import Path

from bench import profiling


def test_the_slowest_functions_come_first(tmp_path: Path) -> None:
    files = []
    functions: list[Callable[[range], object]] = [sorted, list]
    for number, function in enumerate(functions):
        profiler = cProfile.Profile()
        profiler.runcall(function, range(1000))
        files.append(tmp_path / str(number))
        profiler.dump_stats(files[-1])
    told = profiling.top(files)
    assert "sorted" in told
    assert str(tmp_path) not in told
