"""Where ZooKeeper's jars come from: checked, once, and never half."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ottla.testing import zookeeper_jars
from ottla.testing.zookeeper_jars import JARS, JarsError, cache_folder
from ottla.testing.zookeeper_jars import zookeeper_jars as found_jars
from ottla.testing.zookeeper_server import ZooKeeperServer

CONTENT = {"a/one-1.jar": b"one", "b/two-2.jar": b"two"}


class Repository:
    """A Maven repository of this test: what it has, and what was asked of it."""

    def __init__(self) -> None:
        self.content = dict(CONTENT)
        self.asked: list[str] = []
        repository = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                place = self.path.removeprefix("/maven/")
                repository.asked.append(place)
                data = repository.content.get(place)
                self.send_response(200 if data is not None else 404)
                self.end_headers()
                self.wfile.write(data or b"")

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/maven/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Repository]:
    repository = Repository()
    hashes = {place: hashlib.sha256(data).hexdigest() for place, data in CONTENT.items()}
    monkeypatch.setattr(zookeeper_jars, "JARS", hashes)
    monkeypatch.setattr(zookeeper_jars, "find_spec", lambda name: None)
    monkeypatch.setenv("OTTLA_MAVEN", repository.url)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    yield repository
    repository.server.shutdown()
    repository.server.server_close()


def test_jars_are_downloaded_once_and_told(repository: Repository) -> None:
    told: list[str] = []
    jars = found_jars(told.append)
    assert [jar.read_bytes() for jar in jars] == [b"one", b"two"]
    assert len(told) == 1
    assert str(cache_folder()) in told[0]
    assert found_jars(told.append) == jars
    assert (len(told), len(repository.asked)) == (1, 2)


def test_a_damaged_jar_is_downloaded_again(repository: Repository) -> None:
    first, second = found_jars()
    first.write_bytes(b"on")
    second.unlink()
    found_jars()
    assert repository.asked[2:] == ["a/one-1.jar", "b/two-2.jar"]
    assert first.read_bytes() == b"one"


def test_another_content_is_refused_and_not_kept(repository: Repository) -> None:
    repository.content["b/two-2.jar"] = b"three"
    with pytest.raises(JarsError, match=r"b/two-2\.jar is not the expected file"):
        found_jars()
    assert [file.name for file in cache_folder().iterdir()] == ["one-1.jar"]


def test_a_failed_download_is_one_line_that_says_what_else_serves(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    del repository.content["a/one-1.jar"]
    with pytest.raises(JarsError, match=r"cannot download .*: Not Found") as missing:
        found_jars()
    monkeypatch.setenv("OTTLA_MAVEN", "http://127.0.0.1:1")
    with pytest.raises(JarsError, match=r"cannot download .*Connection refused") as refused:
        found_jars()
    for caught in (missing, refused):
        assert "\n" not in str(caught.value)
        assert "pip install pyspark" in str(caught.value)


@pytest.mark.full
def test_a_server_runs_from_the_downloaded_jars(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(zookeeper_jars, "find_spec", lambda name: None)
    try:
        jars = found_jars()
    except JarsError as error:
        pytest.skip(str(error))
    assert len(jars) == len(JARS)
    server = ZooKeeperServer(tmp_path)
    server.start()
    try:
        assert server.mode() == "standalone"
        assert "3.9.3" in server.ask("srvr")
    finally:
        server.stop()
    assert "NoClassDefFoundError" not in server.log.read_text()
