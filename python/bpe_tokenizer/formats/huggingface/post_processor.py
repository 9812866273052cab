"""The `post_processor` of a tokenizer.json, which adds special tokens to an encoded text."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from bpe_tokenizer.formats.huggingface.components import flatten_sequence, join_sequence
from bpe_tokenizer.formats.json_file import Field
from bpe_tokenizer.model import PostProcessor

__all__ = ["read_post_processor", "write_post_processor"]


def read_post_processor(field: Field, known: Container[int]) -> PostProcessor:
    """Read the `post_processor` of a tokenizer.json.

    Args:
        field: The post-processor; null adds nothing.
        known: The ids of all tokens.

    Raises:
        FormatError: It does anything else than adding ids before and after a text.
    """
    around = PostProcessor()
    trims: list[bool] = []
    for step in flatten_sequence(field, "processors"):
        kind = step.need("type").text()
        if kind in ("ByteLevel", "RobertaProcessing") and step.get("trim_offsets").value is True:
            trims.append(step.get("add_prefix_space").value is True)
        if kind == "ByteLevel":
            continue
        added = _read_step(step, known)
        # The library passes the parts of the first step's result to the second one as if they were two texts.
        if around != PostProcessor():
            raise step.error("is the second step that adds tokens; use only one")
        around = added
    return replace(around, trims=tuple(trims))


def _read_step(step: Field, known: Container[int]) -> PostProcessor:
    kind = step.need("type").text()
    if kind in ("RobertaProcessing", "BertProcessing"):
        cls, sep = (_pair_id(step.need(name), known) for name in ("cls", "sep"))
        return PostProcessor(cls, sep, pair=(cls, sep * 2 if kind == "RobertaProcessing" else sep, sep))
    if kind == "TemplateProcessing":
        return _read_template(step, known)
    raise step.get("type").refused(
        "is not supported; ByteLevel, TemplateProcessing, RobertaProcessing, BertProcessing and Sequence are"
    )


def _pair_id(field: Field, known: Container[int]) -> tuple[int, ...]:
    items = field.items()
    if len(items) != 2:
        raise field.refused("must be a token and its id")
    items[0].text()
    return (_known_id(items[1], known),)


def _known_id(field: Field, known: Container[int]) -> int:
    if field.id() not in known:
        raise field.refused("is not the id of a token")
    return field.id()


def _read_template(step: Field, known: Container[int]) -> PostProcessor:
    specials = step.need("special_tokens")
    names, around = _read_pieces(step.need("single"), specials, known)
    for name in names:
        if name.text() != "A":
            raise name.refused("must be A, the only sequence in the template of one text")
    if len(names) != 1:
        raise step.get("single").error(f"holds Sequence A {len(names)} times; it must hold it once")
    single = PostProcessor(*around)
    if step.get("pair").is_null:
        return replace(single, pair=((), (), ()))
    names, pair = _read_pieces(step.get("pair"), specials, known)
    if [name.text() for name in names] != ["A", "B"]:
        return replace(single, pair=())  # rare, and harmless until somebody encodes a pair
    return single if pair == single.pair_ids else replace(single, pair=pair)


def _read_pieces(
    template: Field, specials: Field, known: Container[int]
) -> tuple[list[Field], tuple[tuple[int, ...], ...]]:
    """The names of the sequences, and the ids before the first, between them, and after the last."""
    names: list[Field] = []
    around: list[list[int]] = [[]]
    for piece in template.items():
        if set(piece.members()) == {"Sequence"}:
            names.append(piece.get("Sequence").need("id"))
            around.append([])
        elif set(piece.members()) == {"SpecialToken"}:
            special = specials.need(piece.get("SpecialToken").need("id").text())
            around[-1].extend(_known_id(item, known) for item in special.need("ids").items())
        else:
            raise piece.refused("must be a Sequence or a SpecialToken")
    return names, tuple(map(tuple, around))


def write_post_processor(around: PostProcessor, token: Callable[[int], str]) -> dict[str, Any] | None:
    """Return the `post_processor` of a tokenizer.json; None if it adds nothing.

    Args:
        around: The ids around a text, and around the texts of a pair.
        token: Returns the token string of an id.
    """
    ids = sorted({*around.prefix, *around.suffix, *chain(*around.pair or ())})
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    trims = [byte_level | {"add_prefix_space": keeps} for keeps in around.trims]
    if not ids:
        return join_sequence(trims, "processors")

    def specials(ids: Sequence[int], type_id: int) -> list[dict[str, Any]]:
        return [{"SpecialToken": {"id": token(i), "type_id": type_id}} for i in ids]

    def text(name: str, type_id: int) -> list[dict[str, Any]]:
        return [{"Sequence": {"id": name, "type_id": type_id}}]

    single = [*specials(around.prefix, 0), *text("A", 0), *specials(around.suffix, 0)]
    if around.pair:
        before, between, after = around.pair
        pair = [*specials(before, 0), *text("A", 0), *specials(between, 0)]
        pair += [*text("B", 1), *specials(after, 1)]
    else:
        pair = [*single, *specials(around.prefix, 1), *text("B", 1), *specials(around.suffix, 1)]
    template = {
        "type": "TemplateProcessing",
        "single": single,
        "pair": pair,
        "special_tokens": {token(i): {"id": token(i), "ids": [i], "tokens": [token(i)]} for i in ids},
    }
    return join_sequence([*trims, template], "processors")
