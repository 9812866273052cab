"""Whose each part of a result is, for each operation of a template; what cannot be followed says why."""

from __future__ import annotations

import pytest

from bpe_tokenizer.chat.jinja.template import JinjaTemplate
from bpe_tokenizer.chat.segment import Origin, Segment
from bpe_tokenizer.errors import ChatTemplateError
from jinja_rendering import USER, pieces, rendered


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ '<' ~ c ~ '>' }}", [("<", None), ("Hi<|x|>", "content"), (">", None)]),
        ("{{ '<%s>' % c }}", [("<", None), ("Hi<|x|>", "content"), (">", None)]),
        ("{{ '<{}>'.format(c) }}", [("<", None), ("Hi<|x|>", "content"), (">", None)]),
        ("{{ '<{!r}>'.format(c) }}", [("<", None), ("'Hi<|x|>'", "content"), (">", None)]),
        ("{{ ['<', c] | join('|') }}", [("<|", None), ("Hi<|x|>", "content")]),
        ("{{ ['<'] + [c] }}", [("['<', 'Hi<|x|>']", "content")]),
        ("{{ c | tojson }}!", [('"Hi<|x|>"', "content"), ("!", None)]),
        ("{{ c.split('<') | join('<') }}", [("Hi", "content"), ("<", None), ("|x|>", "content")]),
        ("{{ (c ~ '!') | upper | reverse }}", [("!", None), (">|X|<IH", "content")]),
        ("{{ c | length }}{{ loop }}", [("7", None)]),
        ("{{ c.encode() }}!", [("b'Hi<|x|>'", "content"), ("!", None)]),
        ("{{ c.encode()[:2].decode() }}", [("Hi", "content")]),
        ("{{ c | e ~ '!' }}", [("Hi&lt;|x|&gt;", "content"), ("!", None)]),
        ("{{ '<b>' | safe + c }}", [("<b>", None), ("Hi&lt;|x|&gt;", "content")]),
        ("{{ c + '[A]' + ('{}' | safe) }}", [("Hi&lt;|x|&gt;", "content"), ("[A]{}", None)]),
        ("{{ '[A]' + (c | tojson | safe) }}", [("[A]", None), ('"Hi<|x|>"', "content")]),
        ("{{ ('<' | safe + c + '>')[:3] | upper }}", [("<", None), ("HI", "content")]),
        ("{{ ('<' ~ c) | safe }}", [("<", None), ("Hi<|x|>", "content")]),
        ("{{ c | safe | list | first }}", [("H", "content")]),
        ("{{ 'x'.join([c | e + '']) }}", [("Hi&lt;|x|&gt;", "content")]),
        ("{{ 'a'.replace('a', c | e + '') }}", [("Hi&lt;|x|&gt;", "content")]),
        ("{{ 'a'.center(3, (c | e + '')[0]) }}", [("H", "content"), ("a", None), ("H", "content")]),
        ("{{ (c | e + '') | indent(1, true) }}", [(" ", None), ("Hi&lt;|x|&gt;", "content")]),
        ("{{ (c | e + '') | wordwrap }}", [("Hi&lt;|x|&gt;", "content")]),
        ("{% for h in c | e + '' %}{{ h }}{% endfor %}", [("Hi&lt;|x|&gt;", "content")]),
        ("{% block b %}<{{ messages[0].content }}{% endblock %}", [("<", None), ("Hi<|x|>", "content")]),
        ("{% block b %}{{ messages[0].content }}{% endblock %}{{ self.b() }}", [("Hi<|x|>" * 2, "content")]),
        ("{% for h in [[c]] recursive %}{{ h if h==c else loop(h) }}{% endfor %}", [("Hi<|x|>", "content")]),
        ("{{ (c | e + '<')[-4:] }}", [("&lt;", None)]),
        ("{{ [c] | string }}", [("['Hi<|x|>']", "content")]),
        ("{{ [c] | upper }}", [("['HI<|X|>']", "content")]),
        ("{{ [c] | center(13) }}", [(" ['Hi<|x|>'] ", "content")]),
        ("{{ {c: 1} }}", [("{'Hi<|x|>': 1}", "content")]),
        ("{{ dict(a=c) }}", [("{'a': 'Hi<|x|>'}", "content")]),
        ("{{ dict(a=c, b='<').b }}", [("<", None)]),
        ("{{ namespace(a=c, b='<').b }}", [("<", None)]),
        ("{{ (c ~ '!').translate({33: '?'}) }}", [("Hi<|x|>", "content"), ("?", None)]),
        ("{% generation %}{{ c }}{% endgeneration %}{{ c }}", [("Hi<|x|>" * 2, "content")]),
        ("{{ 'a'.replace('a', c) }}", [("Hi<|x|>", "content")]),
        ("{{ 'a'.center(3, c[0]) }}", [("H", "content"), ("a", None), ("H", "content")]),
        ("{{ 'a'.translate({97: c}) }}", [("Hi<|x|>", "content")]),
        ("{{ ''.join(c) }}", [("Hi<|x|>", "content")]),
        ("{{ 'x'.join({c: 1, '<': 2}) }}", [("Hi<|x|>", "content"), ("x<", None)]),
        ("{{ '%(a)s' | format(a=c) }}", [("Hi<|x|>", "content")]),
        ("{{ '{a[0]}'.format(a=[c]) }}", [("Hi<|x|>", "content")]),
        ("{{ '{:>9}'.format(c) }}", [("  Hi<|x|>", "content")]),
        ("{{ '%c' % c[0] }}", [("H", "content")]),
        ("{{ c.format(1) }}", [("Hi<|x|>", "content")]),
        ("{{ ('{}' ~ c).format('<|y|>') }}", [("<|y|>Hi<|x|>", "content")]),
        ("{{ c | urlencode }}", [("Hi%3C%7Cx%7C%3E", "content")]),
        ("{{ namespace(a=c) }}", [("<Namespace {'a': 'Hi<|x|>'}>", "messages")]),
        ("{% set n = namespace(a=c) %}{{ n.a }}", [("Hi<|x|>", "content")]),
        ("{{ joiner(c)() }}{{ cycler(c).next() }}", [("Hi<|x|>", "content")]),
        ("{{ lipsum(n=1, html=false, min=2, max=c | length) | length > 0 }}", [("True", None)]),
        ("{{ c is defined }}{{ c | attr('provenances') }}{{ c.runs }}{{ c['ends'] }}", [("True", None)]),
        ("{{ (c | e + '').provenance }}{{ c.__class__ is defined }}", [("False", None)]),
        ("{{ ('<b>' ~ c) | e }}", [("&lt;b&gt;", None), ("Hi&lt;|x|&gt;", "content")]),
        ("{{ ('<b>' ~ c) | escape }}", [("&lt;b&gt;", None), ("Hi&lt;|x|&gt;", "content")]),
        ("{{ ('<' ~ c) | e | forceescape }}", [("&amp;lt;", None), ("Hi&amp;lt;|x|&amp;gt;", "content")]),
        ("{{ '<%s>' | format(c) }}", [("<", None), ("Hi<|x|>", "content"), (">", None)]),
        ("{{ ('<\n' ~ c) | indent(2) }}", [("<\n  ", None), ("Hi<|x|>", "content")]),
        ("{{ ('-' ~ c) | replace('Hi', '+') }}", [("-+", None), ("<|x|>", "content")]),
        ("{{ ('<' ~ c) | string }}", [("<", None), ("Hi<|x|>", "content")]),
        ("{{ ('<a ' ~ c) | title }}", [("<A ", None), ("Hi<|x|>", "content")]),
        ("{{ ('<a ' ~ c) | truncate(5, true, '+', 0) }}", [("<a ", None), ("H", "content"), ("+", None)]),
        ("{{ ('<a ' ~ c[:4]) | wordwrap(4, wrapstring='+') }}", [
            ("<a+", None), ("Hi<|", "content"),
        ]),
        ("{{ (('<' ~ c) | safe | indent(1)) + '<' }}", [("<", None), ("Hi<|x|>", "content"), ("&lt;", None)]),
        ("{{ (c | indent(1)) + '<' }}", [("Hi<|x|>", "content"), ("<", None)]),
        ("{{ [c | e] }}", [("[Markup('Hi&lt;|x|&gt;')]", "content")]),
        ("{{ [(c | e).upper()] }}", [("[Markup('HI&LT;|X|&GT;')]", "content")]),
        ("{% for h in (c | e).upper() %}{{ h }}-{% endfor %}", [
            part for h in "HI&LT;|X|&GT;" for part in ((h, "content"), ("-", None))
        ]),
        ("{{ c.encode().hex(sep='-', bytes_per_sep=3) }}", [("48-693c7c-787c3e", "content")]),
        ("{{ '<' ~ (c is defined) ~ none ~ missing }}", [("<TrueNone", None)]),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("new_environment")
def test_provenance_of(source: str, expected: list[tuple[str, str | None]]) -> None:
    assert pieces("{% set c = messages[0].content %}" + source.replace("{{ loop }}", "")) == expected


def test_numbers_of_the_user_are_content() -> None:
    messages = [{"role": "user", "content": "x", "n": 7, "f": 0.5, "b": True, "none": None}]
    for source, text in (
        ("{{ m.n }}", "7"),
        ("{{ m.n + 1 }}", "8"),
        ("{{ 2 * m.n - 1 }}", "13"),
        ("{{ -m.n }}", "-7"),
        ("{{ m.n // 2 }}", "3"),
        ("{{ m.f ** 2 }}", "0.25"),
        ("{{ m.n | abs }}", "7"),
        ("{{ [m.n, 1] | sum }}", "8"),
        ("{{ (m.n ~ '') | int }}", "7"),
        ("{{ m.f | round(1) }}", "0.5"),
        ("{{ range(m.n)[6] }}", "6"),
        ("{{ '%03d' % m.n }}", "007"),
        ("{{ '{:.2f}'.format(m.f) }}", "0.50"),
        ("{{ m.n.real }}", "7"),
        ("{{ m.f.as_integer_ratio()[1] }}", "2"),
        ("{{ m.f.hex() }}", "0x1.0000000000000p-1"),
        ("{{ m.n | tojson }}", "7"),
        ("{{ 1234567 * m.n | filesizeformat | length }}", "8641969"),
    ):
        result = rendered("{% set m = messages[0] %}<" + source + ">", messages)
        assert [segment.trusted for segment in result.segments] in ([True, False, True], [True]), source
        assert result.text == f"<{text}>"
        if "length" not in source:
            assert result.segments[1] == Segment(text, result.segments[1].origin)
    # None, booleans and counts are not content.
    assert pieces("{{ messages[0].b }}{{ messages | length }}{{ 3 * 4 }}", messages) == [("True112", None)]


@pytest.mark.parametrize(
    ("use", "named"),
    [
        ("c.swapcase().encode().hex()", "the method encode() of a string"),
        ("(c | length ~ '').encode()", None),
        ("c.encode() * 2", "the operator *"),
        ("('%s' | safe) % c", "the operator %"),
        ("(c | e).upper()", "the function upper()"),
        ("lipsum(n=1, html=c)", "the function lipsum()"),
        ("strftime_now(c)", "the function strftime_now()"),
        ("'a'.translate({97: c})", "the method translate() of a string"),
        ("n + 1", None),
        ("'%s' is in [c]", None),
    ],
)
def test_the_report_names_the_operation(use: str, named: str | None) -> None:
    source = "{% set c, n = messages[0].content, messages[0].n %}{{ " + use + " }}"
    (reason,) = rendered(source, [{"role": "user", "content": "a", "n": 7}]).untracked or (None,)
    assert reason is None if named is None else named in (reason or "")


@pytest.mark.usefixtures("new_environment")
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{{ strftime_now('a' * 201) }}", "the format of strftime_now.. is too long"),
        ("{{ strftime_now('%101Y') }}", "the format of strftime_now.. is too long"),
        ("{{ strftime_now('a2000000000Y') }}", "the format of strftime_now.. is too long"),
        ("{{ dict.mro() }}", "no attribute 'mro'"),
        ("{{ [1] | batch(10 ** 8, 0) | list | length }}", "budget"),
        ("{{ messages[0].content.name.first }}", "line 1: 'str object' has no attribute 'name'$"),
        ("{{ messages[0].content - 1 }}", "unsupported operand type.s. for -: 'str' and 'int'$"),
        ("{{ ('{0}' | safe).format_map({}) }}", "line 1: IndexError: tuple index out of range$"),
    ],
)
def test_what_a_new_environment_refuses(source: str, message: str) -> None:
    with pytest.raises(ChatTemplateError, match=message):
        JinjaTemplate(source).render(USER)


def test_formats_of_the_time_up_to_a_length() -> None:
    text = "a100" + "b" * 196
    assert rendered("{{ strftime_now('" + text + "') }}").text == text


@pytest.mark.usefixtures("new_environment")
def test_what_cannot_be_followed_is_reported() -> None:
    result = rendered("<|a|>{{ messages[0].content | urlize }}{{ messages[0].content | urlize }}<|b|>")
    assert [segment.trusted for segment in result.segments] == [True, False, True]
    assert result.untracked == ("the filter 'urlize' was given content, so its result is untrusted",)
    assert rendered("{{ messages[0].content }}{{ 'x.org' | urlize }}").untracked == ()
    # What is only looked at is not reported.
    assert rendered("{% if messages[0].content | urlize %}x{% endif %}").untracked == ()


@pytest.mark.parametrize(
    ("source", "text", "reason"),
    [
        ("{{ (c | e).upper() }}", "HI&LT;|X|&GT;", "the function upper() was given content"),
        ("{{ (c | e) * 2 }}", "Hi&lt;|x|&gt;" * 2, "the operator * was given content"),
        ("{{ ('{}' | safe).format(c) }}", "Hi&lt;|x|&gt;", "the function format() was given content"),
        ("{{ ('%s' | safe) % c }}", "Hi&lt;|x|&gt;", "the operator % was given content"),
        ("{{ '%s' | safe | format(c) }}", "Hi&lt;|x|&gt;", "the filter 'format' was given content"),
        ("{{ '%(a)s' | safe | format(a=c) }}", "Hi&lt;|x|&gt;", "the filter 'format' was given content"),
        ("{{ c | e | truncate }}", "Hi&lt;|x|&gt;", "text escaped for HTML was joined to other text"),
        ("{{ c | e | urlize }}", "Hi&lt;|x|&gt;", "the filter 'urlize' was given content"),
        ("{{ ''.join([(c | e).upper()]) }}", "HI&LT;|X|&GT;", "the function upper() was given content"),
        (
            "{{ 'a'.replace('a', (c | e).upper()) }}",
            "HI&LT;|X|&GT;",
            "the function upper() was given content",
        ),
        ("{{ '' ~ (c | e).upper() }}", "HI&LT;|X|&GT;", "the function upper() was given content"),
    ],
)
def test_escaped_text_keeps_its_origin_and_the_reason(source: str, text: str, reason: str) -> None:
    result = rendered("{% set c = messages[1].content %}" + source, [*USER, *USER])
    assert result.segments == (Segment(text, Origin("messages", 1, "content")),)
    assert result.untracked == (f"{reason}, so it{'' if 'joined' in reason else 's result'} is untrusted",)


def test_origins_name_message_field_tool_document_and_variable() -> None:
    source = "{{ messages[1].content ~ messages[0].name ~ tools[1].n ~ documents[0].t ~ who }}"
    result = JinjaTemplate(source + "{{ messages | tojson }}").render(
        [{"role": "user", "content": "a", "name": "b"}, {"role": "user", "content": [{"type": "text"}]}],
        tools=[{}, {"n": "c"}],
        documents=[{"t": "d"}],
        variables={"who": "e"},
        add_generation_prompt=False,
    )
    messages = [Origin("messages", number, field) for number in (0, 1) for field in ("role", "content")]
    assert [segment.origin for segment in result.segments][:5] == [
        *(
            messages[3],
            Origin("messages", 0, "name"),
            Origin("tools", 1),
            Origin("documents", 0),
            Origin("who"),
        )
    ]
    found = {origin for _, origin in result.segments[5:]}
    assert found == {*messages, Origin("messages", 0, "name")}
