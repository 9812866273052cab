from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bpe_tokenizer import (
    CHATML_SPECIAL_TOKENS,
    LLAMA3_SPECIAL_TOKENS,
    AddedToken,
    BPETokenizer,
    Model,
    ModelError,
    OptionError,
    PostProcessor,
    SpecialTokenError,
    _core,
)
from bpe_tokenizer.special_tokens import find_roles
from small_tokenizers import tiny


def test_special_tokens_in_a_text_are_plain_text_unless_allowed(tokenizer: BPETokenizer) -> None:
    text = "a<|eos|>b<|pad|>"
    plain = tokenizer.encode(text)
    assert not set(plain) & set(tokenizer.special_tokens.values())
    assert tokenizer.decode(plain) == text
    a, b = tokenizer.encode("a"), tokenizer.encode("b")
    assert tokenizer.encode(text, allowed_special="all") == [*a, 257, *b, 258]
    some = tokenizer.encode(text, allowed_special={"<|pad|>"})
    assert some == [*tokenizer.encode("a<|eos|>b"), 258]
    assert tokenizer.encode(text, allowed_special=["<|pad|>"]) == some
    assert tokenizer.encode(text, allowed_special=set()) == plain
    assert tokenizer.encode_bytes(text.encode(), allowed_special={"<|pad|>"}) == some
    assert tokenizer.encode_batch([text], allowed_special="all")[0].input_ids == [*a, 257, *b, 258]


def test_the_longest_special_token_wins() -> None:
    tokenizer = tiny("a|b", special_tokens=["<x>", "<x><y>", "<y>"])
    assert tokenizer.special_tokens == {"<x>": 257, "<x><y>": 258, "<y>": 259}
    assert tokenizer.encode("ab<x><y>ab<y><x>", allowed_special="all") == [256, 258, 256, 259, 257]
    assert tokenizer.encode("<x><y>", allowed_special={"<x>", "<y>"}) == [257, 259]


@pytest.mark.parametrize("disallowed", ["all", {"<|eos|>"}, ["<|eos|>"], ("<|eos|>", "<|pad|>")])
def test_a_disallowed_special_token_is_an_error(tokenizer: BPETokenizer, disallowed: Any) -> None:
    uses: list[Callable[..., Any]] = [
        tokenizer.encode,
        tokenizer.encode_to_numpy,
        tokenizer.encode_with_offsets,
        tokenizer.tokenize,
        tokenizer.count_tokens,
        tokenizer,
        lambda text, **options: tokenizer.truncate(text, 5, **options),
        lambda text, **options: tokenizer.split_by_tokens(text, 5, **options),
    ]
    for use in uses:
        with pytest.raises(SpecialTokenError) as caught:
            use("né<|eos|>", disallowed_special=disallowed)
        message = str(caught.value)
        assert "'<|eos|>' at character 2" in message
        assert "allowed_special={'<|eos|>'}" in message
        assert isinstance(caught.value, ValueError)
        use("né<|eos|", disallowed_special=disallowed)
    with pytest.raises(SpecialTokenError, match="at byte 3"):
        tokenizer.encode_bytes("né<|eos|>".encode(), disallowed_special=disallowed)
    for batch in (tokenizer.encode_batch, tokenizer.encode_ragged):
        with pytest.raises(SpecialTokenError, match=r"text 1 holds .* at character 2"):
            batch(["fine", "né<|eos|>"], disallowed_special=disallowed)


def test_what_is_allowed_is_not_disallowed_by_all(tokenizer: BPETokenizer) -> None:
    with pytest.raises(SpecialTokenError, match=r"'<\|pad\|>' at character 7"):
        tokenizer.encode("<|eos|><|pad|>", allowed_special={"<|eos|>"}, disallowed_special="all")
    assert tokenizer.encode("<|eos|><|pad|>", allowed_special="all", disallowed_special="all") == [257, 258]


@pytest.mark.parametrize("option", ["allowed_special", "disallowed_special"])
def test_unknown_special_tokens_are_named(tokenizer: BPETokenizer, option: str) -> None:
    with pytest.raises(SpecialTokenError, match=rf"{option} names '<\|eso\|>'.*did you mean '<\|eos\|>'"):
        tokenizer.encode("a", **{option: {"<|eso|>"}})  # type: ignore[arg-type]
    for text in ("some", "<|eos|>"):  # is no set of characters
        with pytest.raises(OptionError, match=rf"{option} is '.*a set of special tokens"):
            tokenizer.encode("a", **{option: text})  # type: ignore[arg-type]


def test_bos_and_eos_are_put_around(tokenizer: BPETokenizer) -> None:
    ids = tokenizer.encode("hello")
    assert tokenizer.encode("hello", add_special_tokens=True) == [256, *ids, 257]
    assert tokenizer.encode_bytes(b"hello", add_special_tokens=True) == [256, *ids, 257]
    only_eos = tiny("a|b", special_tokens=["<|endoftext|>"])
    assert only_eos.encode("ab", add_special_tokens=True) == [256, 257]
    assert tiny("a|b").encode("ab", add_special_tokens=True) == [256]


def test_the_post_processor_of_a_model_decides(tokenizer: BPETokenizer) -> None:
    core = tokenizer.model.core
    for prefix, suffix in [((), ()), ((258, 258), (257,)), ((256,), ())]:
        other = BPETokenizer.from_model(Model(core, post_processor=PostProcessor(prefix, suffix)))
        assert other.encode("a", add_special_tokens=True) == [*prefix, *tokenizer.encode("a"), *suffix]
        flat, offsets = other.encode_ragged(["a", ""], add_special_tokens=True)
        assert flat.tolist() == [*prefix, *tokenizer.encode("a"), *suffix, *prefix, *suffix]
        assert offsets.tolist() == [0, len(flat) - len(prefix + suffix), len(flat)]


@pytest.mark.parametrize(
    ("contents", "roles"),
    [
        (LLAMA3_SPECIAL_TOKENS, ("<|begin_of_text|>", "<|end_of_text|>", "<|finetune_right_pad_id|>", None)),
        (CHATML_SPECIAL_TOKENS, (None, None, None, None)),
        (["<|endoftext|>"], (None, "<|endoftext|>", None, None)),
        (["<pad>", "</s>", "<s>", "<unk>"], ("<s>", "</s>", "<pad>", "<unk>")),
        (["<|BOS|>", "<EOS>", "[PAD]", "[UNK]"], ("<|BOS|>", "<EOS>", "[PAD]", "[UNK]")),
        (["<s>", "<bos>", "<|endoftext|>", "<eos>"], ("<bos>", "<eos>", None, None)),
        (["<pad2>", "<pad1>"], (None, None, "<pad2>", None)),
        (["<|videos|>", "<|verbose|>", "<|keypad|>", "<|chunk|>", "<|eot_id|>"], (None, None, None, None)),
        (["<unknown>", "<|padding|>"], (None, None, "<|padding|>", "<unknown>")),
        ([], (None, None, None, None)),
    ],
)
def test_roles_are_found_from_names(contents: Any, roles: tuple[str | None, ...]) -> None:
    tokens = [AddedToken(content, 300 + place) for place, content in enumerate(contents)]
    found: Any = find_roles(tokens)
    tokenizer = tiny("a|b", special_tokens=contents)
    for role, name in zip(("bos", "eos", "pad", "unk"), roles, strict=True):
        assert found.get(role) == getattr(tokenizer, f"{role}_token") == name
        assert getattr(tokenizer, f"{role}_token_id") == (name and tokenizer.special_tokens[name])


def test_the_well_known_sets() -> None:
    reserved = [f"reserved_special_token_{number}" for number in range(3)]
    names = ["begin_of_text", "end_of_text", *reserved[:2], "finetune_right_pad_id", reserved[2]]
    names += ["start_header_id", "end_header_id", "eom_id", "eot_id", "python_tag"]
    assert {f"<|{name}|>": 128000 + at for at, name in enumerate(names)} == LLAMA3_SPECIAL_TOKENS
    assert CHATML_SPECIAL_TOKENS == {"<|im_start|>": 32001, "<|im_end|>": 32002}


def test_roles_can_be_set_and_unset() -> None:
    def roles() -> tuple[str | None, int | None, str | None, int | None]:
        return tokenizer.bos_token, tokenizer.bos_token_id, tokenizer.eos_token, tokenizer.eos_token_id

    tokenizer = tiny("a|b", special_tokens=["<|start|>", "<|stop|>", "<eos>"])
    assert roles() == (None, None, "<eos>", 259)
    tokenizer.bos_token = "<|start|>"
    tokenizer.eos_token_id = 258
    assert roles() == ("<|start|>", 257, "<|stop|>", 258)
    assert tokenizer.encode("ab", add_special_tokens=True) == [257, 256, 258]
    assert dict(tokenizer.model.named_tokens) == {"bos": "<|start|>", "eos": "<|stop|>"}
    tokenizer.eos_token = None
    tokenizer.bos_token_id = None
    assert roles() == (None, None, None, None)
    assert tokenizer.encode("ab", add_special_tokens=True) == [256]
    assert dict(tokenizer.model.named_tokens) == {"bos": "", "eos": ""}
    assert pickle.loads(pickle.dumps(tokenizer)).eos_token is None
    tokenizer.add_special_tokens(["<bos>"])
    assert roles() == (None, None, None, None)
    tokenizer.eos_token = "<eos>"
    assert roles() == (None, None, "<eos>", 259)


def test_a_role_cannot_be_set_to_an_unknown_token() -> None:
    tokenizer = tiny("a|b", special_tokens=["<|start|>"])
    with pytest.raises(SpecialTokenError, match=r"bos_token cannot be '<\|star\|>'.*'<\|start\|>'"):
        tokenizer.bos_token = "<|star|>"
    with pytest.raises(SpecialTokenError, match="pad_token_id cannot be 5"):
        tokenizer.pad_token_id = 5
    assert (tokenizer.bos_token, tokenizer.pad_token) == (None, None)


def test_the_named_tokens_of_a_model_come_before_the_names() -> None:
    core = tiny("a|b", special_tokens=["<|pad|>", "<|endoftext|>"]).model.core
    tokenizer = BPETokenizer.from_model(Model(core, named_tokens={"pad": "<|endoftext|>", "bos": "missing"}))
    assert (tokenizer.pad_token, tokenizer.eos_token) == ("<|endoftext|>", "<|endoftext|>")
    assert tokenizer.bos_token is None


def test_one_special_token_after_another(tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The encoder is made when it is needed, and once; conflicts are errors at once."""
    made = []
    encoder = _core.Encoder

    def counted(model: _core.Model) -> _core.Encoder:
        made.append(model)
        return encoder(model)

    ours = pickle.loads(pickle.dumps(tokenizer))
    ours.limit_cache(1 << 20)
    first = ours.n_vocab
    monkeypatch.setattr(_core, "Encoder", counted)
    for number in range(200):
        assert ours.add_special_tokens([f"<{number}>"]) == 1
        for wrong in ({"<other>": 97}, {f"<{number}>": 10**6}):
            with pytest.raises(ModelError, match=r"belongs to the token|has the id"):
                ours.add_special_tokens(wrong)
    assert made == []
    again = pickle.loads(pickle.dumps(ours))
    text, expected = "<0>a<199>", [first, *tokenizer.encode("a"), first + 199]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda it: it.encode(text, allowed_special="all"), [ours] * 8)) == [expected] * 8
    assert 1 < len(made) < 10
    del made[:]
    assert again == ours
    assert again.encode(text, allowed_special="all") == expected
    assert ours.encode_batch([text], allowed_special="all")[0].input_ids == expected
    assert (ours.decode(expected), made) == (text, [])
    added = BPETokenizer.from_model(tokenizer.model)
    assert added.add_special_tokens([f"<{number}>" for number in range(200)]) == 200
    assert added == ours


def test_threads_that_add_special_tokens_lose_none() -> None:
    tokenizer, interval = tiny("a|b"), sys.getswitchinterval()
    names = [f"<{number}>" for number in range(200)]
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(lambda name: tokenizer.add_special_tokens([name]), names)) == len(names)
    finally:
        sys.setswitchinterval(interval)
    assert {*names} == {*tokenizer.special_tokens}


def test_the_id_of_an_added_token_needs_no_table_of_all_tokens() -> None:
    tokenizer = tiny("a|b")
    for number in range(3):
        tokenizer.add_special_tokens([f"<{number}>"])
        assert tokenizer.convert_tokens_to_ids(f"<{number}>") == tokenizer.token_to_id(f"<{number}>")
        assert tokenizer.convert_tokens_to_ids([f"<{number}>"]) == [tokenizer.special_tokens[f"<{number}>"]]
        # Making it takes 200 ms with o200k, after each change.
        assert "token_ids" not in vars(tokenizer._compiled())
    assert (tokenizer.convert_tokens_to_ids(["a", "no"]), tokenizer.token_to_id("no")) == ([97, -1], None)


def test_special_tokens_can_be_added() -> None:
    tokenizer = tiny("a|b", special_tokens={"<x>": 300})
    before = tokenizer.model
    assert tokenizer.add_special_tokens(["<y>", "<x>", "<z>"]) == 2
    assert tokenizer.special_tokens == {"<x>": 300, "<y>": 301, "<z>": 302}
    assert tokenizer.add_special_tokens({"<w>": 257, "<x>": 300}) == 1
    assert tokenizer.add_special_tokens({"<w>": 257}) == tokenizer.add_special_tokens([]) == 0
    assert tokenizer.encode("ab<w><z>", allowed_special="all") == [256, 257, 302]
    assert tokenizer.decode([256, 302]) == "ab<z>"
    assert (tokenizer.vocab_size, len(tokenizer)) == (257, 261)
    assert [token[0] for token in before.core.added_tokens] == ["<x>"]


@pytest.mark.parametrize(
    ("special_tokens", "error", "message"),
    [
        ({"<x>": 301}, ModelError, "'<x>' has the id 300 already"),
        ({"<y>": 300}, ModelError, "'<y>' cannot get the id 300: it belongs to the token b'<x>'"),
        ({"<y>": 256}, ModelError, "it belongs to the token b'ab'"),
        ({"<y>": -5}, ModelError, "is -5"),
        ({"<y>": 2**32 - 1}, ModelError, "must be from 0 to 4,294,967,294"),
        ({"<y>": 400, "<z>": 400}, ModelError, "it belongs to the token b'<y>'"),
        (["<y>", "<y>"], ModelError, "listed twice"),
        ([""], ModelError, "empty"),
        ("<y>", TypeError, "not a str"),
        ([5], TypeError, "must be a str, not int"),
        ({"<y>", "<z>"}, TypeError, "not a set"),
    ],
)
def test_conflicts_fail_and_change_nothing(special_tokens: Any, error: type[Exception], message: str) -> None:
    tokenizer = tiny("a|b", special_tokens={"<x>": 300})
    with pytest.raises(error, match=message):
        tokenizer.add_special_tokens(special_tokens)
    assert tokenizer.special_tokens == {"<x>": 300}
