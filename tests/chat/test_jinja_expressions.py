"""For any expression of a template, the result is Jinja's, and trusted text holds no content.

Expressions are made up from every filter, method and operator. The templates write brackets that nobody else
writes, the messages letters that nobody else writes, so that a leak shows in the trusted text.
"""

from __future__ import annotations

import random
import re
from copy import deepcopy

import pytest

from bpe_tokenizer.chat.jinja.template import JinjaTemplate
from bpe_tokenizer.errors import ChatTemplateError
from chat.test_jinja_provenance import PLAIN
from sampling import sample

MESSAGES = [
    {"role": "user", "content": "zk <Qw>jy\n&q zz http://zk.org", "n": 987654, "f": 0.7531},
    {"role": "user", "content": ["zk", {"j": "q"}]},
]
ATOMS = """
    c; c; c; m; ms; n; f; [c, '⟦']; {'⟦': c}; {c: '·'}; '⟦·⟧'; c | e; '⟦' | safe; c ~ '·'; dict(a=c);
    none; true; (c, n)
""".split(";")  # noqa: SIM905
FILTERS = """
    upper lower title capitalize trim e safe string list first last reverse sort unique|list join
    join('·') join(c) replace('⟦',c) replace('z','·') tojson tojson(indent=1) tojson(sort_keys=true)
    urlencode urlize striptags xmlattr pprint wordwrap(3) wordwrap(4,wrapstring='·') indent(2)
    indent('·',true) truncate(5,true,'·') center(12) format(c) batch(2)|list slice(2)|list items|list
    dictsort map('upper')|list map('string')|join map('e')|join('·') select|list reject('none')|list int
    float abs round sum sum(start=[]) default('·') d(c) min max forceescape filesizeformat
    groupby(0)|list map('first')|list map('replace','z','·')|list
""".split()  # noqa: SIM905
METHODS = """
    .upper() .split() .strip() .join([c,'·']) .replace('·',c) .replace('z','·') .format(c)
    .format_map(m) .encode() .center(9,'·') .decode() .items() .keys() .values()|list .partition('k')
    .title() .zfill(9) .translate({122:'·'}) .translate({10214:c}) .splitlines() .casefold() [0] [1:]
    [::-1] ['content'] .get('content','·') .content .real .rsplit('k',1) .lstrip('z') .removeprefix('z')
    .expandtabs(2) .hex() .as_integer_ratio() .ljust(9,c[0]) .of .maketrans('z',c[0]) .swapcase()
    .unescape() .striptags() .copy() .rpartition('·') .provenance .ends .has_content ._provenance
""".split()  # noqa: SIM905
OPERATIONS = """
    (@ ~ $); (@ + $); (@ * 2); (2 * @); ('⟦%s⟧' % @); ('⟦%s%s⟧' % (@, $)); ('⟦%r' % @);
    '⟦{}⟧'.format(@); '{:>9}'.format(@); '{0!r}·'.format(@, $); [@, $]; (@, $); {'·': @};
    (@ if $ else '·'); (@ or $); (@ - 1); (-@); (@ // 2); (@ ** 2); (@ % $); '·'.join(@);
    '⟦z·'.replace('z', @); cycler(@, $).next(); joiner(@)() ~ 1; range(@ | int) | list;
    namespace(x=@).x; show(@); show(@, $); dict.fromkeys(@); dict(@); namespace(x=@); ('⟦' | safe + @);
    (@ in $); ('%c' % @); ('%(content)s' % @); lipsum(n=1, html=@) | length > 0
""".split(";")  # noqa: SIM905
BEFORE = (
    "{% macro show(t) %}⟦{{ t }}{{ varargs }}⟧{% endmacro %}{% set ms = messages %}{% set m = messages[0] %}"
    "{% set c = m.content %}{% set n = m.n %}{% set f = m.f %}"
)
STATEMENTS = [
    "{{ @ }}",
    "{% for x in @ %}{{ x }}·{% endfor %}",
    "{% set y = @ %}{{ y ~ '⟦' }}",
    "{% filter upper %}{{ @ }}{% endfilter %}",
    "{% set y %}{{ @ }}{% endset %}{{ y | string }}",
]
# What Python and Jinja print of values that hold no content.
WORDS = re.compile(
    r"markup|bytes?|s?etyb|<dict_\w+ object at \w+>|dict_(items|keys|values)|%[0-9A-F]{2}", re.IGNORECASE
)
# The letters of the messages, and the digits of their numbers.
CONTENT = re.compile(r"[zqwjy<>]|987|753", re.IGNORECASE)
# What Jinja computes of constants while it compiles, a sandbox computes while it renders, and refuses.
CONSTANT_SLICE = re.compile(r"\((none|true)\)\[")
UNLIKE = re.compile(r"\| e\b|safe|escape|pprint|at0x|boundmethod", re.IGNORECASE)


def expression(rng: random.Random, depth: int) -> str:
    if depth == 0:
        return f"({rng.choice(ATOMS).strip()})"
    inner, kind = expression(rng, depth - 1), rng.random()
    if kind < 0.4:
        return f"({inner} | {rng.choice(FILTERS)})"
    if kind < 0.65:
        return f"({inner}{rng.choice(METHODS)})"
    other = expression(rng, rng.randint(0, depth - 1))
    return "(" + rng.choice(OPERATIONS).strip().replace("@", inner).replace("$", other) + ")"


def check(seed: int) -> bool:
    """Check one expression; return whether it has a value."""
    rng = random.Random(seed)
    source = BEFORE + rng.choice(STATEMENTS).replace("@", expression(rng, rng.randint(1, 4)))
    try:
        # A copy, because Jinja's filter `indent` adds to a list.
        expected = PLAIN.from_string(source).render(messages=deepcopy(MESSAGES), tools=None, documents=None)
    except Exception:
        # Escaped text and tainted text have different methods.
        if not UNLIKE.search(source):
            with pytest.raises(ChatTemplateError):
                JinjaTemplate(source).render(MESSAGES)
        return False
    try:
        rendered = JinjaTemplate(source).render(MESSAGES)
    except ChatTemplateError:
        assert UNLIKE.search(source) or CONSTANT_SLICE.search(source), source
        return False
    # Objects print their address and methods their class; in a list, escaped text prints as such.
    if not UNLIKE.search(source + re.sub(r"\W", "", expected)):
        assert rendered.text == expected, source
    for segment in rendered.segments:
        if segment.trusted:
            assert not CONTENT.search(WORDS.sub("", segment.text.replace("·", ""))), (source, segment)
    return True


@pytest.mark.sampled(1.0)
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_no_expression_lets_content_be_trusted() -> None:
    seeds = sample(range(1_500), 0.25, __name__)
    assert sum(map(check, seeds)) > len(seeds) * 4 // 15


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_none_of_many_expressions_lets_content_be_trusted() -> None:
    assert sum(map(check, range(1_500, 6_000))) > 1_300
