"""A server on this machine that speaks as vLLM, SGLang and llama-server do, well or badly.

Its model is a function: the next id follows from the ids before. The forms of requests and answers are those
of vLLM's `CompletionRequest`, SGLang's `GenerateReqInput` and llama.cpp's tools/server/README.md.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from local_http import serving

__all__ = ["END_OF_TURN", "Kind", "LocalServer", "continuation", "running"]

# The id at which llama-server's model stops by itself.
END_OF_TURN = 97

Json = dict[str, Any]
Kind = str


def continuation(ids: Sequence[int], count: int) -> list[int]:
    """The ids that the model generates."""
    known = list(ids)
    for _ in range(count):
        known.append((sum(known) * 7 + len(known)) % 100)
    return known[len(ids) :]


@dataclass
class LocalServer:
    """How the server behaves; the tests change it as they go."""

    kind: Kind = "vllm"  # or "sglang" or "llamacpp"
    fault: str = ""  # what goes wrong
    pause: float = 0.0  # seconds before each event
    per_event: int = 1  # ids in an event
    is_incremental: bool = False  # SGLang sends only what is new
    names: tuple[str, ...] = ("tiny",)  # of the models
    api_key: str | None = None  # what a client must send
    address: str = ""
    requests: list[Json] = field(default_factory=list)  # the bodies of what was asked
    has_lost_client: threading.Event = field(default_factory=threading.Event)  # before the end

    def card(self, name: str) -> Json:
        """Describe a model as `/v1/models` does."""
        card: Json = {"id": name, "object": "model", "owned_by": self.kind}
        if self.kind == "llamacpp":
            card["meta"] = {"n_vocab": 100, "n_ctx_train": 4096}
        else:
            card["max_model_len"] = 200
        return card

    def events(self, path: str, body: Json) -> Iterator[Json]:
        """Yield the events of a streamed answer."""
        if path == "/generate":
            yield from self._sglang(body)
        else:
            yield from self._vllm(body)

    def _vllm(self, body: Json) -> Iterator[Json]:
        prompt, count = body["prompt"], body["max_tokens"]
        ids = continuation(prompt, count)
        stop_at = next((at for at, new_id in enumerate(ids) if new_id in body["stop_token_ids"]), None)
        if stop_at is not None:
            ids = ids[: stop_at + 1]
        for start in range(0, len(ids), self.per_event):
            part = ids[start : start + self.per_event]
            is_last = start + self.per_event >= len(ids)
            choice: Json = {"index": 0, "text": "?" * len(part), "finish_reason": None, "stop_reason": None}
            if start == 0:
                choice["prompt_token_ids"] = prompt
            if self.fault != "no ids":
                choice["token_ids"] = ["x"] if self.fault == "bad ids" else part
            if is_last:
                choice["finish_reason"] = "length" if stop_at is None else "stop"
                choice["stop_reason"] = None if stop_at is None else ids[-1]
                if self.fault == "stop id left out" and stop_at is not None:
                    choice["token_ids"] = part[:-1]
            yield {"id": "cmpl-1", "object": "text_completion", "choices": [choice]}
        yield {"id": "cmpl-1", "choices": [], "usage": {"completion_tokens": len(ids)}}

    def _sglang(self, body: Json) -> Iterator[Json]:
        count = body["sampling_params"]["max_new_tokens"]
        ids = continuation(body["input_ids"], count)
        for start in range(0, count, self.per_event):
            end = min(start + self.per_event, count)
            sent = ids[start:end] if self.is_incremental else ids[:end]
            event: Json = {"text": "?" * len(sent), "meta_info": {"completion_tokens": end}}
            if self.fault == "lost ids":
                sent = sent[1:]
            if self.fault != "no ids":
                event["output_ids"] = sent
            event["meta_info"]["finish_reason"] = (
                {"type": "length", "length": count} if end == count else None
            )
            yield event

    def completion(self, body: Json) -> Json:
        """Answer as llama-server's `/completion` does without streaming."""
        ids = continuation(body["prompt"], body["n_predict"])
        has_stopped = END_OF_TURN in ids
        if has_stopped:
            ids = ids[: ids.index(END_OF_TURN) + 1]
        answer: Json = {
            "content": "?" * len(ids),
            "tokens": ids[1:] if self.fault == "lost ids" else ids,
            "tokens_predicted": len(ids),
            "stop": True,
            "stop_type": "eos" if has_stopped else "limit",
        }
        if self.fault == "no ids":
            del answer["tokens"]
        return answer


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        local = self.server.local
        if not self._is_let_in():
            return
        if self.path == "/v1/models":
            if local.fault == "no models":
                self._send(200, {"object": "list", "data": []})
            elif local.fault == "portal":
                self._send_bytes(200, b"<html>Welcome</html>", "text/html")
            else:
                self._send(200, {"object": "list", "data": [local.card(name) for name in local.names]})
        elif self.path == "/props" and local.kind == "llamacpp":
            self._send(200, {"default_generation_settings": {"n_ctx": 150}, "total_slots": 2})
        else:
            self._send(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        local = self.server.local
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._is_let_in():
            return
        local.requests.append(body)
        if local.fault == "refusal":
            self._send(400, {"error": {"message": "temperature must be warm", "type": "BadRequestError"}})
        elif local.fault == "crash":
            self._send_bytes(500, b"Internal Server Error", "text/plain")
        elif local.fault == "silence":
            self._wait_for_the_end()
        elif self.path == "/completion":
            time.sleep(local.pause)
            if local.fault == "garbage":
                self._send_bytes(200, b"[1, 2", "application/json")
            elif local.fault == "endless":
                self._send_bytes(200, b" " * (1 << 18), "application/json")
            else:
                self._send(200, local.completion(body))
        elif local.fault == "page":
            self._send_bytes(200, b"<html>Please log in</html>", "text/html")
        else:
            self._stream(local, body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def _stream(self, local: LocalServer, body: Json) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            self._chunk(b": ping\n\n")
            for at, event in enumerate(local.events(self.path, body)):
                time.sleep(local.pause)
                if at == 3 and local.fault in ("cut", "end"):
                    if local.fault == "end":
                        self._chunk(b"")
                    self.close_connection = True
                    return
                if at == 3 and local.fault == "garbage":
                    self._chunk(b"data: {oops\n\n")
                while at == 3 and local.fault == "endless":
                    self._chunk(b"data: no end\r\n" * 1000)
                if at == 3 and local.fault == "pause":
                    self._wait_for_the_end()
                    return
                if at == 3 and local.fault == "error event":
                    self._chunk(b'data: {"error": {"message": "out of memory", "code": 500}}\n\n')
                # In two pieces, so that an event comes in several reads.
                data = f"data: {json.dumps(event)}\n\n".encode()
                self._chunk(data[: len(data) // 2])
                self._chunk(data[len(data) // 2 :])
            self._chunk(b"data: [DONE]\n\n")
            self._chunk(b"")
        except OSError:
            local.has_lost_client.set()
            self.close_connection = True

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _wait_for_the_end(self) -> None:
        """Say nothing until the client goes."""
        if self.rfile.read(1) == b"":
            self.server.local.has_lost_client.set()
        self.close_connection = True

    def _is_let_in(self) -> bool:
        key = self.server.local.api_key
        if key is None or self.headers["Authorization"] == f"Bearer {key}":
            return True
        self._send(401, {"error": "Unauthorized"})
        return False

    def _send(self, status: int, answer: Json) -> None:
        self._send_bytes(status, json.dumps(answer).encode(), "application/json")

    def _send_bytes(self, status: int, data: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, local: LocalServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.local = local

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that go away are no news."""


@contextmanager
def running() -> Iterator[LocalServer]:
    """Run a server until the end of the block."""
    local = LocalServer()
    with serving(_Server(local)) as local.address:
        yield local
