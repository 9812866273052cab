"""The local server of `bpe-tokenizer view`: hostile requests, other users, clients that go away."""

from __future__ import annotations

import asyncio
import contextlib
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

from asgi_client import HOST, Client, Headers
from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.view import server
from page_core import HAS_CORE

pytest.importorskip("starlette", reason="the local page needs starlette")
pytest.importorskip("uvicorn", reason="the local page needs uvicorn")
if not HAS_CORE:
    pytest.skip("page.html is missing: run `make wasm`", allow_module_level=True)


@pytest.fixture(scope="module")
def tokenizer() -> BPETokenizer:
    return BPETokenizer(normalization=None).train("low low lower newest", vocab_size=262, verbose=False)


def get(app: Any, path: str = "/tokenizers/a", headers: Headers | None = None) -> Client:
    message = {"type": "http.request", "body": b"", "more_body": False}
    return Client(app, "GET", path, [HOST] if headers is None else headers, message)


def status(client: Client) -> int:
    return asyncio.run(client.run())


ORIGINS = [
    b"http://[",
    b"http://127.0.0.1:8000:x",
    b"http://[::1",
    b"//",
    b"\xff\xfe",
    b"http://127.0.0.1:9999",
]
ORIGINS += [b"null", b"http://127.0.0.1:8000.evil.example", b"http://127.0.0.1:8000/", b"x" * 60_000, b""]
ORIGINS += [
    b"https://evil.example",
    b"http://localhost:8000",
    b"http://127.0.0.1:99999999",
    b"http://a.127.0.0.1:8000",
]
HOSTS = [b"", b"[", b"[::1", b"127.0.0.1:", b"127.0.0.1:x", b"127.0.0.1@evil.example", b"\xff", b"x" * 60_000]
HOSTS += ["127.0.0.1:٣".encode(), b"localhost.evil.example:8000", b"LOCALHOST\x00", b"127.0.0.1:80:80"]
HOSTS += [b"evil.example", b"127.0.0.1.evil.example", b"localhost.", b"10.0.0.1:8000"]
HEADERS: list[Headers] = [
    *([HOST, (b"origin", origin)] for origin in ORIGINS),
    *([(b"host", host)] for host in HOSTS),
    [],
    [HOST, HOST],
    [HOST, (b"host", b"evil.example")],
    [HOST, (b"origin", b"http://127.0.0.1:8000"), (b"origin", b"http://evil.example")],
    *([HOST, (b"sec-fetch-site", site)] for site in (b"cross-site", b"same-site")),
    [HOST, (b"sec-fetch-site", b"same-origin"), (b"sec-fetch-site", b"none")],
]


def test_other_hosts_and_origins_get_nothing(tokenizer: BPETokenizer) -> None:
    app = server.create_app({"a": tokenizer}, "low")
    for headers in HEADERS:
        client = get(app, headers=headers)
        assert (status(client), b"BPE" in client.body) == (400, False), headers
        assert not [name for name in client.headers if name.startswith("access-control")]
    assert {status(get(app, "/", [(b"host", host)])) for host in HOSTS} == {400}
    for allowed in ((b"origin", b"http://127.0.0.1:8000"), (b"sec-fetch-site", b"same-origin")):
        assert status(get(app, headers=[HOST, allowed])) == 200
    assert status(get(app, "/", [(b"host", b"localhost:1234")])) == 200


def test_methods_and_paths(tokenizer: BPETokenizer) -> None:
    app = server.create_app({"a": tokenizer}, "low")
    for path in ("/", "/tokenizers/a"):
        for method in ("OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "POST", "\ud800", ""):
            assert status(Client(app, method, path, [HOST])) == 405
        assert status(Client(app, "HEAD", path, [HOST])) == 200
    paths = (
        "/../etc/passwd /%2e%2e/ //evil.example/ /tokens /tokenizers /tokenizers/ /a/b/c /static/x /\udcff"
    )
    for path in (*paths.split(), "/tokenizers/../../etc/passwd", "/tokenizers/\udcff"):
        assert status(Client(app, "GET", path, [HOST])) == 404


def test_only_the_address_with_the_token_opens_the_page(tokenizer: BPETokenizer) -> None:
    app = server.create_app({"a": tokenizer}, "low", token="secret", one_time_token="once")
    for path in ("/", "/other/", "/secre/", "/\udcff/", "/é/"):
        assert status(Client(app, "GET", path, [HOST])) == 403
    assert status(Client(app, "GET", "/secret/", [HOST])) == 200
    assert status(get(app, "/secret/tokenizers/a")) == 200
    assert status(get(app, "/once/tokenizers/a")) == 403
    assert status(get(app, "/tokenizers/a")) == 404
    first = Client(app, "GET", "/once/", [HOST])
    assert (status(first), first.headers["location"]) == (303, "/secret/")
    assert status(Client(app, "GET", "/once/", [HOST])) == 403


def test_one_tokenizer_is_packed_at_once_and_more_requests_are_refused(
    tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {"now": 0, "most": 0, "calls": 0, "release": threading.Event()}

    def packed(_tokenizer: Any) -> bytes:
        seen["now"] += 1
        seen["calls"] += 1
        seen["most"] = max(seen["most"], seen["now"])
        seen["release"].wait(200)
        seen["now"] -= 1
        return b"packed"

    monkeypatch.setattr(server, "page", lambda *_, **__: "")
    monkeypatch.setattr(server, "packed_gzip", packed)
    app = server.create_app(dict.fromkeys("abc", tokenizer), "")
    clients = [get(app, f"/tokenizers/{'abc'[number % 3]}") for number in range(24)]

    async def attack() -> list[int]:
        running = [asyncio.create_task(client.run()) for client in clients]
        while sum(client.status == 503 for client in clients) < 16 or seen["now"] < 1:
            await asyncio.sleep(0.001)
        seen["release"].set()
        return await asyncio.gather(*running)

    statuses = asyncio.run(asyncio.wait_for(attack(), 200))
    assert sorted(statuses) == [200] * 8 + [503] * 16
    assert (seen["most"], seen["calls"]) == (1, 3)
    assert {client.headers["retry-after"] for client in clients if client.status == 503} == {"1"}


def test_a_client_that_does_not_read_is_given_up(
    tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_ANSWER_SECONDS", 0.05)
    app = server.create_app({"a": tokenizer}, "low")

    class Slow(Client):
        async def send(self, message: Mapping[str, Any]) -> None:
            self.sent.append(message)
            if message["type"] == "http.response.body":
                await self.gone.wait()

    for path in ("/", "/tokenizers/a"):
        slow = Slow(app, "GET", path, [HOST])
        asyncio.run(asyncio.wait_for(slow.run(), 200))
        assert len(slow.sent) == 2


def test_a_client_that_sends_no_files_is_given_up(
    tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_BODY_SECONDS", 0.05)
    app = server.create_app({"a": tokenizer}, "low", load=BPETokenizer.load)
    part = {"type": "http.request", "body": b"{", "more_body": True}
    for messages in ([part], [part, {"type": "http.disconnect"}]):
        client = Client(app, "POST", "/files", [HOST], *messages)
        client.scope["query_string"] = b"name=tokenizer.json&size=1000"
        asyncio.run(asyncio.wait_for(client.run(), 200))
        assert client.sent == []
    assert status(get(app)) == 200


class Page(NamedTuple):
    running: subprocess.Popen[str]
    port: int
    token: str

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=200)

    def ask(self, request: bytes) -> bytes:
        """Send bytes, and return the first line of the answer."""
        with self.connect() as connection, contextlib.suppress(ConnectionError):
            connection.sendall(request)
            return connection.recv(1000).split(b"\r\n")[0]
        return b""

    def get(self, path: str) -> bytes:
        return f"GET /{self.token}/{path} HTTP/1.1\r\nHost: localhost:{self.port}\r\n\r\n".encode()

    def resident(self) -> int:
        """The largest memory of the server so far, in MB."""
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{self.running.pid}/status").read_text())
        assert found
        return int(found[1]) // 1000


@pytest.fixture
def saved(tokenizer: BPETokenizer, tmp_path: Path) -> str:
    tokenizer.save(tmp_path / "saved")
    return str(tmp_path / "saved")


@pytest.fixture
def served(saved: str) -> Iterator[Page]:
    command = [sys.executable, "-m", "bpe_tokenizer", "view", "--tokenizer", saved, "--no-browser"]
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
def test_a_served_page_survives_everything(served: Page, saved: str) -> None:
    tokenizer = served.get("tokenizers/saved")
    assert served.ask(tokenizer) == b"HTTP/1.1 200 OK"
    before = served.resident()
    requests = (
        b"\0\xff\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n",
    )
    for request in (*requests, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", b"\r\n" * 40_000):
        assert served.ask(request)[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 404", b"")
    body = (
        f"POST /{served.token}/tokens HTTP/1.1\r\nHost: localhost:{served.port}\r\nContent-Length: 9\r\n\r\n"
    )
    assert served.ask(body.encode() + b"a text...")[:12] == b"HTTP/1.1 404"
    upgrade = f"GET / HTTP/1.1\r\nHost: localhost:{served.port}\r\nConnection: Upgrade\r\n"
    upgrade += "Upgrade: websocket\r\n\r\n"
    assert served.ask(upgrade.encode())[:12] == b"HTTP/1.1 403"
    idle = [served.connect() for _ in range(100)]
    for connection in idle:
        connection.close()
    gone = [served.connect() for _ in range(24)]
    for connection in gone:
        connection.sendall(served.get(""))
    time.sleep(0.2)
    for connection in gone:
        connection.close()
    for _ in range(600):
        if served.ask(tokenizer) == b"HTTP/1.1 200 OK":
            break
        time.sleep(0.1)
    else:
        pytest.fail("the connections that are gone keep their places")
    assert served.resident() - before < 200
    unread = [served.connect() for _ in range(4)]
    for connection in unread:
        connection.sendall(served.get(""))
    time.sleep(0.2)
    served.running.send_signal(signal.SIGINT)
    assert served.running.wait(timeout=200) == 130
    for connection in unread:
        connection.close()
    assert served.running.stderr is not None
    assert "Traceback" not in served.running.stderr.read()
