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
    a_chat()
    files()
    the_fast_one_agrees()


def two_operations() -> None:
    """Count pairs and merge one: the two basic operations."""
    from bpe_tokenizer.reference import compute_pair_of_tokens_stats, count_pairs, merge_pair

    ids = list(b"aaabdaaabac")
    counts = count_pairs(ids)
    assert counts[97, 97] == 4
    assert compute_pair_of_tokens_stats is count_pairs
    merged = merge_pair(ids, (97, 97), 256)
    assert merged == [256, 97, 98, 100, 256, 97, 98, 97, 99]
    show("aaabdaaabac: the pairs, and the most frequent one merged", counts, merged)


def training_and_encoding() -> None:
    """Learn merges from a table of words, and encode with them: the smallest BPE."""
    from bpe_tokenizer.reference import BasicBPE, apply_merges, learn_merges, words

    smallest = BasicBPE(259).train("aaabdaaabac")
    assert smallest.decode(smallest.encode("aaabdaaabac")) == "aaabdaaabac"
    table = {("l", "o", "w"): 5, ("l", "o", "w", "e", "r"): 2, tuple("newest"): 6, tuple("widest"): 3}
    assert words.get_stats(table)["e", "s"] == 9
    learned = list(learn_merges([("".join(word).encode(), n) for word, n in table.items()], range(256, 266)))
    merges = {merge.pair: merge.new_id for merge in learned}
    assert learned[0].pair == (ord("e"), ord("s"))
    tokens = {byte: chr(byte) for byte in range(256)}
    for (left, right), token_id in merges.items():
        tokens[token_id] = tokens[left] + tokens[right]
    ids = apply_merges(b"lowest", merges, ranks=merges)
    assert ids == [259, 257]
    show(
        "low 5, lower 2, newest 6, widest 3",
        *(
            f"{merge.pair} becomes {merge.new_id}, seen {merge.counts[merge.pair]} times"
            for merge in learned[:4]
        ),
    )
    show("'lowest', an unseen word", [tokens[token_id] for token_id in ids])


def bytes_pieces_characters() -> None:
    """Train BPE on words, and the three tokenizers of the lesson on the same text."""
    from bpe_tokenizer.reference import (
        GPT2_SPLIT_PATTERN,
        GPT4_SPLIT_PATTERN,
        CharBPETokenizer,
        NaiveBPETokenizer,
        RegexBPE,
        RegexBPETokenizer,
        TokenizerError,
        split,
    )

    assert RegexBPE(259).train("low low lower").encode("low") == [257]
    assert RegexBPE(259).regex_pattern == GPT4_SPLIT_PATTERN
    text = "the cat in the hat, the cat on the mat"
    tokenizers: list[NaiveBPETokenizer] = [
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
    assert (
        split("We'll see", GPT2_SPLIT_PATTERN)
        == split("We'll see", GPT4_SPLIT_PATTERN)
        == ["We", "'ll", " see"]
    )
    assert RegexBPETokenizer.GPT4_SPLIT_PATTERN == GPT4_SPLIT_PATTERN
    end = RegexBPETokenizer(RegexBPETokenizer.GPT2_SPLIT_PATTERN).train(text, 260)
    assert end.encode("the<|endoftext|>", allowed_special="all")[-1] == 100257
    end.register_special_tokens({"<|end|>": 300})
    assert end.encode("the<|end|>", allowed_special={"<|end|>"})[-1] == 300
    assert end.inverse_special_tokens == {300: "<|end|>"}
    with refused(TokenizerError, "A special token that is refused"):
        end.encode("the<|end|>", allowed_special="none_raise")


def steps_of_an_encoding() -> None:
    """Do the steps of `encode` separately: pieces, smallest tokens, merges, ids."""
    from bpe_tokenizer.reference import CharBPETokenizer, NaiveBPETokenizer, RegexBPETokenizer

    corpus = "low lower lowest flow flower"
    regex = RegexBPETokenizer().train(corpus, 260)
    text = "lower flow<|endoftext|>"
    assert regex.split("lower flow") == ["lower", " flow"]
    assert NaiveBPETokenizer().split("lower flow") == ["lower flow"]
    ids = []
    for piece, special_id in regex.pieces(text, allowed_special="all"):
        if special_id is None:
            smallest = regex.initial_tokens(piece)
            ids += regex.encode_piece(piece)
            assert b"".join(map(regex.token_bytes, smallest)) == piece.encode()
            show(f"The piece {piece!r}", smallest, regex.encode_piece(piece))
        else:
            ids.append(special_id)
    assert ids == regex.encode(text, allowed_special="all")
    assert regex.ranks[ord("l"), ord("o")] == 0

    characters = CharBPETokenizer(pattern=regex.pattern, byte_level=False).train(corpus, 260)
    smallest_characters = [characters.initial_tokens(piece) for piece in characters.split("lower flow")]
    assert smallest_characters[1] == ["Ġ", "f", "l", "o", "w"]
    assert characters.token_bytes("Ġ") == b" "
    assert characters.initial_ids(" ") == [characters.inverse_vocab["Ġ"]]
    assert characters.bpe_merges == characters.merges
    assert ("l", "o") in characters.bpe_ranks
    pair = characters.find_freq_pair([1, 2, 1, 2])
    assert pair == (1, 2)
    assert characters.replace_pair([1, 2, 1], pair, 9) == [9, 1]
    show("The same in characters", smallest_characters, characters.encode_piece(" flow"))


def every_step() -> None:
    """Print every merge of a training and of an encoding, and the origin of each token of a decoding."""
    from bpe_tokenizer.reference import DecodeTrace, EncodeTrace, MergeTree, RegexBPETokenizer, TrainingTrace

    tokenizer = RegexBPETokenizer()
    training = tokenizer.trace_training("low lower lowest flow flower", 260)
    assert isinstance(training, TrainingTrace)
    assert training.words[0] == ((b"l", b"o", b"w"), 1)
    show("Every step of training", training)
    tree = tokenizer.merge_tree(259)
    assert isinstance(tree, MergeTree)
    assert [part.token for part in tree.parts] == [
        tree.left and tree.left.token,
        tree.right and tree.right.token,
    ]
    assert next(part.token_id for part in tree.origins()) == 259
    show("What a token was made from", tree)
    there = tokenizer.trace("flowers low")
    assert isinstance(there, EncodeTrace)
    assert there.ids == tokenizer.encode("flowers low")
    show("Every step of encoding", there)
    back = tokenizer.trace_decode(there.ids[:2])
    assert isinstance(back, DecodeTrace)
    assert back.text == "".join(step.text for step in back.steps) == tokenizer.decode(there.ids[:2])
    assert tokenizer.trace_decode([0xC3]).rest == "\ufffd"
    show("... and of decoding", back)


def a_chat() -> None:
    """Encode a conversation whose message tries to open a turn."""
    from bpe_tokenizer.reference import RegexBPETokenizer, chatml_segments, encode_segments, split_at_special

    tokenizer = RegexBPETokenizer().train("low lower lowest flow flower", 260)
    tokenizer.register_special_tokens({"<|im_start|>": 300, "<|im_end|>": 301})
    segments = chatml_segments([{"role": "user", "content": "low<|im_end|>"}], add_generation_prompt=False)
    assert encode_segments(tokenizer, segments).count(301) == 1
    assert split_at_special("low<|im_end|>", tokenizer.special_tokens) == ["low", "<|im_end|>"]
    show("A message cannot write a special token", segments)


def files() -> None:
    """Save and load, write a listing for people, and read files in OpenAI's formats."""
    from bpe_tokenizer.reference import (
        BPETokenizerSimple,
        CharBPETokenizer,
        RegexBPETokenizer,
        from_ranks,
        read_ranks,
    )

    tokenizer = RegexBPETokenizer().train("low lower lowest flow flower", 260)
    with TemporaryDirectory() as directory:
        here = Path(directory)
        tokenizer.save(here / "lesson.json")
        assert RegexBPETokenizer().load(here / "lesson.json").merges == tokenizer.merges
        assert BPETokenizer.load(here / "lesson.json", "base64-json").encode("flower") == tokenizer.encode(
            "flower"
        )
        tokenizer.save_readable(here / "lesson.txt")
        listing = (here / "lesson.txt").read_text(encoding="utf-8").splitlines()
        show("A listing", *listing[-3:])
        (here / "two.tiktoken").write_text("IQ== 0\nIg== 1\n", encoding="utf-8")
        assert read_ranks(here / "two.tiktoken") == {b"!": 0, b'"': 1}
        fast = BPETokenizer("gpt2", normalization=None).train(library_files()[:9], 400, verbose=False)
        fast.export(here / "encoder.json", "gpt2")
        characters = CharBPETokenizer().train("low lower lowest flow flower", 262)
        characters.save_vocab_and_merges(here / "vocab.json", here / "merges.txt")
        openai = CharBPETokenizer().load_vocab_and_merges_from_openai(
            here / "encoder.json", here / "vocab.bpe"
        )
    text = "import os  # naïve 🙂"
    assert openai.encode(text) == fast.encode(text)
    show("OpenAI's two files, read by the lesson", openai)
    ranks = {token: token_id for token_id, token in tokenizer.vocab.items()}
    assert from_ranks(ranks).merges == tokenizer.merges
    assert BPETokenizerSimple is CharBPETokenizer


def the_fast_one_agrees() -> None:
    """Run the lesson's merges in the fast core: the same ids."""
    from bpe_tokenizer.reference import RegexBPETokenizer

    text = library_files()[0].read_text(encoding="utf-8")
    slow = RegexBPETokenizer().train(text, 300)
    merges = [(slow.vocab[left], slow.vocab[right]) for left, right in slow.merges]
    fast = BPETokenizer.from_vocab(slow.vocab, merges, slow.special_tokens, split_pattern="cl100k")
    ids = fast.encode(text)
    assert ids == slow.encode(text)
    show(f"{library_files()[0].name} in the lesson and in the core", f"{len(ids):,} ids, the same")


if __name__ == "__main__":
    main()
