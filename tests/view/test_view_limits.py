"""The local server of `bpe-tokenizer view`: hostile requests, other users, clients that go away."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.view import server

pytest.importorskip("starlette", reason="the local page needs starlette")
pytest.importorskip("uvicorn", reason="the local page needs uvicorn")

HOST = (b"host", b"127.0.0.1:8000")
JSON = (b"content-type", b"application/json")
TEXT = b'{"text": "low"}'
Headers = list[tuple[bytes, bytes]]


@pytest.fixture(scope="module")
def tokenizer() -> BPETokenizer:
    return BPETokenizer(normalization=None).train("low low lower newest", vocab_size=262, verbose=False)


class Client:
    """A client of an ASGI application, which sends messages and collects the answer."""

    def __init__(self, app: Any, method: str, path: str, headers: Headers, *messages: Mapping[str, Any]):
        self.app = app
        self.scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(errors="replace"),
            "query_string": b"",
            "root_path": "",
            "headers": headers,
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8000),
        }
        self.messages = list(messages)
        self.gone = asyncio.Event()
        self.sent: list[Mapping[str, Any]] = []

    async def receive(self) -> Mapping[str, Any]:
        if self.messages:
            return self.messages.pop(0)
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Mapping[str, Any]) -> None:
        self.sent.append(message)

    async def run(self) -> int:
        await self.app(self.scope, self.receive, self.send)
        return self.status

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"]) if self.sent else 0

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}


def post(app: Any, body: bytes = TEXT, headers: Headers | None = None, path: str = "/tokens") -> Client:
    message = {"type": "http.request", "body": body, "more_body": False}
    return Client(app, "POST", path, [HOST, JSON] if headers is None else headers, message)


def status(client: Client) -> int:
    return asyncio.run(client.run())


ORIGINS = [
    b"http://[",
    b"http://127.0.0.1:8000:x",
    b"http://[::1",
    b"//",
    b"\xff\xfe",
    b"http://127.0.0.1:99999999",
]
ORIGINS += [b"null", b"http://127.0.0.1:8000.evil.example", b"http://127.0.0.1:8000/", b"x" * 60_000, b""]
HOSTS = [b"", b"[", b"[::1", b"127.0.0.1:", b"127.0.0.1:x", b"127.0.0.1@evil.example", b"\xff", b"x" * 60_000]
HOSTS += ["127.0.0.1:٣".encode(), b"localhost.evil.example:8000", b"LOCALHOST\x00", b"127.0.0.1:80:80"]
HEADERS: list[Headers] = [
    *([HOST, JSON, (b"origin", origin)] for origin in ORIGINS),
    *([(b"host", host), JSON] for host in HOSTS),
    [JSON],
    [HOST, HOST, JSON],
    [HOST, (b"host", b"evil.example"), JSON],
    [HOST, JSON, (b"origin", b"http://127.0.0.1:8000"), (b"origin", b"http://evil.example")],
    [HOST],
    [HOST, (b"content-type", b"\xff")],
    [HOST, (b"content-type", b"text/plain; application/json")],
    [HOST, JSON, (b"content-type", b"text/plain")],
    [HOST, JSON, (b"sec-fetch-site", b"cross-site")],
]


def test_malformed_headers_are_refused(tokenizer: BPETokenizer) -> None:
    app = server.create_app({"a": tokenizer}, "low")
    assert {tuple(headers): status(post(app, headers=headers)) for headers in HEADERS} == dict.fromkeys(
        map(tuple, HEADERS), 400
    )
    own = [HOST, (b"Content-Type".lower(), b"Application/JSON; charset=utf-8")]
    assert status(post(app, headers=[*own, (b"origin", b"http://127.0.0.1:8000")])) == 200


BODIES = [
    b'{"text": NaN}',
    b'{"text": 1e999}',
    b'{"text": ' + b"9" * 5000 + b"}",
    b'{"text": null}',
    b"null",
    b"1",
]
BODIES += [
    b'{"text": [' * 20_000,
    b"[" * 200_000,
    b'{"text": "\xff"}',
    b'\xff\xfe{"text"',
    b"\x00" * 1000,
    b'{"a": 1}',
]
BODIES += [
    b'{"text": "a',
    b'{"text": {"text": "a"}}',
    b'{"text": true}',
    b'{"text": "\\ud800\\u"}',
    b"{}" * 9,
]


def test_malformed_bodies_are_refused(tokenizer: BPETokenizer) -> None:
    app = server.create_app({"a": tokenizer}, "low")
    assert [status(post(app, body)) for body in BODIES] == [400] * len(BODIES)
    for body in (b'{"text": "\\ud800\\u0000"}', b'\xef\xbb\xbf{"text": "a"}', b'{"text": "", "text": "a"}'):
        assert status(post(app, body)) == 200


def test_methods_and_paths(tokenizer: BPETokenizer) -> None:
    app = server.create_app({"a": tokenizer}, "low")
    for method in ("OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "GET", "\ud800", ""):
        assert status(Client(app, method, "/tokens", [HOST])) == 405
    assert status(Client(app, "HEAD", "/", [HOST])) == 200
    for path in (
        "/../etc/passwd",
        "/%2e%2e/",
        "//evil.example/",
        "/tokens/",
        "/\udcff",
        "/a/b/c",
        "/static/x",
    ):
        assert status(Client(app, "GET", path, [HOST])) == 404


def test_only_the_address_with_the_token_opens_the_page(tokenizer: BPETokenizer) -> None:
    app = server.create_app({"a": tokenizer}, "low", token="secret", one_time_token="once")
    for path in ("/", "/other/", "/secre/", "/\udcff/", "/é/"):
        assert status(Client(app, "GET", path, [HOST])) == 403
    assert status(Client(app, "GET", "/secret/", [HOST])) == 200
    assert status(post(app, path="/secret/tokens")) == 200
    assert status(post(app, path="/once/tokens")) == 403
    assert status(post(app, path="/tokens")) == 404
    first = Client(app, "GET", "/once/", [HOST])
    assert (status(first), first.headers["location"]) == (303, "/secret/")
    assert status(Client(app, "GET", "/once/", [HOST])) == 403


def slow_html(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Make the work of a text last until its client goes away; returns what happens."""
    seen: dict[str, Any] = {"now": 0, "most": 0, "stopped": 0, "release": threading.Event()}

    def columns(_tokenizers: Any, text: str, _special: Any, check: Any) -> str:
        seen["now"] += 1
        seen["most"] = max(seen["most"], seen["now"])
        try:
            while not seen["release"].wait(0.001):
                check()
        except BaseException:
            seen["stopped"] += 1
            raise
        finally:
            seen["now"] -= 1
        return text

    monkeypatch.setattr(server, "page", lambda *_, **__: "")
    monkeypatch.setattr(server, "columns_html", columns)
    return seen


def test_few_texts_at_once_and_more_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = slow_html(monkeypatch)
    app = server.create_app({}, "")
    clients: list[Client] = []

    async def attack() -> list[int]:
        clients.extend(post(app) for _ in range(24))
        running = [asyncio.create_task(client.run()) for client in clients]
        while sum(client.status == 503 for client in clients) < 12 or seen["now"] < 2:
            await asyncio.sleep(0.001)
        seen["release"].set()
        return await asyncio.gather(*running)

    statuses = asyncio.run(attack())
    assert sorted(statuses) == [200] * 12 + [503] * 12
    assert seen["most"] == 2
    assert {client.headers["retry-after"] for client in clients if client.status == 503} == {"1"}


def test_work_ends_with_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = slow_html(monkeypatch)
    app = server.create_app({}, "")

    async def attack() -> int:
        for _ in range(5):
            clients = [post(app) for _ in range(12)]
            running = [asyncio.create_task(client.run()) for client in clients]
            while seen["now"] < 2:
                await asyncio.sleep(0.001)
            for client in clients:
                client.gone.set()
            await asyncio.gather(*running)
            assert (seen["now"], [client.sent for client in clients]) == (0, [[]] * 12)
        seen["release"].set()
        return await post(app).run()

    assert asyncio.run(asyncio.wait_for(attack(), 30)) == 200
    assert seen["stopped"] >= 10


def test_a_body_that_does_not_end_is_refused(
    tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_REQUEST_SECONDS", 0.05)
    app = server.create_app({"a": tokenizer}, "low")
    slow = Client(
        app, "POST", "/tokens", [HOST, JSON], {"type": "http.request", "body": b"{", "more_body": True}
    )
    assert status(slow) == 408
    endless = {"type": "http.request", "body": b" " * 10_000, "more_body": True}
    client = Client(app, "POST", "/tokens", [HOST, JSON], *[endless] * 1000)
    assert status(client) == 400
    assert len(client.messages) > 900
    gone = Client(app, "POST", "/tokens", [HOST, JSON], {"type": "http.disconnect"})
    assert status(gone) == 0


class Page(NamedTuple):
    running: subprocess.Popen[str]
    port: int
    token: str

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def ask(self, request: bytes) -> bytes:
        """Send bytes, and return the first line of the answer."""
        with self.connect() as connection, contextlib.suppress(ConnectionError):
            connection.sendall(request)
            return connection.recv(1000).split(b"\r\n")[0]
        return b""

    def post(self, text: str) -> bytes:
        body = json.dumps({"text": text}).encode()
        head = f"POST /{self.token}/tokens HTTP/1.1\r\nHost: localhost:{self.port}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body

    def resident(self) -> int:
        """The largest memory of the server so far, in MB."""
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{self.running.pid}/status").read_text())
        assert found
        return int(found[1]) // 1000


@pytest.fixture
def served(tokenizer: BPETokenizer, tmp_path: Path) -> Iterator[Page]:
    tokenizer.save(tmp_path / "saved")
    command = [
        sys.executable,
        "-m",
        "bpe_tokenizer",
        "view",
        "--tokenizer",
        str(tmp_path / "saved"),
        "--no-browser",
    ]
    with subprocess.Popen(
        [*command, "--text", "low"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        found = re.match(r"http://127\.0\.0\.1:(\d+)/([\w-]+)/", running.stdout.readline())
        assert found
        yield Page(running, int(found[1]), found[2])
        running.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="memory of another process")
@pytest.mark.usefixtures("ctrl_c")
def test_a_served_page_survives_everything(served: Page) -> None:
    long = "日本語のテキスト" * 6000
    assert served.ask(served.post("low")) == b"HTTP/1.1 200 OK"
    before = served.resident()
    requests = (
        b"\0\xff\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n",
    )
    for request in (*requests, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", b"\r\n" * 40_000):
        assert served.ask(request)[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 404", b"")
    upgrade = f"GET / HTTP/1.1\r\nHost: localhost:{served.port}\r\nConnection: Upgrade\r\n"
    upgrade += "Upgrade: websocket\r\n\r\n"
    assert served.ask(upgrade.encode())[:12] == b"HTTP/1.1 403"
    idle = [served.connect() for _ in range(100)]
    for connection in idle:
        connection.close()
    gone = [served.connect() for _ in range(24)]
    for connection in gone:
        connection.sendall(served.post(long))
    time.sleep(0.2)
    for connection in gone:
        connection.close()
    begin = time.monotonic()
    while served.ask(served.post("low")) != b"HTTP/1.1 200 OK":
        assert time.monotonic() - begin < 15
        time.sleep(0.05)
    assert served.resident() - before < 600
    busy = [served.connect() for _ in range(4)]
    for connection in busy:
        connection.sendall(served.post(long))
    time.sleep(0.2)
    begin = time.monotonic()
    served.running.send_signal(signal.SIGINT)
    assert served.running.wait(timeout=30) == 130
    assert time.monotonic() - begin < 5  # a second, on a machine that does nothing else
    for connection in busy:
        connection.close()
    assert served.running.stderr is not None
    assert "Traceback" not in served.running.stderr.read()
