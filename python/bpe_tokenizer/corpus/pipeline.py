"""`tokenize_corpus`: turns files of text into files of ids; `merge_manifests` ends a run in parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from bpe_tokenizer.arguments import check_flag, check_integer, processors_for
from bpe_tokenizer.corpus.directory import CorpusDirectory
from bpe_tokenizer.corpus.joining import write_meta
from bpe_tokenizer.corpus.mixture import mixed_inputs
from bpe_tokenizer.corpus.options import CorpusFileArguments, ShardOptions
from bpe_tokenizer.corpus.plan import plan_units
from bpe_tokenizer.corpus.remote_path import output_path
from bpe_tokenizer.corpus.result import PathLike, TokenizedCorpus
from bpe_tokenizer.corpus.reusing import EarlierRun
from bpe_tokenizer.corpus.run_report import OnEvent
from bpe_tokenizer.corpus.settings import CorpusSettings
from bpe_tokenizer.corpus.shards import ShardFormatName
from bpe_tokenizer.corpus.units import run_units, write_units
from bpe_tokenizer.errors import OptionError
from bpe_tokenizer.options import ReadOptions, byte_size, pick, takes
from bpe_tokenizer.readers import Input, find_sources
from bpe_tokenizer.tokenizer import BPETokenizer
from bpe_tokenizer.train.progress import ProgressBar

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["merge_manifests", "tokenize_corpus"]


@takes(ReadOptions, ShardOptions)
def tokenize_corpus(
    inputs: PathLike | Iterable[PathLike] | Mapping[str, object],
    output: PathLike,
    tokenizer: BPETokenizer,
    format: ShardFormatName = "nanogpt",  # noqa: A002 (the usual name)
    *,
    part: int | None = None,
    of: int | None = None,
    unit_bytes: int | str = "1GB",
    threads: int | None = None,
    overwrite: bool = False,
    reuse: PathLike | None = None,
    verify: bool = False,
    verbose: bool = True,
    on_event: OnEvent | None = None,
    **options: Unpack[CorpusFileArguments],
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
            `"s3://bucket/data"`, and `"-"` for standard input. A mapping is a mixture: for each name the
            inputs, or a mapping with `inputs` and `epochs`, `tokens` or `weight`.
        output: A directory for the shards, `tokens-00000.bin` and so on, and `manifest.json`; or a URL of
            one, such as `"s3://bucket/tokens"`.
        tokenizer: Encodes the documents.
        format: `"nanogpt"`, `"llm.c"`, `"megatron"`, `"olmo"`, `"datatrove"`, `"mds"`, `"litdata"`, `"npy"`
            or `"parquet"`.
        part: The part of the work to do, from 0 to `of - 1`; None does all.
        of: The number of parts.
        unit_bytes: The size of a unit of parts in stored bytes, such as `"1GB"`.
        threads: Number of threads that encode, and of those that read; None for all processors.
        overwrite: Whether to remove the shards of an earlier run instead of resuming it.
        reuse: The output directory of an earlier run in parts. The shards of its units whose inputs are the
            same are linked or copied instead of made again.
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
    read = pick(ReadOptions, options)
    settings = CorpusSettings.of(tokenizer, read, format, **vars(pick(ShardOptions, options)))
    overwrite, verify = check_flag("overwrite", overwrite), check_flag("verify", verify)
    chosen = _check_part(part, of, overwrite)
    if reuse is not None and not chosen:
        raise OptionError("reuse needs parts, which have units to keep; part=0, of=1 does all of them")
    size = byte_size("unit_bytes", unit_bytes)
    path = output_path(output)
    found, settings = _find_inputs(inputs, settings, tokenizer, bool(chosen))
    processors_for(threads)
    plan = plan_units(found, settings, size if chosen else None)
    earlier = None if reuse is None else EarlierRun(output_path(reuse, "reuse"), plan)
    with ProgressBar.shown(verbose) as bar, CorpusDirectory.open(path, plan, overwrite) as directory:
        write = partial(write_units, directory, plan, tokenizer, threads, verify)
        units = plan.units[part::of] if chosen else plan.units
        if earlier is not None:
            earlier.take(directory, units, verify)
        records, kept, report = run_units(directory, plan, units, write, verify, bar, on_event, **chosen)
        if chosen:
            made = TokenizedCorpus.of(path, records, settings.dtype, kept)
        else:
            made = directory.finish(records, kept)
        report.end(made)
    if settings.has_meta:
        write_meta(path, tokenizer)
    return made


def merge_manifests(output: PathLike, *, of: int | None = None, verify: bool = False) -> TokenizedCorpus:
    """Write the manifest of a run in parts, after all parts are finished.

    It lists the shards of all units in order. Any process may write it, also again: the bytes are the same.

    Args:
        output: The output directory of the parts, or its URL.
        of: The number of parts, to name the parts that are missing.
        verify: Compare the hashes of all files too, not only their sizes and times.

    Returns:
        The files, with the numbers of documents and tokens.

    Raises:
        CorpusError: A unit is missing or was damaged, or the corpus has no text.
        OptionError: The directory does not hold a run.
        WriteError: The manifest cannot be written.

    `tokenize_corpus` has an example.
    """
    path = output_path(output)
    count = None if of is None else check_integer("of", of, 1)
    directory = CorpusDirectory.of_parts(path)
    records = directory.records(count, check_flag("verify", verify))
    return directory.finish(records, sum(len(record.shards) for record in records))


def _find_inputs(
    inputs: PathLike | Iterable[PathLike] | Mapping[str, Any],
    settings: CorpusSettings,
    tokenizer: BPETokenizer,
    in_parts: bool,
) -> tuple[list[Input], CorpusSettings]:
    """Return the files of a corpus or of a mixture, and the settings with the sources of the mixture."""

    def find(paths: Any) -> list[Input]:
        return find_sources(paths, settings.read, settings.recognized(tokenizer))

    if isinstance(inputs, Mapping):
        if settings.limit is not None:
            raise OptionError("limit would take the first source of a mixture only; give its sources tokens")
        found, sources = mixed_inputs(inputs, settings.max_tokens, find)
        settings = replace(settings, sources=sources)
    else:
        found = find(inputs)
    counts = (settings.limit, settings.max_tokens, *(source.tokens for source in settings.sources))
    if in_parts and any(count is not None for count in counts):
        raise OptionError(
            "limit=N, max_tokens=N and the tokens of a mixture count documents of the whole corpus, which a "
            "part does not know; use sample=X or epochs, or leave out part=I"
        )
    return found, settings


def _check_part(part: int | None, of: int | None, overwrite: bool) -> dict[str, int]:
    if part is None and of is None:
        return {}
    if part is None or of is None:
        raise OptionError("part=I and of=N belong together: part=0, of=8 does the first of eight parts")
    count = check_integer("of", of, 1)
    number = check_integer("part", part, 0, "the parts are counted from 0", maximum=count - 1)
    if overwrite:
        raise OptionError(
            "overwrite is not possible with part=I: other parts may write into the directory; remove it first"
        )
    return {"part": number, "of": count}
