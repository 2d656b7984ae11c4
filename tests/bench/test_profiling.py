import cProfile
from pathlib import Path

from bench import profiling


def test_the_slowest_functions_come_first(tmp_path: Path) -> None:
    files = []
    for number, function in enumerate((sorted, list)):
        profiler = cProfile.Profile()
        profiler.runcall(function, range(1000))
        files.append(tmp_path / str(number))
        profiler.dump_stats(files[-1])
    told = profiling.top(files)
    assert "sorted" in told
    assert str(tmp_path) not in told


def test_the_slowest_imports_come_first() -> None:
    text = (
        "import time: self [us] | cumulative | imported package\n"
        "import time:       150 |        150 |   zlib\n"
        "ready on 127.0.0.1:9092\n"
        "import time:      2500 |       9000 | kio\n"
    )
    lines = profiling.slowest_imports(text).splitlines()
    assert [line.split()[-1] for line in lines] == ["kio", "zlib"]
