"""Which texts the code of a Jinja template can write as its own."""

from __future__ import annotations

import re
from collections.abc import Iterable

from jinja2 import nodes

from bpe_tokenizer.chat.inputs import ROLES

__all__ = ["WrittenTexts"]

# What `format` and `%` replace; the text around it stays.
_REPLACED = re.compile(r"\{[^{}]*\}|%(?:\(\w*\))?[-#0 +.\d]*[a-zA-Z]")
# Longer tokens are found only as parts of one constant.
_LONGEST = 64


class WrittenTexts:
    """The constants of a template, and what they give when they are put together.

    Templates build tokens of parts (`'<think{}>'.format(suffix)`, `'<|' + role + '|>'`). Whatever whole
    constants between an end and a beginning of others can give counts, so that no such token is missed.

    Args:
        tree: The template.

    Example:
        >>> from jinja2 import Environment
        >>> source = "{% set kind = ':open' %}{{ '<think{}>'.format(kind) }}Hi"
        >>> written = WrittenTexts(Environment().parse(source))
        >>> [text in written for text in ("<think:open>", "<think>", "<think:closed>")]
        [True, True, False]
    """

    def __init__(self, tree: nodes.Template) -> None:
        constants = [node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str)]
        constants += [node.data for node in tree.find_all(nodes.TemplateData)]
        self._constants = tuple(dict.fromkeys(constants))
        parts = {*_parts(self._constants), *ROLES}
        self._parts = frozenset(part for part in parts if len(part) <= _LONGEST)
        self._beginnings = frozenset(part[:end] for part in parts for end in range(1, _LONGEST))
        self._endings = frozenset(part[-length:] for part in parts for length in range(1, _LONGEST))

    def __contains__(self, text: str) -> bool:
        return any(text in constant for constant in self._constants) or self._is_joined(text)

    def _is_joined(self, text: str) -> bool:
        """Whether a text is the end of a part, whole parts, and the beginning of one."""
        size = len(text)
        if size > _LONGEST:
            return False
        reached = [text[:end] in self._endings for end in range(size)]
        for start in range(1, size):
            if reached[start]:
                if text[start:] in self._beginnings:
                    return True
                for end in range(start + 1, size):
                    reached[end] = reached[end] or text[start:end] in self._parts
        return False


def _parts(constants: Iterable[str]) -> Iterable[str]:
    for constant in constants:
        yield constant
        yield from filter(None, _REPLACED.split(constant))
