"""The sides of `python -m benchmarks.corpora`, each in a process that ends.

    python -m benchmarks.corpora_sides SIDE CORPUS OUTPUT --vocabulary DIRECTORY

Prints as JSON the seconds that the side took, without its imports, without loading its tokenizer and
without starting an engine, and a digest of its result: the ids with GPT-2's `<|endoftext|>` after each
document, or the counts. The digest is not timed.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.inputs import SEPARATOR
from benchmarks.measure import seconds
from benchmarks.vocabularies import Vocabulary, prepare
from bpe_tokenizer import BPETokenizer, PieceCounts
from bpe_tokenizer.distributed import CountSettings

__all__ = ["SIDES", "Outcome", "texts_of"]

_EOS = 50_256
# The documents of a batch of the scripts.
_BATCH = 8_192
_Ids: TypeAlias = npt.NDArray[np.uint16]


class Outcome(NamedTuple):
    """What a side took, and its result.

    Args:
        seconds: The time of the work.
        result: Makes the ids, or the bytes of the counts, untimed.
    """

    seconds: float
    result: Callable[[], npt.NDArray[Any]]


def texts_of(corpus: Path) -> Iterator[str]:
    """Yield the documents of a corpus as a script would: line by line, or row group by row group.

    Args:
        corpus: A file of `corpora_inputs`.

    Yields:
        The documents.
    """
    if corpus.suffix == ".parquet":
        for batch in (
            import_module("pyarrow.parquet").ParquetFile(corpus).iter_batches(_BATCH, columns=["text"])
        ):
            yield from batch.column("text").to_pylist()
        return
    loads = import_module("orjson").loads
    with corpus.open("rb") as file:
        lines: Iterable[bytes] = file
        if corpus.suffix == ".zst":
            reader = import_module("zstandard").ZstdDecompressor().stream_reader(file)
            lines = io.BufferedReader(reader, 1 << 20)
        for line in lines:
            yield loads(line)["text"]


def _ours(vocabulary: Vocabulary) -> BPETokenizer:
    tokenizer = BPETokenizer.load(vocabulary.directory)
    tokenizer.add_special_tokens({SEPARATOR: _EOS})
    return tokenizer


def _tokenize_corpus(corpus: Path, output: Path, vocabulary: Vocabulary) -> Outcome:
    """Our `tokenize_corpus`, from the file to the token files."""
    from bpe_tokenizer.corpus import tokenize_corpus

    tokenizer = _ours(vocabulary)
    made = None

    def run() -> None:
        nonlocal made
        made = tokenize_corpus(corpus, output, tokenizer, "nanogpt", overwrite=True, verbose=False)

    taken = seconds(run)
    assert made is not None
    files = made.files
    return Outcome(taken, lambda: np.concatenate([np.fromfile(file, np.uint16) for file in files]))


def _encode_ragged(corpus: Path, output: Path, vocabulary: Vocabulary) -> Outcome:
    """Our `encode_ragged`, of documents that are in memory."""
    tokenizer, texts = _ours(vocabulary), [*texts_of(corpus)]
    found: list[Any] = []
    taken = seconds(lambda: found.append(tokenizer.encode_ragged(texts)))
    ids, offsets = found[0]
    return Outcome(taken, lambda: _with_eos(ids, offsets[1:]))


def _script(corpus: Path, output: Path, vocabulary: Vocabulary) -> Outcome:
    """A script with zstandard, orjson or pyarrow, gigatoken and numpy: in batches, in bounded memory."""
    tokenizer, awkward = _gigatoken(vocabulary), import_module("awkward")

    def run() -> None:
        texts = texts_of(corpus)
        with output.open("wb") as file:
            while batch := [*islice(texts, _BATCH)]:
                rows = tokenizer.encode_batch(batch, parallel=True)
                ids = np.asarray(awkward.flatten(rows)).astype(np.uint16)
                ends = np.cumsum(np.asarray(awkward.num(rows)))
                np.insert(ids, ends, _EOS).tofile(file)

    return Outcome(seconds(run), lambda: np.fromfile(output, np.uint16))


def _script_of_files(corpus: Path, output: Path, vocabulary: Vocabulary) -> Outcome:
    """A script with gigatoken's own readers, and numpy: all ids are in memory."""
    gigatoken, awkward, tokenizer = (
        import_module("gigatoken"),
        import_module("awkward"),
        _gigatoken(vocabulary),
    )
    if corpus.suffix == ".parquet":
        source = gigatoken.ParquetFileSource([str(corpus)], column="text")
    else:
        source = gigatoken.JsonlFileSource([str(corpus)], field="text")

    def run() -> None:
        rows = tokenizer.encode_files(source, parallel=True)
        ids = np.asarray(awkward.flatten(rows)).astype(np.uint16)
        ends = np.cumsum(np.asarray(awkward.num(rows)))
        np.insert(ids, ends, _EOS).tofile(output)

    return Outcome(seconds(run), lambda: np.fromfile(output, np.uint16))


def _gigatoken(vocabulary: Vocabulary) -> Any:
    return import_module("gigatoken").Tokenizer.from_tiktoken(vocabulary.ranks, "gpt2", {}).backend


def _map_fast(corpus: Path, output: Path, vocabulary: Vocabulary) -> Outcome:
    """`datasets.map` with a fast tokenizer of transformers."""
    fast = import_module("transformers").PreTrainedTokenizerFast(
        tokenizer_file=str(vocabulary.json), model_max_length=1 << 40
    )

    def encode(batch: dict[str, list[str]]) -> dict[str, Any]:
        return {"input_ids": fast(batch["text"], add_special_tokens=False)["input_ids"]}

    return _mapped(corpus, output, encode, None)


def _map_ours(corpus: Path, output: Path, vocabulary: Vocabulary) -> Outcome:
    """`datasets.map` with our tokenizer: on Arrow arrays where it has `encode_arrow`."""
    tokenizer = _ours(vocabulary)
    encode_arrow: Callable[[Any], Any] | None = getattr(tokenizer, "encode_arrow", None)
    if encode_arrow is None:

        def encode_rows(batch: dict[str, list[str]]) -> dict[str, Any]:
            return {"input_ids": tokenizer(batch["text"], return_dict=True)["input_ids"]}

        return _mapped(corpus, output, encode_rows, None)

    def encode(table: Any) -> Any:
        return import_module("pyarrow").table({"input_ids": encode_arrow(table.column("text"))})

    return _mapped(corpus, output, encode, "arrow")


def _mapped(corpus: Path, output: Path, encode: Callable[[Any], Any], form: str | None) -> Outcome:
    datasets = import_module("datasets")
    datasets.disable_progress_bars()
    # Without a cache of an earlier turn.
    cache = output.with_name(f"{output.name}-cache")
    shutil.rmtree(cache, ignore_errors=True)
    kind = "parquet" if corpus.suffix == ".parquet" else "json"
    data = datasets.load_dataset(kind, data_files=str(corpus), split="train", cache_dir=str(cache))
    found: list[Any] = []

    def run() -> None:
        mapped = data.with_format(form).map(
            encode, batched=True, remove_columns=["text"], load_from_cache_file=False
        )
        found.append(mapped)

    taken = seconds(run)

    def ids() -> _Ids:
        rows = found[0].with_format("arrow")[:].column("input_ids").combine_chunks()
        offsets = np.asarray(rows.offsets).astype(np.int64)
        return _with_eos(np.asarray(rows.values), offsets[1:])

    return Outcome(taken, ids)


def _with_eos(ids: npt.NDArray[Any], ends: npt.NDArray[np.int64]) -> _Ids:
    return np.insert(ids.astype(np.uint16), ends, _EOS)


def _count(corpus: Path, output: Path, vocabulary: Vocabulary) -> Outcome:
    """Our `PieceCounts`, in this process."""
    return _counted(lambda: _settings().counts().add(corpus))


def _count_on_ray(corpus: Path, output: Path, vocabulary: Vocabulary) -> Outcome:
    """Our `count_with_ray` through files, with Ray running and its workers started."""
    from bpe_tokenizer.distributed import count_with_ray

    import_module("ray").init(
        num_cpus=os.cpu_count(),
        include_dashboard=False,
        _node_ip_address="127.0.0.1",
        log_to_driver=False,
        logging_level="ERROR",
        # Keeps the workers of a stage while the next one starts its own.
        _system_config={"num_workers_soft_limit": 8},
    )
    warm, counts = _count_files(output)
    count_with_ray(str(_beginning(corpus, output)), _settings(), output=warm)
    return _counted(lambda: count_with_ray(str(corpus), _settings(), output=counts))


def _count_on_spark(corpus: Path, output: Path, vocabulary: Vocabulary) -> Outcome:
    """Our `count_with_spark` through files, with a session that has run a job."""
    from bpe_tokenizer.distributed import count_with_spark

    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    builder = import_module("pyspark.sql").SparkSession.builder.master(f"local[{os.cpu_count()}]")
    for name, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    warm, counts = _count_files(output)
    count_with_spark(str(_beginning(corpus, output)), _settings(), session=session, output=warm)
    return _counted(lambda: count_with_spark(str(corpus), _settings(), session=session, output=counts))


def _settings() -> CountSettings:
    return CountSettings("cl100k")


def _count_files(output: Path) -> tuple[Path, Path]:
    """Two directories for files of counts: of the first job, and of the one that is timed."""
    return output.with_name(f"{output.name}-warm"), output.with_name(f"{output.name}-counts")


def _beginning(corpus: Path, output: Path) -> Path:
    """A small file, with which an engine starts its workers."""
    with corpus.open("rb") as file:
        text = file.read(1_000_000).decode("utf-8", "ignore")
    output.write_text(text, encoding="utf-8", newline="")
    return output.absolute()


def _counted(count: Callable[[], PieceCounts]) -> Outcome:
    found: list[PieceCounts] = []
    taken = seconds(lambda: found.append(count()))

    def result() -> npt.NDArray[Any]:
        lines = [b"%d %b\n" % (times, piece) for piece, times in sorted(found[0].items())]
        return np.frombuffer(b"".join(lines), np.uint8)

    return Outcome(taken, result)


SIDES: dict[str, Callable[[Path, Path, Vocabulary], Outcome]] = {
    "tokenize_corpus": _tokenize_corpus,
    "encode_ragged": _encode_ragged,
    "script": _script,
    "script of files": _script_of_files,
    "map, fast tokenizer": _map_fast,
    "map, ours": _map_ours,
    "count": _count,
    "count on ray": _count_on_ray,
    "count on spark": _count_on_spark,
}


# What a side imports when it reads, so that no timing holds it.
_READERS = ("pyarrow.parquet", "zstandard", "orjson")


def main() -> None:
    """Run a side and print what it took."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("side", choices=SIDES)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--vocabulary", type=Path, required=True, help="directory of the vocabularies")
    options = parser.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    for package in _READERS:
        with suppress(ImportError):  # an engine's environment has only what its side needs
            import_module(package)
    outcome = SIDES[options.side](options.corpus, options.output, prepare("gpt2", options.vocabulary))
    result = outcome.result()
    digest = hashlib.sha256(np.ascontiguousarray(result).data).hexdigest()
    print(json.dumps({"seconds": outcome.seconds, "size": len(result), "digest": digest}))


if __name__ == "__main__":
    main()
