"""A client of an ASGI application, without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

__all__ = ["HOST", "Client", "Headers", "ask"]

Headers = list[tuple[bytes, bytes]]
HOST = (b"host", b"127.0.0.1:8000")


class Client:
    """Sends a request, and after it messages; collects the answer."""

    def __init__(
        self,
        app: Any,
        method: str,
        path: str,
        headers: Headers,
        *messages: Mapping[str, Any],
        query: str = "",
    ) -> None:
        self.app = app
        self.scope = {
            **{"type": "http", "http_version": "1.1", "method": method, "scheme": "http", "headers": headers},
            **{"path": path, "raw_path": path.encode(errors="replace"), "query_string": query.encode()},
            **{"root_path": "", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8000)},
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

    @property
    def body(self) -> bytes:
        return b"".join(each.get("body", b"") for each in self.sent[1:])


def ask(app: Any, method: str, path: str, *, query: str = "", body: bytes = b"", **headers: str) -> Client:
    """Send a request and return the client with the answer; `sec_fetch_site="none"` is a header."""
    named = {"host": "127.0.0.1:8000"} | headers
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in named.items()]
    message = {"type": "http.request", "body": body, "more_body": False}
    client = Client(app, method, path, pairs, message, query=query)
    asyncio.run(client.run())
    return client
