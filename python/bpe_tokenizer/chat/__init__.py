"""Conversations to segments of text that know who wrote them: templates, turns, budgets."""

from bpe_tokenizer.chat.segment import Origin, Rendered, Segment
from bpe_tokenizer.chat.template import ChatTemplate, Template
from bpe_tokenizer.chat.turn_template import InstructionTemplate, RoleMarkup, TurnTemplate

__all__ = [
    "ChatTemplate",
    "InstructionTemplate",
    "Origin",
    "Rendered",
    "RoleMarkup",
    "Segment",
    "Template",
    "TurnTemplate",
]
