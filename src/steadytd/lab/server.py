"""Serves the lab's page on this machine alone: one page, one token, nothing else."""

from __future__ import annotations

import hmac
import secrets
import socket
import sys
import threading
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ADDRESS = "127.0.0.1"
SECONDS = 10.0  # of silence after which a client is given up
AT_ONCE = 64  # clients; for one more the oldest is sent away: a page is sent in a moment


class LabServer(ThreadingHTTPServer):
    """Answers `GET /<token>/` with the page. Every other request gets 404 and no reason."""

    daemon_threads = True
    request_queue_size = AT_ONCE

    def __init__(self, page: str, port: int = 0) -> None:
        """Listen on a port of 127.0.0.1; 0 takes any free one."""
        self.page = page.encode()
        self.token = secrets.token_urlsafe(16)
        self.clients: dict[socket.socket, None] = {}  # the oldest first
        self.changing = threading.Lock()
        super().__init__((ADDRESS, port), _Handler)

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://{ADDRESS}:{self.server_address[1]}/{self.token}/"

    def known(self, host: str | None, path: str) -> bool:
        """Whether a request is for the page, by the name that we gave out.

        The host is checked because a page from elsewhere may have its own name point here.
        """
        port = self.server_address[1]
        names = (f"{ADDRESS}:{port}", f"localhost:{port}")
        right = hmac.compare_digest(path.encode(), f"/{self.token}/".encode())
        return right and host in names

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own.

        Who sends a byte now and then is never silent for long: the oldest of too many goes.
        """
        with self.changing:
            if len(self.clients) >= AT_ONCE:
                oldest = next(iter(self.clients))
                del self.clients[oldest]
                with suppress(OSError):  # it has just gone
                    oldest.shutdown(socket.SHUT_RDWR)
            self.clients[request] = None
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and make room again."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self.changing:
                self.clients.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away: every page that is loaded again does so."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: LabServer
    server_version, sys_version = "steadytd", ""
    timeout = SECONDS

    def do_GET(self) -> None:
        """Send the page, or 404."""
        if not self.server.known(self.headers.get("Host"), self.path):
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            self._answer(HTTPStatus.OK, self.server.page, "text/html; charset=utf-8")

    def send_error(self, *_: Any) -> None:
        """404 for other methods and for what is no request, too."""
        self._answer(HTTPStatus.NOT_FOUND, b"not found\n", "text/plain")

    def _answer(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing: the terminal belongs to the user."""
