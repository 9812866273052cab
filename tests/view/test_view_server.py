"""The local server of `bpe-tokenizer view`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.errors import MissingDependencyError, OptionError
from bpe_tokenizer.view.page import MAX_TEXT, columns_html, content_security_policy
from bpe_tokenizer.view.server import create_app, open_socket
from html_tree import check


@pytest.fixture(scope="module")
def tokenizer() -> BPETokenizer:
    return BPETokenizer(normalization=None).train("low low lower newest", vocab_size=262, verbose=False)


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: str


def ask(app: Any, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
    """Send a request to an ASGI application and return what it answers."""
    sent: list[Mapping[str, Any]] = []
    named = {"host": "127.0.0.1:8000", "content_type": "application/json"} | headers
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in named.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000),
    }

    async def receive() -> Mapping[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    got = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], got, b"".join(each.get("body", b"") for each in sent[1:]).decode())


@pytest.fixture(scope="module")
def app(tokenizer: BPETokenizer) -> Any:
    pytest.importorskip("starlette", reason="the local page needs starlette")
    return create_app({"a": tokenizer}, "low")


def test_the_page_is_served_and_follows_what_is_typed(app: Any, tokenizer: BPETokenizer) -> None:
    answer = ask(app, "GET", "/")
    assert answer.status == 200
    assert answer.headers["content-security-policy"].startswith(content_security_policy(is_live=True))
    assert check(answer.body).text("textarea") == "\nlow"
    for text in ("low newest", "</div><script>", "", "\ud800"):
        typed = ask(app, "POST", "/tokens", json.dumps({"text": text}).encode())
        assert (typed.status, typed.body) == (200, columns_html({"a": tokenizer}, text))


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.", "10.0.0.1:8000", ""]
)
def test_another_host_is_refused(app: Any, host: str) -> None:
    assert ask(app, "GET", "/", host=host).status == 400
    assert ask(app, "POST", "/tokens", b'{"text": "x"}', host=host).status == 400
    assert ask(app, "GET", "/", host="localhost:1234").status == 200


def test_pages_of_other_origins_get_nothing(app: Any) -> None:
    body = b'{"text": "x"}'
    for origin in ("https://evil.example", "null", "http://127.0.0.1:9999", "http://localhost:8000"):
        answer = ask(app, "POST", "/tokens", body, origin=origin)
        assert (answer.status, "bpe-" in answer.body) == (400, False)
        assert not [name for name in answer.headers if name.startswith("access-control")]
    assert ask(app, "POST", "/tokens", body, origin="http://127.0.0.1:8000").status == 200
    assert ask(app, "POST", "/tokens", body, content_type="text/plain").status == 400
    assert ask(app, "OPTIONS", "/tokens", origin="https://evil.example").status == 405


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"text": 1}', b"\xff", b'"text"', b"[" * 100_000])
def test_a_request_that_is_no_text_is_refused(app: Any, body: bytes) -> None:
    answer = ask(app, "POST", "/tokens", body)
    assert (answer.status, answer.body) == (400, 'the request must be JSON of the form {"text": "..."}')


def test_a_text_that_is_too_long_is_refused(app: Any) -> None:
    for length, said in (
        (MAX_TEXT + 1, "the text has 50,001 characters"),
        (13 * MAX_TEXT, "the text is longer than 50,000 characters"),
    ):
        answer = ask(app, "POST", "/tokens", json.dumps({"text": "x" * length}).encode())
        assert answer.status == 400
        assert answer.body.startswith(said)


def test_without_starlette_the_error_names_the_command(
    tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "starlette"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'bpe-tokenizer\[view\]'"):
        create_app({"a": tokenizer}, "low")


def test_it_listens_on_this_machine_only() -> None:
    with open_socket(0) as first:
        address, port = first.getsockname()
        assert address == "127.0.0.1"
        with pytest.raises(OptionError, match=f"port {port} cannot be used"):
            open_socket(port)
