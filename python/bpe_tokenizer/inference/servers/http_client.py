"""A client for servers that answer with JSON or with a stream of server-sent events."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any

from bpe_tokenizer.errors import GenerationError, OptionError
from bpe_tokenizer.inference.engine_model import Cancellation
from bpe_tokenizer.inference.options import LoadOptions
from bpe_tokenizer.inference.servers.events import read_events

__all__ = ["HttpClient", "Json"]

Json = dict[str, Any]

# Bytes of an answer or of one event: more than any inference server sends. It bounds the memory that a faulty
# server can make us use.
_MAX_ANSWER = 1 << 26
_MAX_MESSAGE = 200


class HttpClient:
    """A client of one server. Opens a connection for each request.

    Args:
        url: `http://host:port` or `https://...`, with the path of the server if it has one. `/v1` at the end
            is dropped, and the text after a `#` becomes `model`.
        options: `api_key` and `timeout`.

    Attributes:
        model: The name after the `#`, or "".

    Raises:
        OptionError: The address is invalid.

    >>> client = HttpClient("https://example.com/llm/v1#small", LoadOptions())
    >>> str(client), client.model
    ('https://example.com/llm', 'small')
    """

    def __init__(self, url: str, options: LoadOptions) -> None:
        try:
            parts = urllib.parse.urlsplit(url)
            self._host, self._port = parts.hostname or "", parts.port
            # The system's resolver does the same, but fails with another type of error.
            self._host.encode("idna")
        except ValueError as error:
            raise OptionError(f"{url}: is not the address of a server: {error}") from None
        if not self._host or not self._host.isprintable() or parts.query:
            raise OptionError(f"{url}: is not the address of a server: it must be like http://host:port")
        if parts.username is not None:
            raise OptionError(f"{self._host}: the address must not hold a user or password; use api_key")
        self._is_secure = parts.scheme == "https"
        path = parts.path.rstrip("/").removesuffix("/v1")
        self._path = urllib.parse.quote(path, safe="/%!$&'()*+,;=:@~")
        self._text = f"{parts.scheme}://{parts.netloc}{path}"
        self._api_key = options.api_key
        self._timeout = options.timeout
        self.model = urllib.parse.unquote(parts.fragment)

    def __str__(self) -> str:
        return self._text

    def get(self, path: str) -> Json:
        """Return the JSON object at a path.

        Raises:
            GenerationError: The server does not answer with a JSON object.
        """
        with self._open("GET", path, None, Cancellation()) as answer:
            return self._object(self._body(answer))

    def post(self, path: str, body: Json, cancellation: Cancellation) -> Json:
        """Send a JSON object, and return the JSON object of the answer.

        Raises:
            GenerationError: The server does not answer with a JSON object.
        """
        with self._open("POST", path, body, cancellation) as answer:
            return self._object(self._body(answer))

    def events(self, path: str, body: Json, cancellation: Cancellation) -> Iterator[Json]:
        """Send a JSON object, and yield the JSON objects of the answer's events, up to `[DONE]` or the end.

        Raises:
            GenerationError: The server does not answer with events, or reports an error.
        """
        with self._open("POST", path, body, cancellation) as answer:
            kind = answer.headers.get_content_type()
            if kind != "text/event-stream":
                raise self.error(
                    f"answers with {kind} instead of events: {_shorten(answer.read(_MAX_MESSAGE))}"
                )
            for data in read_events(self._lines(answer)):
                if data == "[DONE]":
                    return
                event = self._object(data)
                if event.get("error"):
                    raise self.error(_message(event))
                yield event

    def error(self, problem: str) -> GenerationError:
        """Return an error that names the server."""
        return GenerationError(f"{self}: {problem}")

    @contextlib.contextmanager
    def _open(
        self, method: str, path: str, body: Json | None, cancellation: Cancellation
    ) -> Iterator[http.client.HTTPResponse]:
        kind = http.client.HTTPSConnection if self._is_secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=self._timeout)
        try:
            connection.connect()
            # The answer can take over the socket of the connection.
            opened = connection.sock
            cancellation.call(lambda: _shut_down(opened))
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, self._path + path, data, self._headers())
            with connection.getresponse() as answer:
                if answer.status != http.client.OK:
                    raise self._refusal(answer)
                yield answer
        except TimeoutError as error:
            raise self.error(f"sent nothing for {self._timeout:g} seconds") from error
        except ConnectionRefusedError as error:
            raise self.error("nothing listens there; is the server running?") from error
        except (OSError, http.client.HTTPException) as error:
            raise self.error(f"the connection failed: {str(error) or type(error).__name__}") from error
        finally:
            connection.close()

    def _headers(self) -> Mapping[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self._api_key is not None:
            headers["Authorization"] = f"Bearer {self._api_key}"
        return headers

    def _refusal(self, answer: http.client.HTTPResponse) -> GenerationError:
        data = answer.read(_MAX_ANSWER)
        try:
            message = _message(json.loads(data))
        except (ValueError, RecursionError):
            message = _shorten(data)
        hint = " (pass its key as api_key)" if answer.status in (401, 403) else ""
        return self.error(f"HTTP {answer.status} {answer.reason}{hint}: {message}")

    def _body(self, answer: http.client.HTTPResponse) -> bytes:
        data = answer.read(_MAX_ANSWER + 1)
        self._check_size("answer", len(data))
        return data

    def _lines(self, answer: http.client.HTTPResponse) -> Iterator[bytes]:
        size = 0
        while line := answer.readline(_MAX_ANSWER + 1):
            # A blank line ends an event.
            size = size + len(line) if line.strip(b"\r\n") else 0
            self._check_size("event", size)
            yield line

    def _check_size(self, what: str, size: int) -> None:
        if size > _MAX_ANSWER:
            raise self.error(f"sent an {what} of more than {_MAX_ANSWER:,} bytes; is it an inference server?")

    def _object(self, data: str | bytes) -> Json:
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise self.error(f"did not send a JSON object: {_shorten(data)}")
        return found


def _shut_down(opened: socket.socket) -> None:
    """End a connection that another thread waits for. Closing the socket would not wake the thread."""
    with contextlib.suppress(OSError):
        opened.shutdown(socket.SHUT_RDWR)


def _message(answer: Any) -> str:
    """Return the message of an error in the JSON of OpenAI's and FastAPI's servers."""
    for name in ("error", "message", "detail"):
        if isinstance(answer, dict) and answer.get(name):
            answer = answer[name]
    return _shorten(answer if isinstance(answer, str) else json.dumps(answer))


def _shorten(data: str | bytes) -> str:
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    text = " ".join(text.split())
    return text if len(text) <= _MAX_MESSAGE else f"{text[:_MAX_MESSAGE]}..."
