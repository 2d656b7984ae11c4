import pytest

from ottla.cli.failures import UsageFailed
from ottla.cli.screen import show_table
from ottla.cli.sizes import parse_size
from ottla.wording.sizes import shown_size, size_text


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1_549, "1.5 kB"),
        (999_960, "1.0 MB"),
        (12_000_000, "12.0 MB"),
        (1_240_000_000_000, "1.2 TB"),
        (5 * 10**18, "5000.0 PB"),
    ],
)
def test_sizes_are_shown_in_the_unit_that_fits(size: int, shown: str) -> None:
    assert size_text(size) == shown


@pytest.mark.parametrize(
    ("text", "size"),
    [("10", 10), ("10MB", 10_000_000), ("1.5 kb", 1500), ("2MiB", 2 << 20), ("7B", 7)],
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size("--rate", text) == size


@pytest.mark.parametrize("text", ["", "0", "MB", "10XB", "-1", "1e3", "0.1B"])
def test_what_is_not_a_size_is_refused(text: str) -> None:
    with pytest.raises(UsageFailed, match=r"^--rate: .* is not a size\.$"):
        parse_size("--rate", text)


def test_sizes_are_aligned_as_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(["size"], [[shown_size(5)], [shown_size(1_500)], [shown_size(None)]])
    assert capsys.readouterr().out.split("\n") == ["  size", "   5 B", "1.5 kB", "     -", ""]
