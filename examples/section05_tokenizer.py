"""§5: the class `BPETokenizer`: texts to ids and back, singly and in batches."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bpe_tokenizer import (
    BPETokenizer,
    CorpusError,
    CorpusFileNotFoundError,
    DecodingError,
    EncodingResult,
    MissingDependencyError,
    ModelFileNotFoundError,
    OptionError,
    TokenizerError,
    TokenizerFileNotFoundError,
    UnknownColumnError,
    UnknownIdError,
    build_byte_to_char,
    build_char_to_byte,
    compare,
    report,
)
from shared import heading, library_files, library_tokenizer, refused, show, without

LINE = "for path in sorted(root.glob('*.py')):  # naïve 🙂"


def main() -> None:
    """Use every method that turns texts into ids, and ids into texts."""
    heading(5, "The class BPETokenizer")
    one_text()
    many_texts()
    columns()
    rows()
    files()
    arrays_and_tensors()
    offsets()
    back_to_text()
    token_strings()
    budgets()
    to_look_at()
    to_measure()
    shared_and_copied()


def one_text() -> None:
    """Encode a text, as a list, as an array, counted, and from its bytes."""
    tokenizer = library_tokenizer()
    ids = tokenizer.encode(LINE)
    assert tokenizer(LINE) == ids
    array = tokenizer.encode_to_numpy(LINE)
    assert array.dtype == np.uint32
    assert array.tolist() == ids == tokenizer.encode_bytes(LINE.encode())
    assert tokenizer.count_tokens(LINE) == len(ids)
    show(f"{len(LINE.encode())} bytes in {len(ids)} ids", LINE, ids)


def many_texts() -> None:
    """Encode a batch: as objects with padding, cut to a length, and as one array."""
    tokenizer = copy.copy(library_tokenizer())
    tokenizer.pad_token = "<|pad|>"
    texts = ["import os", "import sys, this", ""]
    results = tokenizer.encode_batch(texts, padding=True)
    for text, result in zip(texts, results, strict=True):
        assert isinstance(result, EncodingResult)
        assert result.input_ids[: sum(result.attention_mask)] == tokenizer.encode(text)
        assert len(result) == len(result.tokens) == len(results[1])
        assert result.token_type_ids is None
    show("A batch with padding", *(f"{result.tokens} {result.attention_mask}" for result in results))
    assert tokenizer(texts) == tokenizer.encode_batch(texts)
    short = tokenizer(texts, truncation=True, max_length=2)
    assert max(map(len, short)) == 2
    flat, starts = tokenizer.encode_ragged(texts)
    assert flat[starts[1] : starts[2]].tolist() == tokenizer.encode(texts[1])
    show("The same as one array, with the start of each text", flat, starts)
    assert tokenizer.encode(" ".join(texts), threads=2) == tokenizer.encode(" ".join(texts))
    with refused(OptionError, "Truncate without a length"):
        tokenizer.encode_batch(texts, truncation=True)


def columns() -> None:
    """Columns of Arrow in and out, if `pyarrow` is installed."""
    if find_spec("pyarrow") is None:
        return
    tokenizer = library_tokenizer()
    pyarrow = import_module("pyarrow")
    table = pyarrow.table({"text": ["import os", None, "import sys, this"]})
    ids = tokenizer.encode_arrow(table.column("text"))
    assert ids.to_pylist()[0] == tokenizer.encode("import os")
    assert tokenizer.decode_arrow(ids) == table.column("text")
    assert tokenizer.arrow_mapper()(table).column("input_ids") == ids
    show("A column of texts as a column of ids", ids.type, ids.to_pylist())


def rows() -> None:
    """Dicts for data sets, offsets, pairs, words, the rest of long texts, padding afterwards."""
    tokenizer = copy.copy(library_tokenizer())
    tokenizer.pad_token = "<|pad|>"
    texts = ["import os", "import sys, this"]
    columns = tokenizer(texts, return_dict=True)
    assert columns["input_ids"] == [tokenizer.encode(text) for text in texts]
    result = tokenizer(texts[1], return_offsets_mapping=True)
    assert isinstance(result, EncodingResult)
    assert (result.ids, result["offset_mapping"]) == (result.input_ids, result.offsets)
    assert result.keys() == ["input_ids", "attention_mask", "offset_mapping"]
    assert result == list(result) == result.ids
    assert result[0] == result.ids[0]
    assert result.ids[0] in result
    with refused(UnknownColumnError, "A column that nobody asked for"):
        result["labels"]
    pair = tokenizer.encode_batch(texts[:1], text_pair=texts[1:])[0]
    assert pair.sequence_ids is not None
    show("A pair of texts, with the text of each id", pair.tokens, pair.sequence_ids)
    words = tokenizer(["import", " os"], is_split_into_words=True)
    assert isinstance(words, EncodingResult)
    show("Words, with the word of each id", words.tokens, words.word_ids)
    parts = tokenizer.encode_batch(
        texts[1:], truncation=True, max_length=2, return_overflowing_tokens=True, stride=1
    )
    assert parts[0].overflowing[0].ids[0] == parts[0].ids[1]
    padded = tokenizer.pad(columns["input_ids"], padding_side="left", return_tensors="np")
    show("Padded afterwards, on the left", padded["input_ids"], padded["attention_mask"])


def files() -> None:
    """Encode the documents in files, without Python strings."""
    tokenizer = library_tokenizer()
    with TemporaryDirectory() as directory:
        path = Path(directory, "documents.txt")
        path.write_text("import os\n\nimport sys\n", encoding="utf-8")
        flat, starts = tokenizer.encode_files(path, separator="\n", add_special_tokens=False, threads=2)
        assert flat[starts[1] : starts[2]].tolist() == tokenizer.encode("import sys")
        show("Lines of a file as one array, with their starts", flat, starts)
        with refused(CorpusFileNotFoundError, "Encode a file that is not there"):
            tokenizer.encode_files(Path(directory, "missing.txt"))
        with refused(TokenizerFileNotFoundError, "Load a file that is not there"):
            BPETokenizer.load(Path(directory, "missing"))
        with refused(ModelFileNotFoundError, "Find the tokenizer of a model that is not there"):
            BPETokenizer.for_model(Path(directory, "missing.gguf"))
        path.write_bytes(b"not UTF-8: \xff")
        with refused(CorpusError, "Which byte is not UTF-8?"):
            tokenizer.encode_files([path])


def arrays_and_tensors() -> None:
    """Make the matrices that models expect."""
    tokenizer = copy.copy(library_tokenizer())
    tokenizer.pad_token = "<|pad|>"
    texts = ["import os", "import sys, this"]
    arrays = tokenizer.encode_batch(texts, padding=True, return_tensors="np")
    assert arrays["input_ids"].dtype == arrays["attention_mask"].dtype == np.int64
    assert arrays["input_ids"].shape == arrays["attention_mask"].shape
    assert tokenizer.decode_batch(arrays["input_ids"]) == texts
    show("As NumPy arrays", arrays["input_ids"], arrays["attention_mask"])
    with refused(OptionError, "A matrix of rows of different lengths"):
        tokenizer.encode_batch(texts, return_tensors="np")
    with without("torch"), refused(MissingDependencyError, "PyTorch's tensors, without PyTorch"):
        tokenizer.encode_batch(texts, padding=True, return_tensors="pt")


def offsets() -> None:
    """Find the part of the text for each id."""
    tokenizer = library_tokenizer()
    ids, spans = tokenizer.encode_with_offsets(LINE)
    assert "".join(LINE[start:end] for start, end in spans) == LINE
    show(
        "Each id with its part of the text",
        " ".join(f"{i}={LINE[a:b]!r}" for i, (a, b) in zip(ids, spans, strict=True)),
    )
    arrays = tokenizer.encode_to_numpy_with_offsets(LINE)
    assert (arrays[0].tolist(), [tuple(span) for span in arrays[1].tolist()]) == (ids, spans)
    _, in_bytes = tokenizer.encode_with_offsets(LINE, unit="byte")
    assert in_bytes[-1][1] == len(LINE.encode())
    # The ids of the bytes of one character: they share it, or the last one has it.
    face = library_tokenizer().encode_with_offsets("🙂", tile=False)[1]
    assert set(face) == {(0, 1)}
    assert library_tokenizer().encode_with_offsets("🙂")[1][-1] == (0, 1)


def back_to_text() -> None:
    """Decode ids: whole texts, halves of characters, unknown ids."""
    tokenizer = library_tokenizer()
    ids = tokenizer.encode(LINE)
    assert tokenizer.decode(ids) == tokenizer.decode(np.array(ids)) == LINE
    assert tokenizer.decode_bytes(ids) == LINE.encode()
    assert tokenizer.decode_batch([ids, ids[:1]]) == [LINE, "for"]
    with_end = [*ids, tokenizer.special_tokens["<|endoftext|>"]]
    assert tokenizer.decode(with_end) == LINE + "<|endoftext|>"
    assert tokenizer.decode(with_end, skip_special_tokens=True) == LINE
    half = tokenizer.encode_bytes("🙂".encode()[:2])
    show("Half a character", repr(tokenizer.decode(half)), tokenizer.decode_bytes(half))
    with refused(DecodingError, "Half a character, strictly"):
        tokenizer.decode(half, errors="strict")
    with refused(UnknownIdError, "An unknown id"):
        tokenizer.decode([0, 123_456])
    # Every error is a TokenizerError and the matching built-in error.
    assert issubclass(UnknownIdError, TokenizerError)
    assert issubclass(UnknownIdError, KeyError)


def token_strings() -> None:
    """Look at tokens as strings, with bytes as GPT-2's printable characters."""
    tokenizer = library_tokenizer()
    tokens = tokenizer.tokenize("  naïve")
    assert tokenizer.convert_tokens_to_string(tokens) == "  naïve"
    ids = tokenizer.convert_tokens_to_ids(tokens)
    assert ids == tokenizer.encode("  naïve")
    assert tokenizer.convert_ids_to_tokens(ids) == tokens
    assert tokenizer.convert_tokens_to_ids("no such token") == -1
    assert tokenizer.convert_ids_to_tokens(123_456) == ""
    assert tokenizer.get_vocab()["Ġ"] == 32
    assert tokenizer.id_to_token(ids[0]) == tokens[0]
    assert tokenizer.token_to_id("no such token") is None
    assert tokens[0] in tokenizer
    assert copy.deepcopy(tokenizer) == BPETokenizer.from_model(tokenizer.model) == tokenizer
    # The rows of an embedding, the ids in use, and what training filled.
    assert tokenizer.n_vocab >= len(tokenizer) >= tokenizer.vocab_size
    printable = build_byte_to_char()
    assert bytes(map(build_char_to_byte(printable).__getitem__, tokens[0])) == tokenizer.vocab[ids[0]]
    assert len(tokenizer.get_vocab()) == len(tokenizer.vocab) == len(tokenizer)
    show("'  naïve' as token strings", tokens)


def budgets() -> None:
    """Cut texts by tokens, never inside a character."""
    tokenizer = library_tokenizer()
    source = library_files()[0].read_text(encoding="utf-8")
    beginning = tokenizer.truncate(source, 100)
    assert source.startswith(beginning)
    assert tokenizer.count_tokens(beginning) <= 100
    chunks = tokenizer.split_by_tokens(source, 200)
    assert "".join(chunks) == source
    assert max(map(tokenizer.count_tokens, chunks)) <= 200
    overlapping = tokenizer.split_by_tokens(source, 200, overlap=50)
    assert len(overlapping) > len(chunks)
    show(
        f"{library_files()[0].name}, {tokenizer.count_tokens(source):,} tokens",
        f"its first 100 tokens end with {beginning[-30:]!r}",
        f"{len(chunks)} chunks of 200 tokens, {len(overlapping)} if 50 are repeated",
    )


def to_look_at() -> None:
    """Look at the tokens of a text, and at how they were merged; a notebook shows them in colour."""
    tokenizer = library_tokenizer()
    seen = tokenizer.visualize("import argparse")
    assert seen.ids == tokenizer.encode("import argparse")
    assert "argparse" in seen._repr_html_()
    show("tokenizer.visualize('import argparse')", seen, seen.counts)


def to_measure() -> None:
    """Measure a tokenizer on a corpus, compare it with another one, and save the tables and plots."""
    tokenizer, corpus = library_tokenizer(), library_files()[:40]
    found = report(tokenizer, corpus, name="ours")
    low, high = found.facts["sample"]["bytes_per_token"]
    assert low < found.facts["corpus"]["bytes_per_token"] < high
    small = BPETokenizer().train(library_files()[40:50], 512, verbose=False)
    both = compare({"ours": tokenizer, "small": small}, corpus)
    with TemporaryDirectory() as directory:
        both.save(directory)
        saved = sorted(path.name for path in Path(directory).glob("*.svg"))
    show("report and compare", found.facts["summary"][0], both.facts["summary"][0], ", ".join(saved))


def shared_and_copied() -> None:
    """Share a tokenizer between threads, pickle it, copy it, and look at its cache."""
    tokenizer = library_tokenizer()
    texts = [path.read_text(encoding="utf-8") for path in library_files()[:24]]
    tokenizer.clear_cache()
    one_by_one = [tokenizer.encode(text) for text in texts]
    statistics = tokenizer.get_cache_stats()
    show("The cache of pieces", {name: round(value, 1) for name, value in statistics.items()})
    assert statistics["hits"] > statistics["misses"]
    tokenizer.limit_cache(4 << 20)  # bytes for one thread
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(tokenizer.encode, texts)) == one_by_one
    twin: BPETokenizer = pickle.loads(pickle.dumps(tokenizer))
    assert twin.encode(texts[0]) == one_by_one[0]
    assert repr(twin) == repr(tokenizer)
    show("Pickled and made again", twin)


if __name__ == "__main__":
    main()
