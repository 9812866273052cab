"""`bpe-tokenizer tokenize-corpus`."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import typer

from bpe_tokenizer import BPETokenizer, _core
from bpe_tokenizer import corpus as corpora
from bpe_tokenizer.atomic import url_of
from bpe_tokenizer.cli.options import (
    OUTPUT,
    AllowedSpecial,
    AsJson,
    Debug,
    Download,
    Quiet,
    Threads,
    TokenizerPath,
    allowed_special_argument,
    choice,
    option,
    options_of,
)
from bpe_tokenizer.console import count_noun
from bpe_tokenizer.corpus.contents import Content
from bpe_tokenizer.corpus.manifest import MANIFEST, read_json
from bpe_tokenizer.corpus.packing import PackStrategy
from bpe_tokenizer.corpus.remote_path import output_path
from bpe_tokenizer.corpus.run_report import Event
from bpe_tokenizer.corpus.shards import FORMATS, TokenType
from bpe_tokenizer.errors import OptionError, TokenizerError, shorten
from bpe_tokenizer.options import ReadOptions

__all__ = ["print_result", "run_with_events", "tokenize_corpus"]

Result = TypeVar("Result")


@options_of(ReadOptions)
def tokenize_corpus(
    tokenizer: TokenizerPath,
    output: Annotated[Path, option("DIR", "Directory for the token files, or a URL.", names=OUTPUT)],
    corpus: Annotated[
        list[str] | None,
        option(
            "FILE...",
            "Text, JSON Lines, Parquet or Arrow; patterns such as 'data/*.gz'; - is standard input.",
        ),
    ] = None,
    mixture: Annotated[
        Path | None,
        option("FILE", "TOML with a table for each source: inputs, and epochs, tokens or weight."),
    ] = None,
    format_: Annotated[Any, choice(FORMATS, "--format", help="Format of the token files.")] = "nanogpt",
    eos_token: Annotated[
        str | None,
        option(
            "TOKEN",
            "Special token to add after each document.",
            "the one that is plainly an end of documents",
        ),
    ] = None,
    no_eos: Annotated[bool, typer.Option("--no-eos", help="Add no token after documents.")] = False,
    bos_token: Annotated[str | None, option("TOKEN", "Special token to add before each document.")] = None,
    shard_tokens: Annotated[
        int, typer.Option(metavar="N", help="Maximum tokens of a file; 0 is the maximum of the format.")
    ] = 100_000_000,
    dtype: Annotated[
        Any,
        choice(get_args(TokenType), help="Type of an id.", show_default="the smallest that holds all ids"),
    ] = None,
    allowed_special: AllowedSpecial = None,
    shuffle: Annotated[
        int | None,
        option("SEED", "Write the documents in a random order: of all, or with --part of each unit."),
    ] = None,
    sample: Annotated[
        float | None, option("X", "Part of the documents to take, such as 0.01; a hash of the text decides.")
    ] = None,
    limit: Annotated[int | None, option("N", "Take the first N documents.")] = None,
    max_tokens: Annotated[int | None, option("N", "Take the first documents, with N tokens at most.")] = None,
    min_document_tokens: Annotated[int | None, option("N", "Skip documents with fewer tokens.")] = None,
    max_document_tokens: Annotated[int | None, option("N", "Skip documents with more tokens.")] = None,
    index: Annotated[
        bool,
        typer.Option("--index", help="Write start, end, source and row of each document to .index.csv.gz."),
    ] = False,
    id_field: Annotated[
        str | None, option("NAME", "Field or column of the documents' own ids, for --index.", "none")
    ] = None,
    val_fraction: Annotated[
        float | None,
        option(
            "X", "Part of the documents for validation, such as 0.0005: for nanoGPT also train.bin, val.bin."
        ),
    ] = None,
    pack: Annotated[
        int | None, option("N", "Pack documents into sequences of N tokens, with masks (npy, parquet, mds).")
    ] = None,
    pack_strategy: Annotated[
        Any,
        choice(
            get_args(PackStrategy), help="Cut the concatenated documents, or keep them whole where they fit."
        ),
    ] = "concat",
    content: Annotated[
        Any,
        choice(get_args(Content), help="What --field holds: a text, a conversation (with --pack), or ids."),
    ] = "text",
    chat_template: Annotated[
        str | None, option("NAME", "Template of conversations, by name or Jinja source.", "the tokenizer's")
    ] = None,
    part: Annotated[
        int | None, option("I", "Do one part of the work, from 0; merge-manifests ends the run.")
    ] = None,
    of: Annotated[int | None, option("N", "Number of parts.")] = None,
    unit_size: Annotated[
        str, typer.Option(metavar="SIZE", help="Size of the units that --part divides the corpus into.")
    ] = "1GB",
    *,
    threads: Threads = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Remove the files of an earlier run instead of resuming it.")
    ] = False,
    reuse: Annotated[
        Path | None,
        option("DIR", "Keep the shards of an earlier run with --part, where its inputs are the same."),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Compare the hashes of finished files, not only sizes and times."),
    ] = False,
    as_json: AsJson = False,
    events: Annotated[
        bool,
        typer.Option("--events", help="Print events as lines of JSON; the last one is the result."),
    ] = False,
    quiet: Quiet = False,
    download: Download = False,
    debug: Debug = False,
    **options: Any,
) -> None:
    """Turn a corpus into the token files of training programs.

    The same command resumes a run that was killed. Several machines share the work with --part and --of.
    """
    if no_eos and eos_token is not None:
        raise typer.BadParameter("give either --eos-token or --no-eos, not both")
    if events and as_json:
        raise typer.BadParameter("give either --events or --json, not both")
    if (corpus is None) == (mixture is None):
        raise typer.BadParameter("give either --corpus or --mixture")
    # Batches use their memory again. Other large blocks return to the system.
    _core.give_back_large_blocks()
    made = run_with_events(
        corpora.tokenize_corpus,
        events,
        corpus if mixture is None else _read_mixture(mixture),
        output,
        BPETokenizer.load(tokenizer, download=download),
        format_,
        append_eos=not no_eos,
        eos_token=eos_token,
        bos_token=bos_token,
        shard_tokens=shard_tokens or None,
        dtype=dtype,
        allowed_special=allowed_special_argument(allowed_special),
        **options,
        shuffle=shuffle,
        sample=sample,
        limit=limit,
        max_tokens=max_tokens,
        min_document_tokens=min_document_tokens,
        max_document_tokens=max_document_tokens,
        index=index,
        id_field=id_field,
        val_fraction=val_fraction,
        pack=pack,
        pack_strategy=pack_strategy,
        content=content,
        chat_template=chat_template,
        part=part,
        of=of,
        unit_bytes=unit_size,
        threads=threads,
        overwrite=overwrite,
        reuse=reuse,
        verify=verify,
        verbose=not quiet,
    )
    if not events:
        print_result(made, output, as_json, quiet)


def _read_mixture(path: Path) -> dict[str, Any]:
    try:
        mixture = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OptionError(f"--mixture {path}: {getattr(error, 'strerror', None) or error}") from error
    if not mixture or not all(isinstance(source, dict) for source in mixture.values()):
        raise OptionError(f"--mixture {path}: holds something else than a table for each source")
    return mixture


def run_with_events(run: Callable[..., Result], wanted: bool, *arguments: Any, **options: Any) -> Result:
    """Call a function, and print its events and its error as lines of JSON.

    Args:
        run: The function, with an argument `on_event`.
        wanted: Whether to print events.
        arguments: Its arguments.
        options: Its arguments by name.
    """
    if not wanted:
        return run(*arguments, **options)
    try:
        return run(*arguments, **options, on_event=_print_event)
    except TokenizerError as error:
        _print_event({"event": "error", "message": str(error), "kind": type(error).__name__})
        raise


def _print_event(event: Event) -> None:
    print(json.dumps(event), flush=True)


def print_result(made: corpora.TokenizedCorpus, output: Path, as_json: bool, quiet: bool) -> None:
    """Print what a run has made.

    Args:
        made: The result.
        output: The directory.
        as_json: Print JSON.
        quiet: Print nothing for people.
    """
    if as_json:
        print(json.dumps({**made._asdict(), "files": [str(path) for path in made.files]}))
    elif not quiet:
        skipped = f", {count_noun(made.skipped, 'row')} skipped" if made.skipped else ""
        kept = f", {count_noun(made.kept, 'shard')} kept from an earlier run" if made.kept else ""
        print(
            f"{count_noun(made.documents, 'document')}, {count_noun(made.tokens, 'token')} ({made.dtype}) "
            f"in {url_of(output) or output}, {count_noun(len(made.files), 'file')}{skipped}{kept}"
        )
        manifest = output_path(output) / MANIFEST
        sources = (read_json(manifest) or {}).get("sources", {}) if manifest.exists() else {}
        for name, each in sources.items():
            counts = count_noun(each["documents"], "document"), count_noun(each["tokens"], "token")
            print(f"  {shorten(name)}: {', '.join(counts)}")
