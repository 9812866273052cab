"""Chat templates in Jinja, as model files contain them, rendered so that content never becomes markup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import TracebackType
from typing import Any, NamedTuple

from jinja2 import Template, nodes
from jinja2.exceptions import TemplateError, TemplateSyntaxError

from bpe_tokenizer.chat.jinja.context import REASONING, build_context
from bpe_tokenizer.chat.jinja.environment import TaintTrackingEnvironment
from bpe_tokenizer.chat.jinja.limits import MAX_SOURCE, limited
from bpe_tokenizer.chat.jinja.literals import TemplateLiterals
from bpe_tokenizer.chat.jinja.loop_tracing import trace_loops, tracing
from bpe_tokenizer.chat.jinja.tainted_str import TaintedStr, as_tainted, concat
from bpe_tokenizer.chat.segment import Rendered, Segment
from bpe_tokenizer.chat.template_budget import scaled
from bpe_tokenizer.errors import ArgumentTypeError, ChatTemplateError, OptionError, TokenizerError, shorten

__all__ = ["JinjaTemplate"]

_ENVIRONMENT = TaintTrackingEnvironment()
# Appended to the final message while rendering, to find its end. The same text as in transformers, because
# templates can see it.
_END_MARK = "CONTINUE_FINAL_MESSAGE_TAG "


class JinjaTemplate:
    r"""A chat template in Hugging Face's dialect of Jinja.

    It renders the same text as `transformers`, and tracks which characters are content, and whose.

    Args:
        source: The source of the template.
        name: The name in error messages.

    Raises:
        ChatTemplateError: The source is not valid Jinja.

    Example:
        >>> source = "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}\n{% endfor %}"
        >>> template = JinjaTemplate(source)
        >>> rendered = template.render([{"role": "user", "content": " Hi<user> "}])
        >>> rendered.text
        '<user>Hi<user>\n'
        >>> [(segment.text, segment.origin and segment.origin.field) for segment in rendered.segments]
        [('<user>', None), ('Hi<user>', 'content'), ('\n', None)]
    """

    def __init__(self, source: str, name: str = "") -> None:
        self.source = source
        self.name = name
        self._compiled = self._compile()

    def __repr__(self) -> str:
        return f"JinjaTemplate(name={self.name!r}, {len(self.source):,} characters)"

    def __reduce__(self) -> tuple[type[JinjaTemplate], tuple[str, str]]:
        return JinjaTemplate, (self.source, self.name)

    def render(
        self,
        messages: Sequence[Any],
        *,
        add_generation_prompt: bool = True,
        continue_final_message: bool | str = False,
        tools: Sequence[Any] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        special_tokens: Mapping[str, str] | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> Rendered:
        """Render a conversation.

        Args:
            messages: The messages, each a mapping with a role and a content.
            add_generation_prompt: Append the start of a reply.
            continue_final_message: Leave the final message open, so that the model continues it. A `str`
                names the field to continue, instead of "content".
            tools: JSON schemas of functions, or Python functions with type hints and a docstring.
            documents: Documents for the model to use.
            special_tokens: Special tokens by name ("bos_token": "<s>"). They are the template's own text.
            variables: Other variables of the template, such as `enable_thinking`. Text in them is content.

        Raises:
            OptionError: The arguments contradict each other, or the list of messages is empty.
            ArgumentTypeError: An argument has the wrong type.
            ChatTemplateError: The template rejects the conversation, or fails.
        """
        if continue_final_message and add_generation_prompt:
            raise OptionError(
                "continue_final_message and add_generation_prompt are both set: the first leaves the final "
                "message open, the second starts a new one; set only one"
            )
        try:
            values = build_context(messages, tools, documents, variables or {})
        except RecursionError as error:
            raise OptionError("the messages, tools or documents are nested too deeply") from error
        except (TokenizerError, MemoryError):
            raise
        except Exception as error:
            # Objects in them run their own code.
            raise ArgumentTypeError(
                "the messages, tools, documents or variables hold something that cannot be read: "
                f"{type(error).__name__}: {error!s:.150}"
            ) from error
        field = "content" if continue_final_message is True else continue_final_message or ""
        final = self._mark_end(values["messages"][-1], field) if field else None
        tokens = {name: str.__str__(text) for name, text in (special_tokens or {}).items()}
        values = tokens | values | {"add_generation_prompt": add_generation_prompt}
        text = self._render(values)
        if final is not None:
            text = self._cut_at_end(text, final)
        return _rendered(as_tainted(text), self._compiled.marks_generated)

    def traced(self) -> JinjaTemplate:
        """Return the same template with traced loops: its results have `written`. For assistant masks."""
        return _TracedTemplate(self.source, self.name)

    def may_write(self, text: str) -> bool:
        """Whether the template can write a text as markup, from its own literals."""
        return text in self.source or text in self._compiled.literals

    def _compile(self) -> _Compiled:
        if len(self.source) > scaled(MAX_SOURCE):
            raise ChatTemplateError(
                f"{self._place(None)} has {len(self.source):,} characters, and at most "
                f"{scaled(MAX_SOURCE):,.0f} are allowed; template_budget=10 allows ten times as many"
            )
        try:
            return _compile(self.source)
        except TemplateSyntaxError as error:
            raise ChatTemplateError(f"{self._place(error.lineno)}: {error.message or '':.200}") from error
        except (RecursionError, SyntaxError, MemoryError, OverflowError) as error:
            # Python has limits for the code that Jinja makes of a template.
            raise ChatTemplateError(f"{self._place(None)} is nested too deeply") from error
        except ValueError as error:
            # Such as a number with too many digits.
            raise ChatTemplateError(f"{self._place(None)}: {error!s:.200}") from error

    def _render(self, values: dict[str, Any]) -> str:
        template = self._compiled.template
        try:
            with limited(values, self.source), tracing():
                return concat(template.root_render_func(template.new_context(values)))
        except MemoryError:
            raise
        except Exception as error:
            # A template is a program, which can raise any exception.
            place = self._place(_line(error.__traceback__))
            kind = (
                ""
                if isinstance(error, (TemplateError, ChatTemplateError)) and str(error)
                else f"{type(error).__name__}: "
            )
            raise ChatTemplateError(f"{place}: {kind}{error!s:.200}") from error

    def _place(self, line: int | None) -> str:
        name = f"the chat template {shorten(self.name, 60)}" if self.name else "the chat template"
        return name if line is None else f"{name}, line {line}"

    def _mark_end(self, message: dict[str, Any], field: str) -> str:
        """Append the end mark to a field of the final message, and return the field's text."""
        final = message.get(field)
        if final is None:
            raise OptionError(f"the final message has no {shorten(field)} to continue")
        names = [name for name in REASONING if message.get(name) == final] if field in REASONING else [field]
        if not any(name in self.source for name in names):
            raise ChatTemplateError(
                f"{self._place(None)} does not use {shorten(field)}, which is to be continued"
            )
        parts = [_last_text(message[name]) for name in names] if isinstance(final, (list, tuple)) else []
        if None in parts:
            raise OptionError(f"the {shorten(field)} of the final message has no text to continue")
        if not parts and not isinstance(final, str):
            raise OptionError(
                f"the {shorten(field)} of the final message is not text, and cannot be continued"
            )
        holders = [(part, "text") for part in parts if part] or [(message, name) for name in names]
        text = str.__str__(holders[0][0][holders[0][1]])
        for holder, key in holders:
            holder[key] += _END_MARK
        return text

    def _cut_at_end(self, text: str, final: str) -> str:
        """Cut a rendered text at the end of the final message."""
        end = text.rfind(_END_MARK.strip())
        if end < 0 or final.strip() not in text:
            raise ChatTemplateError(
                f"{self._place(None)} leaves out or changes the final message, which then cannot be continued"
            )
        if text.startswith(_END_MARK, end):
            return text[:end]
        # The template stripped the space of the mark, so it strips that of the message too. Without text in
        # the message, the space before the mark is the template's own, which ends the generation prompt.
        return text[:end].rstrip() if final.strip() else text[:end]


class _TracedTemplate(JinjaTemplate):
    def _compile(self) -> _Compiled:
        plain = super()._compile()
        return plain._replace(template=_compile_traced(self.source))

    def render(self, messages: Sequence[Any], **options: Any) -> Rendered:
        """Render a conversation; see `JinjaTemplate.render`."""
        rendered = super().render(messages, **options)
        return rendered if rendered.written is not None else replace(rendered, written=())


def _last_text(parts: Sequence[Any]) -> dict[str, Any] | None:
    """Return the last text part of a message."""
    texts = (part for part in reversed(parts) if isinstance(part, dict) and isinstance(part.get("text"), str))
    return next(texts, None)


class _Compiled(NamedTuple):
    template: Template
    marks_generated: bool
    literals: TemplateLiterals


@lru_cache(maxsize=64)
def _compile(source: str) -> _Compiled:
    tree = _ENVIRONMENT.parse(source)
    blocks = tree.find_all(nodes.CallBlock)
    marks = any(isinstance(block.call.node, nodes.ExtensionAttribute) for block in blocks)
    return _Compiled(_ENVIRONMENT.from_string(source), marks, TemplateLiterals(tree))


@lru_cache(maxsize=64)
def _compile_traced(source: str) -> Template:
    return _ENVIRONMENT.from_string(trace_loops(_ENVIRONMENT.parse(source), _ENVIRONMENT))


def _line(traceback: TracebackType | None) -> int | None:
    """Return the line of the template that raised an error."""
    line = None
    while traceback is not None:
        template = traceback.tb_frame.f_globals.get("__jinja_template__")
        if template is not None:
            line = template.get_corresponding_lineno(traceback.tb_lineno)
        traceback = traceback.tb_next
    return line


def _rendered(text: TaintedStr, marks_generated: bool) -> Rendered:
    """Split rendered text into segments."""
    segments: list[Segment] = []
    generated: list[tuple[int, int]] = []
    for start, end, provenance in text.runs():
        piece = str.__getitem__(text, slice(start, end))
        if segments and segments[-1].origin == provenance.origin:
            segments[-1] = Segment(segments[-1].text + piece, provenance.origin)
        else:
            segments.append(Segment(piece, provenance.origin))
        if provenance.generated:
            if generated and generated[-1][1] == start:
                start = generated.pop()[0]
            generated.append((start, end))
    written = tuple((start, end, known.writers) for start, end, known in text.runs() if known.writers)
    reasons = dict.fromkeys(known.lost_reason for known in text.provenances if known.lost_reason)
    return Rendered(
        tuple(segments), tuple(generated) if marks_generated else None, tuple(reasons), written or None
    )
