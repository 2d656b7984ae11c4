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
        self.levels: dict[str, str] = {}
        self.is_compatible = True
        """What the checks of new versions say."""

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
        match = re.fullmatch(r"/config(?:/(.+))?", path)
        if match and (match[1] or "") in self.levels:
            return 200, {"compatibilityLevel": self.levels[match[1] or ""]}
        return 404, {"error_code": 40401, "message": "not there"}

    def change(self, method: str, path: str, document: Any) -> tuple[int, Any]:
        """The answer to POST, PUT and DELETE."""
        self.asked.append(f"{method} {path}")
        if self.fail_with:
            return self.fail_with.pop(0), {"error_code": 50001, "message": "down"}
        path = unquote(path.partition("?")[0])
        gone = 404, {"error_code": 40401, "message": "not there"}
        if match := re.fullmatch(r"/compatibility/subjects/(.+)/versions", path):
            if match[1] not in self.subjects:
                return gone
            return 200, {"is_compatible": self.is_compatible}
        if method == "POST" and (match := re.fullmatch(r"/subjects/(.+)/versions", path)):
            if not self.is_compatible:
                return 409, {"error_code": 409, "message": "incompatible"}
            kind, used = document.get("schemaType", "AVRO"), document.get("references") or ()
            return 200, {"id": self.register(match[1], document["schema"], kind, tuple(used))}
        if method == "PUT" and (match := re.fullmatch(r"/config/(.+)", path)):
            self.levels[match[1]] = document["compatibility"]
            return 200, document
        if method == "DELETE" and (match := re.fullmatch(r"/subjects/(.+)/versions/(\d+)", path)):
            versions = self.subjects.get(match[1], [])
            kept = [each for each in versions if each["version"] != int(match[2])]
            if len(kept) == len(versions):
                return gone
            self.subjects[match[1]] = kept
            return 200, int(match[2])
        if method == "DELETE" and (match := re.fullmatch(r"/subjects/(.+)", path)):
            if match[1] not in self.subjects:
                return gone
            return 200, [each["version"] for each in self.subjects.pop(match[1])]
        return gone


@contextlib.contextmanager
def run_registry() -> Iterator[RegistryServer]:
    """Serve a registry on a free port."""
    registry = RegistryServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.respond(*registry.answer(self.path, self.headers.get("Authorization", "")))

        def do_POST(self) -> None:
            size = int(self.headers.get("Content-Length", 0))
            document = json.loads(self.rfile.read(size) or b"{}")
            self.respond(*registry.change(self.command, self.path, document))

        do_PUT = do_DELETE = do_POST  # noqa: N815 (names of http.server's)

        def respond(self, status: int, document: Any) -> None:
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
