"""The chat templates of the page as JSON data, which it renders conversations with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from bpe_tokenizer.chat import InstructionTemplate, RoleMarkup, TurnTemplate
from bpe_tokenizer.chat.builtin_templates import BUILT_IN, DEFAULT_TEMPLATE

__all__ = ["chat_data"]


def chat_data() -> dict[str, Any]:
    r"""Return the chat templates, and the name of the default, as JSON values.

    A template has the fields of its class. `kind` tells the classes apart: `"turns"` is `TurnTemplate`,
    `"instruction"` is `InstructionTemplate`. `source` is all text that the template may write as markup.

    >>> data = chat_data()
    >>> data["default"], [template["name"] for template in data["templates"]][:2]
    ('llama3', ['llama3', 'chatml'])
    >>> data["templates"][1]["roles"]["user"]
    {'before': '<|im_start|>user\n', 'end': '<|im_end|>', 'after': '\n', 'lead': ''}
    """
    return {
        "default": DEFAULT_TEMPLATE,
        "templates": [_template_data(template) for template in BUILT_IN.values()],
    }


def _template_data(template: TurnTemplate | InstructionTemplate) -> dict[str, Any]:
    kind = "turns" if isinstance(template, TurnTemplate) else "instruction"
    values = {field.name: _json_value(getattr(template, field.name)) for field in fields(template)}
    return {"kind": kind, **values, "source": template.source}


def _json_value(value: Any) -> Any:
    if isinstance(value, RoleMarkup):
        return value._asdict()
    if isinstance(value, Mapping):
        return {name: _json_value(each) for name, each in value.items()}
    return list(value) if isinstance(value, tuple) else value
