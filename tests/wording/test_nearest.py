"""Names that were nearly right."""

from ottla.wording.nearest import nearest


def test_nearest_name() -> None:
    assert nearest("flihgts", ["weather", "flights", "planes"]) == "flights"
    assert nearest("Flights", ["flights", "Flight"]) == "flights"
    assert nearest("zzz", ["flights"]) is None
    assert nearest("x", []) is None
