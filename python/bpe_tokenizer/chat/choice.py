"""Which template and which special tokens the conversations of a tokenizer are rendered with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bpe_tokenizer.chat.builtin import BUILT_IN
from bpe_tokenizer.chat.template import ChatTemplate, Template, is_jinja, jinja_template, template_error
from bpe_tokenizer.compiled import CompiledModel
from bpe_tokenizer.errors import ArgumentTypeError, OptionError

__all__ = ["named_special_tokens", "template_of"]


def template_of(snapshot: CompiledModel, template: str | Template | None, has_tools: bool) -> Template:
    """Return the template that `apply_chat_template(template=...)` means.

    Args:
        snapshot: The model.
        template: A name, the source of a Jinja template, a template, or None for the model's own.
        has_tools: Whether there are tools: then a model's template `"tool_use"` counts more than `"default"`.

    Raises:
        ArgumentTypeError: It is none of these.
        ChatTemplateError: The Jinja source is not valid.
        OptionError: There is no template of this name, or the model has several and none is the default.
    """
    if isinstance(template, str):
        if is_jinja(template):
            return jinja_template(template)
        own = _own_templates(snapshot.model.config.get("chat_template"))
        if template in own:
            return jinja_template(own[template], template)
        if template in ChatTemplate.names():
            return ChatTemplate.find(template)
        raise template_error(template, [*own, *ChatTemplate.names()])
    if template is not None:
        if not isinstance(template, Template):
            raise ArgumentTypeError(
                "template must be a name, the source of a Jinja template or an object with `source` and "
                f"`render`, not {type(template).__name__}"
            )
        return template
    own = _own_templates(snapshot.model.config.get("chat_template"))
    if not own:
        return BUILT_IN["llama3"]
    for name in ("tool_use", "default") if has_tools else ("default",):
        if name in own:
            return jinja_template(own[name], "chat_template" if len(own) == 1 else name)
    raise OptionError(
        f"the model has several chat templates and none is its default: choose one of {', '.join(own)}"
    )


def _own_templates(field: Any) -> Mapping[str, str]:
    """Return a model's templates by name, from any of the forms that a tokenizer_config.json has.

    https://huggingface.co/docs/transformers/chat_templating_writing
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


def named_special_tokens(snapshot: CompiledModel) -> dict[str, str]:
    """Return the texts of the special tokens that templates know by name.

    They are those of the roles (`bos_token`, ...), and every further `..._token` of a tokenizer_config.json.
    """
    config = snapshot.model.config
    extra = config.get("extra_special_tokens")
    given = {name: value for name, value in config.items() if name.endswith("_token")}
    named = {**given, **(extra if isinstance(extra, Mapping) else {})}
    contents = {
        name: value.get("content") if isinstance(value, Mapping) else value for name, value in named.items()
    }
    texts = {name: value for name, value in contents.items() if isinstance(value, str)}
    return texts | {f"{role}_token": content for role, (content, _) in snapshot.role_ids.items()}
