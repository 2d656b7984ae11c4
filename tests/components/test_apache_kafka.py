import sys
from pathlib import Path

import pytest
from components.apache_kafka import ApacheKafka, KafkaError, KafkaJars

from components import cache, java


def test_jars_are_in_the_cache_only_after_a_complete_fetch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert KafkaJars.at_hand() is None
    with cache.making(KafkaJars.cached_in()):
        assert KafkaJars.at_hand() is None
    monkeypatch.setattr(java, "find", lambda: "java")
    assert KafkaJars.at_hand() == KafkaJars(KafkaJars.cached_in(), "java")


def fake_jars(folder: Path, script: str) -> KafkaJars:
    command = folder / "java"
    command.write_text(f"#!{sys.executable}\nimport sys\n{script}\n")
    command.chmod(0o755)
    return KafkaJars(folder, str(command))


def test_logger_noise_is_removed_from_a_tools_output(tmp_path: Path) -> None:
    jars = fake_jars(tmp_path, "print('SLF4J: no binding'); print(sys.argv[-2:])")
    assert jars.run("kafka.Tool", "--list") == "['kafka.Tool', '--list']"


def test_a_tool_that_fails_or_hangs_raises(tmp_path: Path) -> None:
    with pytest.raises(KafkaError, match=r"ended with 1:\nno such topic"):
        fake_jars(tmp_path, "sys.exit(print('no such topic') or 1)").run("kafka.Tool")
    with pytest.raises(KafkaError, match="did not end"):
        fake_jars(tmp_path, "import time; time.sleep(60)").run("kafka.Tool", seconds=0.3)


def test_a_broker_is_formatted_once_and_gets_its_settings(tmp_path: Path) -> None:
    script = f"open({str(tmp_path / 'calls')!r}, 'a').write(' '.join(sys.argv[1:]) + chr(10))"
    broker = ApacheKafka(fake_jars(tmp_path, script), tmp_path / "b", {"num.partitions": "3"})
    for _ in range(2):
        broker.start()
        broker.stop()
    calls = (tmp_path / "calls").read_text().splitlines()
    assert sum("StorageTool format" in call for call in calls) == 1
    properties = (tmp_path / "b" / "server.properties").read_text().splitlines()
    assert "num.partitions=3" in properties
    assert f"advertised.listeners=PLAINTEXT://{broker.address}" in properties
    assert broker.format_seconds > 0
