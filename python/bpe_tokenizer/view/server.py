"""The page as a local server's, where what is typed is cut as it is typed."""

from __future__ import annotations

import importlib
import json
import os
import socket
import threading
import webbrowser
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from bpe_tokenizer.errors import MissingDependencyError, OptionError, TokenizerError
from bpe_tokenizer.tokenizer import BPETokenizer
from bpe_tokenizer.view.page import LONGEST_TEXT, columns_of, page, policy

__all__ = ["application", "listening", "serve"]

HOST = "127.0.0.1"
# Names that a browser on this machine may know the server by. Any other is a page from elsewhere that had its
# own name point here (DNS rebinding).
_NAMES = (HOST, "localhost")
# JSON escapes a character in at most 12 bytes.
_LONGEST_BODY = 12 * LONGEST_TEXT + 1000


def application(
    tokenizers: Mapping[str, BPETokenizer], text: str, allowed_special: str | set[str] = "none"
) -> Any:
    """Return the ASGI application: the page at `/`, and `/tokens`, which takes `{"text": ...}`.

    It answers only requests to this machine's own names, and sends no header that would let pages of other
    origins read what it answers.

    Args:
        tokenizers: The tokenizers by what they are called.
        text: The text that the page begins with.
        allowed_special: The special tokens that are recognised: `"none"`, `"all"` or a set.

    Raises:
        MissingDependencyError: Starlette is not installed.
    """
    applications = _library("starlette.applications")
    in_thread = _library("starlette.concurrency").run_in_threadpool
    middleware = _library("starlette.middleware")
    responses = _library("starlette.responses")
    routing = _library("starlette.routing")
    trusted_host = _library("starlette.middleware.trustedhost").TrustedHostMiddleware
    headers = {
        "Content-Security-Policy": f"{policy(is_live=True)}; frame-ancestors 'none'",
        "Cache-Control": "no-store",
        "Cross-Origin-Resource-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
    }
    first = page(tokenizers, text, allowed_special, is_live=True).encode("utf-8", errors="replace")

    async def whole(request: Any) -> Any:
        return responses.HTMLResponse(first, headers=headers)

    async def tokens(request: Any) -> Any:
        try:
            _check_origin(request.headers)
            typed = _text_of(await _body(request))
            html = await in_thread(columns_of, tokenizers, typed, allowed_special)
        except TokenizerError as error:
            return responses.PlainTextResponse(str(error), 400, headers=headers)
        return responses.HTMLResponse(html.encode("utf-8", errors="replace"), headers=headers)

    return applications.Starlette(
        routes=[
            routing.Route("/", whole, methods=["GET"]),
            routing.Route("/tokens", tokens, methods=["POST"]),
        ],
        middleware=[middleware.Middleware(trusted_host, allowed_hosts=list(_NAMES), www_redirect=False)],
    )


def _check_origin(headers: Mapping[str, str]) -> None:
    """Refuse what a page of another origin sends: it could not read the answer, but cause work."""
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        raise OptionError(f"requests of pages from {origin} are not answered")
    if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise OptionError("the text must come as application/json")


async def _body(request: Any) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _LONGEST_BODY:
            raise OptionError(
                f"the text is longer than {LONGEST_TEXT:,} characters, which is as much as fits"
            )
    return body


def _text_of(body: bytes) -> str:
    try:
        text = json.loads(body)["text"]
    except (ValueError, TypeError, KeyError, RecursionError):
        text = None
    if not isinstance(text, str):
        raise OptionError('the request must be JSON of the form {"text": "..."}')
    return text


def listening(port: int) -> socket.socket:
    """Return a socket that listens on this machine only; port 0 is any that is free.

    Raises:
        OptionError: The port is taken, or may not be used.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name != "nt":  # There it would take the port of a program that listens already.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise OptionError(
            f"port {port} cannot be used ({error.strerror}): take another with --port, or --port 0 for any"
        ) from None
    return listener


def serve(app: Any, listener: socket.socket, *, opens_browser: bool) -> None:
    """Serve an application until Ctrl-C, and print where.

    Args:
        app: The application.
        listener: Where it listens.
        opens_browser: Open the page in the user's browser.

    Raises:
        MissingDependencyError: Uvicorn is not installed.
    """
    uvicorn = _library("uvicorn")
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=1
    )
    address = f"http://{HOST}:{listener.getsockname()[1]}/"
    print(f"{address} (Ctrl-C ends)", flush=True)
    if opens_browser:
        # A browser that runs in the terminal would otherwise wait for a page that is not served yet.
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    uvicorn.Server(config).run(sockets=[listener])


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            f"the local page needs {name.partition('.')[0]}, which is not installed: "
            "pip install starlette uvicorn (--html FILE and --plain do without)"
        ) from error
