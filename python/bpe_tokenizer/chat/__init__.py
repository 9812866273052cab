"""Conversations: templates render them to segments, text with its provenance, and these become ids."""

from bpe_tokenizer.chat.declarative_template import InstructionTemplate, RoleMarkup, TurnTemplate
from bpe_tokenizer.chat.segment import Origin, Rendered, Segment
from bpe_tokenizer.chat.template import ChatTemplate, Template
from bpe_tokenizer.chat.template_budget import template_budget

__all__ = [
    "ChatTemplate",
    "InstructionTemplate",
    "Origin",
    "Rendered",
    "RoleMarkup",
    "Segment",
    "Template",
    "TurnTemplate",
    "template_budget",
]
