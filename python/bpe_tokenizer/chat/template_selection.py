"""Selects the chat template and the named special tokens that a model's conversations are rendered with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bpe_tokenizer.chat.builtin_templates import (
    ALIASES,
    BUILT_IN,
    DEFAULT_TEMPLATE,
    HARMONY_TEMPLATE,
    OPENAI_TEMPLATE,
)
from bpe_tokenizer.chat.template import ChatTemplate, Template, is_jinja, jinja_template, template_error
from bpe_tokenizer.compiled import CompiledModel
from bpe_tokenizer.errors import ArgumentTypeError, OptionError
from bpe_tokenizer.model import AddedToken

__all__ = ["OPENAI_CONTROL_IDS", "named_special_tokens", "select_template", "with_control_tokens"]

# OpenAI reserves ids for the control tokens of chats, which its rank files lack. The encodings by the id of
# their `<|endofprompt|>`: cl100k_base and o200k_base. Source: tiktokenizer, see the template `gpt-4`.
OPENAI_CONTROL_IDS = {
    100276: {"<|im_start|>": 100264, "<|im_end|>": 100265, "<|im_sep|>": 100266},
    200018: {"<|im_start|>": 200264, "<|im_end|>": 200265, "<|im_sep|>": 200266},
}


def _openai_control_ids(compiled: CompiledModel) -> Mapping[str, int]:
    """Return the ids of OpenAI's control tokens that the model lacks and has free."""
    ids = OPENAI_CONTROL_IDS.get(compiled.special.get("<|endofprompt|>", -1), {})
    core = compiled.model.core
    return {text: id_ for text, id_ in ids.items() if text not in compiled.added and core.token(id_) is None}


def _default_template(compiled: CompiledModel) -> Template:
    """Return the template of a model without one; OpenAI's if it has its control tokens or room for them."""
    name = DEFAULT_TEMPLATE
    if ids := OPENAI_CONTROL_IDS.get(compiled.special.get("<|endofprompt|>", -1), {}):
        added = {*compiled.added}
        harmony: Sequence[str] = getattr(BUILT_IN[HARMONY_TEMPLATE], "control_tokens", ())
        if added >= {*harmony}:
            name = HARMONY_TEMPLATE
        elif {*_openai_control_ids(compiled), *added} >= {*ids}:
            name = OPENAI_TEMPLATE
    return BUILT_IN[name]


def with_control_tokens(compiled: CompiledModel, template: Template) -> CompiledModel:
    """Return the model with the control tokens of OpenAI that the template declares and the model lacks."""
    wanted: Sequence[str] = getattr(template, "control_tokens", ())
    tokens = [AddedToken(*item) for item in _openai_control_ids(compiled).items() if item[0] in wanted]
    if not tokens:
        return compiled
    key = tuple(tokens)
    made = compiled.with_more_tokens.get(key)
    return compiled.with_more_tokens.setdefault(key, made or compiled.with_added_tokens(tokens))


def select_template(compiled: CompiledModel, template: str | Template | None, has_tools: bool) -> Template:
    """Return the template for the argument `template` of `apply_chat_template`.

    Args:
        compiled: The model.
        template: A name, the source of a Jinja template, a template, or None for the model's own.
        has_tools: Whether tools are passed. Then the model's `"tool_use"` takes precedence over `"default"`.

    Raises:
        ArgumentTypeError: The template has another type.
        ChatTemplateError: The Jinja source is not valid.
        OptionError: The name is unknown, or the model has several templates without a default.
    """
    if isinstance(template, str):
        if is_jinja(template):
            return jinja_template(template)
        own = _model_templates(compiled.model.config.get("chat_template"))
        if template in own:
            return jinja_template(own[template], template)
        if template in ALIASES or template in ChatTemplate.names():
            return ChatTemplate.find(template)
        raise template_error(template, [*own, *ChatTemplate.names()])
    if template is not None:
        if not isinstance(template, Template):
            raise ArgumentTypeError(
                "template must be a name, the source of a Jinja template or an object with `source` and "
                f"`render`, not {type(template).__name__}"
            )
        return template
    own = _model_templates(compiled.model.config.get("chat_template"))
    if not own:
        return _default_template(compiled)
    for name in ("tool_use", "default") if has_tools else ("default",):
        if name in own:
            return jinja_template(own[name], "chat_template" if len(own) == 1 else name)
    raise OptionError(
        f"the model has several chat templates and no default: pass template= one of {', '.join(own)[:150]}"
    )


def _model_templates(field: Any) -> Mapping[str, str]:
    """Return a model's templates by name, from any form of `chat_template` in a tokenizer_config.json.

    Source: https://huggingface.co/docs/transformers/chat_templating_writing
    """
    if field is None:
        return {}
    if isinstance(field, str):
        return {"default": field}
    if isinstance(field, Sequence):
        entries = [
            (entry.get("name"), entry.get("template")) for entry in field if isinstance(entry, Mapping)
        ]
        field = dict(entries) if len(entries) == len(field) else None
    if not isinstance(field, Mapping) or not all(
        isinstance(part, str) for item in field.items() for part in item
    ):
        raise OptionError(
            "the model's chat_template is neither a str nor a list of {'name': ..., 'template': ...}"
        )
    return field


def named_special_tokens(compiled: CompiledModel) -> dict[str, str]:
    """Return the special tokens that templates can use by name.

    They are those with a role (`bos_token`, ...), and every other `..._token` of a tokenizer_config.json.
    """
    config = compiled.model.config
    extra = config.get("extra_special_tokens")
    given = {name: value for name, value in config.items() if name.endswith("_token")}
    named = {**given, **(extra if isinstance(extra, Mapping) else {})}
    contents = {
        name: value.get("content") if isinstance(value, Mapping) else value for name, value in named.items()
    }
    texts = {name: value for name, value in contents.items() if isinstance(value, str)}
    return texts | {f"{role}_token": content for role, (content, _) in compiled.role_ids.items()}
