"""`bpe-tokenizer tokenize-corpus`."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

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
    whole_number,
)
from bpe_tokenizer.console import count_noun
from bpe_tokenizer.corpus.manifest import MANIFEST, read_json
from bpe_tokenizer.corpus.options import ShardOptions
from bpe_tokenizer.corpus.remote_path import output_path
from bpe_tokenizer.corpus.run_report import Event
from bpe_tokenizer.corpus.shards import FORMATS
from bpe_tokenizer.errors import OptionError, TokenizerError, shorten
from bpe_tokenizer.options import ReadOptions

__all__ = ["print_result", "run_with_events", "tokenize_corpus"]

Result = TypeVar("Result")


@options_of(ReadOptions, ShardOptions)
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
    no_eos: Annotated[bool, typer.Option("--no-eos", help="Add no token after documents.")] = False,
    shard_tokens: Annotated[
        int,
        typer.Option(
            metavar="N", parser=whole_number, help="Maximum tokens of a file; 0 is the maximum of the format."
        ),
    ] = 100_000_000,
    allowed_special: AllowedSpecial = None,
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
    if no_eos and options["eos_token"] is not None:
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
        shard_tokens=shard_tokens or None,
        allowed_special=allowed_special_argument(allowed_special),
        **options,
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
