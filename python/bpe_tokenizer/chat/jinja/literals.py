"""The string literals of a Jinja template: which tokens it can write itself."""

from __future__ import annotations

import re
from collections.abc import Iterable

from jinja2 import nodes

from bpe_tokenizer.chat.jinja.context import ROLES

__all__ = ["TemplateLiterals"]

# The fields that `format` and `%` replace; the text around them stays.
_FIELDS = re.compile(r"\{[^{}]*\}|%(?:\(\w*\))?[-#0 +.\d]*[a-zA-Z]")
# A longer token is found only inside one literal.
_MAX_JOINED = 64


class TemplateLiterals:
    """The literals of a template and their concatenations.

    Templates build tokens from parts (`'<think{}>'.format(suffix)`, `'<|' + role + '|>'`). A text is included
    if it is a suffix of a literal, any whole literals, and a prefix of a literal. So no such token is missed.

    Args:
        tree: The parsed template.

    Example:
        >>> from jinja2 import Environment
        >>> source = "{% set kind = ':open' %}{{ '<think{}>'.format(kind) }}Hi"
        >>> written = TemplateLiterals(Environment().parse(source))
        >>> [text in written for text in ("<think:open>", "<think>", "<think:closed>")]
        [True, True, False]
    """

    def __init__(self, tree: nodes.Template) -> None:
        literals = [node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str)]
        literals += [node.data for node in tree.find_all(nodes.TemplateData)]
        self._literals = tuple(dict.fromkeys(literals))
        parts = {*_parts(self._literals), *ROLES}
        self._parts = frozenset(part for part in parts if len(part) <= _MAX_JOINED)
        self._prefixes = frozenset(part[:end] for part in parts for end in range(1, _MAX_JOINED))
        self._suffixes = frozenset(part[-length:] for part in parts for length in range(1, _MAX_JOINED))

    def __contains__(self, text: str) -> bool:
        return any(text in literal for literal in self._literals) or self._is_joined(text)

    def _is_joined(self, text: str) -> bool:
        """Whether a text is a suffix of a part, whole parts, and a prefix of a part."""
        size = len(text)
        if size > _MAX_JOINED:
            return False
        reached = [text[:end] in self._suffixes for end in range(size)]
        for start in range(1, size):
            if reached[start]:
                if text[start:] in self._prefixes:
                    return True
                for end in range(start + 1, size):
                    reached[end] = reached[end] or text[start:end] in self._parts
        return False


def _parts(literals: Iterable[str]) -> Iterable[str]:
    for literal in literals:
        yield literal
        yield from filter(None, _FIELDS.split(literal))
