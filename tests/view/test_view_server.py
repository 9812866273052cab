"""The local server of `bpe-tokenizer view`."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from asgi_client import Client, ask
from bpe_tokenizer import BPETokenizer, HubError
from bpe_tokenizer.errors import OptionError
from bpe_tokenizer.formats import registry
from bpe_tokenizer.view.packed import pack
from bpe_tokenizer.view.page import content_security_policy
from bpe_tokenizer.view.server import create_app, open_socket
from html_tree import check_page
from page_core import HAS_CORE


@pytest.fixture(scope="module")
def tokenizer() -> BPETokenizer:
    return BPETokenizer(normalization=None).train("low low lower newest", vocab_size=262, verbose=False)


@pytest.fixture(scope="module")
def app(tokenizer: BPETokenizer) -> Any:
    pytest.importorskip("starlette", reason="the local page needs starlette")
    if not HAS_CORE:
        pytest.skip("page.html is missing: run `make wasm`")
    return create_app({"a": tokenizer, "saved/b": tokenizer}, "low", load=BPETokenizer.load)


def test_the_page_is_served(app: Any) -> None:
    answer = ask(app, "GET", "/")
    assert answer.status == 200
    assert answer.headers["content-security-policy"].startswith(content_security_policy(server=True))
    assert json.loads(check_page(answer.body.decode()).block("data"))["text"] == "low"


def test_tokenizers_are_served_by_name(app: Any, tokenizer: BPETokenizer) -> None:
    for name in ("a", "saved/b"):
        answer = ask(app, "GET", f"/tokenizers/{name}")
        assert (answer.status, answer.headers["content-type"]) == (200, "application/octet-stream")
        assert gzip.decompress(answer.body) == pack(tokenizer)


def test_other_names_are_not_served(app: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("b", "../a", "/etc/passwd", "a/", ""):
        answer = ask(app, "GET", f"/tokenizers/{name}")
        assert (answer.status, b"unknown name" in answer.body) == (404, True)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert ask(create_app({}, ""), "GET", "/tokenizers/p50k_base").status == 404
    answer = ask(app, "GET", "/tokenizers/p50k_base")
    assert answer.status == 404
    assert b"this machine does not have p50k_base. Drop its file here" in answer.body


@pytest.mark.parametrize("downloads", [False, True])
def test_repositories_of_the_hub(tokenizer: BPETokenizer, downloads: bool) -> None:
    asked: list[str] = []

    def load(name: str) -> BPETokenizer:
        asked.append(name)
        if name == "hf:owner/missing":
            raise HubError(f"{name}: there is no such repository")
        return tokenizer

    served = create_app({}, "", load=load, downloads=downloads)
    assert gzip.decompress(ask(served, "GET", "/tokenizers/hf:owner/name").body) == pack(tokenizer)
    answer = ask(served, "GET", "/tokenizers/hf:owner/missing")
    said = b"no such repository" if downloads else b"does not have hf:owner/missing"
    assert (answer.status, said in answer.body) == (404, True)
    assert asked == ["hf:owner/name", "hf:owner/missing"]
    assert ask(create_app({}, ""), "GET", "/tokenizers/hf:owner/name").status == 404


def post(app: Any, files: Mapping[str, bytes], **headers: str) -> Client:
    """Send files as the page does."""
    pairs = [pair for name, data in files.items() for pair in (("name", name), ("size", len(data)))]
    return ask(app, "POST", "/files", query=urlencode(pairs), body=b"".join(files.values()), **headers)


def saved_files(directory: Path) -> Iterator[dict[str, bytes]]:
    """The files of a tokenizer, in several formats."""
    made = BPETokenizer("gpt2", None)
    model = made.train("low low lower", 260, special_tokens={"<a>": 300}, verbose=False).model

    def files(name: str, *names: str) -> dict[str, bytes]:
        registry.save(model, directory, name)
        return {name: (directory / name).read_bytes() for name in names}

    yield files("huggingface", "tokenizer.json", "tokenizer_config.json")
    directory /= "pair"
    yield files("gpt2", "merges.txt", "vocab.json", "tokenizer_config.json")
    pair = files("gpt2", "vocab.json", "merges.txt")
    yield pair
    yield {f"mine-{name}": data for name, data in pair.items()}
    for name in ("gguf", "base64-json", "minbpe"):
        registry.save(model, directory / f"my {name}.model", name)
        yield {f"my {name}.model": (directory / f"my {name}.model").read_bytes()}


def test_files_are_read_as_the_package_reads_them(app: Any, tmp_path: Path) -> None:
    count = 0
    for number, files in enumerate(saved_files(tmp_path / "saved")):
        directory = tmp_path / str(number)
        directory.mkdir()
        for name, data in files.items():
            (directory / name).write_bytes(data)
        first = next(iter(files))
        path = directory if first == "tokenizer.json" else directory / first
        answer = post(app, files)
        assert (answer.status, answer.headers["content-type"]) == (200, "application/octet-stream")
        assert gzip.decompress(answer.body) == pack(BPETokenizer.load(path)), files.keys()
        count += 1
    assert count == 7


def test_roles_of_a_config_beside_a_tokenizer_json_arrive(app: Any, tmp_path: Path) -> None:
    made = BPETokenizer().train("low low", 258, special_tokens=["<a>"], verbose=False)
    made.save(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    files = {
        "tokenizer.json": (tmp_path / "tokenizer.json").read_bytes(),
        "tokenizer_config.json": json.dumps(config | {"eos_token": "<a>"}).encode(),
    }
    assert b',{"eos":"<a>"}]' in gzip.decompress(post(app, files).body)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"tokenizer.json": b"{"}, "tokenizer.json: "),
        ({"tokenizer.json": b'{"model": {"type": "WordPiece"}}'}, "tokenizer.json: "),
        ({"vocab.json": b"{}"}, "vocab.json: "),
        ({"a.gguf": b"GGUF"}, "a.gguf: "),
        ({"empty.json": b""}, "empty.json: is empty"),
        ({"tekken.json": b'{"config": {}, "vocab": []}', "x": b""}, "tekken.json: "),
    ],
)
def test_the_errors_of_readers_name_the_files(app: Any, files: dict[str, bytes], message: str) -> None:
    answer = post(app, files)
    assert answer.status == 422
    assert answer.body.decode().startswith(message)
    assert tempfile.gettempdir() not in answer.body.decode()


NAMES = [
    "",
    ".",
    "..",
    "/etc/passwd",
    "../a.json",
    "a/b.json",
    "a\\b.json",
    "C:x",
    "x:y",
    "a\0",
    "a\n",
    "a" * 300,
]


@pytest.mark.parametrize("name", NAMES)
def test_files_have_plain_names(app: Any, name: str) -> None:
    assert post(app, {name: b"{}"}).status == 400
    assert post(app, {"tokenizer.json": b"{}", name: b"{}"}).status == 400


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 400),
        ("name=a", 400),
        ("name=a&size=1&size=1", 400),
        ("name=a&size=-1", 400),
        ("name=a&size=x", 400),
        ("name=a&size=%D9%A3", 400),
        ("name=a&size=3", 400),
        ("name=a&size=5", 400),
        ("name=a&size=200000001", 413),
        ("name=a&size=100000001&name=b&size=100000000", 413),
        ("&".join(f"name={number}&size=0" for number in range(17)), 400),
    ],
)
def test_sizes_are_those_of_the_body_and_bounded(app: Any, query: str, status: int) -> None:
    assert ask(app, "POST", "/files", query=query, body=b"{}\n\n").status == status


def test_files_of_other_pages_are_refused(app: Any) -> None:
    files = {"tokenizer.json": b"{}"}
    assert post(app, files, host="evil.example").status == 400
    assert post(app, files, origin="https://evil.example").status == 400
    assert post(app, files, sec_fetch_site="cross-site").status == 400
    assert post(app, files, origin="http://127.0.0.1:8000").status == 422
    secret = create_app({}, "", load=BPETokenizer.load, token="secret", one_time_token="once")
    for path in ("/files", "/other/files", "/once/files"):
        assert ask(secret, "POST", path, query="name=a&size=0").status in (403, 404)
    assert ask(secret, "POST", "/secret/files", query="name=a&size=0").status == 422
    assert post(create_app({}, ""), files).status == 404


def test_it_listens_on_this_machine_only() -> None:
    with open_socket(0) as first:
        address, port = first.getsockname()
        assert address == "127.0.0.1"
        with pytest.raises(OptionError, match=f"port {port} cannot be used"):
            open_socket(port)


def test_a_conversation_in_the_template_of_a_model(tmp_path: Path) -> None:
    pytest.importorskip("starlette", reason="the local page needs starlette")
    if not HAS_CORE:
        pytest.skip("page.html is missing: run `make wasm`")
    BPETokenizer().train("low low", 258, verbose=False).save(tmp_path)
    plain = BPETokenizer.load(tmp_path)
    (tmp_path / "chat_template.jinja").write_text("{{ messages[0].content }}", encoding="utf-8")
    own = BPETokenizer.load(tmp_path)
    app = create_app({"own": own, "plain": plain}, "", load=BPETokenizer.load)
    assert ask(app, "GET", "/tokenizers/own").headers["x-chat"] == "own"
    assert "x-chat" not in ask(app, "GET", "/tokenizers/plain").headers
    body = json.dumps({"messages": [{"role": "user", "content": "low"}]}).encode()

    def chat(name: str, body: bytes, **headers: str) -> Client:
        headers = {"content_length": str(len(body))} | headers
        return ask(app, "POST", "/chat", query=urlencode({"name": name}), body=body, **headers)

    answer = chat("own", body)
    assert (answer.status, json.loads(answer.body)["text"]) == (200, "low")
    assert chat("plain", body).status == chat("other", body).status == chat("own", b"{").status == 404
    assert chat("own", body, origin="https://evil.example").status == 400
    assert chat("own", body, content_length="9" * 9).status == 413
    files = {each.name: each.read_bytes() for each in tmp_path.iterdir() if each.is_file()}
    kept = post(app, {"tokenizer.json": files.pop("tokenizer.json"), **files}).headers["x-chat"]
    assert chat(kept, body).status == 200
