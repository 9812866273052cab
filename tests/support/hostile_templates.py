"""Templates that would take all time or all memory, one a line."""

# Each line is a template, however long.
# ruff: noqa: E501
from __future__ import annotations

__all__ = ["HOSTILE_TEMPLATES"]

# A template, and what stands in it at the place of `@`.
FAMILIES = {
    "{% for a in range(99999) %}{{ range(99999)|@ }}{% endfor %}": r"""
    sum; list|length; select('odd')|list|length; map('string')|join|length
    """,
    "{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = @ %}{% endfor %}{{ ns.x|length }}": r"""
    ns.x ~ ns.x; [ns.x, ns.x]|join; '%s%s' % (ns.x, ns.x); '{0}{0}'.format(ns.x); ns.x.replace('a', ns.x)
    """,
    "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ @ }}": r"""
    ns.x; ns.x|tojson; ns.x|string|length; '%s' % ns.x; '{}'.format(ns.x); ns.x ~ 'a'; ns.x|pprint
    """,
    "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ @ }}": r"""
    ns.x == ns.y; ns.x in [ns.y]; ns.x is eq(ns.y); [ns.x, ns.y]|sort; [ns.x].index(ns.y); [ns.x, ns.y]|max
    """,
    "{% set ns = namespace(x=(1,)) %}{% for i in range(99) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}{{ @ }}": r"""
    {ns.x: 1}|length; {1: 1}[ns.x]; {1: 1}.get(ns.x); [ns.x]|unique|list; ns.x in {1:2}; dict([(ns.x, 1)]);
    [[ns.x,1]]|groupby(0)|list; [{'a':ns.x}]|map(attribute='a')|unique|list; {1: 1}.keys() - [ns.x];
    ns.x is filter
    """,
    "{% set ns = namespace(x=[1]) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ @ }}": r"""
    ns.x; ns.x|tojson
    """,
    "{% for i in range(99999) %}{% set a = @ %}{% endfor %}": r"""
    range(99999)|unique|list; range(99999)|batch(2)|list; range(99999)|groupby('x')|list;
    dict.fromkeys(range(99999)); dict.fromkeys(range(99999))|dictsort; (range(99999)|list)[::-1];
    (range(99999)|list).copy()
    """,
    "{% set s = 'a'*10**7 %}{% for i in range(99999) %}@{% endfor %}": r"""
    {% set a = s[1:] %}; {% set a = s|upper %}; {% if 'b' in s %}{% endif %}; {{ s.count('b') }};
    {{ s.isalpha() }}; {{ s is lower }}; {{ s }}; {{ s|wordcount }}; {{ s|list|length }}
    """,
    "{% set s = messages[0].content.encode() * 10**5 %}{% for i in range(99999) %}{% set t = @ %}{% endfor %}": r"""
    s ~ ''; s | string; '%s' % s; '{}'.format(s)
    """,
    "{% set s = 'a'*10**6 %}{{ s.@('ab' + 'a'*5*10**5) }}": r"""
    rfind; rindex; rsplit; rpartition
    """,
}
HOSTILE_TEMPLATES = tuple(
    template.replace("@", use.strip()) for template, uses in FAMILIES.items() for use in uses.split(";")
) + tuple(
    r"""
{{ 'a' * 10**9 }}
{{ 10**9 * 'a' }}
{{ [1] * 10**9 }}
{{ (1,) * 10**9 }}
{{ ('a'*10**6) * 10**6 }}
{{ lipsum(n=10**6) }}
{{ lipsum(n=1, max=10**9, min=10**8) }}
{{ lipsum(10**6, false, 1, 5) }}
{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}
{% for a in range(99999) %}{% for b in range(99999) if false %}{% endfor %}{% endfor %}
{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}
{% for a in range(99999) %}{{ 100000 in range(99999)|list }}{% endfor %}
{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}
{% set ns = namespace(x='ab') %}{% for i in range(28) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x|upper|length }}
{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x %}{{ ns.x }}{{ ns.x }}{% endset %}{% endfor %}{{ ns.x|length }}
{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x|length }}
{% set ns = namespace(x=(1,)) %}{% for i in range(99999) %}{% for j in range(20) %}{% set ns.x = (ns.x,) %}{% endfor %}{% endfor %}{{ {ns.x: 1}|length }}
{% set ns = namespace(x=(1,)) %}{% for i in range(99999) %}{% set ns.x = (ns.x,) %}{% endfor %}{{ [ns.x]|unique|list|length }}
{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}
{% set ns = namespace() %}{% set ns.a = [ns,ns] %}{{ ns }}
{% set ns = namespace(x=3) %}{% for i in range(99) %}{% set ns.x = ns.x * ns.x %}{% endfor %}{{ ns.x > 1 }}
{% set ns = namespace(x=3) %}{% for i in range(99) %}{% set ns.x = ns.x ** 5 %}{% endfor %}{{ ns.x > 1 }}
{% set a = ('f'*10**7)|int(base=16) %}{% for i in range(9999) %}{% set b = a // 7 %}{% endfor %}
{% set a = ('f'*10**7)|int(0, 16) %}{{ a }}
{% set a = ('9'*10**7)|int %}{{ a }}
{{ (1).from_bytes(('f'*10**6).encode(), 'big') // 3 }}
{{ (1).to_bytes(10**9, 'big')|length }}
{{ 5|round(-10**9) }}
{{ 5|round(-(10**7)) }}
{{ 5|round(10**9, 'ceil') }}
{{ 1.5|round(10**8, 'floor') }}
{{ 'a'|center(10**9) }}
{{ 'a'|center(width=1000000000) }}
{{ 'a'.center(1000000000)|length }}
{{ 'a'.ljust(1000000000)|length }}
{{ 'a'.rjust(1000000000)|length }}
{{ 'a'.zfill(1000000000)|length }}
{{ messages[0].content.zfill(1000000000)|length }}
{{ 'a\t'.expandtabs(1000000000)|length }}
{{ 'a\t'.expandtabs(tabsize=1000000000)|length }}
{{ 'a'.encode().center(1000000000)|length }}
{{ ('a'*10**6).encode('utf-32')|length }}{{ ('ä'*10**6).encode('punycode')|length }}
{{ ('a.'*10**6).encode('idna')|length }}
{{ messages[0].content.encode().center(1000000000)|length }}
{{ 'a\nb'|indent(1000000000) }}
{{ ('a\n'*10**6)|indent('x'*10**6) }}
{{ '%1000000000d'|format(5) }}
{{ '%1000000000d' % 5 }}
{{ '%*d' % (1000000000, 5) }}
{{ '%-*d' % (-1000000000, 5) }}
{{ '%.*f' % (1000000000, 5) }}
{{ '%.1000000000f' % 1.0 }}
{{ '%.1000000000d' % 1 }}
{{ '%(a)1000000000d' % {'a': 1} }}
{{ '%(a)1000000000s' % {'a': messages[0].content} }}
{{ ('%(a)s'*10**5) % {'a': 'x'*10**6} }}
{{ ('%(a)s'*10**5) % {'a': range(9999)|list} }}
{{ ('{0}'*10**5).format('x'*10**6) }}
{{ ('{0!r}'*10**5).format('x'*10**6) }}
{{ ('{0}'*10**5).format(range(9999)|list) }}
{{ '{:1000000000}'.format(1) }}
{{ '{:{}}'.format(1, 1000000000) }}
{{ '{:{w}}'.format('a', w=1000000000) }}
{{ '{0:>1000000000}'.format(messages[0].content) }}
{{ '{:.1000000000f}'.format(1.0) }}
{{ '{a:1000000000}'.format_map({'a':1}) }}
{{ ('{:1000000000}'|safe).format(1) }}
{{ ('{:1000000000}'|e).format(1)|length }}
{{ ('%1000000000d'|safe) % 1 }}
{{ ('a'|safe) * 1000000000 }}
{{ ('a'|safe).center(1000000000)|length }}
{{ ('a'|e).ljust(1000000000)|length }}
{{ ('a'|safe).join(['b']*10**7)|length }}
{{ ('x'*10**6).join(['a']*10**5)|length }}
{{ (['a']*10**5)|length }}{{ (['a']*10**5)|join('x'*10**6)|length }}
{{ ('a'*10**6)|replace('a', 'x'*10**6) }}
{{ ('a'*10**6).replace('a', 'x'*10**6) }}
{{ ('a'*10**6)|replace('', 'x'*10**6) }}
{{ ('a'*10**6).replace('', 'x'*10**6) }}
{{ ('a'*10**6).encode().replace('a'.encode(), ('x'*10**6).encode())|length }}
{{ ('a'*10**6).translate({97: 'x'*10**6})|length }}
{{ messages[0].content.translate({104: 'x'*10**9})|length }}
{{ [1]|batch(1000000000, 'x')|list|length }}
{{ [1]|batch(linecount=1000000000, fill_with='x')|list|length }}
{{ [1]|slice(1000000000)|list|length }}
{{ [1]|slice(slices=1000000000)|list|length }}
{{ ('a '*10**6)|wordwrap(1, wrapstring='x'*10**6) }}
{{ ('a'*10**7)|wordwrap(1)|length }}
{{ [1,2,[3,[4]]]|tojson(indent=1000000000) }}
{{ {'a':1}|tojson(separators=('x'*10**9,'b')) }}
{{ ([[1]]*10**4)|sum(start=[])|length }}{% for i in range(9999) %}{% set a = ([[1]]*10**4)|sum(start=[]) %}{% endfor %}
{{ ('('*10**6 ~ ')'*10**6)|urlize|length }}
{{ ('www.a.com'~'('*10**5 ~ ')'*10**5)|urlize|length }}
{{ ('a@'*10**5)|urlize|length }}
{{ ('<!-- -->'*10**6)|striptags|length }}
{{ (range(99999)|list)|sort|list|length }}{% for i in range(99999) %}{% set a = range(99999)|sort %}{% endfor %}
{% set s = 'a'*10**7 %}{% set t = 'a'*10**7 %}{% for i in range(99999) %}{% if s == t %}{% endif %}{% endfor %}
{% set s = 'a '*10**7 %}{{ s.split()|length }}
{% set s = 'a '*10**7 %}{{ s.split(' ')|length }}
{% set s = 'a\n'*10**7 %}{{ s.splitlines()|length }}
{% set ns = namespace(l=[]) %}{% for i in range(99999) %}{% for j in range(100) %}{% set ns.l = ns.l + ['x'*1000] %}{% endfor %}{% endfor %}
{% set ns = namespace(l=()) %}{% for i in range(99999) %}{% for j in range(100) %}{% set ns.l = (ns.l, range(99999)|list) %}{% endfor %}{% endfor %}
{% macro f(n) %}{{ f(n) }}{{ f(n) }}{% endmacro %}{{ f(1) }}
{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(50) }}
{% macro f(n) %}{% if n %}{% call g(n) %}{{ f(n-1) }}{% endcall %}{% endif %}{% endmacro %}{% macro g(n) %}{{ caller() }}{{ caller() }}{% endmacro %}{{ f(50) }}
{% for x in [[1,[2]]] recursive %}{{ loop([x,x]) }}{% endfor %}
{% set ns = namespace(n=0) %}{% for x in [1,2] recursive %}{% if loop.depth < 50 %}{{ loop([1,2]) }}{% endif %}{% endfor %}
{% block a %}{{ self.a() }}{% endblock %}
{% block a %}{{ self.b() }}{{ self.b() }}{% endblock %}{% block b %}{{ self.c() }}{{ self.c() }}{% endblock %}{% block c %}{{ self.a() }}{% endblock %}
{% include 'x' %}
{% import 'x' as y %}
{% extends 'x' %}
{% from 'x' import y %}
{% include messages %}
{{ strftime_now('%1000000000Y')|length }}
{{ strftime_now('%Y'*10**6)|length }}
{{ raise_exception('x'*10**9) }}
{{ cycler(*range(99999)) }}{% for i in range(99999) %}{% set c = cycler(*range(99999)) %}{% endfor %}
{% for i in range(99999) %}{{ namespace(**dict.fromkeys(['a'])) }}{{ dict(range(99999)|batch(2)) }}{% endfor %}
{% for i in range(99999) %}{{ '%s' % range(99999)|list|string }}{% endfor %}
{% for a in range(99999) %}{% set x = 'a'|lower|upper|lower|upper %}{% endfor %}{% for a in range(99999) %}{% for b in range(99) %}{% set x = 'a'|lower|upper|lower|upper %}{% endfor %}{% endfor %}
{{ (range(99999)|list|string)*1000 }}
{% set s = messages[0].content * 10**6 %}{{ (s ~ 'x' ~ s)[::-1]|length }}
{{ ('a' ~ messages[0].content)|center(1000000000) }}
{{ ('a,'*10**6).split(',')|map('upper')|join|length }}{{ messages|map('tojson')|join * 10**9 }}
{{ 2**(10**9) }}
{{ lipsum(n=-10**9) }}{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}
{{ 'a'.center(-10**12) }}{{ 'a'|center(-10**12) }}{{ [1]|slice(-10**12)|list }}{{ 'a' * 10**9 }}
{{ 'a'|indent(-10**12) }}{{ [[1]]|tojson(indent=-10**12) }}{{ [1]|batch(-10**12, 1) }}{{ 'a' * 10**9 }}
{{ '%1000000000d' is odd }}
{{ '%1000000000d' is even }}
{{ '%1000000000d' is divisibleby(5) }}
{{ ('%1000000000d'.encode()) % 5 }}
{{ (messages[0].content ~ '%1000000000d').encode() % 5 }}
{{ 'a'|round(9, 'floor') }}
{{ [1]|round(9, 'ceil') }}
{{ 5|indent(10**9) }}
{{ ['%1000000000d']|format(5) }}
{{ ['a'*10**7]|replace('a', 'x'*10**7) }}
{{ ('1'*10**7)|replace(1, 2)|replace(2, ['x'*10**6]) }}
{{ (''|safe).join(['a'*10**6] * 10**4)|length }}
{{ (''|safe).join((['a'*10**6] * 10**4)|select)|length }}
{{ ''.join(['a'*10**6] * 10**4)|length }}
{{ ''.encode().join(['a'.encode()*10**6] * 10**4)|length }}
{{ ''.encode().join((['a'.encode()*10**6] * 10**4)|select)|length }}
{{ ''.encode().join(dict.fromkeys(range(10**3), ('a'*700000).encode()).values())|length }}
{{ ('ä'*8*10**6).encode('ascii', 'namereplace')|length }}
{{ (('<!-- -->'*10**6)|safe).striptags() }}
{{ ('a.com '*10**4)|urlize(target='x'*10**6) }}
{{ ('a '*25000)|urlize(extra_schemes=['b:']*10**6) }}
{% set s = 'a'*10**6 %}{{ s.rsplit(sep='ab' + 'a'*5*10**5) }}
{% set s = 'a'*10**6 %}{{ s.encode().rfind(('ab' + 'a'*5*10**5).encode()) }}
{% set s = 'a'*10**7 %}{{ s.strip('b'*10**6 + 'a') }}
{% set s = 'a'*10**7 %}{{ s.rstrip('b'*10**6 + 'a') }}
{% set s = 'a'*10**7 %}{{ s|trim('b'*10**6 + 'a') }}
{% set s = 'a'*10**6 %}{{ s.startswith(('a'*10**5 + 'b' + 'a'*10**5,) * 10**6) }}
{% set s = (messages[0].content[0] ~ 'x') * 4*10**5 %}{% for i in range(50) %}{% set t = s.title() %}{% endfor %}
{{ dict.fromkeys(range(0, (2**61-1) * 99999, 2**61-1))|length }}
{{ range(0, (2**61-1) * 99999, 2**61-1)|unique|list|length }}
{{ dict(range(0, (2**61-1) * 99999, 2**61-1)|batch(2))|length }}
{{ ({1: 1}.keys() - range(0, (2**61-1) * 99999, 2**61-1))|length }}
{{ ({1: 1}.keys() - range(0, (2**61-1) * 99999, 2**61-1)|map('int'))|length }}
{% set a = 3**60000 %}{% set b = 3**30000 %}{% for i in range(9999) %}{% set c = a // b %}{% endfor %}
{% set a = 3**60000 %}{% set b = 3**30000 %}{% for i in range(9999) %}{% set c = a is divisibleby(b) %}{% endfor %}
{% set a = 3**60000 %}{% for i in range(99999) %}{% set c = a|round(-900) %}{% endfor %}
{% set ns = namespace(x=[1]*3000) %}{% for i in range(150) %}{% set ns.x = [ns.x] %}{% endfor %}{% for i in range(100) %}{% set c = ns.x|pprint %}{% endfor %}
{% for i in range(999) %}{{ range(99999)|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|select|list|length }}{% endfor %}
{% set s = (['a' * 10**7] * 60) ~ '' %}
{{ (['a' * 10**7] * 60) }}
{% set s = (['a'.encode() * 10**6] * 2000) | string %}
{% set s = (['a'.encode() * 10**6] * 2000) ~ '' %}
{% set s = '%s' % (['a'.encode() * 10**6] * 2000) %}
{% set s = '{}'.format(['a'.encode() * 10**6] * 2000) %}
{% set s = ['a'.encode() * 10**6] * 5 %}{% for i in range(99999) %}{% set t = s | string %}{% endfor %}
{% set s = 'a'.encode() * 10**6 %}{% for i in range(99999) %}{% set t = s ~ '' %}{% endfor %}
{% set s = ['a'.encode() * 10**6] %}{% set t = ['a'.encode() * 10**6] %}{% for i in range(99999) %}{% set a = s == t %}{% endfor %}
{% set s = messages[0].content.encode() * 10**5 %}{% set t = messages[0].content.encode() * 10**5 %}{% for i in range(99999) %}{% set a = s == t %}{% endfor %}
""".strip().split("\n")
)
