from __future__ import annotations

import gzip
import json
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import CorpusError, OptionError, PieceCounts, count
from bpe_tokenizer.errors import CorpusFileNotFoundError
from bpe_tokenizer.readers import detect, opened
from bpe_tokenizer.readers.inputs import Input, StoredFile
from training import merges_of, trained


def test_every_form_of_a_corpus(corpus_files: list[Path]) -> None:
    documents = [path.read_bytes().decode() for path in corpus_files]
    expected = merges_of(documents)
    forms: list[Any] = [
        tuple(documents),
        (document for document in documents),
        [document.encode() for document in documents],
        dict.fromkeys(documents).keys(),
        corpus_files,
        iter(corpus_files),
    ]
    for form in forms:
        assert merges_of(form) == expected
    alone = merges_of(documents[:1])
    forms = [documents[0], documents[0].encode(), corpus_files[0], str(corpus_files[0]), [corpus_files[0]]]
    for form in forms:
        assert merges_of(form) == alone


def test_a_file_is_one_document(tmp_path: Path) -> None:
    # Larger than any block that it is read in; pieces, characters and special tokens lie across every cut.
    text = "".join(f"naïve words{i} \r\n\n  日本<|sep|>語'll {i * 7919}" for i in range(60_000))
    path = tmp_path / "large.txt"
    path.write_text(text, encoding="utf-8", newline="")
    options: dict[str, Any] = {"special_tokens": ["<|sep|>"], "vocab_size": 400}
    assert merges_of(path, **options) == merges_of([text], **options)


@pytest.mark.parametrize("weights", [None, [1, 1, 2, 2, 1, 3, 3]])
def test_each_file_of_a_mixture_is_opened_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weights: list[int] | None
) -> None:
    texts = [f"low {'lower ' * number}wider" for number in range(1, 8)]
    files = [tmp_path / str(number) for number in range(len(texts))]
    for number, (path, text) in enumerate(zip(files, texts, strict=True)):
        data = json.dumps({"text": text}).encode() + b"\n" if number in (2, 5) else text.encode()
        path.write_bytes(gzip.compress(data) if number in (3, 5) else data)
    expected = PieceCounts()
    for text, weight in zip(texts, weights or [1] * len(texts), strict=True):
        expected.add([text], weight)
    times: Counter[str] = Counter()
    for module in (detect, opened):
        real = module.open_stored

        def open_stored(source: Input, real: Callable[[Input], StoredFile] = real) -> StoredFile:
            times[source.name] += 1
            return real(source)

        monkeypatch.setattr(module, "open_stored", open_stored)
    monkeypatch.setattr("bpe_tokenizer.readers.sources.warn_of_separators", lambda *_: None)
    for step in (1, 40, 1 << 20):
        times.clear()
        monkeypatch.setattr("bpe_tokenizer.train.corpus._STEP_BYTES", step)
        assert dict(count(files, weights=weights)) == dict(expected)
        assert times == {str(path): 1 for path in files}


def test_a_list_of_strings_that_name_files_is_files(corpus_files: list[Path]) -> None:
    names = [str(path) for path in corpus_files]
    expected = merges_of(corpus_files, 260)
    for form in (names, tuple(names), iter(names)):
        assert merges_of(form, 260) == expected
    with pytest.raises(CorpusFileNotFoundError, match=r"no file 'missing\.txt'"):
        trained([names[0], "missing.txt"])
    for missing in (["a.txt", "b.txt"], ["data/fr", "data/de"], ["./no", "./such"], ["*.nope"]):
        for learn in (trained, PieceCounts().add):
            with pytest.raises(CorpusFileNotFoundError, match="no file"):
                learn(missing)
    with pytest.raises(CorpusError, match=r"mixes texts and paths.*item 1 does not"):
        trained([names[0], "low low"])
    # Other lists are texts.
    for texts in (["low low", names[0]], ["3.14", "low.txt"], ["low", "and/or"]):
        assert merges_of(texts) == merges_of([text.encode() for text in texts])


@pytest.mark.parametrize(
    "text",
    [
        *("corpus/part-1.txt", "missing.txt", "/no/such/file", r"C:\texts\a", "and/or", "data/*.jsonl.gz"),
        *("my corpus.txt", "a.bin", "~/texts", "part-*", "part.*", "train.jsonl.*", "texts.7z"),
        "a line of a list.txt\n",
    ],
)
def test_what_looks_like_a_path_and_names_no_file_is_refused(text: str) -> None:
    for learn in (trained, PieceCounts().add):
        with pytest.raises(CorpusFileNotFoundError, match=r"no file .*text\.encode\(\)"):
            learn(text)
    assert merges_of(text.encode()) == merges_of([text.encode()])


@pytest.mark.parametrize(
    "text",
    [
        *("low low lower", "one line\nand/or.another", "Ends with a dot.", "3.14", "low.low low", "2 * 3"),
        *("he/she said 1.5", "a" * 5000, "\0/a b"),
    ],
)
def test_a_text_is_taken_as_it_is(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert merges_of(text) == merges_of([text])


def test_a_text_in_memory_has_no_separators() -> None:
    given: list[dict[str, Any]] = [{"separator": "<|end|>"}, {"documents": "line"}]
    for corpus in ("low<|end|>lower", [b"low", "lower"], iter(["low", "lower"])):
        for options in given:
            with pytest.raises(OptionError, match="a text in memory is one document: split it"):
                trained(corpus, **options)


def test_a_file_that_is_named_twice_is_told(corpus_files: list[Path]) -> None:
    with pytest.warns(UserWarning, match="are one file, which is read twice"):
        assert count([corpus_files[0]] * 2).documents == 2


def test_an_empty_corpus_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.touch()
    corpora: list[Any] = ["", b"", [], [""], ["", ""], iter(()), empty, [empty], str(empty)]
    for corpus in corpora:
        with pytest.raises(CorpusError, match="empty"):
            trained(corpus)
    with pytest.raises(CorpusError, match="empty"):
        trained("<|x|><|x|>", special_tokens=["<|x|>"])
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"content": "low"}', encoding="utf-8")
    for learn in (trained, count):
        with pytest.raises(CorpusError, match=r"empty: .*Skipped 1 bad row, .* has no field 'text'"):
            learn(rows, on_error="skip")


def test_an_empty_directory_or_a_missing_file_is_refused(tmp_path: Path) -> None:
    corpora: list[Any] = [tmp_path, str(tmp_path), [tmp_path], iter([tmp_path])]
    for corpus in corpora:
        with pytest.raises(CorpusError, match=r"the directory .* has no files"):
            trained(corpus)
    corpora = [tmp_path / "missing.txt", [tmp_path / "missing.txt"], iter([tmp_path / "missing.txt"])]
    for corpus in corpora:
        with pytest.raises(CorpusError, match=r"no file .*missing\.txt"):
            trained(corpus)


def test_bytes_that_are_not_utf8_are_refused_with_their_place(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="document 1: byte 3 is not valid UTF-8"):
        trained([b"fine", b"abc\xff"])
    with pytest.raises(CorpusError, match="document 6: byte 0 is not valid UTF-8"):
        trained([b"a" * 1_500_000] * 6 + [b"\xff"])
    path = tmp_path / "broken.txt"
    path.write_bytes(b"x" * 1000 + b"\xe2\x82")
    with pytest.raises(CorpusError, match=r"broken\.txt.*byte 1000|byte 1000.*broken\.txt"):
        trained(path)


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        (5, "not int"),
        (None, "not NoneType"),
        ({"a": 1}, "not dict"),
        (["a", 5], "item 1 of the corpus must be a str, bytes or a Path, not int"),
        ([None], "item 0 .* not NoneType"),
    ],
)
def test_a_corpus_of_the_wrong_type_is_a_type_error(corpus: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        trained(corpus)


def test_texts_and_paths_do_not_mix(corpus_files: list[Path]) -> None:
    mixtures: list[list[Any]] = [["text", corpus_files[0]], [corpus_files[0], "text"]]
    for corpus in mixtures:
        with pytest.raises(CorpusError, match="item 1 of the corpus mixes"):
            trained(corpus)


def test_a_lone_surrogate_is_learned_as_u_fffd() -> None:
    assert merges_of("\ud800" * 4, 300) == merges_of("\ufffd" * 4, 300)
    assert merges_of("\ud83d\ude00" * 4, 300) == merges_of("😀" * 4, 300)
