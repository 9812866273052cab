"""§12: training beyond one pass, and vocabularies over time."""

from __future__ import annotations

import copy
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from bpe_tokenizer import (
    BPETokenizer,
    MismatchError,
    OptionError,
    PieceCounts,
    count,
    train_from_counts,
)
from shared import heading, library_files, refused, show


def main() -> None:
    """Count in parts, resume after a stop, truncate a vocabulary and extend it."""
    heading(12, "Vocabularies over time, and training beyond one pass")
    counts_are_values()
    a_mixture()
    a_corpus_that_is_too_large()
    a_run_that_was_stopped()
    counts_as_columns()
    one_training_for_many_sizes()
    more_tokens_same_ids()


def counts_are_values() -> None:
    """Count two halves of a corpus separately, and train on both as on the whole."""
    files = library_files()[:12]
    with TemporaryDirectory() as directory:
        saved = Path(directory) / "half.counts"
        BPETokenizer().count(files[:6], ["<|end|>"]).save(saved)
        half = PieceCounts.load(saved)
        other = count(files[6:], special_tokens=["<|end|>"])
        learned = BPETokenizer().train_from_counts([saved, other], 600, verbose=False)
        assert train_from_counts([saved, other], 600, verbose=False).merges == learned.merges
    whole = BPETokenizer().train(files, 600, special_tokens=["<|end|>"], verbose=False)
    assert learned.vocab == whole.vocab
    assert learned.merges == whole.merges
    both = half.merge(other)
    show("Two halves of a corpus, counted separately and added", both)
    show("The most frequent pieces", sorted(both.items(), key=lambda item: -item[1])[:5])
    assert (both.documents, both.pieces > both.distinct) == (12, True)
    settings = (both.split_patterns, both.normalization, both.special_tokens)
    ranges = PieceCounts(*settings)
    for start in range(0, 2_000_000, 10_000):
        ranges.add_range(files[0], start, start + 10_000)
    assert ranges == PieceCounts(*settings).add(files[0])
    with refused(MismatchError, "Counts with another split pattern"):
        PieceCounts("gpt2").merge(both)


def a_mixture() -> None:
    """Let one source count three times as much as another."""
    code, prose = library_files()[0], "The quick brown fox jumps over the lazy dog. " * 50
    mixture = PieceCounts("gpt2").add(code).add(prose, weight=3)
    assert list(mixture) == list(PieceCounts("gpt2").add(code).add([prose] * 3))
    show("Code once, prose three times", mixture)


def a_corpus_that_is_too_large() -> None:
    """Limit the memory, and get the same merges. Or leave rare pieces out, or take a sample."""
    files = library_files()[:12]
    whole = BPETokenizer().train(files, 600, verbose=False)
    with TemporaryDirectory() as directory:
        limited = BPETokenizer().train(
            files, 600, max_memory="240MB", spill_directory=directory, verbose=False
        )
        assert limited.merges == whole.merges
    frequent = PieceCounts().add(files).prune(5)
    show("Pieces that occur 5 times or more", frequent)
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    sampled = PieceCounts(sample="1/10").add(lines)
    assert 0 < sampled.documents < len(lines)
    show("A sample of the lines", sampled)


def a_run_that_was_stopped() -> None:
    """Train with a checkpoint twice: the second run resumes after the first."""
    files = library_files()[:12]
    with TemporaryDirectory() as directory:
        first = BPETokenizer().train(files, 600, verbose=False, checkpoint=directory)
        show("A checkpoint", *sorted(path.name for path in Path(directory).iterdir()))
        again = BPETokenizer().train(files, 700, verbose=False, checkpoint=directory)
    assert again.merges[: len(first.merges)] == first.merges


def counts_as_columns() -> None:
    """Export counts as Arrow columns, and count such columns, if `pyarrow` is installed."""
    if find_spec("pyarrow") is None:
        return
    texts = PieceCounts("gpt2").add(["low low lower", "low"])
    columns = texts.to_arrow()
    assert PieceCounts("gpt2").add_arrow(columns, documents=2) == texts
    pyarrow = import_module("pyarrow")
    assert PieceCounts("gpt2").add_column(pyarrow.array(["low low lower", "low"])) == texts
    show("Pieces as columns", columns.to_pydict())


def one_training_for_many_sizes() -> None:
    """Truncate a copy for each size, with the result of training each size."""
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
    """Extend a tokenizer for other texts; its tokens keep their ids."""
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
    with refused(OptionError, "A size that is not larger"):
        tokenizer.extend(german, new_vocab_size=1020)


if __name__ == "__main__":
    main()
