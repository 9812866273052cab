"""§11: the lesson: BPE in pure Python, with every step visible."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from tempfile import TemporaryDirectory

from bpe_tokenizer import BPETokenizer
from shared import heading, library_files, refused, show


def main() -> None:
    """Learn BPE from its smallest steps, with split patterns if the `regex` module is installed."""
    heading(11, "The lesson: bpe_tokenizer.reference")
    two_operations()
    training_and_encoding()
    if importlib.util.find_spec("regex") is None:
        from bpe_tokenizer.reference import RegexBPETokenizer

        with refused(ImportError, "Split patterns without the regex module"):
            RegexBPETokenizer()
        return
    bytes_pieces_characters()
    steps_of_an_encoding()
    every_step()
    files()
    the_fast_one_agrees()


def two_operations() -> None:
    """Count pairs and merge one: the two basic operations."""
    from bpe_tokenizer.reference import count_pairs, merge_pair

    tokens = list("aaabdaaabac")
    counts = count_pairs(tokens)
    assert counts["a", "a"] == 4
    merged = merge_pair(tokens, ("a", "a"))
    assert merged == ["aa", "a", "b", "d", "aa", "a", "b", "a", "c"]
    show("aaabdaaabac: the pairs, and the most frequent one merged", counts, merged)


def training_and_encoding() -> None:
    """Learn merges from a table of words, and encode with them."""
    from bpe_tokenizer.reference import learn_merges, merge_all, origins, rank_merges

    words = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
    learned = list(learn_merges({tuple(word): times for word, times in words.items()}, 10))
    assert learned[0] == (("e", "s"), 9)
    merges = [pair for pair, _ in learned]
    assert merge_all("lowest", rank_merges(merges)) == ["low", "est"]
    assert origins(merges)["est"] == ("es", "t")
    show(
        "low 5, lower 2, newest 6, widest 3",
        *(f"{a} + {b}, seen {times} times" for (a, b), times in learned[:4]),
    )
    show("'lowest', an unseen word", merge_all("lowest", rank_merges(merges)))


def bytes_pieces_characters() -> None:
    """Train the three tokenizers of the lesson on the same text."""
    from bpe_tokenizer.reference import (
        GPT2_PATTERN,
        GPT4_PATTERN,
        CharBPETokenizer,
        NaiveBPETokenizer,
        RegexBPETokenizer,
        Tokenizer,
        split,
    )

    text = "the cat in the hat, the cat on the mat"
    tokenizers: list[Tokenizer[bytes] | Tokenizer[str]] = [
        NaiveBPETokenizer().train(text, 266),
        RegexBPETokenizer().train(text, 266),
        CharBPETokenizer().train(text, 266),
    ]
    for tokenizer in tokenizers:
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert tokenizer.decode_bytes(ids) == text.encode()
        show(
            type(tokenizer).__name__,
            " ".join(repr(tokenizer.id_bytes(token_id).decode()) for token_id in ids),
        )
    assert split("We'll see", GPT2_PATTERN) == split("We'll see", GPT4_PATTERN) == ["We", "'ll", " see"]
    end = RegexBPETokenizer(GPT2_PATTERN).train(text, 260)
    assert end.encode("the<|endoftext|>", allowed_special="all")[-1] == 100257
    end.register_special_tokens({"<|end|>": 300})
    assert end.encode("the<|end|>", allowed_special={"<|end|>"})[-1] == 300
    with refused(ValueError, "A disallowed special token"):
        end.encode("the<|end|>", disallowed_special="all")


def steps_of_an_encoding() -> None:
    """Do the steps of `encode` separately: pieces, smallest tokens, merges, ids."""
    from bpe_tokenizer.reference import CharBPETokenizer, NaiveBPETokenizer, RegexBPETokenizer

    corpus = "low lower lowest flow flower"
    regex = RegexBPETokenizer().train(corpus, 260)
    text = "lower flow<|endoftext|>"
    assert regex.split("lower flow") == ["lower", " flow"]
    assert NaiveBPETokenizer().split("lower flow") == ["lower flow"]
    ids = []
    for piece, special_id in regex.pieces(text, allowed_special="all", disallowed_special=()):
        if special_id is None:
            smallest = regex.initial_tokens(piece)
            ids += regex.encode_piece(piece)
            assert b"".join(map(regex.token_bytes, smallest)) == piece.encode()
            show(f"The piece {piece!r}", smallest, regex.encode_piece(piece))
        else:
            ids.append(special_id)
    assert ids == regex.encode(text, allowed_special="all")
    assert regex.ranks[regex.merges[0]] == 0

    characters = CharBPETokenizer(pattern=regex.pattern, byte_level=False).train(corpus, 260)
    smallest_characters = [characters.initial_tokens(piece) for piece in characters.split("lower flow")]
    assert smallest_characters[1] == ["Ġ", "f", "l", "o", "w"]
    assert characters.token_bytes("Ġ") == b" "
    show("The same in characters", smallest_characters, characters.encode_piece(" flow"))


def every_step() -> None:
    """Print every merge of an encoding, and the origin of each token of a decoding."""
    from bpe_tokenizer.reference import DecodeTrace, EncodeTrace, RegexBPETokenizer

    tokenizer = RegexBPETokenizer().train("low lower lowest flow flower", 260)
    there = tokenizer.trace("flowers low")
    assert isinstance(there, EncodeTrace)
    assert there.ids == tokenizer.encode("flowers low")
    show("Every step of encoding", there)
    back = tokenizer.trace_decode(there.ids[:2])
    assert isinstance(back, DecodeTrace)
    assert back.text == "".join(step.text for step in back.steps) == tokenizer.decode(there.ids[:2])
    assert tokenizer.trace_decode([0xC3]).rest == "\ufffd"
    show("... and of decoding", back)


def files() -> None:
    """Save and load, write a listing for people, and read files in OpenAI's format of GPT-2."""
    from bpe_tokenizer.reference import CharBPETokenizer, RegexBPETokenizer

    tokenizer = RegexBPETokenizer().train("low lower lowest flow flower", 260)
    with TemporaryDirectory() as directory:
        here = Path(directory)
        tokenizer.save(here / "lesson.json")
        assert RegexBPETokenizer().load(here / "lesson.json").merges == tokenizer.merges
        assert BPETokenizer.from_base64_json(here / "lesson.json").encode("flower") == tokenizer.encode(
            "flower"
        )
        tokenizer.save_readable(here / "lesson.txt")
        listing = (here / "lesson.txt").read_text(encoding="utf-8").splitlines()
        show("A listing", *listing[-3:])
        fast = BPETokenizer("gpt2", normalization=None).train(library_files()[:9], 400, verbose=False)
        fast.save_gpt2(here, names="encoder.json")
        openai = CharBPETokenizer().load_openai(here / "encoder.json", here / "vocab.bpe")
    text = "import os  # naïve 🙂"
    assert openai.encode(text) == fast.encode(text)
    show("OpenAI's two files, read by the lesson", openai)


def the_fast_one_agrees() -> None:
    """Run the lesson's merges in the fast core: the same ids."""
    from bpe_tokenizer.reference import RegexBPETokenizer

    text = library_files()[0].read_text(encoding="utf-8")
    slow = RegexBPETokenizer().train(text, 300)
    fast = BPETokenizer.from_vocab(slow.vocab, slow.merges, slow.special_tokens, split_pattern="cl100k")
    ids = fast.encode(text)
    assert ids == slow.encode(text)
    show(f"{library_files()[0].name} in the lesson and in the core", f"{len(ids):,} ids, the same")


if __name__ == "__main__":
    main()
