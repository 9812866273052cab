"""A server on this machine that answers `huggingface_hub` as the Hugging Face hub does.

Its answers are those of https://huggingface.co/docs/hub/api and of the library's own handling of them: the
headers X-Repo-Commit, ETag, X-Linked-Etag, X-Linked-Size and X-Error-Code.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

from local_http import serving

_RESOLVE = re.compile(r"/([^/]+(?:/[^/]+)?)/resolve/([^/]+)/(.+)")
_API = re.compile(r"/api/models/([^/]+(?:/[^/]+)?)/(revision|tree)/([^/?]+)(?:\?.*)?")


class Request(NamedTuple):
    """What was asked: `GET`, the path, and the authorisation and the program that came with it."""

    method: str
    path: str
    authorization: str | None
    agent: str


@dataclass
class HubServer:
    """What the server holds and how it behaves; the tests change it as they go.

    Args:
        address: Where it listens.
        repositories: Of each name and revision, the files.
        moved: Repositories with another name now.
        gated: Repositories that only the token `"admitted"` opens.
        cut: Files whose content ends halfway.
        large: Files that another host hands out.
        is_portal: Answers every question with a page of its own.
        is_unlisted: Cannot list the files of a repository.
        requests: What was asked so far.
    """

    address: str = ""
    repositories: dict[str, dict[str, dict[str, bytes]]] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    gated: set[str] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)
    large: set[str] = field(default_factory=set)
    is_portal: bool = False
    is_unlisted: bool = False
    requests: list[Request] = field(default_factory=list)

    def publish(self, name: str, files: Mapping[str, bytes], revision: str = "main") -> str:
        """Commit these files; returns the commit."""
        commit = commit_of(files)
        self.repositories.setdefault(name, {}).update({revision: dict(files), commit: dict(files)})
        return commit

    def take(self) -> list[Request]:
        """Return what was asked since the last time."""
        taken, self.requests[:] = list(self.requests), []
        return taken


def commit_of(files: Mapping[str, bytes]) -> str:
    return hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def _answer(self) -> None:
        hub = self.server.hub
        authorization, agent = self.headers["Authorization"], self.headers["User-Agent"]
        hub.requests.append(Request(self.command, self.path, authorization, agent))
        if hub.is_portal:
            self._send(200, b"<html>Welcome to our network</html>", {})
        elif self.path.startswith("/blob/"):
            commits = [files for revisions in hub.repositories.values() for files in revisions.values()]
            blobs = {_etag(data): data for files in commits for data in files.values()}
            self._send(200, blobs[self.path.removeprefix("/blob/")], {})
        elif match := _RESOLVE.fullmatch(self.path):
            self._file(*match.groups())
        elif (match := _API.fullmatch(self.path)) and match[1] in hub.moved:
            self._send(307, b"", {"Location": self.path.replace(match[1], hub.moved[match[1]], 1)})
        elif match:
            files_ = self._files(match[1], match[3])
            if files_ is not None and hub.is_unlisted:
                self._send(418, b"", {})
            elif files_ is not None:
                siblings = [{"rfilename": name} for name in files_]
                answer: object = {"id": match[1], "sha": commit_of(files_), "siblings": siblings}
                if match[2] == "tree":
                    fields = [(name, len(data), _etag(data)) for name, data in files_.items()]
                    answer = [
                        {"type": "file", "path": n, "size": size, "oid": oid} for n, size, oid in fields
                    ]
                self._send(200, json.dumps(answer).encode(), {"Content-Type": "application/json"})
        else:
            self._send(404, b"", {})

    def _files(self, name: str, revision: str) -> dict[str, bytes] | None:
        """The files of a revision, or None after an error was sent."""
        hub = self.server.hub
        if name not in hub.repositories:
            self._send(401, b"", {"X-Error-Code": "RepoNotFound"})
            return None
        if revision not in hub.repositories[name]:
            self._send(404, b"", {"X-Error-Code": "RevisionNotFound"})
            return None
        return hub.repositories[name][revision]

    def _file(self, name: str, revision: str, file: str) -> None:
        hub = self.server.hub
        if name in hub.moved:
            self._send(307, b"", {"Location": f"/{hub.moved[name]}/resolve/{revision}/{file}"})
            return
        files = self._files(name, revision)
        if files is None:
            return
        if name in hub.gated and self.headers["Authorization"] != "Bearer admitted":
            self._send(403 if self.headers["Authorization"] else 401, b"", {"X-Error-Code": "GatedRepo"})
            return
        commit = {"X-Repo-Commit": commit_of(files)}
        if file not in files:
            self._send(404, b"", commit | {"X-Error-Code": "EntryNotFound"})
            return
        data = files[file]
        if file in hub.large:
            place = f"{hub.address.replace('127.0.0.1', 'localhost')}/blob/{_etag(data)}"
            linked = {"X-Linked-Etag": f'"{_etag(data)}"', "X-Linked-Size": str(len(data))}
            self._send(302, b"", commit | linked | {"Location": place})
            return
        self._send(200, data, commit | {"ETag": f'"{_etag(data)}"'}, is_cut=file in hub.cut)

    def _send(self, status: int, data: bytes, headers: Mapping[str, str], is_cut: bool = False) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data[: len(data) // 2] if is_cut else data)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, hub: HubServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hub = hub


def _etag(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()


@contextmanager
def running() -> Iterator[HubServer]:
    """Run a server until the end of the block."""
    hub = HubServer()
    with serving(_Server(hub)) as hub.address:
        yield hub


@contextmanager
def only_hub(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """A hub, and a library that knows no other, has no token, and may use the network."""
    constants = import_module("huggingface_hub.constants")
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(directory / "no token"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with running() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        yield server


def requested_files(server: HubServer, method: str) -> list[str]:
    """The names of the files that were requested since the last call."""
    return [request.path.rpartition("/")[2] for request in server.take() if request.method == method]
