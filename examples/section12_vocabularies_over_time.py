"""§12: vocabularies over time: one training for many sizes, and more tokens without new ids for the old."""

from __future__ import annotations

import copy
from pathlib import Path
from tempfile import TemporaryDirectory

from bpe_tokenizer import BPETokenizer, OptionError
from shared import heading, library_files, refused, show


def main() -> None:
    """Cut a vocabulary, and let it grow."""
    heading(12, "Vocabularies over time")
    one_training_for_many_sizes()
    more_tokens_same_ids()


def one_training_for_many_sizes() -> None:
    """Truncate a copy for each size: as if each had been trained."""
    files = library_files()[:12]
    whole = BPETokenizer().train(files, 1000, special_tokens={"<|end|>": 2000}, verbose=False)
    sizes = (300, 500, 700)
    small = {size: copy.copy(whole).truncate_vocab(size) for size in sizes}
    trained = BPETokenizer().train(files, 500, special_tokens={"<|end|>": 2000}, verbose=False)
    assert small[500].vocab == trained.vocab
    assert small[500].merges == trained.merges
    text = files[0].read_text(encoding="utf-8")
    show(
        f"{files[0].name} in tokens, with one training for all sizes",
        *(f"{size:5} ids: {len(small[size].encode(text)):6,} tokens" for size in sizes),
    )
    with refused(OptionError, "A vocabulary without all bytes"):
        whole.truncate_vocab(200)


def more_tokens_same_ids() -> None:
    """Extend a tokenizer for texts that it was not made for; what it knew keeps its ids."""
    tokenizer = BPETokenizer().train(library_files()[:12], 1000, special_tokens=["<|end|>"], verbose=False)
    german = "Viele schöne Grüße aus Köln, und schöne Feiertage! " * 20
    before = copy.copy(tokenizer)
    tokenizer.extend(german, new_vocab_size=1020, verbose=False)
    assert tokenizer.merges[: len(before.merges)] == before.merges
    assert before.vocab.items() <= tokenizer.vocab.items()
    first, last = tokenizer.vocab[1000], tokenizer.vocab[1019]
    show("The first and the last of 20 new tokens", first.decode(), last.decode())
    show("A greeting", f"{len(before.encode(german)):,} tokens before, {len(tokenizer.encode(german)):,} now")
    assert tokenizer.decode(tokenizer.encode(german)) == german
    with TemporaryDirectory() as directory:
        tokenizer.save(directory)
        assert BPETokenizer.from_pretrained(Path(directory)).vocab == tokenizer.vocab
    with refused(OptionError, "A size that is reached already"):
        tokenizer.extend(german, new_vocab_size=1020)


if __name__ == "__main__":
    main()
