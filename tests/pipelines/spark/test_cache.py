"""Where what can be made again is kept."""

from pathlib import Path

from ottla.pipelines.spark import cache


def test_the_folder_follows_xdg() -> None:
    assert cache.folder({"XDG_CACHE_HOME": "/c"}) == Path("/c/ottla/spark")
    assert cache.folder({}) == Path.home() / ".cache" / "ottla" / "spark"
