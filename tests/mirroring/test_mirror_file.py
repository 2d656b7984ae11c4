"""The file of a mirror."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.mirroring import mirror_file
from ottla.mirroring.mirror_file import MirrorFileError, mirror_of, read_mirror_file
from ottla.mirroring.spec import EXCLUDED_SETTINGS, MAX_COMMIT_EVERY_S, MirrorSpec
from ottla.mirroring.target_producer import DELIVERED_WITHIN_S


def read(folder: Path, text: str) -> mirror_file.MirrorFile:
    path = folder / "mirror.toml"
    path.write_text(text)
    return mirror_of(read_mirror_file(path))


def test_the_example_of_its_docstring(tmp_path: Path) -> None:
    text = (mirror_file.__doc__ or "").split("\n\n")[1]
    found = read(tmp_path, "\n".join(line.strip() for line in text.splitlines()))
    assert (found.source, found.target) == ("old", "new")
    assert found.spec.topics == ("orders-.*", "payments")
    assert found.spec.replication_factor == 3
    assert found.spec.exclude_settings == EXCLUDED_SETTINGS | {"retention.bytes"}
    keys = {line.split("=")[0].strip() for line in text.splitlines()}
    assert keys == set(mirror_file.KEYS)


def test_nothing_is_required(tmp_path: Path) -> None:
    assert read(tmp_path, "") == (None, None, MirrorSpec())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("topic = []", "no key 'topic'. Did you mean 'topics'"),
        ('topics = "a"', "topics must be a list of texts, not 'a'"),
        ("source = 1", "source must be a text"),
        ("acls = 1", "acls must be true or false"),
        ("replication_factor = 0", "a whole number from 1 to 32767, not 0"),
        ("replication_factor = 32768", "a whole number from 1 to 32767"),
        ("replication_factor = true", "a whole number from 1 to 32767"),
        ("commit_every_s = 0.01", "a number from 0.05 to 10, not 0.01"),
        ("commit_every_s = 20", "a number from 0.05 to 10"),
        ("refresh_every_s = inf", "a number from 1 to 3600"),
        ("refresh_every_s = nan", "a number from 1 to 3600"),
        ('name = "a b"', "name must have"),
        ('instance = ""', "instance must have"),
        ("name", "is not TOML"),
    ],
)
def test_what_is_refused(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(MirrorFileError) as caught:
        read(tmp_path, text)
    assert words in caught.value.message


def test_a_transaction_ends_before_it_is_given_up() -> None:
    assert MAX_COMMIT_EVERY_S <= DELIVERED_WITHIN_S / 2


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MirrorFileError, match="cannot read"):
        read_mirror_file(tmp_path / "no.toml")
