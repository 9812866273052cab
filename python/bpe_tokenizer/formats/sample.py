r"""Texts that tokenizers get wrong, for comparing a converted tokenizer with the original.

Scripts of every kind of letter, marks that combine, emoji, contractions in every case, runs of white space,
line ends, digits, punctuation, control characters, characters that normalisation changes, lone surrogates,
long words, and the texts of special tokens: whole, cut, doubled and within words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

__all__ = ["SAMPLE", "sample_texts"]

SAMPLE = (
    "",
    " ",
    "Hello, world! The quick brown fox jumps over the lazy dog.",
    "Grüße aus Köln, naïve café, Ærøskøbing, Łódź, İstanbul, ıssız, Straße STRASSE, ﬁne ﬂow",
    "Ελληνικά άλφα Ὀδυσσεύς; Привет, мир! Съешь ещё этих булок; Հայերեն; ქართული",
    "العربية مُحَمَّد ٣٤٥٦ עברית שָׁלוֹם فارسی‌نویسی اردو",
    "हिन्दी क्षत्रिय বাংলা தமிழ் తెలుగు ไทยไม่มีช่องว่าง ភាសាខ្មែរ မြန်မာ བོད་སྐད",
    "中文没有空格，标点也不同。日本語のテキスト、カタカナﾊﾝｶｸ 한국어 조합 \u1112\u1161\u11ab 繁體字 㐀 𠀀𪛖",
    "cafe\u0301 n\u0303 a\u0323\u0308 e\u20e3 \u0301alone \xc5 \u212b A\u030a \u2126 \u1e9b\u0323 \u1100",
    "🙂 👩\u200d👩\u200d👧\u200d👦 🇫🇷🇩🇪 👍🏽 ❤\ufe0f 1\ufe0f\u20e3 🏴\U000e0067\U000e0062\U000e007f ✓☃︎",
    "I'll don't it's we're they've I'm he'd she'S WE'LL 'tis rock'n'roll l'ami d'être ’s it’s O'Brien ''s 's",
    "IT'S DON'T 'S 'ſ 'K x'll'll 'RE're're 'veVE'd'D's't'm",
    "a  b   c    d     e\t\tf\t g \t h",
    "one\ntwo\n\nthree\n\n\nfour\r\nfive\r\n\r\nsix\rseven\x0beight\x0cnine\x85ten\u2028eleven\u2029twelve",
    "  leading and trailing  ",
    "\n\n  indented\n    more\n\t\ttabs\n \n  \n",
    "\u00a0no\u00a0break\u2003em\u2009thin\u3000ideographic\u200bzero\ufeffmark\u180e\u202f",
    "0 1 12 123 1234 12345 1234567890 3.14159 1,000,000 1e-10 0x1F 2024-01-31 ½ ² Ⅷ ١٢٣ १२३ ０１２ 𝟘𝟙",
    "...!!!???---___###@@@ (a) [b] {c} <d> \"e\" 'f' `g` a/b\\c x=y+z*2^3%4&5|6~7; «q» „r“ —–‐ …",
    "def f(x):\n    return {'a': x ** 2, \"b\": [1, 2]}  # comment\n\nif __name__ == '__main__':\n\tf(3)\n",
    "https://example.org/path?query=1&other=%20#fragment user@example.org #tag @name C:\\dir\\file.txt",
    '<html><body class="x">&amp; text</body></html> {"json": [null, true, 1.5e3]}',
    "camelCase PascalCase snake_case kebab-case SCREAMING_CASE iPhone McDonald ǅ ǆ ß ẞ ŉ ΰ ﬃ",
    "\x00\x01\x02\x07\x08\x0e\x1b[0m\x1c\x1d\x1e\x1f\x7f\x80\x9f\xad\u061c\u200e\u202e\u2066\ufffe\uffff\U0010ffff",
    "\x00zero\x00bytes\x00",
    "\ue000\U000f0000\U0001f9ff\U0001d54f\U00010348",
    "\ud800 \udfff a\ud83db \ud83d\ude00",
    "▁metaspace ▁▁two Ġ Ċ ĉ Ã© Ä Ł <0x0A> <unk>",
    "a" * 300,
    "ab" * 150 + "\n" * 40 + " " * 70 + "é" * 60 + "字" * 80 + "1" * 50 + "!" * 40,
    "thequickbrownfoxjumpsoverthelazydog" * 8,
)


def sample_texts(special_tokens: Iterable[str] = ()) -> list[str]:
    """Return the sample, and texts that hold special tokens.

    Args:
        special_tokens: The texts of special tokens; of more than 40, the first 30 and the last 10 are used.

    >>> texts = sample_texts(["<|end|>"])
    >>> "a<|end|>b" in texts, "<|end|" in texts
    (True, True)
    """
    return [*SAMPLE, *_single_characters(), *_with_special_tokens(list(special_tokens))]


def _single_characters() -> Iterator[str]:
    """Every character of Latin-1, and one of each block of the others, alone and between letters."""
    code_points = [*range(0x100), *range(0x100, 0x3000, 0x10), *range(0x3000, 0xD800, 0x80)]
    code_points += [*range(0xE000, 0x10000, 0x20), *range(0x10000, 0x20000, 0x100)]
    for code_point in code_points:
        yield chr(code_point)
    characters = list(map(chr, code_points))
    for joint in ("", " ", "a", "1 ", ".\n"):
        yield from (joint.join(characters[at : at + 200]) for at in range(0, len(characters), 200))


def _with_special_tokens(tokens: list[str]) -> Iterator[str]:
    chosen = tokens if len(tokens) <= 40 else [*tokens[:30], *tokens[-10:]]
    for token in chosen:
        yield from (token, f"a{token}b", f" {token} ", f"\n{token}\n\n", token + token, f"'s{token}'s")
        yield from (
            token[:-1],
            token[1:],
            token[:-1] + token,
            token.upper(),
            f"é\u0301{token}\u0301 1{token}1",
        )
    yield "".join(chosen)
    yield " text ".join(reversed(chosen))
