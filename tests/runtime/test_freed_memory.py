import platform
import subprocess
import sys

from ottla.runtime.freed_memory import keep_freed_memory

# Prints how many pages the kernel mapped for a hundred allocations of a megabyte.
ALLOCATE = """
import resource, sys
from ottla.runtime.freed_memory import keep_freed_memory
assert keep_freed_memory({}) is (sys.argv[1] == "glibc")
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for turn in range(110):
    if turn == 10:
        before = faults()
    first = bytearray(1 << 20)
    second = bytes(first)
    del first, second
print(faults() - before)
"""


def test_freed_memory_is_used_again() -> None:
    library = platform.libc_ver()[0]
    command = [sys.executable, "-c", ALLOCATE, library]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    # 51,200 if every page is mapped again.
    assert library != "glibc" or int(child.stdout) < 1000


def test_limits_of_the_user_stay() -> None:
    assert not keep_freed_memory({"MALLOC_TRIM_THRESHOLD_": "131072"})
    assert not keep_freed_memory({"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=131072"})
