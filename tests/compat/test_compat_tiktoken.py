"""tiktoken's interface: `Encoding` and its errors, encodings by name, rank files and the cache."""

from __future__ import annotations

import copy
import hashlib
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

import bpe_tokenizer.compat.tiktoken as tiktoken
from bpe_tokenizer import (
    FormatError,
    HubError,
    ModelError,
    OptionError,
    PatternError,
    TokenizerError,
    UnknownIdError,
)
from bpe_tokenizer.compat.tiktoken import load, registry
from bpe_tokenizer.formats.tiktoken.published import PublishedEncoding, PublishedFile
from bpe_tokenizer.formats.tiktoken.ranks import write_ranks
from tiktoken_files import END, PAD, PATTERN, FileServer, bytes_and, gpt2_files, merged, running


def encoding(*tokens: str | bytes, pat_str: str = PATTERN, **more: Any) -> tiktoken.Encoding:
    ranks = more.pop("mergeable_ranks", bytes_and(*tokens))
    special = more.pop("special_tokens", {END: 1000, PAD: 1001})
    return tiktoken.Encoding("mine", pat_str=pat_str, mergeable_ranks=ranks, special_tokens=special, **more)


@pytest.fixture(scope="module")
def mine() -> tiktoken.Encoding:
    return encoding("he", "ll", "hell", "hello", " w", "é", "日", "\n\n")


# -- text to ids ----------------------------------------------------------------------------------------


def expected(ranks: dict[bytes, int], pattern: str, text: str) -> list[int]:
    """What tiktoken's definition gives: pieces that match, looked up or merged."""
    ids = []
    for piece in (match.group().encode() for match in regex.finditer(pattern, text)):
        ids += [ranks[part] for part in ([piece] if piece in ranks else merged(ranks, piece))]
    return ids


@given(
    tokens=st.lists(st.text("abc", min_size=1, max_size=4), unique=True, min_size=1),
    text=st.text("abc", max_size=9),
)
def test_bytes_need_not_be_tokens(tokens: list[str], text: str) -> None:
    ranks = {token.encode(): index for index, token in enumerate(tokens)}
    ours = encoding(pat_str=r"\w+", mergeable_ranks=ranks, special_tokens={END: len(ranks)})
    try:
        ids = expected(ranks, r"\w+", text)
    except KeyError:
        with pytest.raises(KeyError, match="has no token in this encoding"):
            ours.encode(text)
        with pytest.raises(KeyError, match="has no token in this encoding"):
            ours.encode_batch([text])
        return
    assert ours.encode(text) == ours.encode_to_numpy(text).tolist() == ids
    assert ours.encode_batch([text]) == [ids]
    assert ours.decode(ids) == text
    assert ours.decode_batch([ids]) == [text]
    assert ours.token_byte_values() == sorted(ranks)
    for token_id in (len(ranks) + 1, 99, 300):
        with pytest.raises(KeyError):
            ours.decode([token_id])


def test_surrogates_are_joined_or_replaced(mine: tiktoken.Encoding) -> None:
    for encode in (mine.encode, mine.encode_ordinary, lambda text: mine.encode_batch([text])[0]):
        assert encode("\ud83d\udc4d") == list("👍".encode())
        assert encode("a\ud83d") == list("a\ufffd".encode())
    assert mine.encode_to_numpy("\ud83d").tolist() == list("\ufffd".encode())


# -- special tokens -------------------------------------------------------------------------------------


TEXT = f"hello{END} {PAD}"


def test_two_special_tokens_may_have_one_id() -> None:
    ours = encoding("ab", special_tokens={END: 300, "<|eot|>": 300, "<|a|>": 97, PAD: 301})
    text = f"ab{END}<|eot|><|a|>{PAD}"
    assert ours.encode(text, allowed_special="all") == [256, 300, 300, 97, 301]
    assert ours.encode_to_numpy(text, allowed_special="all").tolist() == [256, 300, 300, 97, 301]
    assert ours.encode_batch([text, "b"], allowed_special="all") == [[256, 300, 300, 97, 301], [98]]
    assert ours.encode("ab<|eot|>", allowed_special={"<|eot|>"}) == [256, 300]
    assert ours.encode("<|eot|>", allowed_special={END}, disallowed_special=()) == [*b"<|eot|>"]
    with pytest.raises(ValueError, match=r"<\|eot\|>"):
        ours.encode("ab<|eot|>")
    assert ours.decode([300, 97, 301]) == f"{END}a{PAD}"
    assert ours.encode_single_token("<|eot|>") == ours.encode_single_token(END) == 300
    assert ours.encode_with_unstable("b<|eot|>", allowed_special="all") == ([98, 300], [])
    assert [ours.is_special_token(token_id) for token_id in (97, 98, 300, 302)] == [True, False, True, False]
    with pytest.raises(KeyError):
        ours.decode([302])


# -- errors ---------------------------------------------------------------------------------------------


def test_an_unknown_id_is_an_error_of_ours_too(mine: tiktoken.Encoding) -> None:
    for call in (
        lambda: mine.decode([5000]),
        lambda: mine.decode([-1]),
        lambda: mine.decode_single_token_bytes(5000),
        lambda: mine.encode_single_token("absent"),
    ):
        with pytest.raises(UnknownIdError) as caught:
            call()
        assert isinstance(caught.value, TokenizerError)
        assert str(caught.value)[0] not in "'\""


FULL = bytes_and()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"mergeable_ranks": {}}, ModelError),
        ({"mergeable_ranks": FULL | {b"aa": 97}}, ModelError),
        ({"mergeable_ranks": FULL | {b"aa": -1}}, TypeError),
        ({"mergeable_ranks": FULL | {b"aa": 2**32}}, TypeError),
        ({"mergeable_ranks": FULL | {"aa": 300}}, TypeError),
        ({"mergeable_ranks": FULL | {b"aa": "300"}}, TypeError),
        ({"special_tokens": {END: -1}}, ModelError),
        ({"special_tokens": {END: 2**32}}, ModelError),
        ({"special_tokens": {"": 300}}, ModelError),
        ({"special_tokens": {END: "300"}}, TypeError),
        ({"pat_str": "("}, PatternError),
        ({"pat_str": 3}, TypeError),
        ({"explicit_n_vocab": 5}, ModelError),
        ({"explicit_n_vocab": 258}, ModelError),
    ],
)
def test_a_broken_encoding_is_refused(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        encoding(**arguments)


# -- pickling -------------------------------------------------------------------------------------------


def test_pickling_and_copying(mine: tiktoken.Encoding) -> None:
    for copied in (pickle.loads(pickle.dumps(mine)), copy.copy(mine), copy.deepcopy(mine)):
        assert copied is not mine
        assert copied.encode(TEXT, allowed_special="all") == mine.encode(TEXT, allowed_special="all")
        assert vars(copied).keys() >= {"name", "_pat_str", "_mergeable_ranks", "_special_tokens"}


def test_what_is_registered_is_pickled_by_its_name(
    mine: tiktoken.Encoding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry.ENCODINGS, "mine", mine)
    data = pickle.dumps(mine)
    assert len(data) < 200
    assert pickle.loads(data)._core_bpe is mine._core_bpe


# -- the import line ------------------------------------------------------------------------------------


PROGRAM = """
import sys
import bpe_tokenizer.compat.tiktoken as tiktoken
from bpe_tokenizer.compat.tiktoken import Encoding, encoding_for_model, get_encoding
from bpe_tokenizer.compat.tiktoken.core import Encoding as again
from bpe_tokenizer.compat.tiktoken.load import load_tiktoken_bpe
from bpe_tokenizer.compat.tiktoken.model import MODEL_TO_ENCODING
assert again is Encoding is tiktoken.Encoding
assert tiktoken.registry and tiktoken.model and tiktoken.core
assert tiktoken.__version__
print(sorted({"tiktoken", "regex", "requests", "blobfile", "transformers"} & sys.modules.keys()))
"""


def test_programs_change_the_import_line_and_load_nothing_else() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_educational_split_needs_regex(mine: tiktoken.Encoding, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "regex", None)
    with pytest.raises(ImportError, match="pip install regex"):
        mine._encode_only_native_bpe("a")


# -- encodings by name ----------------------------------------------------------------------------------


RANKS = bytes_and("ab", "abc")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with running() as content:
        content.files["/tiny.tiktoken"] = write_ranks(RANKS)
        yield content


@pytest.fixture
def registered(server: FileServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FileServer:
    """A registry with one published encoding, which the server has."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "cache"))
    file = PublishedFile(f"{server.address}/tiny.tiktoken", hashlib.sha256(write_ranks(RANKS)).hexdigest())
    published = {"tiny": PublishedEncoding(file, PATTERN, {END: 258}, 259)}
    monkeypatch.setattr(registry, "PUBLISHED", published)
    monkeypatch.setattr("bpe_tokenizer.formats.tiktoken.PUBLISHED", published)
    monkeypatch.setattr(registry, "ENCODINGS", {})
    monkeypatch.setattr(registry, "ENCODING_CONSTRUCTORS", None)
    registry._available_plugin_modules.cache_clear()
    return server


def test_an_encoding_is_made_once(registered: FileServer) -> None:
    tiny = tiktoken.get_encoding("tiny")
    assert tiny.encode(f"abc{END}", allowed_special="all") == [257, 258]
    assert tiny.n_vocab == 259
    assert tiktoken.get_encoding("tiny") is tiny
    assert pickle.loads(pickle.dumps(tiny)).encode("ab") == [256]
    assert tiktoken.list_encoding_names()[0] == "tiny"
    assert registered.requests == ["/tiny.tiktoken"]


def test_another_name_is_refused(registered: FileServer) -> None:
    with pytest.raises(ValueError, match="unknown encoding 'nope'; choose one of tiny"):
        tiktoken.get_encoding("nope")
    nothing: Any = None
    with pytest.raises(ValueError, match="expects a str, not NoneType"):
        tiktoken.get_encoding(nothing)


def test_an_encoding_that_cannot_be_had_is_tried_again(registered: FileServer) -> None:
    kept = registered.files.pop("/tiny.tiktoken")
    with pytest.raises(HubError, match="404"):
        tiktoken.get_encoding("tiny")
    registered.files["/tiny.tiktoken"] = b"something else"
    with pytest.raises(ValueError, match="SHA-256"):
        tiktoken.get_encoding("tiny")
    registered.files["/tiny.tiktoken"] = kept
    assert tiktoken.get_encoding("tiny").encode("ab") == [256]


PLUGIN = """
def mine():
    ranks = {bytes([byte]): byte for byte in range(256)}
    return {"name": "mine", "pat_str": ".", "mergeable_ranks": ranks, "special_tokens": {}}

ENCODING_CONSTRUCTORS = {"NAME": mine}
"""


@pytest.fixture
def plugin(
    registered: FileServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[[str], None]]:
    """Installs a plugin of this text."""
    folder = tmp_path / "site" / "tiktoken_ext"
    folder.mkdir(parents=True)
    monkeypatch.syspath_prepend(str(folder.parent))
    for name in [name for name in sys.modules if name.split(".")[0] == "tiktoken_ext"]:
        monkeypatch.delitem(sys.modules, name)

    def install(text: str) -> None:
        (folder / "my_plugin.py").write_text(text)

    yield install
    for name in [name for name in sys.modules if name.split(".")[0] == "tiktoken_ext"]:
        del sys.modules[name]
    registry._available_plugin_modules.cache_clear()


def test_plugins_of_tiktoken_are_found(plugin: Callable[[str], None]) -> None:
    plugin(PLUGIN.replace("NAME", "mine"))
    assert tiktoken.list_encoding_names() == ["tiny", "mine"]
    assert tiktoken.get_encoding("mine").encode("a") == [97]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (PLUGIN.replace("NAME", "tiny"), "defines 'tiny', which already exists"),
        ("", "does not define ENCODING_CONSTRUCTORS"),
    ],
)
def test_a_broken_plugin_is_named(plugin: Callable[[str], None], text: str, problem: str) -> None:
    plugin(text)
    for _ in range(2):
        with pytest.raises(FormatError, match=rf"tiktoken_ext\.my_plugin {problem}"):
            tiktoken.list_encoding_names()


def test_an_unknown_model_is_a_key_error() -> None:
    for call in (tiktoken.encoding_name_for_model, tiktoken.encoding_for_model):
        with pytest.raises(KeyError) as caught:
            call("gpt-none")
        assert isinstance(caught.value, OptionError)
        assert str(caught.value).startswith("unknown model 'gpt-none'")


# -- rank files and the cache ---------------------------------------------------------------------------


def test_rank_files(tmp_path: Path) -> None:
    path = str(tmp_path / "my.tiktoken")
    load.dump_tiktoken_bpe(RANKS, path)
    data = Path(path).read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    assert load.load_tiktoken_bpe(path) == load.load_tiktoken_bpe(path, digest) == RANKS
    assert load.read_file(path) == data
    assert load.check_hash(data, digest)
    assert not load.check_hash(data, "0" * 64)
    with pytest.raises(ValueError, match="SHA-256"):
        load.load_tiktoken_bpe(path, "0" * 64)
    with pytest.raises(OSError, match=r"none\.tiktoken"):
        load.load_tiktoken_bpe(str(tmp_path / "none.tiktoken"))
    Path(path).write_bytes(data + b"YQ==\n")
    with pytest.raises(ValueError, match=r"my\.tiktoken: line 259"):
        load.load_tiktoken_bpe(path)


def test_what_comes_over_http_is_kept(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "cache"))
    url = f"{server.address}/tiny.tiktoken"
    assert load.load_tiktoken_bpe(url) == RANKS
    assert load.read_file_cached(url) == write_ranks(RANKS)
    assert len(server.requests) == 1
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [hashlib.sha1(url.encode()).hexdigest()]
    with pytest.raises(ValueError, match="SHA-256"):
        load.read_file_cached(url, "0" * 64)
    assert load.read_file(url) == write_ranks(RANKS)
    assert len(server.requests) == 3


def test_other_addresses_need_blobfile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "blobfile", None)
    with pytest.raises(ImportError, match="pip install blobfile"):
        load.read_file("az://somewhere/file")
    with pytest.raises(ImportError, match="pip install blobfile"):
        load.dump_tiktoken_bpe(RANKS, "az://somewhere/file")


def test_gpt2s_two_files_are_ranks(tmp_path: Path) -> None:
    places = tmp_path / "vocab.bpe", tmp_path / "encoder.json"
    for place, data in zip(places, gpt2_files(), strict=True):
        place.write_bytes(data)
    files = str(places[0]), str(places[1])
    first, second = (hashlib.sha256(data).hexdigest() for data in gpt2_files())
    ranks = load.data_gym_to_mergeable_bpe_ranks(*files, first, second)
    assert (len(ranks), ranks[b"!"], ranks[b"abc"]) == (258, 0, 257)
    assert load.data_gym_to_mergeable_bpe_ranks(*files) == ranks
    with pytest.raises(ValueError, match="SHA-256"):
        load.data_gym_to_mergeable_bpe_ranks(*files, second)
    places[1].write_bytes(gpt2_files()[1].replace(b'"!": 0', b'"!": 1').replace(b'"\\"": 1', b'"\\"": 0'))
    with pytest.raises(ValueError, match=r"encoder\.json: the token b'[!\"]' has the id"):
        load.data_gym_to_mergeable_bpe_ranks(*files)
    clobbered = load.data_gym_to_mergeable_bpe_ranks(*files, clobber_one_byte_tokens=True)
    assert (clobbered[b"!"], clobbered[b'"']) == (1, 0)
