"""One broker of either kind, started and stopped by a `with` block."""

import socket
import sys
from pathlib import Path

import pytest
from bench.brokers import running
from components.apache_kafka import KafkaJars
from components.child import ChildDiedError


def test_a_real_broker_listens_and_ends_with_the_block() -> None:
    with running("Ottla", None) as broker:
        assert broker.address == f"127.0.0.1:{broker.port}"
        socket.create_connection(("127.0.0.1", broker.port), timeout=5).close()
        folder = broker.child.log.parent
        assert (folder / "data").is_dir()
    assert broker.child.process.returncode == 0
    assert not folder.exists()


def test_a_broker_that_does_not_start_raises_and_leaves_nothing() -> None:
    script = "import sys; print(sys.argv[sys.argv.index('--data') + 1]); sys.exit('no disk')"
    with (
        pytest.raises(ChildDiedError, match="no disk") as told,
        running("Ottla", None, prefix=(sys.executable, "-c", script)),
    ):
        pass
    (data,) = (line for line in str(told.value).splitlines() if line.endswith("/data"))
    assert not Path(data).parent.exists()


def test_apache_kafka_starts_with_a_settings_file(tmp_path: Path) -> None:
    java = tmp_path / "java"
    script = "print(*sys.argv); sys.exit('kafka.Kafka' in sys.argv)"
    java.write_text(f"#!{sys.executable}\nimport sys\n{script}\n")
    java.chmod(0o755)
    with (
        pytest.raises(ChildDiedError, match=r"kafka\.Kafka .*server\.properties"),
        running("Apache Kafka", KafkaJars(tmp_path, str(java))),
    ):
        pass
