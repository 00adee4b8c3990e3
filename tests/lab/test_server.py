"""The lab's server: closed to others, and not to be brought down or made to speak by them."""

from __future__ import annotations

import socket
import struct
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress

import pytest

from steadytd.lab.server import AT_ONCE, SECONDS, LabServer, _Handler


@pytest.fixture
def server() -> Iterator[LabServer]:
    with LabServer("<p>hello") as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


def answer(address: str, **headers: str) -> tuple[int, str]:
    """Status and text of a request."""
    request = urllib.request.Request(address, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as found:
            return found.status, found.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_only_the_address_with_the_token_answers(server: LabServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert answer(server.address) == (200, "<p>hello")
    root = server.address.removesuffix(server.token + "/")
    for path in ("", "lab", server.token, server.token + "/../", server.token + "/x"):
        assert answer(root + path) == (404, "not found\n"), path


def test_another_host_name_gets_nothing(server: LabServer) -> None:
    assert answer(server.address, Host="evil.example")[0] == 404


def connected(server: LabServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=10)


def said(server: LabServer, request: bytes) -> bytes:
    """All that comes back for some bytes."""
    with connected(server) as client:
        with suppress(ConnectionError):  # it may hang up before it has read everything
            client.sendall(request)
        found = b""
        with suppress(ConnectionError):
            while part := client.recv(4096):
                found += part
    return found


@pytest.mark.parametrize(
    "request_line",
    ["POST {path} HTTP/1.1", "HEAD {path} HTTP/1.1", "X\x1b[31m {path} HTTP/1.1",
     "GET {path} HTTP/9.9", "GET {path} x HTTP/1.1", "GET /{path}../../etc/passwd HTTP/1.1",
     "GET \xff\xfe HTTP/1.1", "nonsense", "GET " + "x" * 70_000 + " HTTP/1.1"],
)  # fmt: skip
def test_other_requests_get_404_and_no_reason(
    request_line: str, server: LabServer, capfd: pytest.CaptureFixture[str]
) -> None:
    port = server.server_address[1]
    line = request_line.format(path=f"/{server.token}/").encode("latin-1")
    found = said(server, line + f"\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    assert b"hello" not in found and b"Error" not in found and len(found) < 400
    assert found == b"not found\n" or found.startswith(b"HTTP/1.0 404 ") or not found
    assert answer(server.address)[0] == 200 and capfd.readouterr().err == ""


def test_clients_that_hang_up_say_nothing_on_the_terminal(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A page of 20 MB is not taken; the connection is reset while it is sent."""
    with LabServer("x" * 20_000_000) as large:
        threading.Thread(target=large.serve_forever, daemon=True).start()
        host = f"localhost:{large.server_address[1]}"
        request = f"GET /{large.token}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"
        for _ in range(5):
            client = connected(large)
            client.sendall(request.encode())
            client.recv(10)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        assert len(answer(large.address)[1]) == 20_000_000
        large.shutdown()
    assert capfd.readouterr().err == ""


def test_dripping_clients_shut_nobody_out(server: LabServer) -> None:
    """They have begun a request and are never silent for long; the oldest make room."""
    before = threading.active_count()
    dripping = [connected(server) for _ in range(AT_ONCE)]
    for client in dripping:
        client.sendall(b"GET /")
    while threading.active_count() < before + AT_ONCE:
        time.sleep(0.01)
    for _ in range(20):
        for client in dripping:
            with suppress(ConnectionError):  # sent away
                client.sendall(b"x")
        assert answer(server.address) == (200, "<p>hello")
    while threading.active_count() > before + AT_ONCE:
        time.sleep(0.01)
    assert len(server.clients) <= AT_ONCE
    for client in dripping:
        client.close()
    while threading.active_count() > before or server.clients:
        time.sleep(0.01)
    assert answer(server.address) == (200, "<p>hello")


def test_a_silent_client_is_given_up(
    server: LabServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert _Handler.timeout == SECONDS
    monkeypatch.setattr(_Handler, "timeout", 0.2)
    for begun in (b"", b"GET /", b"GET / HTTP/1.1\r\nHost: x"):
        assert b"hello" not in said(server, begun)
    assert capfd.readouterr().err == ""
