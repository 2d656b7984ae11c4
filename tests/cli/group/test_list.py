"""`ottla group list`."""

from types import SimpleNamespace

import pytest
from tests.client.answers import groups
from tests.client.fake_cluster import FakeCluster

from ottla.cli.app import carry_out
from ottla.client.admin.groups import Group


@pytest.mark.parametrize(
    ("present", "words", "said"),
    [
        (["billing"], ["--filter", "^x"], "No group's name matches ^x.\n"),
        ([], [], "No groups yet. Create one with: ottla consume TOPIC --group NAME\n"),
    ],
)
def test_no_group_and_none_that_matches(
    present: list[str], words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    known = {name: Group(name, "empty", "classic", None, 2, False, ()) for name in present}
    cluster = SimpleNamespace(client=FakeCluster(groups(known, {})).client())
    assert carry_out(["group", "list", *words], cluster) == 0
    assert capsys.readouterr() == ("", said)
