"""Runs HTTP servers of the tests on this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer

__all__ = ["serving"]


@contextmanager
def serving(server: HTTPServer) -> Iterator[str]:
    """Answer requests until the end of the block. Gives the address of the server."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    with server:
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
