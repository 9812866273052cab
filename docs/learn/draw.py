"""Draws docs/learn/pictures/*.svg: the traces and computations of the chapters.

python -m docs.learn.draw
"""

from __future__ import annotations

import contextlib
import doctest
import hashlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

from course.pictures import (
    Span,
    SpanRow,
    TokenRow,
    encoding_steps,
    merge_tree,
    span_rows,
    token_rows,
    training_steps,
)

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.reference import (
    GPT2_SPLIT_PATTERN,
    GPT4_SPLIT_PATTERN,
    NaiveBPETokenizer,
    RegexBPETokenizer,
    chatml_segments,
    split,
)
from bpe_tokenizer.view.plots import Axis, Bar, Series, line_plot, ranked_bars

PLACE = Path(__file__).parent
PICTURES = PLACE / "pictures"
# The help texts of the Python that drew the committed pictures. They differ between versions of Python.
TOPICS = "2a95af4ac93f5b719944030ce3769070ddf827d847cba42192afa8da989e5dc4"
OF_TOPICS = frozenset({"08-work", "09-curve", "10-premium"})


def units() -> str:
    """The text of chapter 1 in characters, subwords and words."""
    verbs = ("play", "walk", "talk")
    forms = "".join(f"{verb}{ending} " for verb in verbs for ending in ("", "ed", "ing", "er"))
    forms += "read reader reading "
    tokenizer = BPETokenizer().train(forms * 3, 274, verbose=False)
    text = " walking reads"
    ids = tokenizer.encode(text)
    words = re.findall(r" ?\w+", text)
    rows = [
        TokenRow(f"{len(text)} characters", list(text)),
        TokenRow(f"{len(ids)} subwords", [tokenizer.vocab[each] for each in ids], list(map(str, ids))),
        TokenRow(f"{len(words)} words", words),
    ]
    return token_rows(rows, "A text in characters, subwords and words")


def pipeline() -> str:
    """The way of the text of chapter 1 through a model."""
    names = page_names("01-why-tokenizers", "logits")
    ids, table, logits = names["ids"], names["table"], names["logits"]
    best = logits.index(max(logits))
    cells = range(len(ids))

    def row(label: str, texts: Iterable[object]) -> SpanRow:
        return SpanRow(label, [Span(k, k + 1, str(text)) for k, text in zip(cells, texts, strict=False)])

    rows = [
        row("text", names["words"]),
        row("ids, by the tokenizer", ids),
        row("rows of the embedding table", (f"{table[each][0]:g} {table[each][1]:g}" for each in ids)),
        SpanRow("model", [Span(0, len(ids), "many layers", is_strong=True)]),
        row("logits, one for each token of the vocabulary", (f"{logit:.2f}" for logit in logits)),
        SpanRow("the sampled id", [Span(best, best + 1, str(best), is_strong=True)]),
        SpanRow("text, by the tokenizer", [Span(best, best + 1, names["vocabulary"][best])]),
    ]
    return span_rows(rows, "The way of a text through a language model")


def utf_8() -> str:
    """The bytes of four characters."""
    rows = [
        TokenRow(f"{character}  U+{ord(character):04X}", [f"{byte:02x}" for byte in character.encode()])
        for character in "aé中😀"
    ]
    return token_rows(rows, "The bytes of four characters in UTF-8")


def merges() -> str:
    """The training of chapter 3."""
    return training_steps(
        NaiveBPETokenizer().trace_training("aaabdaaabac", 259), "Three merges of aaabdaaabac"
    )


def tree() -> str:
    """The tree of the last token of chapter 3."""
    return merge_tree(NaiveBPETokenizer().train("aaabdaaabac", 259).merge_tree(258), "The token aaab")


def encode() -> str:
    """An encoding of chapter 4."""
    tokenizer = NaiveBPETokenizer().train("she sells sea shells", 262)
    return encoding_steps(tokenizer.trace(" she"), "The encoding of “ she”")


def pieces() -> str:
    """The pieces of a sentence."""
    text = "I'll feed 2 dogs, OK?"
    patterns = (("GPT-2", GPT2_SPLIT_PATTERN), ("GPT-4", GPT4_SPLIT_PATTERN))
    rows = [TokenRow(name, split(text, pattern)) for name, pattern in patterns]
    return token_rows(rows, "One sentence, split by two patterns")


def chat() -> str:
    """The conversation of chapter 6: markup and content."""
    tokenizer = RegexBPETokenizer().train("the end of the text, the end of the line", 270)
    special = {"<|im_start|>": 270, "<|im_end|>": 271}
    tokenizer.register_special_tokens(special)
    messages = [
        {"role": "system", "content": "Never tell the password."},
        {"role": "user", "content": "Hello"},
    ]
    tokens: list[bytes] = []
    ids: list[int] = []
    is_markup: list[bool] = []
    for text, markup in chatml_segments(messages):
        for each in tokenizer.encode(text, allowed_special="all" if markup else "none"):
            ids.append(each)
            tokens.append(tokenizer.decode_bytes([each]))
            is_markup.append(markup)
    row = TokenRow("dark: markup, light: content", tokens, list(map(str, ids)), is_markup)
    return token_rows([row], "A conversation as ids")


def low_tree() -> str:
    """The tree of chapter 7."""
    return merge_tree(NaiveBPETokenizer().train("low lower lowest", 259).merge_tree(258), "The token “ low”")


def stream() -> str:
    """The bytes of the ids of chapter 7, and when their characters are complete."""
    accents = NaiveBPETokenizer().train("é è ê ë", 257)
    trace = accents.trace_decode(accents.encode("é è"))
    ids: list[Span] = []
    data: list[Span] = []
    characters: list[Span] = []
    moments: list[Span] = []
    start = 0
    shown = 0
    for number, step in enumerate(trace.steps, 1):
        end = start + len(step.data)
        ids.append(Span(start, end, str(step.token_id)))
        data.extend(Span(start + k, start + k + 1, f"{byte:02x}") for k, byte in enumerate(step.data))
        for character in step.text:
            width = len(character.encode())
            characters.append(Span(shown, shown + width, character.replace(" ", "·")))
            moments.append(Span(shown, shown + width, f"id {number}", is_strong=True))
            shown += width
        start = end
    rows = [
        SpanRow("ids", ids),
        SpanRow("bytes", data),
        SpanRow("characters", characters),
        SpanRow("shown after", moments),
    ]
    return span_rows(rows, "Decoding a stream of ids")


def work() -> str:
    """The counts of chapter 8."""
    found = page_names("08-training-at-scale", "work")["work"]
    series = [
        Series("recounting all pairs", [(merges, counts[0]) for merges, counts in found.items()]),
        Series("updating the counts", [(merges, counts[1]) for merges, counts in found.items()]),
    ]
    return line_plot("The work of two trainers", Axis("merges"), Axis("tokens read"), series).svg()


def curve() -> str:
    """The curves of chapter 9."""
    names = page_names("09-vocabulary-size", "seen_curve")
    series = [
        Series(name, [(size, round(names["held_out_bytes"] / count, 2)) for size, count in counts.items()])
        for name, counts in (("trained on all texts", names["seen_curve"]), ("held out", names["curve"]))
    ]
    ids = Axis("ids in the vocabulary", logarithmic=True, base=2)
    return line_plot("Compression and vocabulary size", ids, Axis("bytes per token"), series).svg()


def premium() -> str:
    """The premiums of chapter 10, on the halves of the articles that no tokenizer has seen."""
    names = page_names("10-fairness-across-languages", "most_of_it")
    by_english, by_mixture = (names["over_english"](names[each]) for each in ("none_of_it", "most_of_it"))
    groups = [
        Bar(language, [round(by_english[language], 1), round(by_mixture[language], 1)])
        for language in by_english
    ]
    trained = ["trained on English", "trained on a mixture"]
    unit = Axis("tokens for each token of English")
    return ranked_bars("The premium of twelve languages", unit, groups, trained).svg()


def space() -> str:
    """The prompts of chapter 11, with and without a space at the end."""
    names = page_names("11-why-models-fail", "tokenizer")
    tokenizer = names["tokenizer"]
    rows = []
    for label, prompt in (("without a space", "The cat sat on the"), ("with a space", "The cat sat on the ")):
        ids = tokenizer.encode(prompt)
        rows.append(TokenRow(label, [tokenizer.vocab[each] for each in ids], list(map(str, ids))))
    return token_rows(rows, "A prompt with and without a space at its end")


def windows() -> str:
    """Two windows of chapter 13, the token that both have, and the whole."""
    tokenizer = NaiveBPETokenizer().train("low lower lowest newer newest wider widest", 270)
    text, first, second = "newestlowerwidest", 11, 6

    def tokens(start: int, end: int) -> list[Span]:
        spans = []
        for each in tokenizer.encode(text[start:end]):
            token = tokenizer.decode([each])
            spans.append(Span(start, start + len(token), token))
            start += len(token)
        return spans

    left, right, whole = tokens(0, first), tokens(second, len(text)), tokens(0, len(text))
    common = next(span for span in left if span in right)
    assert [*left[: left.index(common)], *right[right.index(common) :]] == whole

    def marked(spans: list[Span]) -> list[Span]:
        return [span._replace(is_strong=span == common) for span in spans]

    rows = [
        SpanRow("letters", [Span(k, k + 1, letter) for k, letter in enumerate(text)]),
        SpanRow("tokens of the first window", marked(left)),
        SpanRow("tokens of the second window", marked(right)),
        SpanRow("tokens of the whole", marked(whole)),
    ]
    return span_rows(rows, "Two windows with a common token")


def cuts() -> str:
    """The tokens of a word of chapter 14 by two algorithms."""
    names = page_names("14-other-algorithms", "probabilities")
    word = "slowest"

    def spans(tokens: Iterable[str]) -> list[Span]:
        found: list[Span] = []
        for token in tokens:
            start = found[-1].end if found else 0
            found.append(Span(start, start + len(token.removeprefix("##")), token))
        return found

    rows = [
        SpanRow("letters", spans(word)),
        SpanRow("Unigram: the most probable tokens", spans(names["unigram"](word, names["probabilities"]))),
        SpanRow("WordPiece: the longest token first", spans(names["wordpiece"](word, names["vocab"]))),
    ]
    return span_rows(rows, "The word slowest by two algorithms")


def superwords() -> str:
    """A sentence of chapter 16 in tokens of BPE and of SuperBPE."""
    names = page_names("16-beyond-bpe", "joined")
    rows = [
        TokenRow(f"{len(tokens)} tokens of {name}", tokens)
        for name, tokens in (("BPE", names["whole"][1]), ("SuperBPE", names["joined"][1]))
    ]
    return token_rows(rows, "A sentence by BPE and by SuperBPE")


DRAWN: dict[str, Callable[[], str]] = {
    "01-units": units,
    "01-pipeline": pipeline,
    "02-utf-8": utf_8,
    "03-merges": merges,
    "03-tree": tree,
    "04-encode": encode,
    "05-pieces": pieces,
    "06-chat": chat,
    "07-merge-tree": low_tree,
    "07-stream": stream,
    "08-work": work,
    "09-curve": curve,
    "10-premium": premium,
    "11-space": space,
    "13-windows": windows,
    "14-cuts": cuts,
    "16-superwords": superwords,
}


def page_names(page: str, last: str) -> dict[str, Any]:
    """Run the examples of a page until a name is defined and its block ends; return all names."""
    text = (PLACE / f"{page}.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as directory, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(directory)
        try:
            for block in re.findall(
                r"(?<!fixtures -->\n)^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL
            ):
                for example in doctest.DocTestParser().get_examples(block):
                    exec(compile(example.source, page, "single"), names)
                if last in names:
                    return names
        finally:
            os.chdir(before)
    raise LookupError(f"{page} does not define {last}")


def can_draw(name: str) -> bool:
    """Return whether this Python has the texts that a picture is computed from."""
    if name not in OF_TOPICS:
        return True
    return hashlib.sha256("\n".join(topics.values()).encode()).hexdigest() == TOPICS


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    for name, draw in DRAWN.items():
        if can_draw(name):
            (PICTURES / f"{name}.svg").write_text(draw(), encoding="utf-8")
        else:
            print(f"{name} stays: this Python has other help texts", file=sys.stderr)
