"""The built-in chat templates, as data."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from bpe_tokenizer.chat.declarative_template import InstructionTemplate, RoleMarkup, TurnTemplate

__all__ = ["ALIASES", "BUILT_IN", "DEFAULT_TEMPLATE", "HARMONY_TEMPLATE", "OPENAI_TEMPLATE"]


def _llama3(role: str) -> RoleMarkup:
    return RoleMarkup(f"<|start_header_id|>{role}<|end_header_id|>\n\n", "<|eot_id|>")


def _chatml(role: str) -> RoleMarkup:
    return RoleMarkup(f"<|im_start|>{role}\n", "<|im_end|>", "\n")


def _openai(role: str) -> RoleMarkup:
    return RoleMarkup(f"<|im_start|>{role}<|im_sep|>", "<|im_end|>")


def _harmony(role: str, channel: str = "") -> RoleMarkup:
    return RoleMarkup(f"<|start|>{role}", "<|end|>", lead=f"{channel}<|message|>")


def _gemma(role: str) -> RoleMarkup:
    return RoleMarkup(f"<start_of_turn>{role}\n", "<end_of_turn>", "\n")


def _phi3(role: str) -> RoleMarkup:
    return RoleMarkup(f"<|{role}|>\n", "<|end|>", "\n")


_TEMPLATES: Final = (
    # https://github.com/meta-llama/llama-models/blob/main/models/llama3_1/prompt_format.md
    TurnTemplate(
        "llama3",
        {role: _llama3(role) for role in ("system", "user", "assistant")} | {"tool": _llama3("ipython")},
        begin="<|begin_of_text|>",
        reply=_llama3("assistant").before,
        control_tokens=("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    ),
    # https://github.com/openai/openai-python/blob/release-v0.28.0/chatml.md
    TurnTemplate(
        "chatml",
        {role: _chatml(role) for role in ("system", "user", "assistant", "tool")},
        reply=_chatml("assistant").before,
        control_tokens=("<|im_start|>", "<|im_end|>"),
    ),
    # https://github.com/tatsu-lab/stanford_alpaca#data-release
    InstructionTemplate("alpaca", instruction="### Instruction:\n", response="### Response:\n"),
    # https://huggingface.co/mistralai/Mistral-7B-Instruct-v0.2
    TurnTemplate(
        "mistral",
        {"user": RoleMarkup("[INST] ", "", " [/INST]"), "assistant": RoleMarkup("", "</s>")},
        begin="<s>",
        control_tokens=("<s>", "[INST]", "[/INST]", "</s>"),
    ),
    # https://huggingface.co/google/gemma-2-2b-it; the system text as in gemma-3
    TurnTemplate(
        "gemma",
        {"user": _gemma("user"), "assistant": _gemma("model")},
        begin="<bos>",
        reply=_gemma("model").before,
        strips=True,
        control_tokens=("<bos>", "<start_of_turn>", "<end_of_turn>"),
    ),
    # https://huggingface.co/microsoft/Phi-3.5-mini-instruct
    TurnTemplate(
        "phi3",
        {role: _phi3(role) for role in ("system", "user", "assistant")},
        reply=_phi3("assistant").before,
        end="<|endoftext|>",
        skips_empty_system=True,
        control_tokens=("<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<|endoftext|>"),
    ),
    # The count of `num_tokens_from_messages`: 3 tokens a message, 1 more for a name, 3 for the reply,
    # https://cookbook.openai.com/examples/how_to_count_tokens_with_tiktoken; the markup as tiktokenizer shows
    # it, https://github.com/dqbd/tiktokenizer/blob/d71e128/src/sections/ChatGPTEditor.tsx. OpenAI does not
    # publish how a name is written.
    TurnTemplate(
        "gpt-4",
        {role: _openai(role) for role in ("system", "developer", "user", "assistant")},
        reply=_openai("assistant").before,
        control_tokens=("<|im_start|>", "<|im_sep|>", "<|im_end|>"),
        name_end="<|im_sep|>",
    ),
    # https://developers.openai.com/cookbook/articles/openai-harmony; an answer is in the channel `final`, as
    # in gpt-oss' own template, https://huggingface.co/openai/gpt-oss-20b/blob/main/chat_template.jinja
    TurnTemplate(
        "harmony",
        {role: _harmony(role) for role in ("system", "developer", "user")}
        | {"assistant": _harmony("assistant", "<|channel|>final")},
        reply="<|start|>assistant",
        control_tokens=("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>", "<|call|>"),
        name_start=":",
        stop_tokens=("<|return|>", "<|call|>"),
    ),
)
BUILT_IN: Final = MappingProxyType({template.name: template for template in _TEMPLATES})
ALIASES: Final = MappingProxyType({"gpt-4o": "gpt-4"})
# The template of a tokenizer without one, and the templates of OpenAI's encodings.
DEFAULT_TEMPLATE: Final = "llama3"
OPENAI_TEMPLATE: Final = "gpt-4"
HARMONY_TEMPLATE: Final = "harmony"
