"""The face for transformers in training: `datasets`, a collator, a `DataLoader`, a model, its embeddings."""

from __future__ import annotations

import argparse
import copy
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer

pytestmark = [pytest.mark.inference, pytest.mark.filterwarnings("default")]

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed", minversion="5")

TEXTS = [
    f"The number {number} is {number * number} when it is squared; Grüße 日本語." for number in range(64)
]


def tokenizers() -> tuple[Any, Any]:
    """The face, and transformers' own tokenizer."""
    from bpe_tokenizer.compat.transformers import from_tokenizer

    special = ["<s>", "</s>", "<pad>"]
    tokenizer = BPETokenizer("gpt2", normalization=None)
    tokenizer.train(TEXTS, 400, special_tokens=special, verbose=False)
    return from_tokenizer(tokenizer), tokenizer.to_transformers()


def model(tokenizer: Any) -> Any:
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=64,
        n_embd=32,
        n_layer=1,
        n_head=2,
        bos_token_id=0,
        eos_token_id=1,
    )
    return transformers.GPT2LMHeadModel(config)


def train(network: Any, batches: Any, epochs: int = 3) -> list[float]:
    """Return the loss of each epoch."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)
    losses = []
    for _ in range(epochs):
        sums = []
        for batch in batches:
            loss = network(**batch).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            sums.append(loss.item())
        losses.append(sum(sums) / len(sums))
    return losses


def test_datasets_map_and_a_collator_train_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    face, theirs = tokenizers()
    texts = datasets.Dataset.from_dict({"text": TEXTS})

    def encode(tokenizer: Any) -> Any:
        def rows(batch: Any) -> Any:
            return tokenizer(batch["text"], truncation=True, max_length=48)

        return texts.map(rows, batched=True, batch_size=8, num_proc=2, remove_columns=["text"])

    encoded = encode(face)
    assert encoded.to_dict() == encode(theirs).to_dict()
    collator = transformers.DataCollatorForLanguageModeling(face, mlm=False)
    loader = torch.utils.data.DataLoader(encoded, batch_size=8, num_workers=2, collate_fn=collator)
    losses = train(model(face), loader)
    assert losses[-1] < losses[0] / 1.5


def test_the_fingerprint_of_a_tokenizer_does_not_change_when_it_encodes() -> None:
    fingerprint = pytest.importorskip("datasets.fingerprint", reason="datasets is not installed")
    face, _ = tokenizers()
    before = fingerprint.Hasher.hash(face)
    face(TEXTS, padding=True, truncation=True, max_length=8)
    face(TEXTS[0], TEXTS[1], padding="max_length", max_length=80)
    assert fingerprint.Hasher.hash(face) == before
    face.add_tokens(["another token"])
    assert fingerprint.Hasher.hash(face) != before


def test_workers_of_a_data_loader_encode() -> None:
    face, theirs = tokenizers()
    face(TEXTS)  # its threads end before the fork

    class Collator:
        def __init__(self, tokenizer: Any) -> None:
            self.tokenizer = tokenizer

        def __call__(self, texts: list[str]) -> Any:
            batch = self.tokenizer(texts, padding=True, return_tensors="pt")
            labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
            return {**batch, "labels": labels}

    found, expected = (
        list(torch.utils.data.DataLoader(TEXTS, batch_size=8, num_workers=2, collate_fn=Collator(tokenizer)))
        for tokenizer in (face, theirs)
    )
    for mine, other in zip(found, expected, strict=True):
        assert mine.keys() == other.keys()
        for name, tensor in other.items():
            assert mine[name].dtype == tensor.dtype
            assert torch.equal(mine[name], tensor)
    losses = train(model(face), found)
    assert losses[-1] < losses[0] / 1.5


def test_tensors_are_those_of_transformers() -> None:
    face, theirs = tokenizers()
    for options in ({}, {"padding_side": "left"}, {"truncation": True, "max_length": 7}):
        mine = face(TEXTS, padding=True, return_tensors="pt", **options)
        other = theirs(TEXTS, padding=True, return_tensors="pt", **options)
        assert list(mine) == list(other)
        for name, tensor in other.items():
            assert mine[name].dtype == tensor.dtype
            assert torch.equal(mine[name], tensor)
    assert face.decode(mine["input_ids"]) == theirs.decode(other["input_ids"])
    text = face("short", return_tensors="pt").to("cpu")
    assert text["input_ids"].tolist() == theirs("short", return_tensors="pt")["input_ids"].tolist()


def test_the_embeddings_are_resized(tmp_path: Path) -> None:
    """They follow a vocabulary that was extended: old rows stay, new ids have rows."""
    text = Path(argparse.__file__).read_text(encoding="utf-8")
    before = BPETokenizer("gpt2", None).train(text, 400, special_tokens=["<|end|>"], verbose=False)
    after = copy.copy(before).extend("Grüße aus Köln, schöne Grüße! " * 20, 450, verbose=False)
    after.save(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(str(tmp_path))
    assert len(theirs) == len(after) > len(before)

    config = transformers.GPT2Config(vocab_size=len(before), n_embd=8, n_layer=1, n_head=1, n_positions=64)
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(config)
    old = model.get_input_embeddings().weight.detach().clone()
    model.resize_token_embeddings(len(theirs))
    rows = model.get_input_embeddings().weight
    assert rows.shape == (len(after), 8)
    assert torch.equal(rows[: len(before)], old)

    # If no new merge applies, the ids and the model's output are unchanged.
    plain = "return self._prog"
    ids = theirs.encode(plain)
    assert ids == before.encode(plain)
    assert torch.equal(model.get_input_embeddings()(torch.tensor(ids)), old[ids])
    new = theirs.encode("schöne Grüße")
    assert new == after.encode("schöne Grüße")
    assert len(before) <= max(new) < len(theirs)
    with torch.no_grad():
        assert model(torch.tensor([new])).logits.shape == (1, len(new), len(after))
