"""What operations of templates charge the budget for, as tables.

The numbers of a use are the operations and the characters that it charges for each item of its operands,
which have N items: the growth between N = 500 and N = 2000. So a charge for the square is a large number.
"""

from __future__ import annotations

__all__ = ["CHARGES", "CHARGES_OF_FAILURES"]

# A macro that takes anything.
MACRO = "{% macro f() %}{% set a = varargs, kwargs %}{% endmacro %}"
# By what comes before the use in the template.
CHARGES: dict[str, str] = {
    "{% set s = 'a' * N %}": r"""
        s * 3                                                             0       6
        3 * s                                                             0       6
        s * -1                                                            0       0
        '%s' % s                                                          0    1.06
        '%s%s' % (s, s)                                                   0    2.12
        '%s' % [s]                                                        0    1.06
        '%(a)s' % {'a': s}                                                0    1.12
        '%(a)s%(a)s' % {'a': s}                                           0    2.12
        ('%(a)s' * 50) % {'a': [s]}                                       0    50.1
        '%(a)s%(b)s' % {'a': s, 'b': s}                                   0    2.25
        s.encode() * 2                                                    0       9
        'a%s'.encode() % s.encode()                                       0    6.06
        ('%%' * N) % ()                                                   1      16
        ('%%' * N).encode() % ()                                          1      26
        '%Nd' % 1                                                         0       1
        '%.Nf' % 1                                                        0       1
        '%*d' % (N, 1)                                                    0       1
        '%-*d' % (-N, 1)                                                  0       1
        '%.*f' % (N, 1)                                                   0       1
        '%*d%s' % (N, 1, 'a')                                             0       1
        '%*.*f' % (N, N, 1)                                               0       2
        '%(a)Nd' % {'a': 1}                                               0       1
        '%Nd'.encode() % 1                                                0       1
        s ~ s == 'a'                                                  0.001       2
        s ~ [s]                                                      0.000667    1.06
        s == s ~ ''                                                   0.003    1.38
        s in [s]                                                          0   0.125
        {s: 1}                                                            0  0.0625
        {1: s}[1] == s                                                    0   0.125
        {s: 1}.get(s)                                                     0   0.125
        s[1:]                                                             0       1
        s[::-1]                                                           0       1
        s[::2]                                                            0     0.5
        s.encode()[1:]                                                    0       7
        s < 'b'                                                           0       0
        s.encode() == s                                                   0    5.12
        '{}'.format(s)                                                    0    1.06
        '{}{}'.format(s, s)                                               0    2.12
        '{:N}'.format(1)                                                  0       1
        '{:>{w}}'.format(1, w=N)                                          0       1
        '{a}'.format_map({'a': s})                                        0    1.06
        ('{}' | safe).format(s)                                           0    61.1
        ('{:N}' | safe).format(1)                                         0    1.05
        ('{a:N}' | safe).format_map({'a': 1})                             0    1.05
        [('{:N}' | safe).format][0](1)                                    0    1.05
        s.upper()                                                         0       1
        s.isalpha()                                                       0       1
        s.partition('b')                                                  0       1
        s.find('b')                                                       0  0.0625
        s.count('b')                                                      0  0.0625
        s.encode().count(1)                                               0    5.06
        s.endswith('b')                                                   0  0.0625
        s.center(3 * N)                                                   0       4
        s.zfill(2 * N)                                                    0       3
        s.ljust(3 * N)                                                    0       4
        s.encode().center(3 * N)                                          0       9
        s.center(-N)                                                      0       1
        s.expandtabs()                                                    0       1
        '\t'.expandtabs(N)                                                0       1
        '\t'.expandtabs(tabsize=N)                                        0       1
        '\t'.encode().expandtabs(N)                                       0       1
        '\t'.expandtabs(-N)                                               0       0
        ('\t' * N).expandtabs()                                           0      11
        ('\t' * N).expandtabs(0)                                          0       3
        s.replace('a', 'bc')                                              0      33
        s.replace('a', 'bc', N // 2)                                      0      17
        s.replace('a', 'bc', 0)                                           0       1
        s.replace('a', 'bc', 1)                                           0       1
        s.replace('', 'bc')                                               0      33
        s.replace('b', s)                                                 0       1
        'a'.replace('a', s)                                               0       1
        s.encode().replace('a'.encode(), 'bc'.encode())                   0      38
        s.split('a')                                                      0      61
        s.split('a', N // 2)                                              0      31
        s.split('a', 0)                                                   0       1
        s.split('a', 1)                                                   0       1
        s.split('a', maxsplit=N // 2)                                     0      31
        s.split(sep='a')                                                  0      61
        s.split('a', -1)                                                  0      61
        s.split()                                                         0    4.76
        s.split('b')                                                      0       1
        s.encode().split('a'.encode())                                    0      66
        s.encode().split()                                                0    9.76
        s.split(maxsplit=0)                                               0       1
        s.rsplit('a')                                                     0    61.1
        s.rsplit('a', N // 2)                                             0    31.1
        s.rsplit(sep='a')                                                 0    61.1
        s.rsplit('a' * 40)                                                0    5.02
        s.rsplit(sep='a' * 40, maxsplit=1)                                0     3.5
        s.rfind('ab')                                                     0   0.188
        s.rfind('a' * 40)                                                 0    2.56
        s.rpartition('ab')                                                0    1.12
        'a'.rfind(s)                                                      0       0
        s.strip()                                                         0       1
        s.strip('ab' * 20)                                                0    2.25
        'a'.lstrip(s)                                                     0  0.0312
        s.startswith('b')                                                 0  0.0625
        s.startswith(s)                                                   0   0.125
        s.startswith((s, s))                                              0   0.188
        'a'.startswith(('b', ) * N)                                   0.625    2.06
        '-'.join(s)                                                    1.38       2
        s.join(['a', 'b'])                                                0       3
        s.join({'a': 1, 'b': 1})                                          0       3
        s.join(('a', 'b'))                                                0       3
        ''.join([s, s])                                                   0       2
        ''.encode().join([s.encode()])                                    0       6
        ''.encode().join({s.encode(): 1}.keys())                          0    6.06
        ''.encode().join({1: s.encode()}.values())                        0       6
        s.encode().join(['a'.encode()])                                   0       7
        s.splitlines()                                                    0       1
        ('X' * N).splitlines()                                            0       3
        s.encode().splitlines()                                           0      66
        s.translate({97: 'b'})                                            0       2
        s.translate({97: 'bcd'})                                          0       4
        s.translate({})                                                   0       2
        s.translate('abc')                                                0       2
        'a'.translate(s)                                                  0       1
        s.translate(['b', 'bcd'])                                         0       4
        s.encode().translate(none)                                        0       7
        s.maketrans(s, s)                                                 0     121
        s.maketrans({'a': 'b'})                                           0       1
        s.maketrans('a', 'b', s)                                          0      61
        s.encode()                                                        0       5
        s.encode('utf-16')                                                0       5
        s.encode('UTF_8')                                                 0       5
        s.encode('utf 8')                                                 0       5
        s.encode('punycode')                                              0    2500
        s.encode(encoding='punycode')                                     0    2500
        s.encode('ascii', 'backslashreplace')                             0     101
        s.encode('ascii', errors='backslashreplace')                      0     101
        s.encode('ascii', 'replace')                                      0       5
        s.encode().decode()                                               0      10
        s.encode().upper()                                                0       6
        (1).to_bytes(N, 'big')                                            0       1
        (1).to_bytes(length=N, byteorder='big')                           0       1
        (0).from_bytes(s.encode(), 'big') // 9                            0    65.1
        dict(a=s)                                                         0    60.1
        dict([[s, s]])                                                    0   0.125
        namespace(a=s)                                                    0       0
        cycler(s)                                                         0       0
        joiner(s)                                                         0       0
        dict.fromkeys([s])                                                0  0.0625
        dict.fromkeys(s)                                                  0    60.1
        lipsum(n=1, min=1, max=N)                                         2      10
        lipsum(1, false, 1, N)                                            2      10
        lipsum(N // 100)                                                  2      10
        lipsum(1)                                                         0       0
        s is lower                                                        0    0.25
        s is eq(s)                                                        0     0.5
        s is in [s]                                                       0   0.312
        s is string                                                       0       0
        s is iterable                                                     0       0
        s is sequence                                                     0       0
        s is defined                                                      0       0
        s is mapping                                                      0       0
        s | first                                                         0       0
        s | length                                                        0       0
        s | default('a')                                                  0       0
        s | attr('upper')                                                 0       0
        {'a': s} | items | list                                           0       0
        s | random                                                        0       0
        s | last                                                          0       0
        s | upper                                                         0    68.1
        s | lower                                                         0    68.1
        s | e                                                             0    68.1
        s | safe                                                          0    68.1
        s | string                                                        0    68.1
        s | urlencode                                                     0    68.1
        s | max                                                           0    68.1
        s | min                                                           0    68.1
        s | sort                                                          0    68.1
        s | unique | list                                                 0    68.1
        [s] | sort                                                        0    8.06
        {s: s} | dictsort                                                 0    16.2
        {'a': s} | xmlattr                                                0    8.06
        [[s, s]] | groupby(0)                                             0    16.1
        [s] | string                                                      0    9.12
        [s, s] | unique | list                                            0    16.1
        s | title                                                    0.0625    8.06
        s | wordcount                                                0.0625    8.06
        s | pprint                                                   0.0625    9.12
        [[s]] | pprint                                               0.0625    10.1
        [[[[s]]]] | pprint                                           0.0625    12.1
        s | list                                                          0      61
        s | reverse                                                       0      61
        s.encode() | list                                                 0       8
        s | batch(2) | list                                           0.625       3
        [1] | batch(N, 1) | list                                          0       2
        [1] | batch(N) | list                                             0       0
        s | slice(3) | list                                               0       1
        [1] | slice(N) | list                                          2.25      64
        s | center(3 * N)                                                 0    3.06
        '' | center(N)                                                    0       1
        [s] | center(3)                                                   0    1.12
        s | center                                                        0  0.0625
        '%Nd' | format(1)                                                 0       1
        '%s' | format(s)                                                  0    1.06
        '%(a)s' | format(a=s)                                             0    1.12
        ['%Nd'] | format(1)                                               0       1
        s | indent(3)                                                     0       3
        s | indent(N)                                                     0       4
        s | indent(s)                                                     0       4
        s | indent(-N)                                                    0       3
        s | indent                                                        0       3
        'a' | indent(width=N)                                             0       1
        s | wordwrap(9)                                               0.236     294
        s | wordwrap                                                  0.138    36.2
        s | wordwrap(N)                                               0.125       4
        s | wordwrap(9, wrapstring='abc' * 20)                        0.236     321
        s | wordwrap(9, false)                                        0.125     294
        'a' | wordwrap(9, wrapstring=s)                                   0       1
        '' | wordwrap(N)                                                  0       0
        (' ' * N) | wordwrap(9)                                       0.125    16.3
        s | int                                                           0    39.1
        5 | int                                                           0       0
        s | trim                                                          0       1
        s | trim('ab' * 20)                                               0    2.25
        [s] | trim                                                        0    2.12
        'a' | trim(s)                                                     0  0.0312
        s | replace('a', 'bc')                                            1      35
        s | replace('a', 'bc', N // 2)                                  0.5    18.5
        s | replace('a', 'bc', 0)                                         0       2
        [s] | replace('a', 'bc')                                          1    37.1
        'a' | replace('a', s)                                             0       2
        s | replace('b', s)                                               0       2
        s | replace(5, 6)                                                 0       2
        s | striptags                                                0.0625    17.8
        [s] | striptags                                              0.0625    17.8
        (s | safe).striptags() | length                                   0    78.8
        s | tojson                                                        0    2.06
        [s] | tojson                                                      0    2.06
        [[1]] | tojson(indent=N)                                          0       6
        [[[1]]] | tojson(indent=N)                                        0      12
        [[1]] | tojson(indent=s)                                          0       6
        1 | tojson(separators=(s, s))                                     0       2
        s | urlize                                                   0.0625    17.9
        s | urlize(target='x' * 40)                                  0.0625    37.9
        'a.com' | urlize(target=s)                                        0    4.56
        'a' | urlize(extra_schemes=['bc:'] * N)                       0.875    9.19
        'a' | urlize(9, rel=s)                                            0    2.56
        [s] | join                                                        0       1
        [s, s] | join(s)                                                  0       3
        s | map('upper') | list                                        4.75    73.1
        s | select | list                                              1.25       5
        s | capitalize                                                    0    68.1
        1 | filesizeformat                                                0       0
    """,
    "{% set s = [1] * N %}": r"""
        s * 3                                                          0.75       6
        s + s                                                         0.125       4
        s + [1]                                                      0.0625       2
        [1] + s                                                      0.0625       2
        s * -1                                                            0       0
        s[1:]                                                             0       2
        s[::2]                                                            0       1
        s.copy()                                                          0       2
        s.count(1)                                                   0.0625       0
        s.count(s)                                                      157       2
        s.index(2) if 2 in s else 1                                     0.5       2
        s.index(1)                                                   0.0625       0
        [s].index(s)                                                  0.562       2
        {1: s}.get(1)                                                     0       0
        {1: 1}.get(1, s)                                                0.5       2
        range(N).index(1)                                            0.0625       0
        range(N).count(1)                                            0.0625       0
        2 in s                                                          0.5       2
        s == s                                                            1       4
        s < s                                                             1       4
        s is eq(s)                                                        1       4
        s is in [s]                                                       1       4
        s is iterable                                                     0       0
        s is sameas(s)                                                    0       0
        s | list                                                       0.25       4
        s | sum                                                       0.625       2
        s | join                                                       1.25       3
        s | tojson                                                    0.875      12
        [s] | tojson                                                  0.875      12
        s | tojson(indent=3)                                          0.875      15
        {'a': s} | tojson(indent=3)                                   0.875      18
        s | tojson(indent='ab')                                       0.875      14
        s | string                                                     1.62      64
        s | sort                                                          1      62
        s | max                                                           1      62
        s | unique | list                                                 1      62
        s | tojson(separators=(', ', ': '))                           0.875      16
        [[s]] | pprint                                                 4.12       4
        {'a': {'b': s}} | pprint                                       4.12       4
        s | map('string') | list                                          5       6
        s | select | list                                               1.5       6
        s | batch(2) | list                                           0.875       4
        s | slice(2) | list                                            0.25       2
        s | reverse | list                                              1.5       8
        s | first                                                         0       0
        s | last                                                          0       0
        s | length                                                        0       0
        '%s' % s                                                      0.625       2
        '%(a)s' % {'a': s}                                             1.12      14
        ('%(a)s' * 50) % {'a': s}                                      1.12     504
        '%d' % (1, )                                                      0       0
        s ~ ''                                                        0.625       2
        '{}'.format(s)                                                0.625      12
        [s, s] | sum(start=[])                                         1.12       8
        s | sum(start=1)                                              0.625       2
        s | sum(start=1.5)                                            0.625       2
        dict(a=s)                                                       1.5      62
        cycler(*s)                                                        1       0
        cycler(s)                                                         0       0
        dict.fromkeys(s)                                                1.5      62
        dict.fromkeys([1], s)                                           1.5      62
        s | pprint                                                     2.12       4
        range(N) | list                                                0.25       4
        range(N) | sum                                                  0.5       0
        'a'.join(s | map('string'))                                    5.12       4
        'ab'.join(s | map('string'))                                   5.12       5
        ''.encode().join([''.encode()] * N)                           0.625       2
        ', '.join(['a'] * N)                                           1.62       5
        ''.encode().join(([''.encode()] * N) | select)                  0.5       4
        ', '.join((['a'] * N) | select)                                1.88       7
        {1: 1}.keys() - s                                             0.688       4
        {1: 1}.keys() - (s | map('int'))                               5.31       7
        {1: 1}.keys() - range(N)                                      0.562       2
        s | map('abs') | select | list                                 5.88       6
        dict([[1, 2]] * N)                                             4.75      68
        dict(([[1, 2]] * N) | select)                                     6      70
        dict.fromkeys(s | select)                                      2.75      64
        dict(dict.fromkeys(range(N)))                                   3.5     124
        namespace(**dict.fromkeys(range(N) | map('string')))           7.25    64.2
        dict(**dict.fromkeys(range(N) | map('string')))                9.25    64.2
        {}.get(1, [namespace(a=s)])                                     0.5       2
        {}.get(1, {1: s})                                               0.5       2
        dict.fromkeys(range(N)) | list                                 0.75      64
        {}.get(1, dict.fromkeys(range(N)))                              1.5      64
        dict.fromkeys(range(N)) | dictsort                              2.5     124
        {(1, ): 1}.get((s | length, ))                                    0       0
        {1: 1}[dict.fromkeys(s) | first]                                1.5      62
        s | replace('1', '2')                                          2.25      41
        s | center(3)                                                  1.12       4
        {}.get(1, [2 ** 61] * N)                                       0.75     316
        {}.get(1, [2 ** 61 - 1] * N)                                   0.75     316
        {}.get(1, [2 ** 61 - 2] * N)                                   0.75       4
        {}.get(1, [-2 ** 61] * N)                                      0.75     316
        {}.get(1, [range(N), range(N)])                                   1       0
        {}.get(1, [range(0, 2 ** 61 * N, 2 ** 61)] * 2)                   1    1250
        {}.get(1, [range(0, -2 ** 61 * N, -2 ** 61)])                   0.5     313
        {}.get(1, [range(2 ** 61, 2 ** 61 - N, -1)])                    0.5     313
        {}.get(1, [range(2 ** 61 - 1, 2 ** 61 - 1 - N, -1)])            0.5       313
        {}.get(1, [2 ** 61] * N + [range(2 ** 61, 2 ** 61 - N, -1)])   1.31    1260
        {}.get(1, [range(1)] * N)                                      1.25       4
        dict.fromkeys(range(0, 2 ** 61 * N, 2 ** 61))                   0.5     373
        {}.get(1, [{1: 1}.keys(), (1, ) * N, {1: 1}.items()])          0.75       4
        {}.get(1, [dict.fromkeys(range(N)).keys()])                       1      62
        {}.get(1, [dict.fromkeys(range(N)).items()])                      2      66
    """,
    "{% set s = 2 ** N %}": r"""
        s * s                                                             0   0.305
        s * 3                                                             0 0.000244
        s // 3                                                            0 0.000244
        s + 1                                                             0 0.000122
        s // s                                                            0   0.305
        s % 7                                                             0 0.000366
        s > 1                                                             0       0
        s | round(-3)                                                     0 0.00146
        s | round(-900)                                                   0   0.439
        s | round(900)                                                    0   0.439
        s | int                                                           0       0
        -s                                                                0       0
        s.bit_length()                                                    0       0
        s is odd                                                          0 0.000244
        s is divisibleby(7)                                               0 0.000366
        s is divisibleby(s)                                               0   0.305
    """,
    "{% set s = 'ab ' * N %}": r"""
        s.split()                                                         0    74.3
        s | wordwrap(9)                                               0.708      49
        s | title                                                     0.188    24.2
        s.split(' ')                                                      0      63
        s | urlize                                                    0.188     112
        s | urlize(target='x' * 40)                                   0.188     172
        s.encode().split()                                                0    89.3
        s.rsplit()                                                        0    74.3
        s.split(' ', 1)                                                   0       3
        s | wordcount                                                 0.188    24.2
    """,
    r"{% set s = 'a\n' * N %}": r"""
        s.splitlines()                                                    0      62
        s.encode().splitlines()                                           0     132
        s | indent(3)                                                     3      79
        s | indent('12')                                                  3      75
        s | wordwrap(9)                                                2.75    91.6
        s | wordwrap(1)                                                2.75     305
        s.split()                                                         0    69.5
        s.encode().split()                                                0    79.5
    """,
    r"{% set s = 'a\t\r' * N %}": r"""
        s.split()                                                         0     134
        s.encode().split()                                                0     149
        s.splitlines()                                                    0      63
    """,
    r"{% set s = 'a\u3000\xa0' * N %}": r"""
        s.split()                                                         0     134
        s.split('\xa0')                                                   0      63
        s | wordcount                                                 0.188    24.2
    """,
    "{% set s = (messages[0].content ~ 'x') * N %}": r"""
        s.upper()                                                       0.5       6
        s.title()                                                       0.5       6
        s.find('y')                                                     0.5   0.375
        s[::2]                                                          4.5     183
        s[1:]                                                             0       6
        s[::1]                                                            0       6
        s[::-1]                                                           9     366
        ('x' * N ~ messages[0].content)[::-1]                           1.5      64
        (messages[0].content * N)[::-1]                                   0      15
        (messages[0].content * N) | list                                  0     315
        s.split('x')                                                    0.5      66
        s | upper                                                         0     408
        s ~ s == 'a'                                                      0      12
        s + 'a' == 'a'                                                    0       6
        {'a': 1}[s]                                                       0   0.375
        {s: 1}                                                            0   0.375
        s % ()                                                            0       6
        s | e                                                             0     408
        s | replace('x', 'y')                                             1      43
        s.partition('x')                                                0.5       6
        s.encode().upper()                                              0.5      36
        s.translate({97: 'b'})                                          0.5      12
        s.format()                                                        0       0
    """,
    "{% set s = (messages[0].content * N).encode() %}": r"""
        s * 3                                                             0      30
        s.upper()                                                         0       5
        s.decode()                                                        0      25
        s + s                                                         0.625      20
        s == s                                                            0   0.625
        {}.get(1, [s])                                                    0   0.312
        s.center(9 * N)                                                   0      14
        s.split()                                                         0    23.8
        (messages[0].content ~ '%Nd').encode() % 5                        0       1
        s | list                                                       1.25      20
    """,
    MACRO + "{% set s, d = [1] * N, dict.fromkeys(range(N)|map('string')) %}": r"""
        f(*s)                                                             1       0
        f(**d)                                                            1       0
        f(s)                                                              0       0
        range(*[1, 2, 3])                                                 0       0
        f(*s, **d)                                                        2       0
        dict(**d)                                                         3       0
        {}.get(1, d)                                                      1    4.23
        namespace(**d)                                                    1       0
        'a'.format(*s)                                                 1.12       0
        'a'.format(**d)                                                1.12       0
    """,
    # A text that is joined when it is needed.
    "{% set n = namespace(s='a' * 600) %}{% for i in range(N) %}{% set n.s = n.s + 'a' %}{% endfor %}": r"""
        n.s == 'b'                                                      0.5       1
    """,
    "{% set n = namespace(s='a' * 600) %}{% for i in range(N) %}{% set n.s = 'a' + n.s %}{% endfor %}": r"""
        n.s == 'b'                                                      0.5       1
    """,
}

# Uses that fail, because the operand has a wrong type or the text is missing.
CHARGES_OF_FAILURES: dict[str, str] = {
    "{% set s = 'a' * N %}": r"""
        s | round(2, 'floor')                                             0     100
        s | round(0, 'floor')                                             0       1
        s * s                                                             0       2
        s | center(width='a')                                             0  0.0625
        s | upper(1)                                                      0    68.1
        s | sum(unknown=1)                                                0       1
        s.ljust(width=N)                                                  0       2
        s.ljust(1, 2)                                                     0       1
        5 | format(1)                                                     0       0
        s | filesizeformat                                           0.0625    8.06
        s.index('b')                                                      0  0.0625
        s.rindex('b' * 40)                                                0    2.56
        'a'.join(5)                                                       0       0
        s.replace(s.encode(), s)                                          0       6
        ''.encode().join(5)                                               0       0
    """,
    "{% set s = [1] * N %}": r"""
        s | round(2, 'floor')                                             0     100
        s | capitalize(s)                                              1.62      64
        s % 5                                                             0       0
        strftime_now(*s)                                                  1       0
        messages[0].content.encode().join([messages[0].content.encode() * N] | select)      0      15
        messages[0].content.encode() * N + 1                          0.312      20
        1[1:2:s]                                                          0       0
        5 | indent(N)                                                     0       1
        s is filter                                                     0.5       2
        s - [1]                                                       0.562       4
        s - s                                                          1.12       8
        (s ~ '') - 1                                                  0.812    11.2
        s | indent(3)                                                  0.25       2
        s | wordwrap(9)                                                0.25       2
        s | indent(s)                                                  0.25       2
    """,
}
