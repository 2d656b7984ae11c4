"""A schema registry's REST interface in this process: what a pipeline and its producers ask.

https://docs.confluent.io/platform/current/schema-registry/develop/api.html
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote


class RegistryServer:
    """Subjects with their versions; `asked` are the paths that were asked for."""

    def __init__(self) -> None:
        self.subjects: dict[str, list[dict[str, Any]]] = {}
        self.asked: list[str] = []
        self.fail_with: list[int] = []  # the status of the next answers
        self.user = ""
        self.url = ""

    def register(
        self,
        subject: str,
        schema: str | dict[str, Any],
        kind: str = "AVRO",
        references: tuple[dict[str, Any], ...] = (),
        schema_id: int | None = None,
    ) -> int:
        """Register a schema as the next version of a subject; returns its id."""
        known = [one["id"] for versions in self.subjects.values() for one in versions]
        number = schema_id or max(known, default=0) + 1
        versions = self.subjects.setdefault(subject, [])
        text = schema if isinstance(schema, str) else json.dumps(schema)
        versions.append(
            {
                "subject": subject,
                "version": len(versions) + 1,
                "id": number,
                "schema": text,
                "schemaType": kind,
                "references": list(references),
            }
        )
        return number

    def answer(self, path: str, authorization: str) -> tuple[int, Any]:
        self.asked.append(path)
        if self.fail_with:
            return self.fail_with.pop(0), {"error_code": 50001, "message": "down"}
        if self.user and authorization != self.user:
            return 401, {"error_code": 401, "message": "who"}
        path = unquote(path.partition("?")[0])
        if match := re.fullmatch(r"/schemas/ids/(\d+)", path):
            for versions in self.subjects.values():
                for one in versions:
                    if one["id"] == int(match[1]):
                        return 200, one
        if match := re.fullmatch(r"/schemas/ids/(\d+)/versions", path):
            return 200, [
                {"subject": one["subject"], "version": one["version"]}
                for versions in self.subjects.values()
                for one in versions
                if one["id"] == int(match[1])
            ]
        if path == "/subjects":
            return 200, list(self.subjects)
        match = re.fullmatch(r"/subjects/(.+)/versions", path)
        if match and match[1] in self.subjects:
            return 200, [one["version"] for one in self.subjects[match[1]]]
        if match := re.fullmatch(r"/subjects/(.+)/versions/(\d+)", path):
            for one in self.subjects.get(match[1], ()):
                if one["version"] == int(match[2]):
                    return 200, one
        return 404, {"error_code": 40401, "message": "not there"}


@contextlib.contextmanager
def run_registry() -> Iterator[RegistryServer]:
    """Serve a registry on a free port."""
    registry = RegistryServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, document = registry.answer(self.path, self.headers.get("Authorization", ""))
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
