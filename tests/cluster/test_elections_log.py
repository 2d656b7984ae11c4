"""Log lines: important events are logged, and a thousand partitions do not flood the log."""

import logging

import pytest

from ottla.cluster.elections_log import MAX_NAMED, log_brokers, log_elections
from ottla.controller.broker_changes import BrokersChanged
from ottla.controller.leadership import Election

QUIET = BrokersChanged((), (), (), (), (), ())


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(each.levelno, each.getMessage()) for each in caplog.records]


@pytest.fixture(autouse=True)
def all_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ottla.controller")


def test_no_change_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    log_brokers(QUIET)
    assert lines(caplog) == []


def test_brokers_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    log_brokers(BrokersChanged((1, 2), (3,), (4,), (4,), (), ()))
    text = "brokers gone: 1, 2; new: 3; restarted: 4; with another disk: 4"
    assert lines(caplog) == [(logging.INFO, text)]


def test_an_unclean_election_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    log_elections([Election("t", 0, 1, 2, 7, False), Election("t", 1, 1, 3, 8, True)])
    assert lines(caplog) == [
        (logging.WARNING, "unclean election: t-1 is led by 3 (epoch 8), which was not in sync"),
        (logging.INFO, "t-0: leader 2 after 1 (epoch 7)"),
    ]


def test_many_elections_are_counted_but_each_unclean_one_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    count = MAX_NAMED + 5
    clean = tuple(Election("t", number, 1, 2, 7, False) for number in range(count))
    unclean = tuple(Election("u", number, 1, 2, 7, True) for number in range(count))
    offline = tuple(("o", number) for number in range(count))
    log_brokers(BrokersChanged((), (), (), (), (*clean, *unclean), offline))
    logged = lines(caplog)
    assert sum(text.startswith("unclean election: u-") for _, text in logged) == count
    assert sum(text.startswith("t-") for _, text in logged) == MAX_NAMED
    assert (logging.INFO, f"{count} partitions have a new leader") in logged
    assert sum(text.endswith("no in-sync replica is alive") for _, text in logged) == MAX_NAMED
    assert (logging.WARNING, f"{count} partitions are offline") in logged
