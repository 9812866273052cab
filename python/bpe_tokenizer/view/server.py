"""A local server for the page: it tokenizes text while the user types.

It serves one user of this machine, and trusts no request: not of other pages in its browser, not of
other users. The address holds a secret token. Work and memory are bounded whatever is sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import os
import secrets
import socket
import threading
import webbrowser
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, TypeAlias

from bpe_tokenizer.errors import OptionError, TokenizerError, shorten
from bpe_tokenizer.libraries import import_library
from bpe_tokenizer.special_tokens import AllowedSpecial
from bpe_tokenizer.view.page import MAX_TEXT, columns_html, content_security_policy, page

if TYPE_CHECKING:
    from bpe_tokenizer.tokenizer import BPETokenizer

__all__ = ["create_app", "open_socket", "serve"]

_Scope: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

HOST = "127.0.0.1"
# The host names of a browser on this machine. A request with any other name comes from a foreign page whose
# name resolves to this machine (DNS rebinding).
_HOST_NAMES = (HOST, "localhost")
# JSON escapes a character in at most 12 bytes.
_MAX_BODY = 12 * MAX_TEXT + 1000
# A text takes up to 200 MB and two seconds, so few are worked on at once; more posts wait, and even more are
# refused. The page sends one at a time.
_MAX_AT_ONCE = 2
_MAX_POSTS = 12
# Connections, and seconds for a client to send a request, its body, or to take an answer.
_MAX_CONNECTIONS = 64
_REQUEST_SECONDS = 10
_ANSWER_SECONDS = 30
_SHUTDOWN_SECONDS = 0.3
# An answer is sent in parts of this size, each when the client has taken the previous one.
_PART_BYTES = 1 << 16


class _ClientGoneError(Exception):
    """The client of a request is gone."""


class _RequestError(Exception):
    """A request that is refused: the status code, the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def create_app(
    tokenizers: Mapping[str, BPETokenizer],
    text: str,
    allowed_special: AllowedSpecial = "none",
    *,
    token: str = "",
    one_time_token: str = "",
) -> Any:
    """Return the ASGI application: the page, and next to it `tokens`, which takes `{"text": ...}`.

    It answers only requests to this machine's own names, and sends no header that lets pages of other
    origins read its answers.

    Args:
        tokenizers: The tokenizers by name.
        text: The initial text of the page.
        allowed_special: The special tokens to recognise: `"none"`, `"all"` or a set.
        token: The secret part of the address: the page is at `/token/`, and at `/` without a token.
        one_time_token: `/one_time_token/` redirects to the page, once. It may be seen by others, as the
            arguments of a browser are.

    Raises:
        MissingDependencyError: Starlette is not installed.
    """
    applications = import_library("starlette.applications", "view")
    responses = import_library("starlette.responses", "view")
    routing = import_library("starlette.routing", "view")
    headers = {
        "Content-Security-Policy": f"{content_security_policy(is_live=True)}; frame-ancestors 'none'",
        "Cache-Control": "no-store",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
    initial = page(tokenizers, text, allowed_special, is_live=True).encode("utf-8", errors="replace")
    unused = [one_time_token] if one_time_token else []
    root = f"/{token}/" if token else "/"

    def html(text: str, check: Callable[[], None]) -> bytes:
        return columns_html(tokenizers, text, allowed_special, check).encode("utf-8", errors="replace")

    work = _Work(html)

    def refusal(error: _RequestError) -> Any:
        more = {"Retry-After": "1"} if error.status == 503 else {}
        return responses.PlainTextResponse(str(error), error.status, headers=headers | more)

    class Application:
        """Answers with the result of a function of a request, or with its refusal."""

        def __init__(self, answer: Callable[[Any, _Send], Awaitable[None]]) -> None:
            self.answer = answer

        async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
            request = import_library("starlette.requests", "view").Request(scope, receive)
            try:
                _check_host(request.headers)
                given = request.path_params.get("token", "")
                if given in unused and request.method == "GET":
                    unused.remove(given)
                    await responses.RedirectResponse(root, 303, headers=headers)(scope, receive, send)
                    return
                if not hmac.compare_digest(given.encode(errors="replace"), token.encode()):
                    raise _RequestError(403, "open the address that bpe-tokenizer view printed")
                await self.answer(request, send)
            except _RequestError as error:
                await refusal(error)(scope, receive, send)
            except (_ClientGoneError, asyncio.TimeoutError):
                pass  # The server closes the connection.

    async def get_page(request: Any, send: _Send) -> None:
        await asyncio.wait_for(
            _send_html(send, initial, headers, has_body=request.method == "GET"), _ANSWER_SECONDS
        )

    async def post_tokens(request: Any, send: _Send) -> None:
        _check_origin(request.headers)
        await work.answer(request, lambda body: _send_html(send, body, headers))

    path = "/{token}/" if token else "/"
    routes = [
        routing.Route(path, Application(get_page), methods=["GET"]),
        routing.Route(f"{path}tokens", Application(post_tokens), methods=["POST"]),
    ]
    if token:  # says what is missing
        routes.append(routing.Route("/", Application(get_page), methods=["GET"]))
    app = applications.Starlette(routes=routes)
    app.router.redirect_slashes = False  # It would redirect to the host that the request names.
    return app


class _Work:
    """Turns posted texts into HTML: few at once, and only while their clients wait.

    Args:
        html: Returns the HTML of a text; it calls its second argument now and then, which may raise.
    """

    def __init__(self, html: Callable[[str, Callable[[], None]], bytes]) -> None:
        self._html = html
        self._posts = 0
        self._slots = asyncio.Semaphore(_MAX_AT_ONCE)

    async def answer(self, request: Any, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Read a text, and send its HTML.

        Raises:
            _ClientGoneError: The client is gone.
            _RequestError: The request is refused.
        """
        if self._posts >= _MAX_POSTS:
            raise _RequestError(503, "too many requests at once: wait a second")
        self._posts += 1
        try:
            text = await _read_text(request)
            await self._work(request, text, send)
        finally:
            self._posts -= 1

    async def _work(self, request: Any, text: str, send: Callable[[bytes], Awaitable[None]]) -> None:
        cancelled = threading.Event()

        def check() -> None:
            if cancelled.is_set():
                raise _ClientGoneError

        async def run() -> None:
            async with self._slots:
                try:
                    body = await _in_thread(self._html, text, check)
                except MemoryError:
                    raise _RequestError(503, "not enough memory for this text") from None
                except TokenizerError as error:
                    raise _RequestError(400, str(error)) from None
                await asyncio.wait_for(send(body), _ANSWER_SECONDS)

        working = asyncio.ensure_future(run())
        gone = asyncio.ensure_future(request.receive())  # after the body: the message that the client is gone
        try:
            await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done() and gone.result()["type"] == "http.disconnect":
                raise _ClientGoneError
            await working
        except asyncio.TimeoutError:
            raise _ClientGoneError from None
        finally:
            cancelled.set()
            gone.cancel()
            working.cancel()
            await asyncio.gather(working, gone, return_exceptions=True)


async def _in_thread(function: Callable[..., bytes], *args: object) -> bytes:
    """Run a function in a thread; a cancelled task still waits until the thread has ended."""
    running = asyncio.get_running_loop().run_in_executor(None, function, *args)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.gather(running, return_exceptions=True)
        raise


async def _send_html(send: _Send, body: bytes, headers: Mapping[str, str], *, has_body: bool = True) -> None:
    """Send an answer in parts, so that a client that reads slowly does not fill the memory."""
    fields = {"Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(body)), **headers}
    raw = [(name.lower().encode(), value.encode()) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": 200, "headers": raw})
    for start in range(0, len(body) if has_body else 0, _PART_BYTES):
        part = body[start : start + _PART_BYTES]
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _only(headers: Any, name: str) -> str:
    """Return the value of a header that must not occur twice; "" if it is absent."""
    values = headers.getlist(name)
    if len(values) > 1:
        raise _RequestError(400, f"the request has several {name} headers")
    return str(values[0]) if values else ""


def _check_host(headers: Any) -> None:
    """Refuse requests to other names than this machine's own."""
    name, colon, port = _only(headers, "host").partition(":")
    if name not in _HOST_NAMES or (colon and not (port.isascii() and port.isdigit())):
        raise _RequestError(400, f"this server answers only to {' and '.join(_HOST_NAMES)}")


def _check_origin(headers: Any) -> None:
    """Refuse requests of other origins: they could not read the answer, but would cost work."""
    host = headers["host"]
    if headers.getlist("origin"):
        origin = _only(headers, "origin")
        if origin not in (f"http://{host}", f"https://{host}"):
            raise _RequestError(
                400, f"this server answers only its own page, not pages from {shorten(origin)}"
            )
    if _only(headers, "sec-fetch-site") not in ("", "same-origin", "none"):
        raise _RequestError(400, "this server answers only its own page")
    if _only(headers, "content-type").partition(";")[0].strip().lower() != "application/json":
        raise _RequestError(400, "send the text as application/json")


async def _read_text(request: Any) -> str:
    """Read a text from a request: never more than its limit, nor for longer than its time."""
    try:
        body = await asyncio.wait_for(_body(request), _REQUEST_SECONDS)
    except asyncio.TimeoutError:
        raise _RequestError(408, "the request takes too long to arrive") from None
    try:
        text = json.loads(body)["text"]
    except (ValueError, TypeError, KeyError, RecursionError):
        text = None
    if not isinstance(text, str):
        raise _RequestError(400, 'the request must be JSON of the form {"text": "..."}')
    return text


async def _body(request: Any) -> bytes:
    body = bytearray()
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise _ClientGoneError
        body += message.get("body", b"")
        if len(body) > _MAX_BODY:
            raise _RequestError(400, f"the text is longer than {MAX_TEXT:,} characters: shorten it")
        if not message.get("more_body", False):
            return bytes(body)


def open_socket(port: int) -> socket.socket:
    """Return a listening socket that only this machine can reach; port 0 chooses a free port.

    Raises:
        OptionError: The port is taken or not permitted.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name != "nt":  # On Windows it would take over the port of a running server.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise OptionError(
            f"port {port} cannot be used ({error.strerror}): choose another with --port, or --port 0 for any"
        ) from None
    return listener


def serve(
    tokenizers: Mapping[str, BPETokenizer],
    text: str,
    allowed_special: AllowedSpecial,
    listener: socket.socket,
    *,
    opens_browser: bool,
) -> None:
    """Print the address of the page and serve it until Ctrl-C.

    The address holds a secret token, so no other user of this machine can open the page. The browser gets a
    token that works once, because others may see its arguments.

    Args:
        tokenizers: As in `create_app`.
        text: As in `create_app`.
        allowed_special: As in `create_app`.
        listener: The listening socket.
        opens_browser: Whether to open the page in the user's browser.

    Raises:
        MissingDependencyError: Starlette or Uvicorn is not installed.
    """
    token, one_time_token = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    app = create_app(
        tokenizers,
        text,
        allowed_special,
        token=token,
        one_time_token=one_time_token if opens_browser else "",
    )
    uvicorn: Any = import_library("uvicorn", "view")
    base: Any = uvicorn.Server
    config = uvicorn.Config(
        app,
        http=_protocol(),
        ws="none",
        log_level="error",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
    address = f"http://{HOST}:{listener.getsockname()[1]}/"
    print(f"{address}{token}/ (Ctrl-C ends)", flush=True)
    if opens_browser:
        # In a thread: a text browser blocks until the page is served.
        browser = threading.Thread(target=webbrowser.open, args=(f"{address}{one_time_token}/",), daemon=True)
        with contextlib.suppress(RuntimeError):  # no thread can start; the address is printed
            browser.start()

    class Server(base):  # type: ignore[misc]
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            # The user ends the work: requests that this cancels are not worth a traceback.
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
            await super().shutdown(sockets)

    Server(config).run(sockets=[listener])


def _protocol() -> type:
    """Return Uvicorn's HTTP protocol with a limit on connections, and on their silence."""
    base: Any = import_library("uvicorn.protocols.http.h11_impl", "view").H11Protocol

    class Protocol(base):  # type: ignore[misc]
        """Closes connections that are too many, or send nothing."""

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            if len(self.connections) > _MAX_CONNECTIONS:
                transport.abort()
            else:
                self.loop.call_later(_REQUEST_SECONDS, self._close_if_silent)

        def _close_if_silent(self) -> None:
            if self.cycle is None:
                self.transport.abort()

    return Protocol
