"""The migration pages: both columns of their tables give the same results."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from hashlib import sha1
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import bpe_tokenizer
import hf_files
from bpe_tokenizer import BPETokenizer, EncodingResult
from bpe_tokenizer.formats.tiktoken import carried
from bpe_tokenizer.formats.tiktoken.published import PUBLISHED
from bpe_tokenizer.reference import RegexBPETokenizer
from small_tokenizers import tiny, with_post_processor

DOCS = Path(__file__).parents[1] / "docs"
TEXT = "low lower lowest, café 🙂"
CORPUS = ["low lower lowest the lowest low", "the new newest, newer and lower"] * 4
SPECIAL = ["<s>", "</s>", "<pad>"]
TALK = [{"role": "user", "content": "low"}, {"role": "assistant", "content": "lower"}]
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
# tiktoken's cache names a file by the SHA-1 of its address.
CL100K = "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken"
Names = dict[str, Any]


class Row(NamedTuple):
    """A row of a table: the same in their words and in ours."""

    page: str
    section: str
    theirs: str
    ours: str


def rows(page: str, first: str) -> list[Row]:
    """The rows of a page's tables of two columns of code, the first of which has this head."""
    section, found, inside = "", [], False
    for line in (DOCS / f"migrate-{page}.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:]
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) != 2:
            inside = False
        elif cells == [first, "here"]:
            inside = True
        elif inside and not cells[0].startswith("---"):
            assert all(cell[0] == cell[-1] == "`" for cell in cells), line
            found.append(Row(page, section, cells[0][1:-1], cells[1][1:-1]))
    return found


def run(code: str, names: Names) -> Any:
    """The value of an expression; None for a statement."""
    try:
        compiled = compile(code, code, "eval")
    except SyntaxError:
        exec(code, names)
        return None
    return eval(compiled, names)


def plain(value: Any) -> Any:
    """A result as plain lists and dicts; a tokenizer as the ids of some texts."""
    if isinstance(value, EncodingResult):
        return value.ids
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping) or hasattr(value, "data"):
        columns = getattr(value, "data", value)
        return {name: plain(columns[name]) for name in columns if name != "overflow_to_sample_mapping"}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def check(row: Row, ours: Names, theirs: Callable[[], Names] | None) -> None:
    """Run our column, and compare with theirs if their library is here."""
    result = run(row.ours, ours)
    if theirs is None:
        return
    expected = run(row.theirs, theirs())
    if isinstance(result, BPETokenizer):
        options = {"add_special_tokens": False} if hasattr(expected, "get_vocab") else {}
        ids = expected.encode(TEXT, **options)
        result, expected = result.encode(TEXT), getattr(ids, "ids", ids)
    if result is not None and plain(result) != {}:
        assert plain(result) == plain(expected)


def row_id(row: object) -> str:
    return row.theirs if isinstance(row, Row) else str(row)


def our_names(tokenizer: BPETokenizer, special: str) -> Names:
    """What the lines of the pages use."""
    prompt = f"low{special}lower"
    return {
        "BPETokenizer": BPETokenizer,
        "bpe_tokenizer": bpe_tokenizer,
        "tokenizer": tokenizer,
        "text": "low lower lowest",
        "pair": "lowest new",
        "texts": ["low", "the lower newest", TEXT],
        "words": ["low", " lower", "est"],
        "prompt": prompt,
        "ids": tokenizer.encode("low lower lowest"),
        "rows": [tokenizer.encode("low"), tokenizer.encode("the newest")],
        "padded": [[108, tokenizer.pad_token_id or 108], [108, 111]],
        "tokens": tokenizer.tokenize("low lower"),
        "talk": TALK,
        "template": TEMPLATE,
    }


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# tiktoken


@pytest.fixture(scope="module")
def without_normalization() -> BPETokenizer:
    special = ["<|endoftext|>"]
    return BPETokenizer("gpt2", None).train(CORPUS, 290, special_tokens=special, verbose=False)


TIKTOKEN = rows("tiktoken", "tiktoken")


@pytest.mark.peer
@pytest.mark.parametrize("row", [row for row in TIKTOKEN if row.section == "Line for line"], ids=row_id)
def test_a_line_of_tiktoken(row: Row, without_normalization: BPETokenizer) -> None:
    pytest.importorskip("tiktoken")
    names = our_names(without_normalization, "<|endoftext|>")
    check(row, dict(names), lambda: names | {"enc": without_normalization.to_tiktoken()})


@pytest.mark.peer
@pytest.mark.parametrize("row", [row for row in TIKTOKEN if row.section != "Line for line"], ids=row_id)
def test_getting_a_tokenizer_of_tiktoken(row: Row, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    special = {"<|endoftext|>": 258}
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"lo": 256, b"low": 257}
    pattern = r"\w+|\W+"
    names: Names = {"tiktoken": tiktoken, "ranks": ranks, "special": special, "pattern": pattern}
    names |= {"BPETokenizer": BPETokenizer, "bpe_tokenizer": bpe_tokenizer}
    if "load(" not in row.ours:
        check(row, dict(names), lambda: names)
        return
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(directory))
    data = carried.rank_file(PUBLISHED["cl100k_base"].ranks.sha256)  # tiktoken reads no other copy
    assert data is not None
    (directory / sha1(CL100K.encode()).hexdigest()).write_bytes(data)
    check(row, dict(names), lambda: names)


# transformers and tokenizers


@pytest.fixture
def saved(directory: Path) -> BPETokenizer:
    tokenizer = BPETokenizer().train(CORPUS, 290, special_tokens=SPECIAL, verbose=False)
    tokenizer = with_post_processor(tokenizer)
    tokenizer.save("my-tokenizer")
    return tokenizer


@pytest.mark.parametrize("row", rows("transformers", "transformers"), ids=row_id)
def test_our_side_of_a_line_of_transformers(row: Row, saved: BPETokenizer) -> None:
    check(row, our_names(saved, "</s>"), None)


@pytest.mark.peer
@pytest.mark.parametrize("row", rows("transformers", "transformers"), ids=row_id)
def test_a_line_of_transformers(row: Row, saved: BPETokenizer) -> None:
    transformers = pytest.importorskip("transformers")
    names = our_names(saved, "</s>")
    tok = transformers.AutoTokenizer.from_pretrained("my-tokenizer")
    check(row, dict(names), lambda: names | {"tok": tok, "AutoTokenizer": transformers.AutoTokenizer})


@pytest.mark.peer
@pytest.mark.parametrize("row", rows("transformers", "tokenizers"), ids=row_id)
def test_a_line_of_tokenizers(row: Row, saved: BPETokenizer) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    names = our_names(saved, "</s>")
    theirs = names | vars(tokenizers) | {"hf": tokenizers.Tokenizer.from_file("my-tokenizer/tokenizer.json")}
    if row.section != "Training":
        check(row, dict(names), lambda: theirs)
        return
    page = (DOCS / "migrate-transformers.md").read_text(encoding="utf-8")
    found = re.search(r"^def byte_level.*?(?=^```)", page, re.DOTALL | re.MULTILINE)
    assert found is not None
    names["texts"] = theirs["texts"] = CORPUS
    exec(found[0], theirs)
    trained, expected = run(row.ours, names), json.loads(run(row.theirs, theirs).to_str())
    merges = [" ".join(merge) if isinstance(merge, list) else merge for merge in expected["model"]["merges"]]
    assert [" ".join(merge) for merge in trained.model.core.printable_merges()] == merges
    assert len(merges) > 20


# minbpe, by a stand-in


class MiniTokenizer(RegexBPETokenizer):
    """The interface of minbpe's RegexTokenizer, over the merges of a tokenizer: the lesson has most of it."""

    def __init__(self, tokenizer: BPETokenizer) -> None:
        pytest.importorskip("regex")
        super().__init__(str(tokenizer.split_pattern))
        known = {token: token_id for token_id, token in tokenizer.vocab.items()}
        merges = {(known[left], known[right]): known[left + right] for left, right in tokenizer.merges}
        self.become({i: token for token, i in known.items() if i < 256 + len(merges)}, merges)
        self.register_special_tokens(tokenizer.special_tokens)

    def encode_ordinary(self, text: str) -> list[int]:
        return self.encode(text, "none")

    def save(self, prefix: Any) -> None:
        lines = ["minbpe v1", self.pattern, str(len(self.special_tokens))]
        lines += [f"{text} {token_id}" for text, token_id in self.special_tokens.items()]
        lines += [f"{left} {right}" for left, right in self.merges]
        Path(f"{prefix}.model").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize("row", rows("minbpe", "minbpe"), ids=row_id)
def test_a_line_of_minbpe(row: Row) -> None:
    tokenizer = BPETokenizer("gpt2", None).train(
        CORPUS, 280, special_tokens={"<|endoftext|>": 300}, verbose=False
    )
    mini = MiniTokenizer(tokenizer)
    if "<|end|>" in row.theirs:
        mini.register_special_tokens({"<|endoftext|>": 300, "<|end|>": 301})
        if "register" not in row.theirs:
            tokenizer.add_special_tokens({"<|end|>": 301})
    names = our_names(tokenizer, "<|endoftext|>")
    if "load" in row.ours:
        mini.save("mine")
        run(row.ours, names)
        assert names["tokenizer"] == tokenizer
    elif "export" in row.ours:
        mini.save("mine")
        expected = Path("mine.model").read_bytes()
        run(row.ours, names)
        assert Path("mine.model").read_bytes() == expected
    elif "add_special_tokens" in row.ours:
        run(row.ours, names)
        assert tokenizer.special_tokens == mini.special_tokens
    else:
        check(row, names, lambda: names | {"mini": mini})


# sentencepiece


@pytest.fixture(scope="module")
def sentencepiece(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """A BPE model with byte fallback that sentencepiece trains, and the same as tokenizer.json."""
    spm = pytest.importorskip("sentencepiece", reason="sentencepiece is not installed (the extra peers)")
    directory = tmp_path_factory.mktemp("sentencepiece")
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS * 5),
        model_prefix=str(directory / "sp"),
        model_type="bpe",
        vocab_size=320,
        hard_vocab_limit=False,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        minloglevel=2,
    )
    sp = spm.SentencePieceProcessor(model_file=str(directory / "sp.model"))
    hf_files.write(directory / "converted", like_llama2(sp))
    return SimpleNamespace(directory=directory, sp=sp, spm=spm)


def like_llama2(sp: Any) -> Any:
    """A BPE model of sentencepiece in the form of LLaMA 2's tokenizer.json."""
    vocab = {sp.id_to_piece(i): i for i in range(sp.get_piece_size())}
    merges = [
        (-sp.get_score(token_id), vocab[piece[:at]], vocab[piece[at:]], piece[:at], piece[at:])
        for piece, token_id in vocab.items()
        for at in range(1, len(piece))
        if not sp.is_control(token_id) and piece[:at] in vocab and piece[at:] in vocab
    ]
    names = {token_id: sp.id_to_piece(token_id) for token_id in (sp.unk_id(), sp.bos_id(), sp.eos_id())}
    bos, eos = names[sp.bos_id()], names[sp.eos_id()]
    spaces = [
        {"type": "Prepend", "prepend": "▁"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    ]
    return hf_files.tokenizer_json(
        vocab,
        [f"{left} {right}" for *_, left, right in sorted(merges)],
        added=[hf_files.added_token(i, text) for i, text in sorted(names.items())],
        normalizer={"type": "Sequence", "normalizers": spaces},
        pre_tokenizer=None,
        post_processor=hf_files.template(bos, "$A", eos, ids={text: [vocab[text]] for text in (bos, eos)}),
        decoder={
            "type": "Sequence",
            "decoders": [hf_files.TO_SPACE, {"type": "ByteFallback"}, hf_files.FUSE, hf_files.STRIP],
        },
        unk_token=names[sp.unk_id()],
        fuse_unk=True,
        byte_fallback=True,
    )


@pytest.mark.peer
@pytest.mark.parametrize("row", rows("sentencepiece", "sentencepiece"), ids=row_id)
def test_a_line_of_sentencepiece(
    row: Row, sentencepiece: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sentencepiece.directory)
    tokenizer = BPETokenizer.load("converted/tokenizer.json")
    names = our_names(tokenizer, "</s>") | {"pieces": tokenizer.tokenize("low lowest")}
    check(row, dict(names), lambda: names | {"sp": sentencepiece.sp, "spm": sentencepiece.spm})


def test_the_pages_have_rows() -> None:
    assert len(TIKTOKEN) > 20
    assert len(rows("transformers", "transformers")) > 25
    assert len(rows("transformers", "tokenizers")) > 12
    assert len(rows("minbpe", "minbpe")) > 12
    assert len(rows("sentencepiece", "sentencepiece")) > 12


def test_a_row_that_lies_fails() -> None:
    tokenizer = tiny("a|b")
    lie = Row("tiktoken", "", "[1]", "tokenizer.encode('ab')")
    with pytest.raises(AssertionError):
        check(lie, {"tokenizer": tokenizer}, dict)
