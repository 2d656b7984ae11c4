"""`make demo ARGS=secured`: the flights, with TLS, passwords and ACLs (`ottla serve --secure`)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

from demo.processes import PIPELINE_FILE, start_broker
from demo.run import Demo
from ottla.client.profiles import FILE_VARIABLE, profiles_file, read_profiles

PROFILE: Final = "secure"
"""The broker writes it."""


class SecuredDemo(Demo):
    """Everybody logs in as the broker's admin: producer, pipeline and commands."""

    def start(self) -> str:
        # The demo's own profiles: those of the person stay as they are.
        os.environ[FILE_VARIABLE] = str(self.folder / "profiles.toml")
        return start_broker(self.folder, self.children, "--secure")

    def client(self) -> dict[str, str]:
        return dict(read_profiles(profiles_file()).find(PROFILE).client)

    def pipeline_file(self) -> Path:
        """The demo's file, and the settings of the client."""
        file = self.folder / "secured-flights.toml"
        settings = "".join(
            f"{json.dumps(name)} = {json.dumps(value)}\n" for name, value in self.client().items()
        )
        file.write_text(f"{PIPELINE_FILE.read_text()}\n[source.kafka]\n{settings}")
        return file

    def reach(self, bootstrap: str) -> tuple[str, str]:
        return "--profile", PROFILE
