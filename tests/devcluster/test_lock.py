"""The lock of a cluster's folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.devcluster.errors import DevClusterError
from ottla.devcluster.lock import held, is_held


def test_only_one_cluster_uses_a_folder_at_a_time(tmp_path: Path) -> None:
    in_use = pytest.raises(DevClusterError, match="is in use by another `ottla cluster start`")
    with held(tmp_path / "data"), in_use:
        held(tmp_path / "data")
    with held(tmp_path / "data"):
        assert (tmp_path / "data").is_dir()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DevClusterError, match=r"cannot use .*file/data: Not a directory"):
        held(tmp_path / "file" / "data")


def test_whether_a_start_runs_on_a_folder(tmp_path: Path) -> None:
    assert not is_held(tmp_path / "data")
    with held(tmp_path / "data"):
        assert is_held(tmp_path / "data")
    assert not is_held(tmp_path / "data")
