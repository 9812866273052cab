"""Conversations with their masks, and rows that are ids already."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import PackedSequences, TokenDataset, TokenizedCorpus, tokenize_corpus
from bpe_tokenizer.corpus.shards import FORMATS
from bpe_tokenizer.errors import CorpusError, OptionError
from reader_libraries import library
from token_files import contents, flat, read_mds

SPECIAL = ["<|eos|>", "<|im_start|>", "<|im_end|>"]
TALKS = [
    [
        {"role": "user", "content": f"low {number}"},
        {"role": "assistant", "content": f"lower {number} <|im_end|>"},
    ]
    for number in range(30)
]
TALKS[3] = [{"role": "system", "content": "slow"}, *TALKS[3], *TALKS[4]]


@pytest.fixture(scope="module")
def tokenizer() -> BPETokenizer:
    return BPETokenizer().train("low lower user assistant", 270, special_tokens=SPECIAL, verbose=False)


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    path = tmp_path / "talks.jsonl"
    path.write_text("".join(json.dumps({"id": 1, "messages": talk}) + "\n" for talk in TALKS))
    return path


def tokenize(
    path: Path, out: Path, tokenizer: BPETokenizer, name: Any = "npy", **options: Any
) -> TokenizedCorpus:
    options = {"content": "messages", "field": "messages", "pack": 32, "chat_template": "chatml", **options}
    return tokenize_corpus(path, out, tokenizer, name, **options)


def expected(tokenizer: BPETokenizer) -> list[tuple[int, int]]:
    """The ids of all conversations, each with its mask."""
    found = [
        tokenizer.apply_chat_template(talk, "chatml", add_generation_prompt=False, return_assistant_mask=True)
        for talk in TALKS
    ]
    return flat([zip(ids, mask, strict=True) for ids, mask in found])


def labelled(ids: Any, labels: Any) -> list[tuple[int, int]]:
    assert set(np.unique(labels[labels != ids])) == {-100}
    return list(zip(ids.tolist(), (labels != -100).astype(int).tolist(), strict=True))


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_masks_of_conversations(talks: Path, tmp_path: Path, tokenizer: BPETokenizer, dtype: Any) -> None:
    made = tokenize(talks, tmp_path / "out", tokenizer, dtype=dtype, shard_tokens=300)
    assert len(made.files) > 8
    found = []
    for path in made.files[::4]:
        packed = PackedSequences.load(path)
        used = packed.document_ids(0, len(packed.ids)) >= 0
        labels = packed.labels(0, len(packed.ids))
        assert (labels[~used] == -100).all()
        found += labelled(packed.ids[used], labels[used])
    assert found == expected(tokenizer)
    # Contents are never markup, even where they look like it.
    assert sum(id_ == tokenizer.special_tokens["<|im_end|>"] for id_, _ in found) == sum(map(len, TALKS))
    samples = [*TokenDataset(tmp_path / "out")]
    assert {"input_ids", "labels", "position_ids", "document_ids"} == set(samples[0])
    where = [sample["document_ids"] >= 0 for sample in samples]
    pairs = [
        labelled(sample["input_ids"][used], sample["labels"][used])
        for sample, used in zip(samples, where, strict=True)
    ]
    assert flat(pairs) == found


def test_labels_of_texts(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    (tmp_path / "a.txt").write_text("low lower")
    made = tokenize_corpus(tmp_path / "a.txt", tmp_path / "out", tokenizer, "npy", pack=4)
    with pytest.raises(CorpusError, match="has no mask of what counts for the loss"):
        PackedSequences.load(made.files[0]).labels(0, 1)


def test_conversations_in_parquet(talks: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    """From Parquet, where each message has the fields of all."""
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [{"messages": [{**message, "name": None} for message in talk]} for talk in TALKS]
    kind = pyarrow.list_(pyarrow.struct({name: pyarrow.string() for name in ("role", "content", "name")}))
    parquet.write_table(
        pyarrow.Table.from_pylist(rows, pyarrow.schema({"messages": kind})), tmp_path / "talks.parquet"
    )
    for name in ("talks.jsonl", "talks.parquet"):
        (made,) = tokenize(tmp_path / name, tmp_path / f"{name}.out", tokenizer, "parquet").files
        found = parquet.read_table(made).to_pylist()
        pairs = [labelled(*(np.array(row[each]) for each in ("input_ids", "labels"))) for row in found]
        assert flat(pairs) == expected(tokenizer)


def test_conversations_in_mds(talks: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    (made,) = tokenize(talks, tmp_path / "out", tokenizer, "mds").files
    (entry,) = json.loads((tmp_path / "out" / "index.json").read_bytes())["shards"]
    samples = read_mds(made, entry)
    pairs = [labelled(*(np.array(each[name]) for name in ("tokens", "labels"))) for each in samples]
    assert flat(pairs) == expected(tokenizer)


def for_olmo(
    talks: Path, out: Path, tokenizer: BPETokenizer, **options: Any
) -> list[tuple[Path, Path, list[tuple[int, int]]]]:
    """The ids, the mask and what they hold of each shard."""
    made = tokenize(talks, out, tokenizer, "olmo", pack=None, shard_tokens=300, **options)
    masks = [path for path in made.files if path.suffix == ".label_mask"]
    pairs = [(path.with_suffix(".npy"), path) for path in masks]
    assert len(pairs) == len(made.files) / 3 > 2
    kinds = ("<u2", "?")
    arrays = [[np.fromfile(*each).tolist() for each in zip(pair, kinds, strict=True)] for pair in pairs]
    return [(*pair, list(zip(*each, strict=True))) for pair, each in zip(pairs, arrays, strict=True)]


@pytest.mark.parametrize("options", [{}, {"shuffle": 1, "index": True, "val_fraction": 0.3}], ids=str)
def test_conversations_for_olmo(
    options: dict[str, Any], talks: Path, tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    found = flat([pairs for _, _, pairs in for_olmo(talks, tmp_path / "out", tokenizer, **options)])
    assert sorted(found) == sorted(expected(tokenizer))
    assert options or found == expected(tokenizer)
    with pytest.raises(OptionError, match="holds conversations with a mask for OLMo-core"):
        TokenDataset(tmp_path / "out", 8)


@pytest.mark.token_readers
@pytest.mark.filterwarnings("ignore")
def test_olmo_core_reads_the_mask(talks: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    dataset_class = library("olmo_core.data").NumpyFSLDataset
    shards = for_olmo(talks, tmp_path / "out", tokenizer)
    dataset = dataset_class(
        *[path for path, _, _ in shards],
        label_mask_paths=[path for _, path, _ in shards],
        sequence_length=16,
        pad_token_id=0,
        eos_token_id=tokenizer.special_tokens["<|eos|>"],
        vocab_size=tokenizer.n_vocab,
    )
    rows = [dataset[number] for number in range(len(dataset))]
    assert flat(
        [zip(row["input_ids"].tolist(), row["label_mask"].tolist(), strict=True) for row in rows]
    ) == (flat([pairs[: len(pairs) // 16 * 16] for _, _, pairs in shards]))


@pytest.mark.token_readers
@pytest.mark.filterwarnings("ignore")
def test_mosaicml_reads_the_labels(talks: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    streaming = library("streaming")
    tokenize(talks, tmp_path / "out", tokenizer, "mds")
    samples = [*streaming.StreamingDataset(local=str(tmp_path / "out"), batch_size=1)]
    assert flat([labelled(each["tokens"], each["labels"]) for each in samples]) == expected(tokenizer)


def test_shuffled_and_divided_conversations(talks: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    options: dict[str, Any] = {"shuffle": 1, "val_fraction": 0.3, "pack_strategy": "best-fit"}
    tokenize(talks, tmp_path / "out", tokenizer, **options)
    found = []
    for split in ("train", "val"):
        for sample in TokenDataset(tmp_path / "out", split=split):
            used = sample["document_ids"] >= 0
            found += labelled(sample["input_ids"][used], sample["labels"][used])
    assert found != expected(tokenizer)
    assert sorted(found) == sorted(expected(tokenizer))
    tokenize(talks, tmp_path / "again", tokenizer, threads=1, **options)
    assert contents(tmp_path / "again") == contents(tmp_path / "out")


def test_another_template_is_another_run(talks: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    tokenize(talks, tmp_path / "out", tokenizer)
    with pytest.raises(OptionError, match="differs in: template"):
        tokenize(talks, tmp_path / "out", tokenizer, chat_template="{{ messages[0].content }}")


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        (3, "the field holds no list of messages"),
        (["low"], "the field holds no list of messages"),
        ([{"role": "user"}], "content"),
        ([{"role": "user", "content": "low"}], "no turn of the assistant"),
        ("low", "the field holds no list of messages"),
    ],
)
def test_bad_conversations(messages: Any, problem: str, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    path = tmp_path / "talks.jsonl"
    rows = [TALKS[0], messages, TALKS[1]]
    path.write_text("".join(json.dumps({"messages": row}) + "\n" for row in rows))
    with pytest.raises(CorpusError, match=rf"talks\.jsonl, row 2: .*{problem}.*on_error='skip'"):
        tokenize(path, tmp_path / "out", tokenizer)
    made = tokenize(path, tmp_path / "out", tokenizer, on_error="skip")
    assert (made.documents, made.skipped) == (2, 1)
    assert json.loads((tmp_path / "out" / "skipped.jsonl").read_text())["row"] == 2


# Ids


def test_rows_of_ids(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    rows = [[1, 2, 3], [], [261, 0]]
    (tmp_path / "ids.jsonl").write_text("".join(json.dumps({"a": {"ids": row}}) + "\n" for row in rows))
    options: dict[str, Any] = {"content": "ids", "field": "a.ids", "append_eos": False}
    for eos in (False, True):
        options["append_eos"] = eos
        made = tokenize_corpus(tmp_path / "ids.jsonl", tmp_path / str(eos), tokenizer, "npy", **options)
        end = [tokenizer.special_tokens["<|eos|>"]] * eos
        assert np.load(made.files[0]).tolist() == flat([[*row, *end] for row in rows])
        assert made.documents == 3


@pytest.mark.parametrize(
    ("ids", "problem"),
    [([1, 262], "has the id 262; the ids go up to 261"), ([-1], "has the id -1"), ([1.0], "no list of ids")],
)
def test_bad_ids(ids: Any, problem: str, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    (tmp_path / "ids.jsonl").write_text(json.dumps({"ids": [1]}) + "\n" + json.dumps({"ids": ids}))
    with pytest.raises(CorpusError, match=f"row 2: .*{problem}"):
        tokenize_corpus(tmp_path / "ids.jsonl", tmp_path / "out", tokenizer, content="ids", field="ids")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"content": "audio"}, "content is 'audio'"),
        *(
            (
                {"content": "messages", "format": name},
                "only 'olmo' and packed 'npy', 'parquet' and 'mds' can tell",
            )
            for name in FORMATS
            if name != "olmo"
        ),
        ({"content": "messages", "eos_token": "<|eos|>"}, "eos_token has no meaning with content='messages'"),
        ({"content": "ids", "allowed_special": "all"}, "allowed_special has no meaning with content='ids'"),
        ({"content": "messages", "format": "npy", "pack": 8}, "lacks control tokens of the default 'llama3'"),
        ({"chat_template": "chatml"}, "chat_template has no meaning with content='text'"),
    ],
)
def test_options(
    options: dict[str, Any], problem: str, talks: Path, tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    with pytest.raises(OptionError, match=problem):
        tokenize_corpus(talks, tmp_path / "out", tokenizer, **options)
