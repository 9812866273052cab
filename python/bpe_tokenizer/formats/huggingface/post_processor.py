"""The `post_processor` of a tokenizer.json, which adds special tokens to an encoded text."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

from bpe_tokenizer.formats.huggingface.components import flatten_sequence
from bpe_tokenizer.formats.json_file import Field
from bpe_tokenizer.model import PostProcessor

__all__ = ["read_post_processor", "write_post_processor"]


def read_post_processor(field: Field, known: Container[int]) -> PostProcessor:
    """Read the `post_processor` of a tokenizer.json.

    Its treatment of pairs of texts and of offsets is not read.

    Args:
        field: The post-processor; null adds nothing.
        known: The ids of all tokens.

    Raises:
        FormatError: It does anything else than adding ids before and after a text.
    """
    around = PostProcessor()
    for step in flatten_sequence(field, "processors"):
        added = _read_step(step, known)
        # The library passes the parts of the first step's result to the second one as if they were two texts.
        if around != PostProcessor() and step.need("type").text() != "ByteLevel":
            raise step.error("is the second step that adds tokens; use only one")
        around = PostProcessor(added.prefix or around.prefix, added.suffix or around.suffix)
    return around


def _read_step(step: Field, known: Container[int]) -> PostProcessor:
    kind = step.need("type").text()
    if kind == "ByteLevel":
        return PostProcessor()
    if kind in ("RobertaProcessing", "BertProcessing"):
        return PostProcessor(_pair_id(step.need("cls"), known), _pair_id(step.need("sep"), known))
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
    around: list[list[int]] = [[]]
    for piece in step.need("single").items():
        if set(piece.members()) == {"Sequence"}:
            name = piece.get("Sequence").need("id")
            if name.text() != "A":
                raise name.refused("must be A, the only sequence in the template of one text")
            around.append([])
        elif set(piece.members()) == {"SpecialToken"}:
            special = specials.need(piece.get("SpecialToken").need("id").text())
            around[-1].extend(_known_id(item, known) for item in special.need("ids").items())
        else:
            raise piece.refused("must be a Sequence or a SpecialToken")
    if len(around) != 2:
        raise step.get("single").error(f"holds Sequence A {len(around) - 1} times; it must hold it once")
    return PostProcessor(tuple(around[0]), tuple(around[1]))


def write_post_processor(
    around: PostProcessor, token: Callable[[int], str], in_bytes: bool = True
) -> dict[str, Any] | None:
    """Return the `post_processor` of a tokenizer.json.

    Offsets are not trimmed: the space of a token belongs to its span.

    Args:
        around: The ids before and after a text.
        token: Returns the token string of an id.
        in_bytes: Whether the file is byte-level.
    """
    if not around.prefix and not around.suffix and not in_bytes:
        return None
    if not around.prefix and not around.suffix:
        return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    single = _template(around, token, "A", type_id=0)
    ids = sorted({*around.prefix, *around.suffix})
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": single + _template(around, token, "B", type_id=1),
        "special_tokens": {token(i): {"id": token(i), "ids": [i], "tokens": [token(i)]} for i in ids},
    }


def _template(
    around: PostProcessor, token: Callable[[int], str], text: str, type_id: int
) -> list[dict[str, Any]]:
    def specials(ids: Sequence[int]) -> list[dict[str, Any]]:
        return [{"SpecialToken": {"id": token(i), "type_id": type_id}} for i in ids]

    return [
        *specials(around.prefix),
        {"Sequence": {"id": text, "type_id": type_id}},
        *specials(around.suffix),
    ]
