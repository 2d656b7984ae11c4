"""The settings that a session gets unless the user has set them."""

import pytest

from ottla.pipelines.spark.defaults import defaults, is_local, local_cores


@pytest.mark.parametrize(
    ("master", "tasks"),
    [
        ("local", 1),
        ("local[3]", 3),
        ("local[*]", 8),
        ("local[2,4]", 2),
        ("local-cluster[2,1,1024]", None),
        ("spark://host:7077", None),
        ("yarn", None),
    ],
)
def test_a_local_master_has_one_shuffle_partition_for_each_core(
    master: str, tasks: int | None
) -> None:
    found = defaults(master, cores=8, python="/p", environ={}, terminal=True)

    assert local_cores(master, 8) == tasks
    assert is_local(master) == (tasks is not None)
    assert found.get("spark.sql.shuffle.partitions") == (str(tasks) if tasks else None)
    assert ("spark.driver.host" in found) == (tasks is not None)


def test_functions_run_in_the_programs_own_python_where_executors_share_its_files() -> None:
    def python(master: str, **environ: str) -> str | None:
        found = defaults(master, cores=1, python="/own", environ=environ, terminal=True)
        return found.get("spark.pyspark.python")

    assert python("local[2]") == "/own"
    assert python("spark://host:7077") == "/own"
    assert python("local[2]", PYSPARK_PYTHON="/other") == "/other"
    assert python("k8s://https://host") is None


@pytest.mark.parametrize("master", ["local[2]", "yarn"])
def test_times_without_a_zone_are_the_same_on_each_machine(master: str) -> None:
    found = defaults(master, cores=1, python="/p", environ={"TZ": "Asia/Tokyo"}, terminal=True)
    assert found["spark.sql.session.timeZone"] == "UTC"


def test_the_progress_bar_is_for_terminals() -> None:
    name = "spark.ui.showConsoleProgress"
    for terminal, wanted in ((True, None), (False, "false")):
        found = defaults("local", cores=1, python="/p", environ={}, terminal=terminal)
        assert found.get(name) == wanted
