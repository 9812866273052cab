"""`bpe-tokenizer decode`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

from bpe_tokenizer import BPETokenizer, _core
from bpe_tokenizer.cli.id_formats import ID_FORMATS, Ids, parse_ids, read_ids
from bpe_tokenizer.cli.inputs import blocks, check_inputs
from bpe_tokenizer.cli.options import FILE, Debug, Download, TokenizerPath, choice, option
from bpe_tokenizer.cli.streams import binary_output
from bpe_tokenizer.errors import OptionError, UnknownIdError

__all__ = ["decode"]


def decode(
    tokenizer: TokenizerPath,
    ids: Annotated[
        list[str] | None,
        option("ID...", "Ids, or a JSON list of ids; - is standard input.", "standard input"),
    ] = None,
    file: Annotated[
        list[str] | None, option("FILE...", "Files of ids, in order; - is standard input.", names=FILE)
    ] = None,
    input_format: Annotated[
        Any,
        choice(
            ID_FORMATS, help="Format of files and of standard input.", show_default="text or JSON, detected"
        ),
    ] = None,
    skip_special_tokens: Annotated[
        bool, typer.Option("--skip-special-tokens", help="Leave out special tokens.")
    ] = False,
    download: Download = False,
    debug: Debug = False,
) -> None:
    """Turn ids into bytes.

    The output is exactly the bytes of the ids, so that a file survives a round trip. Only a terminal gets an
    additional line feed, if the text does not end with one. Files and standard input are read in blocks.
    """
    if ids is not None and file is not None:
        raise typer.BadParameter("give either --ids or --file, not both")
    inputs: Iterator[Ids]
    if ids is None or ids == ["-"]:
        sources = check_inputs(file if ids is None else ids, "--ids or --file")
        inputs = (each for source in sources for each in read_ids(input_format, blocks(source)))
    else:
        inputs = iter([_parse(ids)])
    loaded = BPETokenizer.load(tokenizer, download=download)
    write = binary_output(False)
    last = b"\n"
    for data in _decoded(loaded, inputs, skip_special_tokens):
        write(data)
        last = data[-1:] or last
    if sys.stdout.isatty() and last != b"\n":
        write(b"\n")


def _parse(arguments: list[str]) -> list[int]:
    try:
        return parse_ids(" ".join(arguments))
    except OptionError as error:
        raise typer.BadParameter(str(error), param_hint="--ids") from None


def _decoded(tokenizer: BPETokenizer, inputs: Iterable[Ids], skip_special_tokens: bool) -> Iterator[bytes]:
    """Yield the bytes of ids that come in parts."""
    encoder = tokenizer._compiled().encoder
    done = 0
    # Only a decoder looks at the neighbours of a token.
    stream = None
    if encoder.model.decoder is not None:
        stream = _core.DecodeStream(encoder, skip_special_tokens)
    for ids in inputs:
        try:
            yield stream.step(ids) if stream else encoder.decode(ids, skip_special_tokens)
        except UnknownIdError:
            vocab = encoder.model.vocab
            at = next(at for at, each in enumerate(ids) if int(each) not in vocab)
            message = f"id {ids[at]} at position {done + at} is not in the vocabulary"
            raise UnknownIdError(message) from None
        done += len(ids)
    if stream:
        yield stream.finish()
