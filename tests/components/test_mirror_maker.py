"""The settings of MirrorMaker 2; `make bench` runs the real one."""

from __future__ import annotations

from pathlib import Path

from components.apache_kafka import KafkaJars
from components.mirror_maker import MirrorMaker


def test_one_direction_and_its_own_topics_on_one_broker(tmp_path: Path) -> None:
    maker = MirrorMaker(KafkaJars(tmp_path, "/bin/echo"))
    child = maker.start(tmp_path, "old", "a:1", "b:2", "load", {"tasks.max": "2"})
    assert child.process.wait(30) == 0
    assert "org.apache.kafka.connect.mirror.MirrorMaker" in child.last_words()
    lines = (tmp_path / "mm2.properties").read_text().splitlines()
    settings = dict(line.split("=", 1) for line in lines)
    assert settings["clusters"] == "old, target"
    assert settings["old.bootstrap.servers"] == "a:1"
    assert (settings["old->target.enabled"], settings["target->old.enabled"]) == ("true", "false")
    assert settings["tasks.max"] == "2"
    assert settings["offset.storage.replication.factor"] == "1"
