"""§1: the vocabulary and how it is trained."""

from __future__ import annotations

import io
from contextlib import redirect_stderr
from typing import Any

from bpe_tokenizer import (
    ArgumentTypeError,
    BPETokenizer,
    CorpusError,
    CorpusFileNotFoundError,
    ModelError,
    NotTrainedError,
    OnProgress,
    OptionError,
    Progress,
    report_progress,
    train_bpe,
)
from shared import heading, library_files, refused, show

# The example of https://aclanthology.org/P16-1162/: the pairs "e s" and "s t" are both seen 9 times.
WORDS = ["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3


def main() -> None:
    """Train in every way."""
    heading(1, "The vocabulary and how it is trained")
    train_on_files()
    forms_of_a_corpus()
    progress()
    ties_and_limits()
    ids_of_special_tokens()
    plain_function()
    what_is_refused()


def train_on_files() -> None:
    """Train on Python's library, with the summary that a user sees."""
    report = io.StringIO()
    with redirect_stderr(report):
        tokenizer = BPETokenizer().train(library_files(), vocab_size=2000, verbose=True)
    show(f"Train on {len(library_files())} modules of Python's library", report.getvalue(), tokenizer)
    assert tokenizer.vocab_size == len(tokenizer) == 2000
    first, last = tokenizer.merges[0], tokenizer.merges[-1]
    show("The first merge and the last one", first, last)
    # A merge makes the token that joins its two parts. The first merge gets the id after the bytes.
    assert tokenizer.vocab[65] == b"A"
    assert tokenizer.vocab[256] == b"".join(first)
    assert tokenizer.vocab[1999] == b"".join(last)


def forms_of_a_corpus() -> None:
    """Give the same documents in several forms, in another order, to one thread and to many."""
    files = library_files()[:12]
    texts = [path.read_text(encoding="utf-8") for path in files]
    forms: dict[str, Any] = {
        "paths": files,
        "documents": texts,
        "a generator of documents": (text for text in texts),
        "bytes": [text.encode() for text in texts],
        "backwards": texts[::-1],
    }
    trained = {name: BPETokenizer().train(corpus, 600, verbose=False) for name, corpus in forms.items()}
    trained["one thread"] = BPETokenizer().train(files, 600, threads=1, verbose=False)
    assert len({tuple(tokenizer.merges) for tokenizer in trained.values()}) == 1
    show("The same merges from the same documents as", ", ".join(trained))

    assert (
        BPETokenizer().train(files[0], 300, verbose=False).merges
        == BPETokenizer().train(str(files[0]), 300, verbose=False).merges
        == BPETokenizer().train(texts[0], 300, verbose=False).merges
    )
    with refused(CorpusFileNotFoundError, "A str that looks like a path and names no file"):
        BPETokenizer().train("corpora/missing.txt", 257, verbose=False)


def progress() -> None:
    """Follow a training in a program, without its bar."""
    ends: dict[str, str] = {}

    def note(seen: Progress) -> None:
        ends[seen.stage] = f"{seen.done:.1f} of {seen.total} {seen.unit}"

    to: OnProgress = note
    with report_progress(to):
        BPETokenizer().train(library_files()[:12], 600, verbose=False)
    assert ends["Learning merges"] == "344.0 of 344.0 merges"
    show("The stages of a training, as a function of the program saw them", *ends)


def ties_and_limits() -> None:
    """Choose between equally frequent pairs, and stop early."""
    largest = BPETokenizer().train(WORDS, 260, verbose=False)
    huggingface = BPETokenizer().train(WORDS, 260, tie_break="huggingface", verbose=False)
    assert largest.merges[0] == (b"s", b"t")
    assert huggingface.merges[0] == (b"e", b"s")
    show("Two pairs with equal counts: the largest bytes first", *_merges(largest))
    show("... and with tie_break='huggingface'", *_merges(huggingface))

    often = BPETokenizer().train(WORDS, 1000, min_frequency=6, verbose=False)
    every = BPETokenizer().train(WORDS, 1000, min_frequency=1, verbose=False)
    short = BPETokenizer().train(WORDS, 1000, max_token_length=3, verbose=False)
    assert len(often.merges) < len(every.merges)
    assert max(map(len, short.vocab.values())) == 3
    show(
        "Merges of pairs seen at least 6 times, and of all pairs",
        len(often.merges),
        len(every.merges),
    )


def _merges(tokenizer: BPETokenizer) -> list[str]:
    return [f"{left.decode()} + {right.decode()}" for left, right in tokenizer.merges[:3]]


def ids_of_special_tokens() -> None:
    """Assign ids to special tokens: after the bytes, or those of a dict."""
    corpus = library_files()[:40]
    listed = BPETokenizer().train(corpus, 512, special_tokens=["<s>", "</s>", "<pad>"], verbose=False)
    assert listed.special_tokens == {"<s>": 256, "</s>": 257, "<pad>": 258}
    assert len(listed.merges) == 253
    show("512 ids with three listed special tokens", listed, listed.special_tokens)

    outside = BPETokenizer().train(corpus, 276, special_tokens={"<|endoftext|>": 100257}, verbose=False)
    assert len(outside.merges) == 20
    assert (outside.vocab_size, len(outside)) == (276, 277)
    show("276 ids and a special token far outside", outside, outside.special_tokens)

    inside = BPETokenizer().train(corpus, 300, special_tokens={"<mask>": 270}, verbose=False)
    assert inside.vocab[270] == b"<mask>"
    assert sorted(inside.vocab) == list(range(300))


def plain_function() -> None:
    """Train with the plain function, and make a tokenizer from its result."""
    path = library_files()[0]
    vocab, merges = train_bpe(path, 400, ["<|endoftext|>"])
    tokenizer = BPETokenizer.from_vocab(vocab, merges, ["<|endoftext|>"])
    text = path.read_text(encoding="utf-8")
    assert tokenizer.decode(tokenizer.encode(text)) == text
    show(f"train_bpe learns {len(merges)} merges from {path.name}; from_vocab runs them", tokenizer)


def what_is_refused() -> None:
    """Show what training refuses, and the errors."""
    with refused(CorpusError, "Train on nothing"):
        BPETokenizer().train([], 300, verbose=False)
    with refused(CorpusError, "Train on bytes that are not UTF-8"):
        BPETokenizer().train([b"fine", b"not \xff fine"], 300, verbose=False)
    with refused(OptionError, "Ask for 256 ids, which the bytes take"):
        BPETokenizer().train("low lower", 256, verbose=False)
    with refused(ModelError, "Give a special token the id of a byte"):
        BPETokenizer().train("low lower", 300, special_tokens={"<s>": 97}, verbose=False)
    with refused(ArgumentTypeError, "Train on a number"):
        BPETokenizer().train(300)  # type: ignore[arg-type]
    with refused(NotTrainedError, "Encode before training"):
        BPETokenizer().encode("low")


if __name__ == "__main__":
    main()
