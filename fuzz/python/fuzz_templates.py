"""Chat templates of any Jinja source: an error of the package, or a text in which no content is markup."""

from __future__ import annotations

from typing import Any

import atheris

with atheris.instrument_imports(include=["bpe_tokenizer", "jinja2"]):
    from bpe_tokenizer import BPETokenizer
    from bpe_tokenizer.chat.jinja.template import JinjaTemplate

# It makes the modules of tests/support importable.
from harness import expected_errors, fuzz

# isort: split
from conversations import ATTACKS, Conversation
from provenance import assert_no_content_is_trusted, is_shifted, shifted

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
SPECIAL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|x|>"]
TOKENIZER = BPETokenizer(split_pattern="gpt2", normalization=None)
TOKENIZER.train("user assistant system content " * 3, 270, special_tokens=SPECIAL, verbose=False)

TEXTS = [
    "<|im_start|>",
    "<|im_end|>\n",
    "\n",
    " ",
    "user",
    "assistant",
    "<|",
    "|>",
    "x",
    "%s",
    "{}",
    "[INST]",
    "é",
]
NAMES = [
    "m",
    "messages",
    "message",
    "x",
    "ns",
    "loop",
    "bos_token",
    "tools",
    "documents",
    "add_generation_prompt",
]
FIELDS = [
    "role",
    "content",
    "tool_calls",
    "name",
    "x",
    "index",
    "first",
    "last",
    "previtem",
    "items",
    "upper",
]
FILTERS = [
    *("trim", "upper", "lower", "title", "capitalize", "length", "tojson", "string", "list", "first", "last"),
    *("join", "join(', ')", "replace('a', m.content)", "default('x')", "reverse", "sort", "unique", "indent"),
    *(
        "map(attribute='content')",
        "selectattr('role', 'equalto', 'user')",
        "batch(2)",
        "int",
        "float",
        "safe",
        "e",
    ),
    *(
        "tojson(indent=2)",
        "truncate(3)",
        "wordwrap(2)",
        "center(9)",
        "format(m.content)",
        "items",
        "dictsort",
        "sum",
    ),
    *(
        "groupby('role')",
        "slice(2)",
        "pprint",
        "urlize",
        "striptags",
        "xmlattr",
        "random",
        "min",
        "max",
        "abs",
    ),
]
METHODS = [
    *(
        "strip()",
        "split()",
        "split('|')",
        "upper()",
        "replace('<', '[')",
        "startswith('<')",
        "join(['a', 'b'])",
    ),
    *(
        "format(m.content)",
        "items()",
        "get('content')",
        "rstrip('x')",
        "partition('|')",
        "splitlines()",
        "title()",
    ),
    *(
        "lower()",
        "zfill(9)",
        "translate({60: 'x'})",
        "encode()",
        "format_map(m)",
        "ljust(9)",
        "count('a')",
        "keys()",
    ),
]
TESTS = [
    "defined",
    "string",
    "none",
    "mapping",
    "iterable",
    "in 'user'",
    "== 'user'",
    "sameas none",
    "odd",
    "> 1",
]
OPERATORS = [" + ", " ~ ", " and ", " or ", " * ", " % ", " in ", " == ", " < ", " - ", " // ", " ** "]


class Source:
    """Builds the source of a template from bytes."""

    def __init__(self, provider: atheris.FuzzedDataProvider) -> None:
        self._provider = provider

    def _pick(self, values: list[str]) -> str:
        choice: str = self._provider.PickValueInList(values)
        return choice

    def _expression(self, depth: int) -> str:
        kind = self._provider.ConsumeIntInRange(0, 15 if depth else 4)

        def inner() -> str:
            return self._expression(depth - 1)

        match kind:
            case 0:
                return repr(self._pick(TEXTS))
            case 1:
                return str(self._provider.ConsumeIntInRange(-3, 300))
            case 2:
                return self._pick(NAMES)
            case 3:
                return f"m.{self._pick(FIELDS)}"
            case 4:
                return f"messages[{self._provider.ConsumeIntInRange(-2, 3)}]['{self._pick(FIELDS)}']"
            case 5 | 6:
                return f"({inner()})|{self._pick(FILTERS)}"
            case 7 | 8:
                return f"({inner()}).{self._pick(METHODS)}"
            case 9 | 10:
                return f"({inner()}{self._pick(OPERATORS)}{inner()})"
            case 11:
                return f"({inner()} if {inner()} is {self._pick(TESTS)} else {inner()})"
            case 12:
                return f"[{inner()}, {inner()}]"
            case 13:
                return f"{{'role': {inner()}, {inner()}: 1}}"
            case 14:
                return f"({inner()})[{inner()}:{inner()}]"
            case _:
                return f"({inner()})[{inner()}]"

    def _statement(self, depth: int) -> str:
        kind = self._provider.ConsumeIntInRange(0, 13 if depth else 4)
        body = self.block(depth - 1) if kind > 4 else ""
        value = self._expression(2)
        match kind:
            case 0 | 1:
                return self._pick(TEXTS)
            case 2 | 3:
                return f"{{{{ {value} }}}}"
            case 4:
                return f"{{% set {self._pick(['x', 'm', 'ns.x', 'x, m'])} = {value} %}}"
            case 5 | 6 | 7:
                source = self._pick(["messages", "messages", "range(3)", value])
                return f"{{% for m in {source} %}}{body}{{% endfor %}}"
            case 8 | 9:
                return f"{{% if {value} %}}{body}{{% else %}}{self.block(depth - 1)}{{% endif %}}"
            case 10:
                return f"{{% set x %}}{body}{{% endset %}}{{{{ x }}}}"
            case 11:
                return f"{{% macro f(m, x='') %}}{body}{{% endmacro %}}{{{{ f({value}) }}}}"
            case 12:
                return f"{{% generation %}}{body}{{% endgeneration %}}"
            case _:
                tag = self._pick(
                    ["call f(x)", "filter upper", "with x = m.content", "autoescape true", "filter trim"]
                )
                return f"{{% {tag} %}}{body}{{% end{tag.split()[0]} %}}"

    def block(self, depth: int) -> str:
        """A few statements."""
        return "".join(self._statement(depth) for _ in range(self._provider.ConsumeIntInRange(1, 4)))


def conversation(provider: atheris.FuzzedDataProvider) -> Conversation:
    """Messages with attacks, and fields of unusual kinds."""
    contents: list[Any] = [
        *ATTACKS[:12],
        "Hello there",
        "",
        " x ",
        "日本",
        [{"type": "text", "text": "<|im_end|>"}],
    ]
    messages: list[dict[str, Any]] = []
    for _ in range(provider.ConsumeIntInRange(1, 4)):
        role = provider.PickValueInList(["user", "assistant", "system", "user", "assistant", "tool"])
        messages.append({"role": role, "content": provider.PickValueInList(contents)})
    if provider.ConsumeBool():
        function = {"name": "f<|x|>", "arguments": {"a<|x|>": [1, "<|im_end|>", None, 2.5, {"b": "</s>"}]}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [{"function": function}]})
    documents = [{"title": "<s>", "text": "</s>"}] if provider.ConsumeBool() else None
    return Conversation(messages, None, documents)


def check(provider: atheris.FuzzedDataProvider, _: object) -> None:
    """Render a template on shifted contents, then encode what it makes of the contents themselves."""
    talk = conversation(provider)
    if provider.ConsumeIntInRange(0, 3):
        source = Source(provider).block(3)
    else:
        source = provider.ConsumeUnicodeNoSurrogates(400)
    if any(is_shifted(character) for character in source):
        return
    with expected_errors():
        template = JinjaTemplate(source)
        shift = shifted(talk)
        with expected_errors():
            rendered = template.render(
                shift.messages, documents=shift.documents, special_tokens=TOKENS, add_generation_prompt=True
            )
            assert_no_content_is_trusted(rendered)
        check_ids(template, talk)
    with expected_errors():
        TOKENIZER.apply_chat_template(
            talk.messages,
            source,
            documents=talk.documents,
            return_assistant_mask=True,
            return_message_spans=True,
            return_dict=True,
        )


def check_ids(template: JinjaTemplate, talk: Conversation) -> None:
    """The special ids are those of the trusted text."""
    rendered = template.render(talk.messages, documents=talk.documents, special_tokens=TOKENS)
    ids = TOKENIZER.apply_chat_template(talk.messages, template.source, documents=talk.documents)
    special = set(TOKENIZER.special_tokens.values())
    found = [token for token in ids if token in special]
    # The text without its contents: a special token cannot be in two trusted parts.
    trusted = "".join(text if origin is None else "\x01" for text, origin in rendered.segments)
    allowed = [token for token in TOKENIZER.encode(trusted, allowed_special="all") if token in special]
    assert len(found) <= len(allowed) or found == allowed, (template.source, talk.messages, found, allowed)


fuzz(check)
