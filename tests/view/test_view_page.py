"""Texts cut into tokens to look at: the merges replayed, the HTML, the local page."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import itertools
import json
import random
import re
import sys
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import hf_files
from bpe_tokenizer import BPETokenizer, _core
from bpe_tokenizer.errors import (
    ArgumentTypeError,
    MissingDependencyError,
    NotTrainedError,
    OptionError,
    SpecialTokenError,
)
from bpe_tokenizer.model import AddedToken, Model
from bpe_tokenizer.view.fragment import LONGEST, fragment
from bpe_tokenizer.view.merging import MergeTable
from bpe_tokenizer.view.page import LONGEST_TEXT, columns_of, page, policy
from bpe_tokenizer.view.server import application, listening
from bpe_tokenizer.view.tokens import Visualization
from hostile import hostile_texts

CORPUS = "low low low lower lowest newer newer newest wider widest </script> \"'&<b>é🙂" * 3
ATTACKS = [
    "</script><script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "' onfocus='alert(1)' autofocus='",
    "</textarea><b>bold</b>",
    "<!-- --> ]]> &lt;b&gt; &#60;",
    "</details></section></main></body></html>",
]


@pytest.fixture(scope="module")
def tokenizer() -> BPETokenizer:
    made = BPETokenizer(normalization=None)
    return made.train(CORPUS, vocab_size=300, special_tokens=["<|end|>", "<|other|>"], verbose=False)


# Merges


def random_model(seed: int, **options: Any) -> _core.Model:
    """Make a model whose merges join random tokens of a few letters."""
    chance = random.Random(seed)
    symbols = [letter.encode() for letter in "abcé"]
    if options["alphabet"] == "bytes":
        symbols = sorted({bytes([byte]) for symbol in symbols for byte in symbol})
    tokens, merges = list(symbols), []
    for _ in range(30):
        pair = chance.choice(tokens), chance.choice(tokens)
        if len(b"".join(pair)) < 9 and b"".join(pair) not in tokens:
            merges.append(pair)
            tokens.append(b"".join(pair))
    if options.get("byte_fallback"):
        tokens += [b"<0x%02X>" % byte for byte in range(256)]
    if options.pop("has_unk", False):
        tokens.append(b"<unk>")
        options["unk_id"] = len(tokens) - 1
    return _core.Model(dict(enumerate(tokens)), merges, requires_all_bytes=False, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"alphabet": "bytes"},
        {"alphabet": "bytes", "ignore_merges": True},
        {"alphabet": "bytes", "keeps_gaps": True},
        {"alphabet": "bytes", "has_unk": True, "fuse_unk": True},
        {"alphabet": "characters"},
        {"alphabet": "characters", "has_unk": True},
        {"alphabet": "characters", "has_unk": True, "fuse_unk": True},
        {"alphabet": "characters", "byte_fallback": True},
        {"alphabet": "characters", "byte_fallback": True, "has_unk": True, "ignore_merges": True},
    ],
    ids=lambda options: "-".join(map(str, options)),
)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 32), text=st.text("aaabbbcccéx🙂", max_size=90))
def test_replayed_merges_give_the_ids_of_the_encoder(options: dict[str, Any], seed: int, text: str) -> None:
    core = random_model(seed, **options)
    merging = MergeTable(core).merge(text.encode())
    trace = _core.Encoder(core).trace_merges(text.encode())
    steps = [(step.rank, step.left, step.right, step.token_id) for step in trace.steps]
    assert (tuple(trace.symbols), steps) == (merging.symbols, list(merging.merges))
    assert (tuple(trace.ids), trace.is_whole) == (merging.ids, merging.is_whole)
    assert list(merging.ids) == _core.Encoder(core).encode(text)
    if not merging.is_whole:
        *_, last = merging.rows()
        assert tuple(each for each in last.values() if each is not None) == merging.ids


def test_of_the_possible_merges_the_lowest_rank_comes_first_and_then_the_leftmost() -> None:
    vocab = {0: b"a", 1: b"b", 2: b"ab", 3: b"ba", 4: b"abab"}
    merges = [(b"a", b"b"), (b"b", b"a"), (b"ab", b"ab")]
    table = MergeTable(_core.Model(vocab, merges, requires_all_bytes=False))
    merging = table.merge(b"babab")
    assert [merge[:3] for merge in merging.merges] == [(0, 1, 2), (0, 3, 4), (2, 1, 3)]
    assert [list(row.values()) for row in merging.rows()] == [
        [1, 0, 1, 0, 1],
        [1, 2, 0, 1],
        [1, 2, 2],
        [1, 4],
    ]
    assert merging.ids == (1, 4)


def test_a_piece_that_is_a_token_is_taken_whole_whatever_its_merges_make() -> None:
    vocab = {0: b"a", 1: b"b", 2: b"c", 3: b"ab", 4: b"bc", 5: b"abc"}
    merges = [(b"b", b"c"), (b"a", b"b"), (b"ab", b"c")]
    for ignore_merges in (True, False):
        core = _core.Model(vocab, merges, requires_all_bytes=False, ignore_merges=ignore_merges)
        merging = MergeTable(core).merge(b"abc")
        assert list(merging.ids) == _core.Encoder(core).encode("abc")
        assert (merging.ids, merging.is_whole) == (((5,), True) if ignore_merges else ((0, 4), False))
        assert [merge.rank for merge in merging.merges] == [0]


def test_a_special_token_of_the_vocabulary_is_not_taken_whole() -> None:
    vocab = {0: b"a", 1: b"b", 2: b"ab"}
    added = [AddedToken("ab", 2)]
    core = _core.Model(vocab, [], added_tokens=added, requires_all_bytes=False, ignore_merges=True)
    assert list(MergeTable(core).merge(b"ab").ids) == _core.Encoder(core).encode("ab") == [0, 1]


# What visualize returns


def test_every_piece_has_its_tokens_and_merges(tokenizer: BPETokenizer) -> None:
    for text in [*hostile_texts(50), *ATTACKS, "low<|end|><|other|>er<|end|>"]:
        for special in ("none", "all"):
            shown = tokenizer.visualize(text[:500], allowed_special=special)
            expected = tokenizer.encode(text[:500], allowed_special=special)
            assert shown.ids == expected
            for piece in shown.pieces:
                ids = tuple(token.id for token in piece.tokens)
                if piece.merging is not None:
                    assert piece.merging.ids == ids
                    assert b"".join(token.bytes for token in piece.tokens) == piece.bytes
                else:
                    assert ids[0] in (256, 257)
                    assert len(ids) == 1


def test_tokens_say_where_they_stand(tokenizer: BPETokenizer) -> None:
    text = "ß<|end|>lower"
    shown = tokenizer.visualize(text, allowed_special={"<|end|>"})
    for token in shown.tokens:
        start, end = token.text_bytes
        assert text.encode()[start:end] == token.bytes
        start, end = token.characters
        assert token.bytes in text[start:end].encode()
    # Both bytes of the ß have it.
    assert [token.characters for token in shown.tokens[:3]] == [(0, 1), (0, 1), (1, 8)]
    assert [token.is_added for token in shown.tokens].count(True) == 1
    assert shown.counts.startswith(f"{len(shown.ids)} tokens, 13 characters, 14 bytes; ")


def test_offsets_are_those_of_the_text_as_given_where_it_is_normalised() -> None:
    tokenizer = BPETokenizer(normalization="NFC").train("é é é", vocab_size=258, verbose=False)
    shown = tokenizer.visualize("e\u0301!")
    assert [(token.bytes, token.characters) for token in shown.tokens] == [
        ("é".encode(), (0, 2)),
        (b"!", (2, 3)),
    ]


def test_special_tokens_around_the_text(tmp_path: Path) -> None:
    added = [hf_files.added_token(256, "<s>"), hf_files.added_token(257, "</s>")]
    post_processor = hf_files.template("<s>", "$A", "</s>", ids={"<s>": [256], "</s>": [257]})
    document = hf_files.tokenizer_json(hf_files.bytes_vocab(), added=added, post_processor=post_processor)
    tokenizer = BPETokenizer.load(hf_files.write(tmp_path, document))
    shown = tokenizer.visualize("hé", add_special_tokens=True)
    assert shown.ids == tokenizer.encode("hé", add_special_tokens=True)
    assert (shown.tokens[0].characters, shown.tokens[-1].characters) == ((0, 0), (2, 2))
    assert shown.tokens[-1].text_bytes == (3, 3)
    assert "before character 2" in fragment(shown)


def test_a_byte_token_stands_for_its_byte(tmp_path: Path) -> None:
    vocab = {f"<0x{byte:02X}>": byte for byte in range(256)} | {"▁": 256, "h": 257, "▁h": 258}
    document = hf_files.tokenizer_json(
        vocab,
        [["▁", "h"]],
        byte_fallback=True,
        pre_tokenizer=None,
        normalizer={"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        decoder={
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
    )
    tokenizer = BPETokenizer.load(hf_files.write(tmp_path, document))
    shown = tokenizer.visualize(" h\né")
    assert shown.ids == tokenizer.encode(" h\né") == [258, 10, 0xC3, 0xA9]
    assert [token.bytes for token in shown.tokens] == ["▁h".encode(), b"\n", b"\xc3", b"\xa9"]
    assert str(shown) == "▁h|\\n\n\\xc3|\\xa9"


def test_what_the_model_drops_is_no_added_token() -> None:
    vocab = {0: b"a", 1: b"b", 2: b"ab"}
    added = [AddedToken("<s>", 3), AddedToken("<t>", 4, lstrip=True, rstrip=True)]
    core = _core.Model(vocab, [(b"a", b"b")], added_tokens=added, requires_all_bytes=False)
    tokenizer = BPETokenizer.from_model(Model(core))
    shown = tokenizer.visualize("xx<s>ab<s><s> <t> xx", allowed_special="all")
    assert shown.ids == tokenizer.encode(shown.text, allowed_special="all") == [3, 2, 3, 3, 4]
    assert [piece.bytes for piece in shown.pieces] == [b"xx", b"<s>", b"ab", b"<s>", b"<s>", b" <t> ", b"xx"]
    assert [piece.merging is None for piece in shown.pieces] == [False, True, False, True, True, True, False]


def test_it_refuses_what_encode_refuses(tokenizer: BPETokenizer) -> None:
    with pytest.raises(NotTrainedError):
        BPETokenizer().visualize("a")
    with pytest.raises(ArgumentTypeError, match="visualize expects a str, not bytes"):
        tokenizer.visualize(b"a")  # type: ignore[arg-type]
    with pytest.raises(SpecialTokenError):
        tokenizer.visualize("a", allowed_special={"<|no|>"})


def test_a_terminal_shows_colours_and_a_pipe_none(tokenizer: BPETokenizer) -> None:
    shown = tokenizer.visualize("lower newest")
    for system in ("truecolor", None):
        out = io.StringIO()
        shown.show(Console(file=out, force_terminal=system is not None, color_system=system))
        assert ("\x1b[" in out.getvalue()) == (system is not None)
        assert ("|" in out.getvalue()) == (system is None)
    assert str(shown).replace("|", "") == "lower newest"
    assert repr(shown) == f"<Visualization: {shown.counts}>"


# HTML


class Tree(HTMLParser):
    """Every element of a page with its attributes, and what is between tags; refuses tags out of order."""

    EMPTY = frozenset({"meta", "link", "br"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self, tag: str) -> str:
        return "".join(data for name, data in self.texts if name == tag)


HEADINGS = {"h1", "h2", "h4", "label", "summary", "title"}
BLOCKS = {"body", "details", "div", "head", "html", "li", "main", "ol", "p", "section", "textarea"}
KNOWN = HEADINGS | BLOCKS | {"b", "br", "i", "link", "meta", "script", "span", "style"}

ARIA = {"aria-describedby", "aria-label", "aria-orientation", "aria-selected", "role", "tabindex"}
HEAD = {"charset", "content", "href", "http-equiv", "lang", "name", "rel"}
ATTRIBUTES = ARIA | HEAD | {"class", "data-piece", "dir", "for", "id", "readonly", "spellcheck", "start"}


def check(html: str) -> Tree:
    """Check that a page holds no element, attribute or address but those that it should."""
    tree = Tree(html)
    for tag, attributes in tree.elements:
        assert tag in KNOWN
        assert not [
            name for name in attributes if name.startswith("on") or name in ("style", "src", "autofocus")
        ]
        assert attributes.get("href", "data:,") == "data:,"
    assert len(tree.all("script")) == len(tree.all("style")) == len(tree.all("textarea")) == 1
    assert "://" not in tree.text("script") + tree.text("style")
    return tree


def chips(tree: Tree) -> list[dict[str, str | None]]:
    return [each for each in tree.all("span") if each.get("role") == "option"]


@pytest.mark.parametrize("text", [*ATTACKS, "\n\nleading lines", "", "\x00\u2028\u202e\ud800"])
def test_no_text_breaks_out_of_the_page(tokenizer: BPETokenizer, text: str) -> None:
    for is_live in (False, True):
        tree = check(page({text or "a": tokenizer}, text, "all", is_live=is_live))
        # The HTML of a textarea begins with a line feed that does not count.
        assert tree.text("textarea") == "\n" + text
        assert len(chips(tree)) == len(tokenizer.encode(text))
        assert tree.all("section")[0]["aria-label"] == (text or "a")


@settings(max_examples=100, deadline=None)
@given(text=st.text(st.sampled_from("<>&\"'/=!-scriptab \n`")))
def test_no_random_text_breaks_out_either(tokenizer: BPETokenizer, text: str) -> None:
    check(page({"a": tokenizer}, text))


@pytest.mark.parametrize("attack", [*ATTACKS, "'\"><script>x()</script>"])
def test_a_token_may_be_an_attack(attack: str) -> None:
    tokenizer = BPETokenizer().train("low", 257, special_tokens=[attack], verbose=False)
    tree = check(page({"a": tokenizer}, f"a{attack}", "all"))
    assert f"Token 2 of 2: “{attack}”\n" in (chips(tree)[1]["aria-label"] or "")
    assert attack in tree.text("span")


def test_chips_say_everything_in_words(tokenizer: BPETokenizer) -> None:
    tree = check(page({"a": tokenizer}, "a low<|end|>", "all"))
    labels = [each["aria-label"] or "" for each in chips(tree)]
    ids = tokenizer.encode("a low<|end|>", allowed_special="all")
    assert [int(re.findall(r"\nid (\d+)\n", label)[0]) for label in labels] == ids
    assert labels[0] == f"Token 1 of {len(ids)}: “a”\nid 97\nbytes 61\ncharacter 0, byte 0 of the text"
    assert "added token" in labels[-1]
    assert all(each["tabindex"] == "0" for each in chips(tree))
    colours = [(each["class"] or "").split()[0] for each in chips(tree)]
    assert all(one != other for one, other in itertools.pairwise(colours))


def test_the_merges_of_every_piece_are_listed(tokenizer: BPETokenizer) -> None:
    html = fragment(tokenizer.visualize("low lower low"))
    assert html.count("<h4>Piece “low”</h4>") == html.count("<h4>Piece “ low”</h4>") == 1
    rank = tokenizer.merges.index((b"l", b"o"))
    assert f"rank {rank}: <i>l</i> + <i>o</i> → <b>lo</b>, id {tokenizer.convert_tokens_to_ids('lo')}" in html
    assert {each["data-piece"] for each in chips(Tree(html))} == {"0", "1", "2"}


def test_a_long_piece_is_not_stepped_through_but_has_its_tokens(tokenizer: BPETokenizer) -> None:
    text = "x" * (LONGEST + 1)
    shown = tokenizer.visualize(text)
    assert shown.ids == tokenizer.encode(text)
    assert "too long to be stepped through: 65 symbols" in fragment(shown)
    assert "too long" not in fragment(tokenizer.visualize("x" * LONGEST))


def test_a_notebook_shows_it_without_a_script(tokenizer: BPETokenizer) -> None:
    html = tokenizer.visualize("low </style><script>")._repr_html_()
    tree = Tree(html)
    assert html.startswith("<style>.bpe-tokens ")
    assert not tree.all("script")
    assert len(tree.all("style")) == 1
    assert chips(tree)


def test_the_policy_lets_the_page_run_its_own_script_and_nothing_else(tokenizer: BPETokenizer) -> None:
    for is_live in (False, True):
        tree = check(page({"a": tokenizer}, "low", is_live=is_live))
        (rules,) = (each["content"] or "" for each in tree.all("meta") if each.get("http-equiv"))
        assert rules == policy(is_live=is_live)
        assert rules.startswith("default-src 'none'; ")
        assert "unsafe" not in rules
        for tag in ("script", "style"):
            digest = base64.b64encode(hashlib.sha256(tree.text(tag).encode()).digest()).decode()
            assert f"{tag}-src 'sha256-{digest}'" in rules
        assert ("connect-src" in rules) == is_live
        assert ("readonly" in tree.all("textarea")[0]) == (not is_live)


def test_two_tokenizers_stand_side_by_side(tokenizer: BPETokenizer) -> None:
    other = BPETokenizer(normalization=None).train("new new", vocab_size=258, verbose=False)
    tree = check(page({"one": tokenizer, "other": other}, "new<|end|>", {"<|end|>"}))
    names = [each["aria-label"] for each in tree.all("section") if each.get("class") == "column"]
    assert names == ["one", "other"]
    both = len(tokenizer.encode("new<|end|>", allowed_special="all")) + len(other.encode("new<|end|>"))
    assert len(chips(tree)) == both
    with pytest.raises(SpecialTokenError):
        page({"one": tokenizer, "other": other}, "new", {"<|nobody|>"})


def test_a_text_that_a_browser_could_not_lay_out_is_refused(tokenizer: BPETokenizer) -> None:
    with pytest.raises(OptionError, match="50,001 characters"):
        columns_of({"a": tokenizer}, "x" * (LONGEST_TEXT + 1))


# The server


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
    return application({"a": tokenizer}, "low")


def test_the_page_is_served_and_follows_what_is_typed(app: Any, tokenizer: BPETokenizer) -> None:
    answer = ask(app, "GET", "/")
    assert answer.status == 200
    assert answer.headers["content-security-policy"].startswith(policy(is_live=True))
    assert check(answer.body).text("textarea") == "\nlow"
    for text in ("low newest", "</div><script>", "", "\ud800"):
        typed = ask(app, "POST", "/tokens", json.dumps({"text": text}).encode())
        assert (typed.status, typed.body) == (200, columns_of({"a": tokenizer}, text))


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
        assert (answer.status, "chip" in answer.body) == (400, False)
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
        (LONGEST_TEXT + 1, "the text has 50,001 characters"),
        (13 * LONGEST_TEXT, "the text is longer than 50,000 characters"),
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
    with pytest.raises(MissingDependencyError, match="pip install starlette uvicorn"):
        application({"a": tokenizer}, "low")


def test_it_listens_on_this_machine_only() -> None:
    with listening(0) as first:
        address, port = first.getsockname()
        assert address == "127.0.0.1"
        with pytest.raises(OptionError, match=f"port {port} cannot be used"):
            listening(port)


def test_equal_visualizations_are_equal(tokenizer: BPETokenizer) -> None:
    first, second = tokenizer.visualize("low"), tokenizer.visualize("low")
    assert isinstance(first, Visualization)
    assert first == second != tokenizer.visualize("lower")
