"""The split into training and validation, and the files that are joined for nanoGPT and llm.c."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.atomic import AtomicFile
from bpe_tokenizer.corpus import TokenDataset, flat, joining
from bpe_tokenizer.corpus.joining import join_shards, joined_files, write_meta
from bpe_tokenizer.corpus.shards import FORMATS, ShardFormatName, TokenType
from bpe_tokenizer.corpus.sides import ShardLayout, write_sides
from bpe_tokenizer.corpus.validation import is_validation
from bpe_tokenizer.errors import CorpusError, WriteError
from line_documents import tokenize_corpus
from token_files import read_nanogpt

TEXTS = st.lists(st.text(max_size=8), max_size=30)


def chosen(texts: list[str], fraction: float) -> list[bool]:
    parts = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, parts)])
    found: list[bool] = is_validation(np.frombuffer(b"".join(parts), np.uint8), offsets, fraction).tolist()
    return found


@given(TEXTS, st.floats(0.001, 0.999), st.randoms())
def test_the_text_alone_decides(texts: list[str], fraction: float, random: Any) -> None:
    sides = dict(zip(texts, chosen(texts, fraction), strict=True))
    shuffled = random.sample(texts, len(texts))
    assert chosen(shuffled, fraction) == [sides[text] for text in shuffled]
    assert [chosen([text], fraction)[0] for text in texts] == [sides[text] for text in texts]
    larger = chosen(texts, (1 + fraction) / 2)
    assert all(more for more, side in zip(larger, chosen(texts, fraction), strict=True) if side)


@pytest.mark.parametrize("fraction", [0.0005, 0.1, 0.5])
def test_the_share(fraction: float) -> None:
    number = 100_000
    found = sum(chosen([f"document {each}" for each in range(number)], fraction))
    assert abs(found - fraction * number) < 5 * (fraction * number) ** 0.5


def test_the_choice_stays() -> None:
    # A later version must divide a corpus in the same way.
    assert chosen(["low", "lower", "lowest", "", "日本語"], 0.5) == [False, True, False, False, False]


# Files

Document = tuple[list[int], bool]
DOCUMENTS: list[Document] = [([1, 2, 3], False), ([4], True), ([], False), ([5, 6], False), ([7, 8], True)]


def write(
    directory: Path, name: ShardFormatName, dtype: TokenType, shards: list[list[Document]]
) -> list[str]:
    """Write shards as the pipeline does, each document with its side, and return their names."""
    names: list[str] = []
    layout = ShardLayout(FORMATS[name], sides=(".train", ".val"))
    for number, documents in enumerate(shards):
        paths = [directory / f"tokens-{number:05d}{suffix}" for suffix in layout.suffixes]
        files = [path.open("wb") for path in paths]
        sides = layout.open(files, dtype)
        for part in (documents[:2], documents[2:]):
            ids = np.array([each for row, _ in part for each in row], dtype=np.uint32)
            lengths: npt.NDArray[np.int64] = np.array([len(row) for row, _ in part], dtype=np.int64)
            write_sides(sides, ids, lengths, np.array([side for _, side in part], dtype=np.bool_))
        for side in sides:
            side.finish()
        for file in files:
            file.close()
        names.extend(path.name for path in paths)
    return names


@pytest.mark.parametrize("name", ["olmo", "megatron"])
def test_no_file_is_empty(
    name: ShardFormatName, corpus: Path, tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    """OLMo-core and Megatron map the files, and an empty one cannot be mapped."""
    made = tokenize_corpus(corpus, tmp_path / "out", tokenizer, name, shard_tokens=20, val_fraction=0.3)
    ids = [file for file in made.files if file.suffix in (".npy", ".bin")]
    sides = {side: [file for file in ids if f".{side}." in file.name] for side in ("train", "val")}
    assert len(sides["train"]) != len(sides["val"]) > 0
    assert sum(len(np.memmap(file, np.uint16, "r")) for file in ids) == made.tokens
    for side, files in sides.items():
        length = sum(file.stat().st_size for file in files) // 2
        (sample,) = TokenDataset(tmp_path / "out", length, split=side)  # type: ignore[arg-type]
        assert sample["input_ids"].tolist() == read_nanogpt(files, "<u2")
    assert tokenize_corpus(
        corpus, tmp_path / "out", tokenizer, name, shard_tokens=20, val_fraction=0.3
    ).kept == len({file.name[:12] for file in made.files})


@pytest.mark.parametrize("shards", [[DOCUMENTS], [DOCUMENTS[:3], DOCUMENTS[3:]]])
@pytest.mark.parametrize("chunk", [2, 8 << 20])
def test_nanogpt(
    tmp_path: Path, shards: list[list[Document]], chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joining, "_CHUNK", chunk)
    names = write(tmp_path, "nanogpt", "uint16", shards)
    made = join_shards(tmp_path, names, "nanogpt", "uint16")
    assert [path.name for path in made] == ["train.bin", "val.bin"]
    assert {"meta.pkl", *(path.name for path in made)} == joined_files({"val_fraction": 0.5})
    assert read_nanogpt(made[:1], "<u2") == [1, 2, 3, 5, 6]
    assert read_nanogpt(made[1:2], "<u2") == [4, 7, 8]
    # Again: nothing to do. With a changed shard: again.
    before = made[0].stat()
    assert join_shards(tmp_path, names, "nanogpt", "uint16") == made
    assert os.path.samestat(made[0].stat(), before)
    (tmp_path / names[0]).unlink()
    (tmp_path / names[0]).write_bytes(b"\1\0\2\0\4\0" if len(shards) == 2 else b"\1\0\2\0\4\0\5\0\6\0")
    future = before.st_mtime + 10
    os.utime(tmp_path / names[0], (future, future))
    assert join_shards(tmp_path, names, "nanogpt", "uint16") == made
    assert read_nanogpt(made[:1], "<u2") == [1, 2, 4, 5, 6]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".") and "lock" not in path.name]


def test_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    names = write(tmp_path, "nanogpt", "uint32", [DOCUMENTS])
    made = join_shards(tmp_path, names, "nanogpt", "uint32")
    assert read_nanogpt(made[1:], "<u4") == [4, 7, 8]
    assert not os.path.samestat(made[1].stat(), (tmp_path / names[1]).stat())


def test_a_side_without_documents(tmp_path: Path) -> None:
    names = write(tmp_path, "nanogpt", "uint16", [[([1], False)]])
    with pytest.raises(CorpusError, match=r"no document was chosen for validation.* larger one") as raised:
        join_shards(tmp_path, names, "nanogpt", "uint16")
    assert len(str(raised.value)) <= 300
    assert not (tmp_path / "train.bin").exists()
    names = write(tmp_path, "nanogpt", "uint16", [[([1], True)]])
    with pytest.raises(CorpusError, match=r"no document was chosen for training.* smaller one"):
        join_shards(tmp_path, names, "nanogpt", "uint16")


def test_too_many_ids_for_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = write(tmp_path, "llm.c", "uint16", [DOCUMENTS])
    monkeypatch.setitem(FORMATS, "llm.c", FORMATS["llm.c"]._replace(max_tokens=2))
    with pytest.raises(CorpusError, match=r"have 3 ids, and a file of llm\.c holds at most 2; start again"):
        join_shards(tmp_path, names, "llm.c", "uint16")


def test_missing_shards_and_full_disks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = write(tmp_path, "nanogpt", "uint16", [DOCUMENTS[:3], DOCUMENTS[3:]])
    (tmp_path / names[2]).rename(tmp_path / "away")
    with pytest.raises(CorpusError, match=r"tokens-00001\.train\.bin: cannot be read: No such file"):
        join_shards(tmp_path, names, "nanogpt", "uint16")
    (tmp_path / "away").rename(tmp_path / names[2])

    def fail(*_: object) -> None:
        raise WriteError("no space left", filename="train.bin")

    monkeypatch.setattr(AtomicFile, "finish", fail)
    with pytest.raises(WriteError, match="no space left"):
        join_shards(tmp_path, names, "nanogpt", "uint16")
    assert not (tmp_path / "train.bin").exists()


# meta.pkl


def test_meta_is_written_once(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    write_meta(tmp_path, tokenizer)
    path = tmp_path / "meta.pkl"
    written, before = path.read_bytes(), path.stat()
    write_meta(tmp_path, tokenizer)
    assert os.path.samestat(path.stat(), before)
    path.write_bytes(b"")
    write_meta(tmp_path, tokenizer)
    assert path.read_bytes() == written


def test_meta(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    write_meta(tmp_path, tokenizer)
    meta = pickle.loads((tmp_path / "meta.pkl").read_bytes())
    assert meta["vocab_size"] == tokenizer.n_vocab
    assert sorted(meta["itos"]) == list(range(tokenizer.n_vocab))
    assert "".join(meta["itos"][each] for each in tokenizer.encode("low lower")) == "low lower"
    assert meta["stoi"] == {"\n": tokenizer.encode("\n")[0]}
    gaps = BPETokenizer().train("low low", 258, special_tokens={"<|eos|>": 300}, verbose=False)
    write_meta(tmp_path, gaps)
    meta = pickle.loads((tmp_path / "meta.pkl").read_bytes())
    assert (meta["vocab_size"], meta["itos"][299], meta["itos"][300]) == (301, "\ufffd", "<|eos|>")


def test_llm_c_limit() -> None:
    # A file of the largest shard has 2 GiB, so every position in it fits into a C int.
    assert len(flat.llm_c_header(np.dtype("uint16"), 0)) + 2 * flat.LLM_C_MAX_TOKENS == 2**31
