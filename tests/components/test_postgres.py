"""PostgreSQL from PyPI, and a server that is killed: real servers, in folders of their own."""

from pathlib import Path

import pytest
from components.postgres import Postgres, PostgresError, fetched_programs

from components import fixture, postgres

pytestmark = pytest.mark.full
installed = fixture.postgres


def test_the_server_from_pypi_runs_where_none_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postgres, "find_programs", lambda: None)
    # Its psql as well.
    monkeypatch.setattr("shutil.which", lambda name: None)
    server = Postgres(fetched_programs())
    try:
        server.make()
        wanted = postgres.PACKAGE.rpartition("=")[2]
        assert wanted.startswith(server.query("SHOW server_version")[0][0])
        assert server.query("SELECT 'a' || chr(10) || 'b', NULL") == [["a\nb", ""]]
        with pytest.raises(PostgresError, match='relation "nothing" does not exist'):
            server.query("SELECT * FROM nothing")
    finally:
        server.stop()
    assert not server.folder.exists()


def test_a_server_that_is_killed_keeps_what_is_committed(installed: Postgres) -> None:
    installed.query("CREATE TABLE t (n int)")
    for number in range(3):
        installed.query(f"INSERT INTO t VALUES ({number})")
        pid = installed.child.pid
        installed.kill()
        assert not Path(f"/proc/{pid}").exists()
        with pytest.raises(PostgresError, match="onnection refused"):
            installed.query("SELECT 1")
        installed.start()
        assert installed.query("SELECT count(*) FROM t") == [[str(number + 1)]]
