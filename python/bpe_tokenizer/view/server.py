"""A local server for the page, and for the tokenizers that the page asks for by name or sends as files.

It gets no text but conversations for a model's own chat template: the page works in the browser. It serves
one user of this machine, and trusts no request: not of other pages in its browser, not of other users. The
address holds a secret token. Work and memory are bounded, whatever is sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import io
import json
import logging
import os
import secrets
import socket
import tempfile
import threading
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from bpe_tokenizer.errors import HubError, OptionError, TokenizerError, shorten
from bpe_tokenizer.formats.names import HUB_PREFIX
from bpe_tokenizer.libraries import import_library
from bpe_tokenizer.special_tokens import AllowedSpecial
from bpe_tokenizer.view.own_chat import has_own_template, render_own
from bpe_tokenizer.view.page import content_security_policy, packed_gzip, page, published_names

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
# A tokenizer takes up to a second and 300 MB to be loaded and packed, so one is worked on at a time. Few more
# requests wait, and even more are refused. The page sends one at a time.
_MAX_REQUESTS = 8
# The files of one tokenizer. `tokenizers.js` has the same number of bytes.
_MAX_FILES = 16
_MAX_BYTES = 200_000_000
# A conversation, and how many tokenizers stay loaded for conversations.
_MAX_CONVERSATION = 5_000_000
_MAX_LOADED = 4
# Connections, and seconds for a client to send a request, its body, or to take an answer.
_MAX_CONNECTIONS = 64
_REQUEST_SECONDS = 10
_BODY_SECONDS = 30
_ANSWER_SECONDS = 30
_SHUTDOWN_SECONDS = 0.3
# An answer is sent in parts of this size, each when the client has taken the previous one.
_PART_BYTES = 1 << 16


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
    load: Callable[[str], BPETokenizer] | None = None,
    downloads: bool = False,
    public_url: str = "",
    token: str = "",
    one_time_token: str = "",
) -> Any:
    """Return the ASGI application: the page, and next to it `tokenizers/NAME`, `files` and `chat`.

    A name is that of a given tokenizer, or a published one. `files` takes the files of a tokenizer. Both
    answer with the packed model, and a header tells whether the model has a chat template, which `chat` uses.
    The application answers only requests to this machine's own names, and sends no header that lets pages of
    other origins read its answers.

    Args:
        tokenizers: The tokenizers by name; the page contains them.
        text: The initial text of the page.
        allowed_special: As in `page`.
        load: Returns the tokenizer of a published name, of a repository of the hub (`hf:owner/name`), or of a
            path; without it, only the given ones are served.
        downloads: Whether `load` downloads what this machine lacks.
        public_url: As in `page`.
        token: The secret part of the address: the page is at `/token/`, and at `/` without a token.
        one_time_token: `/one_time_token/` redirects to the page, once. It may be seen by others, as the
            arguments of a browser are.

    Raises:
        MissingDependencyError: Starlette is not installed, or the core in WebAssembly is missing.
    """
    applications = import_library("starlette.applications", "view")
    requests = import_library("starlette.requests", "view")
    responses = import_library("starlette.responses", "view")
    routing = import_library("starlette.routing", "view")
    headers = {
        "Content-Security-Policy": f"{content_security_policy(server=True)}; frame-ancestors 'none'",
        "Cache-Control": "no-store",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
    initial = page(
        tokenizers, text, allowed_special=allowed_special, server=True, public_url=public_url
    ).encode()
    unused = [one_time_token] if one_time_token else []
    root = f"/{token}/" if token else "/"

    packed = _PackedTokenizers(tokenizers, load, downloads)

    def refusal(error: _RequestError) -> Any:
        more = {"Retry-After": "1"} if error.status == 503 else {}
        return responses.PlainTextResponse(str(error), error.status, headers=headers | more)

    class Application:
        """Answers with the result of a function of a request, or with its refusal."""

        def __init__(self, answer: Callable[[Any, _Send], Awaitable[None]]) -> None:
            self.answer = answer

        async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
            request = requests.Request(scope, receive)
            try:
                _check_host(request.headers)
                given = request.path_params.get("token", "")
                if given in unused and request.method == "GET" and "name" not in request.path_params:
                    unused.remove(given)
                    await responses.RedirectResponse(root, 303, headers=headers)(scope, receive, send)
                    return
                if not hmac.compare_digest(given.encode(errors="replace"), token.encode()):
                    raise _RequestError(403, "open the address that bpe-tokenizer view printed")
                await self.answer(request, send)
            except _RequestError as error:
                await refusal(error)(scope, receive, send)
            except (TimeoutError, requests.ClientDisconnect):
                pass  # The server closes the connection.

    async def get_page(request: Any, send: _Send) -> None:
        await asyncio.wait_for(
            _send(send, initial, "text/html; charset=utf-8", headers, has_body=request.method == "GET"),
            _ANSWER_SECONDS,
        )

    async def get_tokenizer(request: Any, send: _Send) -> None:
        _check_origin(request.headers)
        name = request.path_params["name"]
        await send_packed(send, await packed.get(name), request.method, name)

    async def read_files(request: Any, send: _Send) -> None:
        _check_origin(request.headers)
        name, body = await packed.read(request)
        await send_packed(send, body, request.method, name)

    async def render_chat(request: Any, send: _Send) -> None:
        _check_origin(request.headers)
        answer = await packed.chat(request)
        await asyncio.wait_for(
            _send(send, answer, "application/json", headers, has_body=True), _ANSWER_SECONDS
        )

    async def send_packed(send: _Send, body: bytes, method: str, name: str) -> None:
        more = {"X-Chat": quote(name)} if packed.has_chat(name) else {}
        await asyncio.wait_for(
            _send(send, body, "application/octet-stream", headers | more, has_body=method != "HEAD"),
            _ANSWER_SECONDS,
        )

    path = "/{token}/" if token else "/"
    routes = [
        routing.Route(path, Application(get_page), methods=["GET"]),
        # The name of a tokenizer may be a path.
        routing.Route(f"{path}tokenizers/{{name:path}}", Application(get_tokenizer), methods=["GET"]),
        routing.Route(f"{path}files", Application(read_files), methods=["POST"]),
        routing.Route(f"{path}chat", Application(render_chat), methods=["POST"]),
    ]
    if token:  # says what is missing
        routes.append(routing.Route("/", Application(get_page), methods=["GET"]))
    app = applications.Starlette(routes=routes)
    app.router.redirect_slashes = False  # It would redirect to the host that the request names.
    return app


class _PackedTokenizers:
    """Packs tokenizers, one at a time, and keeps those with names: there are few.

    Args:
        given: The tokenizers of the page, by name.
        load: Returns a published tokenizer, or that of a path.
        downloads: Whether `load` downloads.
    """

    def __init__(
        self, given: Mapping[str, BPETokenizer], load: Callable[[str], BPETokenizer] | None, downloads: bool
    ) -> None:
        names = [each["name"] for each in published_names()] if load is not None else []
        self._loaders = {name: partial(load, name) for name in names if load is not None}
        self._loaders |= {name: partial(given.__getitem__, name) for name in given}
        self._load = load
        self._downloads = downloads
        self._packed: dict[str, bytes] = {}
        self._given = given
        # Those with a chat template, the last used at the end.
        self._loaded: dict[str, BPETokenizer] = {}
        self._files = 0
        self._requests = 0
        self._lock = asyncio.Lock()

    async def get(self, name: str) -> bytes:
        """Return a packed tokenizer.

        Raises:
            _RequestError: The request is refused.
        """
        if name.startswith(HUB_PREFIX) and self._load is not None:
            async with self._turn():
                return await _in_thread(self._pack, name)  # The page keeps it.
        if name not in self._loaders:
            raise _RequestError(404, f"unknown name {shorten(name)}")
        async with self._turn():
            if name not in self._packed:
                self._packed[name] = await _in_thread(self._pack, name)
        return self._packed[name]

    def has_chat(self, name: str) -> bool:
        """Return whether a tokenizer that was packed has a chat template."""
        return name in self._loaded or (name in self._given and has_own_template(self._given[name]))

    async def chat(self, request: Any) -> bytes:
        """Return a conversation in the chat template of the tokenizer that the query names, as JSON.

        Raises:
            _RequestError: The request is refused.
        """
        name = request.query_params.get("name", "")
        async with self._turn():
            size = request.headers.get("content-length", "")
            if not size.isdecimal() or int(size) > _MAX_CONVERSATION:
                raise _RequestError(413, f"a conversation has at most {_MAX_CONVERSATION:,} bytes")
            body = await asyncio.wait_for(_body(request, int(size)), _BODY_SECONDS)
            tokenizer = self._loaded.get(name) or self._given.get(name)
            if tokenizer is None or not has_own_template(tokenizer):
                raise _RequestError(404, f"{shorten(name)[1:-1]} is not loaded, or has no chat template")
            return await _in_thread(lambda: json.dumps(render_own(tokenizer, body)).encode())

    def _keep(self, name: str, tokenizer: BPETokenizer) -> bytes:
        """Pack a tokenizer, and keep it for conversations."""
        if has_own_template(tokenizer):
            self._loaded.pop(name, None)
            self._loaded[name] = tokenizer
            while len(self._loaded) > _MAX_LOADED:
                del self._loaded[next(iter(self._loaded))]
        return packed_gzip(tokenizer)

    async def read(self, request: Any) -> tuple[str, bytes]:
        """Return a name for the files in a request, and their packed tokenizer.

        The body is all files, and the query has the `name` and the `size` of each. The first is the
        tokenizer, and the others are beside it.

        Raises:
            _RequestError: The request is refused.
        """
        if self._load is None:
            raise _RequestError(404, "this server reads no files")
        names, sizes = _files(request.query_params)
        async with self._turn():
            body = await asyncio.wait_for(_body(request, sum(sizes)), _BODY_SECONDS)
            self._files += 1
            name = f"files/{self._files}"
            return name, await _in_thread(self._read, name, names, sizes, body)

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait until no other tokenizer is worked on; turn the errors of the work into refusals."""
        if self._requests >= _MAX_REQUESTS:
            raise _RequestError(503, "too many requests at once: wait a second")
        self._requests += 1
        try:
            async with self._lock:
                yield
        except MemoryError:
            raise _RequestError(503, "not enough memory for this tokenizer") from None
        except TokenizerError as error:
            raise _RequestError(404, str(error)) from None
        finally:
            self._requests -= 1

    def _pack(self, name: str) -> bytes:
        load = self._loaders.get(name)
        if load is None:
            assert self._load is not None
            load = partial(self._load, name)
        try:
            return self._keep(name, load())
        except HubError:
            if self._downloads:
                raise
            raise _RequestError(
                404,
                f"this machine does not have {shorten(name)[1:-1]}. Drop its file here, or end this page "
                "and start it again with --download",
            ) from None

    def _read(self, kept: str, names: list[str], sizes: list[int], body: bytes) -> bytes:
        """Read files as the package reads those of a directory."""
        assert self._load is not None
        content = io.BytesIO(body)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
            try:
                for name, size in zip(names, sizes, strict=True):
                    Path(directory, name).write_bytes(content.read(size))
            except OSError as error:
                raise _RequestError(400, f"{shorten(name)} cannot be written: {error.strerror}") from None
            # The files beside a tokenizer.json count with its directory only.
            path = directory if names[0] == "tokenizer.json" else str(Path(directory, names[0]))
            try:
                return self._keep(kept, self._load(path))
            except TokenizerError as error:
                # The user knows the names of the files, but not the directory.
                message = str(error).replace(f"{directory}{os.sep}", "").replace(directory, names[0])
                raise _RequestError(422, message) from None


def _files(query: Any) -> tuple[list[str], list[int]]:
    """Return the names and sizes of files from a query."""
    names, sizes = query.getlist("name"), query.getlist("size")
    if not 0 < len(names) == len(sizes) <= _MAX_FILES:
        raise _RequestError(400, f"a request has the names and sizes of 1 to {_MAX_FILES} files")
    for name in names:
        is_base_name = name == PurePosixPath(name).name == PureWindowsPath(name).name
        if not is_base_name or name in ("", "..") or not name.isprintable():
            raise _RequestError(400, f"{shorten(name)} is not the name of a file")
    if not all(size.isascii() and size.isdecimal() and len(size) < 12 for size in sizes):
        raise _RequestError(400, "a size is not a number of bytes")
    if sum(map(int, sizes)) > _MAX_BYTES:
        raise _RequestError(413, f"the files have more than {_MAX_BYTES:,} bytes")
    return names, list(map(int, sizes))


async def _body(request: Any, size: int) -> bytes:
    """Return the body of a request, which has this size."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > size:
            break
    if len(body) != size:
        raise _RequestError(400, "the request does not have the bytes that it names")
    return bytes(body)


async def _in_thread(function: Callable[..., bytes], *args: object) -> bytes:
    """Run a function in a thread; a cancelled task still waits until the thread has ended."""
    running = asyncio.get_running_loop().run_in_executor(None, function, *args)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.gather(running, return_exceptions=True)
        raise


async def _send(
    send: _Send, body: bytes, content_type: str, headers: Mapping[str, str], *, has_body: bool
) -> None:
    """Send an answer in parts, so that a client that reads slowly does not fill the memory."""
    fields = {"Content-Type": content_type, "Content-Length": str(len(body)), **headers}
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
    load: Callable[[str], BPETokenizer],
    downloads: bool,
    public_url: str,
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
        load: As in `create_app`.
        downloads: As in `create_app`.
        public_url: As in `page`.
        opens_browser: Whether to open the page in the user's browser.

    Raises:
        MissingDependencyError: Starlette or Uvicorn is not installed.
    """
    token, one_time_token = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    app = create_app(
        tokenizers,
        text,
        allowed_special,
        load=load,
        downloads=downloads,
        public_url=public_url,
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
