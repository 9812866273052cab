"""`bpe-tokenizer convert`."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from bpe_tokenizer.atomic import is_temporary, make_directory, refuse_url, write_atomically
from bpe_tokenizer.cli.options import (
    AsJson,
    Debug,
    Download,
    Overwrite,
    choice,
    completion,
    option,
    special_argument,
    tokenizer_names,
)
from bpe_tokenizer.console import count_noun
from bpe_tokenizer.errors import FormatError, OptionError, escaped
from bpe_tokenizer.formats import registry
from bpe_tokenizer.formats.names import load as load_tokenizer
from bpe_tokenizer.formats.registry import FORMATS, Format, Saved
from bpe_tokenizer.formats.verify import differences
from bpe_tokenizer.model import Model
from bpe_tokenizer.patterns import NAMED_PATTERNS

__all__ = ["convert"]

# Special tokens that are printed for people: their number, and the characters of them all.
_SHOWN, _MAX_SHOWN = 10, 1000

# Other names of the formats.
_FORMAT_ALIASES = {alias: entry.name for entry in FORMATS.values() for alias in entry.aliases}

# Fields that a conversion may drop. No id of a text depends on them.
_DROPPABLE = ("post_processor", "bos_token", "eos_token", "pad_token", "unk_token")


class Losses(NamedTuple):
    """What a conversion did not keep.

    Args:
        dropped: Fields that differ, as the command line allowed or asked for.
        not_kept: Settings of other programs (`chat_template`, ...), which change no id.
    """

    dropped: list[str]
    not_kept: list[str]


def convert(
    source: Annotated[
        str,
        typer.Argument(
            metavar="IN",
            help="A tokenizer of any format, or a published one.",
            show_default=False,
            autocompletion=tokenizer_names,
        ),
    ],
    output: Annotated[
        Path, typer.Argument(metavar="OUT", help="The file or directory to write.", show_default=False)
    ],
    to: Annotated[
        str,
        choice(
            (name for name, entry in FORMATS.items() if entry.can_save),
            aliases=_FORMAT_ALIASES,
            help="Format to write.",
            show_default=False,
        ),
    ],
    from_: Annotated[
        str | None,
        choice(
            (name for name, entry in FORMATS.items() if entry.can_load),
            "--from",
            aliases=_FORMAT_ALIASES,
            help="Format of IN.",
            show_default="detected",
        ),
    ] = None,
    split_pattern: Annotated[
        str | None,
        option(
            "NAME|REGEX",
            "Split pattern, for a format that holds none: a regular expression or a name.",
            autocompletion=completion(NAMED_PATTERNS),
        ),
    ] = None,
    special: Annotated[
        list[str] | None,
        option(
            "TOKEN[=ID]...", "Special tokens, for a format that holds none; without ids they get new ones."
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        choice(_DROPPABLE, help="Fields that may be lost if OUT cannot hold them.", show_default=False),
    ] = None,
    normalization: Annotated[
        str | None,
        choice(
            ("none",),
            help="Drop the Unicode normalisation, for a format that holds none. Texts in another form get "
            "other ids.",
            show_default=False,
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    download: Download = False,
    debug: Debug = False,
) -> None:
    """Write a tokenizer in another format, and check the result.

    The result has the same ids and special tokens, or nothing is written.
    """
    refuse_url(output)
    load_kwargs = _load_kwargs(split_pattern, special)
    model, format_name = load_tokenizer(source, from_, download=download, **load_kwargs)
    target = registry.get_format(to)
    if output.exists() and output.is_dir() != target.is_directory:
        kind = "a directory" if target.is_directory else "a file"
        raise OptionError(f"{output} exists, and {target.name} is written as {kind}; choose another path")
    if target.is_directory:
        registry.check_directory(output)
    form = model.core.normalization
    if normalization is not None:
        model = model.with_normalization(None)
    saved, losses = _convert(model, output, target, drop or (), overwrite)
    if normalization is not None and form is not None:
        losses.dropped.insert(0, "normalization")
        print(
            f"bpe-tokenizer: {output} does not normalise: texts that are not {form} keep their characters "
            f"and get other ids than before; texts in {form} keep their ids",
            file=sys.stderr,
        )
    result = {
        "input": source,
        "from": format_name,
        "output": str(output),
        "to": to,
        "files": [str(file) for file in saved.files],
        "tokens": len(model.core),
        "verified": target.can_load,
        **losses._asdict(),
        "load_with": saved.load_kwargs,
    }
    if as_json:
        print(json.dumps(result))
    else:
        _show(result)


def _load_kwargs(split_pattern: str | None, special: Sequence[str] | None) -> dict[str, Any]:
    """Return the arguments that a file needs if it does not hold its own split pattern and special tokens."""
    if split_pattern is None:
        return {"special_tokens": _special_tokens(special)} if special else {}
    return {"split_pattern": split_pattern, "special_tokens": _special_tokens(special or ())}


def _special_tokens(special: Sequence[str]) -> dict[str, int] | list[str]:
    """Parse special tokens: a list, or ids by token if each value is TOKEN=ID."""
    ids: dict[str, int] = {}
    for each in special_argument(list(special)):
        token, equals, digits = each.rpartition("=")
        if equals and token and digits.isascii() and digits.isdecimal() and len(digits) <= 10:
            if token in ids:
                raise OptionError(f"duplicate special token {token!r}")
            ids[token] = int(digits)
    if ids and len(ids) < len(special):
        raise OptionError("some special tokens have an id and some have none: write TOKEN=ID for all of them")
    return ids or list(special)


def _convert(
    model: Model, output: Path, target: Format, droppable: Collection[str], overwrite: bool
) -> tuple[Saved, Losses]:
    """Write a tokenizer to a temporary directory, compare it with the original, and move it into place."""
    # A link to a directory is followed; a link to a file is replaced.
    final = output.resolve() if target.is_directory else output.parent.resolve() / output.name
    with tempfile.TemporaryDirectory(prefix="bpe_tokenizer-") as work:
        draft = Path(work).resolve() / final.name
        saved = target.save(model, draft)
        losses = _losses(model, draft, target, saved, droppable)
        names = [file.relative_to(draft.parent) for file in saved.files]
        _check_other_files(output, [output.parent / name for name in names])
        if not overwrite:
            registry.check_unused(output.parent / name for name in names)
        for name in names:
            make_directory((final.parent / name).parent)
        write_atomically({final.parent / name: (draft.parent / name).read_bytes() for name in names})
    return saved._replace(files=[output.parent / name for name in names]), losses


def _losses(model: Model, draft: Path, target: Format, saved: Saved, droppable: Collection[str]) -> Losses:
    """Load the written tokenizer and compare it with the original.

    Raises:
        FormatError: Something differs that may not be lost.
    """
    if not target.can_load:
        return Losses([], [])
    copy = target.load(draft, **saved.load_kwargs)
    found = differences(model, copy)
    lost = [each for each in found if each.field not in droppable]
    if lost:
        names = [each.field for each in lost if each.field in _DROPPABLE]
        hint = f"; to allow that, add --drop {' '.join(names)}" if len(names) == len(lost) else ""
        reasons = "; ".join(f"{each.field}: {each.message}" for each in lost)
        raise FormatError(
            f"{target.name} would not give the same tokenizer: {reasons}{hint}. Nothing was written"
        )
    not_kept = [name for name, value in model.config.items() if copy.config.get(name) != value]
    return Losses([each.field for each in found], not_kept)


def _check_other_files(output: Path, files: Collection[Path]) -> None:
    """Refuse a directory with other files, because readers could take them for parts of the tokenizer."""
    if output.is_dir():
        others = sorted(
            path.name for path in output.iterdir() if path not in files and not is_temporary(path)
        )
        if others:
            raise OptionError(
                f"{output} holds other files ({', '.join(others[:5])}), which readers might take for "
                "parts of the tokenizer; write to a new directory"
            )


def _show(result: dict[str, Any]) -> None:
    checked = "the same ids and special tokens" if result["verified"] else "not meant to be loaded again"
    print(f"{count_noun(result['tokens'], 'token')} saved in {result['output']} ({result['to']}): {checked}")
    for name in ("dropped", "not_kept"):
        if result[name]:
            print(f"{name.replace('_', ' ')}: {escaped(', '.join(result[name]), 400)}")
    load_kwargs = result["load_with"]
    if load_kwargs:
        special = load_kwargs["special_tokens"]
        shown = repr(special)
        if len(special) > _SHOWN or len(shown) > _MAX_SHOWN:
            shown = f"the {len(special):,} that --json shows"
        print(f"load it with split_pattern={list(load_kwargs['split_pattern'])!r} and special_tokens={shown}")
