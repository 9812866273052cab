"""`bpe-tokenizer convert`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from bpe_tokenizer.cli.run import Debug
from bpe_tokenizer.errors import FormatError, OptionError

if TYPE_CHECKING:
    from bpe_tokenizer.formats.registry import Saved
    from bpe_tokenizer.model import Model

__all__ = ["convert"]

# As many special tokens are printed for people.
_SHOWN = 10


class Readable(str, Enum):
    """The formats that can be read."""

    HUGGINGFACE = "huggingface"
    TIKTOKEN = "tiktoken"
    GPT2 = "gpt2"
    GGUF = "gguf"
    TEKKEN = "tekken"
    MINBPE = "minbpe"
    BASE64_JSON = "base64-json"


class Writable(str, Enum):
    """The formats that can be written."""

    HUGGINGFACE = "huggingface"
    TIKTOKEN = "tiktoken"
    GPT2 = "gpt2"
    GGUF = "gguf"
    MINBPE = "minbpe"
    BASE64_JSON = "base64-json"
    READABLE = "readable"


class Droppable(str, Enum):
    """What may be lost if the user says so: ids of text never."""

    POST_PROCESSOR = "post_processor"
    BOS_TOKEN = "bos_token"
    EOS_TOKEN = "eos_token"
    PAD_TOKEN = "pad_token"
    UNK_TOKEN = "unk_token"


class Losses(NamedTuple):
    """What a conversion did not keep.

    Args:
        dropped: Fields that differ, as the command line allowed.
        not_kept: Settings of programs around the tokenizer (`chat_template`, ...), which change no id.
    """

    dropped: list[str]
    not_kept: list[str]


def convert(
    source: Annotated[
        Path,
        typer.Argument(metavar="IN", help="A tokenizer file or directory of any format.", show_default=False),
    ],
    output: Annotated[
        Path, typer.Argument(metavar="OUT", help="The file or directory to write.", show_default=False)
    ],
    to: Annotated[Writable, typer.Option(help="Format to write.", show_default=False)],
    from_: Annotated[
        Readable | None, typer.Option("--from", help="Format of IN.", show_default="recognised")
    ] = None,
    split_pattern: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Split pattern of a .tiktoken file: a name or a regex.", show_default=False
        ),
    ] = None,
    special: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOKEN[=ID]...",
            help="Special tokens of a .tiktoken file; without ids they get those after the ranks.",
            show_default=False,
        ),
    ] = None,
    drop: Annotated[
        list[Droppable] | None,
        typer.Option(metavar="FIELD...", help="What may be lost, if OUT cannot hold it.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Write a tokenizer in another format, and check that it is still the same."""
    from bpe_tokenizer.formats import registry

    given = _given(split_pattern, special)
    entry, path = (registry.get_format(from_.value), source) if from_ else registry.detect(source)
    model = registry.load(path, entry.name, **given)
    saved, losses = _converted(model, output, to, [each.value for each in drop or ()])
    result = {
        "input": str(source),
        "from": entry.name,
        "output": str(output),
        "to": to.value,
        "files": [str(file) for file in saved.files],
        "tokens": len(model.core),
        "verified": to is not Writable.READABLE,
        **losses._asdict(),
        "load_with": saved.load_kwargs,
    }
    if as_json:
        print(json.dumps(result))
    else:
        _show(result)


def _given(split_pattern: str | None, special: Sequence[str] | None) -> dict[str, Any]:
    """What the command line says about a file that does not say it itself."""
    if split_pattern is None:
        return {"special_tokens": _special_tokens(special)} if special else {}
    return {"split_pattern": split_pattern, "special_tokens": _special_tokens(special or ())}


def _special_tokens(special: Sequence[str]) -> dict[str, int] | list[str]:
    """A list of tokens, or their ids where each is written behind its token."""
    ids: dict[str, int] = {}
    for each in special:
        token, equals, digits = each.rpartition("=")
        if equals and token and digits.isascii() and digits.isdecimal() and len(digits) <= 10:
            if token in ids:
                raise OptionError(f"the special token {token!r} is given twice")
            ids[token] = int(digits)
    if ids and len(ids) < len(special):
        raise OptionError("some special tokens have an id and some have none: write TOKEN=ID for all of them")
    return ids or list(special)


def _converted(model: Model, output: Path, to: Writable, droppable: Collection[str]) -> tuple[Saved, Losses]:
    """Write a tokenizer beside its place, compare it with the original, and move it there."""
    from bpe_tokenizer.atomic import write_atomically
    from bpe_tokenizer.formats import registry

    is_directory = registry.get_format(to.value).is_directory
    if output.exists() and output.is_dir() != is_directory:
        kind = "a directory" if is_directory else "a file"
        raise OptionError(f"{output} is there already, and {to.value} is written as {kind}")
    target = output.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as work:
        place = Path(work).resolve() / target.name
        saved = registry.save(model, place, to.value)
        losses = _losses(model, place, to, saved, droppable)
        names = [file.relative_to(place.parent) for file in saved.files]
        _check_strangers(output, [output.parent / name for name in names])
        for name in names:
            (target.parent / name).parent.mkdir(exist_ok=True)
        write_atomically({target.parent / name: (place.parent / name).read_bytes() for name in names})
    return saved._replace(files=[output.parent / name for name in names]), losses


def _losses(model: Model, place: Path, to: Writable, saved: Saved, droppable: Collection[str]) -> Losses:
    """Read a tokenizer again and compare it.

    Raises:
        FormatError: Something is not the same that must not be lost.
    """
    from bpe_tokenizer.formats import registry
    from bpe_tokenizer.formats.verify import differences

    if to is Writable.READABLE:
        return Losses([], [])
    copy = registry.load(place, to.value, **saved.load_kwargs)
    found = differences(model, copy)
    lost = [each for each in found if each.field not in droppable]
    if lost:
        names = [each.field for each in lost if each.field in Droppable._value2member_map_]
        hint = f"; if that may be lost, add --drop {' '.join(names)}" if len(names) == len(lost) else ""
        reasons = "; ".join(f"{each.field}: {each.message}" for each in lost)
        raise FormatError(
            f"{to.value} would not give the same tokenizer: {reasons}{hint}. Nothing was written"
        )
    not_kept = [name for name, value in model.config.items() if copy.config.get(name) != value]
    return Losses([each.field for each in found], not_kept)


def _check_strangers(output: Path, files: Collection[Path]) -> None:
    """A file that is not replaced could change what a directory means to its readers."""
    if output.is_dir():
        strangers = sorted(path.name for path in output.iterdir() if path not in files)
        if strangers:
            raise OptionError(
                f"{output} holds other files ({', '.join(strangers[:5])}), which readers might take for "
                "parts of the tokenizer; write to a new directory"
            )


def _show(result: dict[str, Any]) -> None:
    checked = "the same ids and special tokens" if result["verified"] else "not meant to be loaded again"
    print(f"{result['tokens']:,} tokens saved in {result['output']} ({result['to']}): {checked}")
    for name in ("dropped", "not_kept"):
        if result[name]:
            print(f"{name.replace('_', ' ')}: {', '.join(result[name])}")
    given = result["load_with"]
    if given:
        special = given["special_tokens"]
        shown = repr(special) if len(special) <= _SHOWN else f"the {len(special):,} that --json shows"
        print(f"load it with split_pattern={list(given['split_pattern'])!r} and special_tokens={shown}")
