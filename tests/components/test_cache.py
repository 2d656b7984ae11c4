from pathlib import Path

import pytest

from components import cache


def test_the_cache_follows_xdg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder("kafka") == tmp_path / "ottla" / "kafka"


def test_a_folder_is_ready_only_when_filled_completely(tmp_path: Path) -> None:
    place = tmp_path / "thing"

    def fail_half_way() -> None:
        with cache.making(place) as into:
            (into / "half").touch()
            raise RuntimeError("the build failed")

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert not cache.is_ready(place)
    with cache.making(place) as into:
        assert not (into / "half").exists()
    assert cache.is_ready(place)
