"""The built-in chat templates, which `builtin_templates.json` holds as data."""

from __future__ import annotations

import json
import pkgutil
from types import MappingProxyType
from typing import Any, Final

from bpe_tokenizer.chat.declarative_template import InstructionTemplate, RoleMarkup, TurnTemplate

__all__ = ["ALIASES", "BUILT_IN", "DEFAULT_TEMPLATE", "HARMONY_TEMPLATE", "OPENAI_TEMPLATE", "templates_data"]


def templates_data() -> dict[str, Any]:
    """Return the content of the file."""
    data: dict[str, Any] = json.loads(pkgutil.get_data(__name__, "builtin_templates.json") or b"")
    return data


def _template(kind: str, about: str, **fields: Any) -> TurnTemplate | InstructionTemplate:
    if kind == "instruction":
        return InstructionTemplate(**fields)
    fields["roles"] = {role: RoleMarkup(**markup) for role, markup in fields["roles"].items()}
    fields |= {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
    return TurnTemplate(**fields)


_DATA: Final = templates_data()
BUILT_IN: Final = MappingProxyType({each["name"]: _template(**each) for each in _DATA["templates"]})
ALIASES: Final = MappingProxyType(_DATA["aliases"])
# The template of a tokenizer without one, and the templates of OpenAI's encodings.
DEFAULT_TEMPLATE: Final = _DATA["default"]
OPENAI_TEMPLATE: Final = _DATA["openai"]
HARMONY_TEMPLATE: Final = _DATA["harmony"]
