"""`tokenize_corpus`: turns files of text into files of ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from bpe_tokenizer.arguments import check_flag, check_integer, check_path
from bpe_tokenizer.corpus.byte_sizes import byte_size
from bpe_tokenizer.corpus.encoded import BatchEncoder
from bpe_tokenizer.corpus.input_list import inputs_digest, listed_inputs
from bpe_tokenizer.corpus.joining import write_meta
from bpe_tokenizer.corpus.packing import PackStrategy
from bpe_tokenizer.corpus.plan import plan_units
from bpe_tokenizer.corpus.result import PathLike, TokenizedCorpus, files_of
from bpe_tokenizer.corpus.run_report import OnEvent, RunReport
from bpe_tokenizer.corpus.settings import CorpusSettings
from bpe_tokenizer.corpus.shard_directory import ShardDirectory
from bpe_tokenizer.corpus.shards import ShardFormatName, TokenType
from bpe_tokenizer.corpus.unit_directory import UnitDirectory, UnitRecord
from bpe_tokenizer.corpus.units import write_unit
from bpe_tokenizer.corpus.writing import write_shards
from bpe_tokenizer.errors import CorpusError, OptionError
from bpe_tokenizer.readers import DocumentEnd, Input, InputFormat, OnError, ReadOptions, find_sources
from bpe_tokenizer.special_tokens import AllowedSpecial
from bpe_tokenizer.tokenizer import BPETokenizer
from bpe_tokenizer.train.progress import ProgressBar

__all__ = ["TokenizedCorpus", "tokenize_corpus"]


def tokenize_corpus(
    inputs: PathLike | Iterable[PathLike],
    output: PathLike,
    tokenizer: BPETokenizer,
    format: ShardFormatName = "nanogpt",  # noqa: A002 (the usual name)
    *,
    input_format: InputFormat | None = None,
    documents: DocumentEnd = "file",
    separator: str | None = None,
    field: str = "text",
    append_eos: bool = True,
    eos_token: str | None = None,
    shard_tokens: int | None = 100_000_000,
    dtype: TokenType | None = None,
    allowed_special: AllowedSpecial = "none",
    on_error: OnError = "stop",
    shuffle: int | None = None,
    val_fraction: float | None = None,
    pack: int | None = None,
    pack_strategy: PackStrategy = "concat",
    part: int | None = None,
    of: int | None = None,
    unit_bytes: int | str = "1GB",
    threads: int | None = None,
    overwrite: bool = False,
    verify: bool = False,
    verbose: bool = True,
    on_event: OnEvent | None = None,
) -> TokenizedCorpus:
    r"""Turn the documents of files into token files that training programs read.

    The ids are those of `tokenizer.encode` for each document, in the order of the inputs. Memory is bounded
    by a few batches of some megabytes, and by the longest document. A killed run resumes after its last
    finished shard when it is started again with the same arguments, and gives the same files.

    With `part` and `of`, this call does one of several parts of the work, and others do the other parts, also
    on other machines and at the same time; only the output directory is shared. The shards do not depend on
    the number of parts. `merge_manifests` makes the manifest when all parts are finished.

    Args:
        inputs: Files of text, JSON Lines, Parquet or Arrow; all but Parquet may be compressed (gzip, xz,
            Zstandard, bzip2). Also directories, patterns such as `"data/**/*.jsonl.gz"`, URLs such as
            `"s3://bucket/data"`, and `"-"` for standard input.
        output: A directory for the shards, `tokens-00000.bin` and so on, and `manifest.json`.
        tokenizer: Encodes the documents.
        format: `"nanogpt"`, `"llm.c"`, `"megatron"`, `"npy"` or `"parquet"`.
        input_format: `"text"`, `"jsonl"`, `"parquet"` or `"arrow"`; None decides by the content of
            each file.
        documents: Whether a document of text is a `"file"` or a `"line"`.
        separator: Text that separates documents instead, such as `"<|endoftext|>"`.
        field: The field of JSON Lines or the column of tables that holds the text.
        append_eos: Whether to add a token after each document: the tokenizer's EOS token, or else a special
            token that is plainly the end of a document, such as `"<|end|>"`.
        eos_token: Another special token to add instead.
        shard_tokens: Maximum number of ids in a shard; None for the maximum of the format. Documents are not
            split, so a longer document gets a larger shard.
        dtype: `"uint16"` or `"uint32"` (`"megatron"`: `"int32"`); None for the smallest that holds all ids.
        allowed_special: The special tokens to recognise in documents: `"none"`, `"all"` or a set.
        on_error: `"stop"` at or `"skip"` a row that is not valid UTF-8 or JSON or has no text. The file
            `skipped.jsonl` lists skipped rows.
        shuffle: A seed, from 0, to write the documents in a random order: of the whole corpus, or with `part`
            of each unit. None keeps their order.
        val_fraction: The part of the documents that is for validation, on average, such as 0.0005. A hash of
            the text decides. The shards are `tokens-00000.train.bin` and `tokens-00000.val.bin`. nanoGPT
            gets `train.bin`, `val.bin` and `meta.pkl` too, and llm.c gets `val.bin`. None divides nothing.
        pack: The number of ids of a packed sequence, for `"npy"` and `"parquet"`: see `PackedSequences`. None
            packs nothing.
        pack_strategy: `"concat"` concatenates the documents and cuts every `pack` ids; `"best-fit"` keeps
            documents whole where they fit.
        part: The part of the work to do, from 0 to `of - 1`; None does all.
        of: The number of parts.
        unit_bytes: The size of a unit of parts in stored bytes, such as `"1GB"`.
        threads: Number of threads that encode, and of those that read; None for all processors.
        overwrite: Whether to remove the shards of an earlier run instead of resuming it.
        verify: Whether to compare the hashes of finished shards, not only their sizes and times.
        verbose: Whether to show a progress bar on standard error, if that is a terminal.
        on_event: Called with a dict for each finished shard, and others: see `docs/corpora.md`.

    Returns:
        The files, with the numbers of documents and tokens; with `part`, those of the part.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        CorpusError: A file cannot be read, a row is bad, or the corpus has no text.
        MissingDependencyError: `pyarrow` or `backports.zstd`, which a format needs, is not installed.
        NotTrainedError: The tokenizer has no vocabulary yet.
        OptionError: An option is unknown or out of range, no token is known to end documents, or the
            directory holds other files.
        SpecialTokenError: `eos_token` or a token of `allowed_special` is unknown.
        WriteError: Another run writes into the directory, also one that is stopped, or a file cannot be
            written.

    >>> import numpy, pathlib, tempfile
    >>> tokenizer = BPETokenizer().train("low lower", 258, special_tokens=["<|eos|>"], verbose=False)
    >>> directory = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (directory / "corpus.txt").write_text("low\nlower\n", encoding="utf-8")
    >>> made = tokenize_corpus(directory / "corpus.txt", directory / "tokens", tokenizer, documents="line")
    >>> made.documents, made.tokens, made.dtype
    (2, 8, 'uint16')
    >>> numpy.fromfile(made.files[0], dtype="<u2").tolist()
    [108, 257, 256, 108, 257, 101, 114, 256]

    In parts:

    >>> from bpe_tokenizer.corpus import merge_manifests
    >>> for part in range(2):
    ...     _ = tokenize_corpus(
    ...         f"{directory}/*.txt", directory / "parts", tokenizer, documents="line", part=part, of=2
    ...     )
    >>> merge_manifests(directory / "parts").tokens
    8
    """
    read = ReadOptions(input_format, documents, separator, field, on_error)
    settings = CorpusSettings.of(
        tokenizer,
        read,
        format,
        append_eos=append_eos,
        eos_token=eos_token,
        shard_tokens=shard_tokens,
        dtype=dtype,
        allowed_special=allowed_special,
        shuffle=shuffle,
        val_fraction=val_fraction,
        pack=pack,
        pack_strategy=pack_strategy,
    )
    overwrite, verify = check_flag("overwrite", overwrite), check_flag("verify", verify)
    chosen = _check_part(part, of, overwrite)
    size = byte_size("unit_bytes", unit_bytes)
    directory = check_path("output", output)
    sources = find_sources(inputs, read, settings.recognized(tokenizer))
    encoder = BatchEncoder(tokenizer, settings, threads)
    with ProgressBar.shown(verbose) as bar:
        if chosen is None:
            made = _whole(sources, directory, settings, encoder, overwrite, verify, bar, on_event)
        else:
            made = _part(sources, directory, settings, encoder, size, chosen, verify, bar, on_event)
    if settings.has_meta:
        write_meta(directory, tokenizer)
    return made


def _check_part(part: int | None, of: int | None, overwrite: bool) -> tuple[int, int] | None:
    if part is None and of is None:
        return None
    if part is None or of is None:
        raise OptionError("part and of belong together: part=0, of=8 does the first of eight parts")
    count = check_integer("of", of, 1)
    number = check_integer("part", part, 0, "the parts are counted from 0", maximum=count - 1)
    if overwrite:
        raise OptionError(
            "overwrite is not possible with part: other parts may write into the directory; remove it before "
            "all parts"
        )
    return number, count


def _whole(
    sources: Sequence[Input],
    path: Path,
    settings: CorpusSettings,
    encoder: BatchEncoder,
    overwrite: bool,
    verify: bool,
    bar: ProgressBar,
    on_event: OnEvent | None,
) -> TokenizedCorpus:
    """Write all documents into one sequence of shards."""
    inputs = listed_inputs(sources)
    total = _size(sources)
    values = {**settings.to_json(), "inputs": inputs_digest(inputs)}
    with ShardDirectory.open(path, values, inputs, overwrite, verify) as directory:
        kept = len(directory.shards)
        if kept and total is None:
            raise OptionError(
                f"{path} holds shards of a run from standard input, which cannot be read again: "
                "overwrite them, or put the corpus into a file"
            )
        report = RunReport(bar, on_event, total)
        report.event("start", output=str(path), inputs=len(sources), total_bytes=total, kept=kept)
        if directory.manifest.skipped is None:
            skipped = write_shards(sources, None, settings, encoder, directory, directory.end, report)
            if directory.manifest.tokens == 0:
                raise CorpusError("the corpus is empty: its documents have no text")
            directory.complete(skipped)
        made = TokenizedCorpus.of(path, directory.manifest, kept)
    return _ended(report, made)


def _part(
    sources: Sequence[Input],
    path: Path,
    settings: CorpusSettings,
    encoder: BatchEncoder,
    unit_bytes: int,
    part: tuple[int, int],
    verify: bool,
    bar: ProgressBar,
    on_event: OnEvent | None,
) -> TokenizedCorpus:
    """Write the units of a part, each with shards for itself."""
    plan = plan_units(sources, settings, unit_bytes)
    directory = UnitDirectory(path, plan)
    directory.remove_abandoned()
    units = plan.units_of(*part)
    total = sum(map(plan.stored_bytes, units))
    report = RunReport(bar, on_event, total)
    report.event(
        "start",
        output=str(path),
        inputs=len(sources),
        total_bytes=total,
        part=part[0],
        of=part[1],
        units=len(units),
        all_units=len(plan.units),
    )
    records: list[UnitRecord] = []
    kept = 0
    for unit in units:
        record = directory.committed(unit, verify)
        is_kept = record is not None
        if record is None:
            record = write_unit(directory, unit, encoder, report)
        else:
            kept += len(record.shards)
        records.append(record)
        report.event("unit", unit=unit.number, shards=len(record.shards), tokens=record.tokens, kept=is_kept)
        report.unit_done(plan.stored_bytes(unit), record.documents, record.tokens)
    made = TokenizedCorpus(
        files_of(path, (shard for record in records for shard in record.shards)),
        sum(record.documents for record in records),
        sum(record.tokens for record in records),
        sum(record.skipped for record in records),
        settings.dtype,
        kept,
    )
    return _ended(report, made)


def _ended(report: RunReport, made: TokenizedCorpus) -> TokenizedCorpus:
    report.event("end", **{**made._asdict(), "files": [str(path) for path in made.files]})
    return made


def _size(sources: Sequence[Input]) -> int | None:
    """Return the total number of bytes to read; None for standard input and pipes."""
    if not all(source.is_regular for source in sources):
        return None
    return sum(source.size for source in sources)
