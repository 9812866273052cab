"""A language model's embeddings follow a vocabulary that was extended: old rows stay, new ids have rows."""

from __future__ import annotations

import argparse
import copy
from pathlib import Path

import pytest

from bpe_tokenizer import BPETokenizer

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

pytestmark = [pytest.mark.inference, pytest.mark.filterwarnings("default")]


def test_the_embeddings_are_resized(tmp_path: Path) -> None:
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
