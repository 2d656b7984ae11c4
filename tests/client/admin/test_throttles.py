from ottla.client.admin.configs import Setting
from ottla.client.admin.throttles import (
    FOLLOWER_REPLICAS,
    LEADER_REPLICAS,
    Move,
    own_settings,
    rate_settings,
    settings_of_moves,
)


def test_sources_are_throttled_as_leaders_and_destinations_as_followers() -> None:
    moves = [Move("t", 0, (2, 1), (3,)), Move("t", 1, (1,), (3, 2)), Move("u", 0, (1,), ())]
    assert settings_of_moves(moves) == {
        "t": {LEADER_REPLICAS: "0:1,0:2,1:1", FOLLOWER_REPLICAS: "0:3,1:2,1:3"},
        "u": {LEADER_REPLICAS: "0:1", FOLLOWER_REPLICAS: ""},
    }


def test_a_rate_is_for_both_directions() -> None:
    assert rate_settings(7) == {
        "leader.replication.throttled.rate": "7",
        "follower.replication.throttled.rate": "7",
    }


def test_only_what_is_set_on_the_topic_itself_counts() -> None:
    entries = [
        Setting(LEADER_REPLICAS, "*", "topic"),
        Setting(FOLLOWER_REPLICAS, "", "default"),
        Setting("retention.ms", "1", "topic"),
    ]
    assert own_settings(entries, (LEADER_REPLICAS, FOLLOWER_REPLICAS), "topic") == {
        LEADER_REPLICAS: "*"
    }
