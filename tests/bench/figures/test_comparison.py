"""The share of the last way, and the order of the runs."""

from bench.figures.comparison import Comparison, Taken

WAYS = {"plain": "job-plain", "tuned": "job-tuned", "ottla": "job-ottla"}


def test_the_share_is_that_of_the_way_before_and_the_order_alternates() -> None:
    comparison = Comparison("bulk", "rows/s", 1.3, WAYS, more_is_better=True)
    order: list[str] = []

    def run(job: str) -> Taken:
        order.append(job)
        return Taken({"job-plain": 50.0, "job-tuned": 100.0, "job-ottla": 120.0}[job])

    found = [comparison.measure(run) for _ in range(2)]

    values = {"bulk, plain": 50, "bulk, tuned": 100, "bulk, ottla": 120, "bulk, share": 1.2}
    assert found == [values, values]
    jobs = list(WAYS.values())
    assert order == [*jobs, *reversed(jobs)]
    assert [one.name for one in comparison.measures] == list(values)
    assert comparison.measures[-1].limit == 1.3


def test_cpu_has_a_share_of_its_own_where_it_has_a_goal() -> None:
    ways = {"tuned": "t", "ottla": "o"}
    comparison = Comparison("bulk", "rows/s", 1.3, ways, more_is_better=True, cpu_goal=0.8)

    found = comparison.measure({"t": Taken(100.0, 40.0), "o": Taken(150.0, 30.0)}.__getitem__)

    assert (found["bulk, tuned CPU"], found["bulk, ottla CPU"]) == (40.0, 30.0)
    assert found["bulk, share CPU"] == 0.75
    goals = {one.name: (one.limit, one.more_is_better) for one in comparison.measures if one.limit}
    assert goals == {"bulk, share": (1.3, True), "bulk, share CPU": (0.8, False)}


def test_two_ways_may_name_their_share() -> None:
    ways = {"clean": "clean", "bad": "bad"}
    comparison = Comparison("d", "rows/s", 0.9, ways, more_is_better=True, share="bad row, share")

    found = comparison.measure({"clean": Taken(100.0), "bad": Taken(90.0)}.__getitem__)

    assert found == {"d, clean": 100, "d, bad": 90, "d, bad row, share": 0.9}
