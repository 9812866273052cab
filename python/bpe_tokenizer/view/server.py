"""A local server for the page: it tokenizes text while the user types."""

from __future__ import annotations

import json
import os
import socket
import threading
import webbrowser
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bpe_tokenizer.errors import OptionError, TokenizerError
from bpe_tokenizer.libraries import import_library
from bpe_tokenizer.view.page import MAX_TEXT, columns_html, content_security_policy, page

if TYPE_CHECKING:
    from bpe_tokenizer.tokenizer import BPETokenizer

__all__ = ["create_app", "open_socket", "serve"]

HOST = "127.0.0.1"
# The host names of a browser on this machine. A request with any other name comes from a foreign page whose
# name resolves to this machine (DNS rebinding).
_HOST_NAMES = (HOST, "localhost")
# JSON escapes a character in at most 12 bytes.
_MAX_BODY = 12 * MAX_TEXT + 1000


def create_app(
    tokenizers: Mapping[str, BPETokenizer], text: str, allowed_special: str | set[str] = "none"
) -> Any:
    """Return the ASGI application: the page at `/`, and `/tokens`, which takes `{"text": ...}`.

    It answers only requests to this machine's own names, and sends no header that lets pages of other
    origins read its answers.

    Args:
        tokenizers: The tokenizers by name.
        text: The initial text of the page.
        allowed_special: The special tokens to recognise: `"none"`, `"all"` or a set.

    Raises:
        MissingDependencyError: Starlette is not installed.
    """
    applications = import_library("starlette.applications", "view")
    in_thread = import_library("starlette.concurrency", "view").run_in_threadpool
    middleware = import_library("starlette.middleware", "view")
    responses = import_library("starlette.responses", "view")
    routing = import_library("starlette.routing", "view")
    trusted_host = import_library("starlette.middleware.trustedhost", "view").TrustedHostMiddleware
    headers = {
        "Content-Security-Policy": f"{content_security_policy(is_live=True)}; frame-ancestors 'none'",
        "Cache-Control": "no-store",
        "Cross-Origin-Resource-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
    }
    initial = page(tokenizers, text, allowed_special, is_live=True).encode("utf-8", errors="replace")

    async def get_page(request: Any) -> Any:
        return responses.HTMLResponse(initial, headers=headers)

    async def post_tokens(request: Any) -> Any:
        try:
            _check_origin(request.headers)
            typed = _text_of(await _body(request))
            html = await in_thread(columns_html, tokenizers, typed, allowed_special)
        except TokenizerError as error:
            return responses.PlainTextResponse(str(error), 400, headers=headers)
        return responses.HTMLResponse(html.encode("utf-8", errors="replace"), headers=headers)

    return applications.Starlette(
        routes=[
            routing.Route("/", get_page, methods=["GET"]),
            routing.Route("/tokens", post_tokens, methods=["POST"]),
        ],
        middleware=[middleware.Middleware(trusted_host, allowed_hosts=list(_HOST_NAMES), www_redirect=False)],
    )


def _check_origin(headers: Mapping[str, str]) -> None:
    """Refuse requests of other origins: they could not read the answer, but would cost work."""
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        raise OptionError(f"this server answers only its own page, not pages from {origin}")
    if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise OptionError("send the text as application/json")


async def _body(request: Any) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MAX_BODY:
            raise OptionError(f"the text is longer than {MAX_TEXT:,} characters: shorten it")
    return body


def _text_of(body: bytes) -> str:
    try:
        text = json.loads(body)["text"]
    except (ValueError, TypeError, KeyError, RecursionError):
        text = None
    if not isinstance(text, str):
        raise OptionError('the request must be JSON of the form {"text": "..."}')
    return text


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


def serve(app: Any, listener: socket.socket, *, opens_browser: bool) -> None:
    """Print the address of an application and serve it until Ctrl-C.

    Args:
        app: The ASGI application.
        listener: The listening socket.
        opens_browser: Whether to open the page in the user's browser.

    Raises:
        MissingDependencyError: Uvicorn is not installed.
    """
    uvicorn = import_library("uvicorn", "view")
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=1
    )
    address = f"http://{HOST}:{listener.getsockname()[1]}/"
    print(f"{address} (Ctrl-C ends)", flush=True)
    if opens_browser:
        # In a thread: a text browser blocks until the page is served.
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    uvicorn.Server(config).run(sockets=[listener])
