"""All brokers are restarted one after the other, and no client has to know."""

from pathlib import Path

from tests.system.cluster_load import TOPIC, loaded_cluster


def test_a_rolling_restart_shows_clients_no_error(tmp_path: Path) -> None:
    with loaded_cluster(tmp_path) as (cluster, load):
        for broker in cluster.brokers:
            cluster.stop(broker)
            load.wait_progress()
            cluster.start(broker)
            cluster.wait_in_sync(TOPIC)
        assert load.told_errors() == []
