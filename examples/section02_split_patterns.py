"""§2: split patterns, which split a text into pieces. No token crosses the end of a piece."""

from __future__ import annotations

from bpe_tokenizer import (
    CL100K_SPLIT_PATTERN,
    GPT2_SPLIT_PATTERN,
    O200K_SPLIT_PATTERN,
    SPLIT_PATTERNS,
    BPETokenizer,
    PatternError,
)
from bpe_tokenizer.patterns import (
    NAMED_PATTERNS,
    NamedPattern,
    pattern_name,
    resolve_split_pattern,
    split_alike,
)
from shared import heading, library_files, refused, show

TEXT = "I can't say 12345 words!"


def main() -> None:
    """Split the same text with every named pattern, and with custom patterns."""
    heading(2, "Split patterns")
    named_patterns()
    exported_patterns()
    own_patterns()
    what_is_refused()


def pieces(split_pattern: str, text: str = TEXT) -> list[str]:
    """Return the pieces that a pattern cuts a text into.

    Trained on the text alone, until no pair is left, every piece becomes a token.
    """
    tokenizer = BPETokenizer(split_pattern, normalization=None)
    tokenizer.train(text, vocab_size=1000, min_frequency=1, verbose=False)
    return [tokenizer.decode(token_id) for token_id in tokenizer.encode(text)]


def named_patterns() -> None:
    """Show how each named pattern cuts a text."""
    ways: dict[str, list[str]] = {}
    for name, named in NAMED_PATTERNS.items():
        assert isinstance(named, NamedPattern)
        assert named.source
        assert resolve_split_pattern(name) == named.patterns
        assert pattern_name(named.patterns) == name
        assert split_alike(named.patterns, named.patterns)
        assert resolve_split_pattern(SPLIT_PATTERNS[name]) == named.patterns
        found = pieces(name)
        assert "".join(found) == TEXT
        ways.setdefault("|".join(found), []).append(name)
    show(f"{TEXT!r}, as {len(NAMED_PATTERNS)} named patterns cut it")
    for cut, names in ways.items():
        print(f"    {cut:<39} {', '.join(names)}")


def exported_patterns() -> None:
    """Train with the three patterns that are public constants."""
    for pattern in (GPT2_SPLIT_PATTERN, CL100K_SPLIT_PATTERN, O200K_SPLIT_PATTERN):
        tokenizer = BPETokenizer(pattern).train(library_files()[:40], 500, verbose=False)
        assert tokenizer.split_pattern == pattern
    assert BPETokenizer().split_pattern == CL100K_SPLIT_PATTERN
    assert pieces(GPT2_SPLIT_PATTERN) == pieces("gpt2")
    show("GPT-2's pattern", GPT2_SPLIT_PATTERN)


def own_patterns() -> None:
    """Split with other regular expressions; unmatched text becomes pieces too."""
    words = pieces(r"[a-z]+")
    assert words == ["I ", "can", "'", "t", " ", "say", " 12345 ", "words", "!"]
    whole = pieces(r"(?s).+")
    assert whole == [TEXT]
    look_around = pieces(r"(?<=\d)(?=\d)|[^\d]+|\d")
    assert "".join(look_around) == TEXT
    show("Lower-case words only, and nothing is lost", words)
    several = BPETokenizer([r"\d", r"\s+"], normalization=None).train(TEXT, 300, 1, verbose=False)
    assert several.split_pattern == (r"\d", r"\s+")
    show("Several patterns in sequence", several.split_pattern)


def what_is_refused() -> None:
    """Show the errors for wrong names and patterns."""
    with refused(PatternError, "An unknown name"):
        BPETokenizer("gpt-2")
    with refused(PatternError, "An invalid pattern"):
        BPETokenizer("(unclosed")


if __name__ == "__main__":
    main()
