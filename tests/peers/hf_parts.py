"""Small tokenizer.json files, each with one feature of the format."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from hf_files import byte_level, bytes_vocab, split, template, tokenizer_json
from peers.hf_kinds import (
    FALLBACK,
    FUSE,
    LLAMA_NORMALIZER,
    NO_REGEX,
    NORMALIZED,
    PATTERNS,
    PLAIN,
    STRIP_ONE,
    TO_META,
    TO_SPACE,
    Document,
    added,
    digits,
    metaspace,
    of_characters,
    steps,
)
from peers.hf_vocabularies import SPACE, Vocab, characters, trained, with_first, without

# What an encoding of `tokenizers` says of each id, and the number of its texts.
COLUMNS = [
    *("ids", "type_ids", "tokens", "offsets", "attention_mask", "special_tokens_mask", "word_ids"),
    *("sequence_ids", "n_sequences"),
]

Build: TypeAlias = Callable[[], Document]


def replace(pattern: str, content: str, kind: str = "String") -> Any:
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


def prepend(text: str) -> Any:
    return {"type": "Prepend", "prepend": text}


def strip(left: bool, right: bool) -> Any:
    return {"type": "Strip", "strip_left": left, "strip_right": right}


LOWERCASE, ACCENTS, NFD = {"type": "Lowercase"}, {"type": "StripAccents"}, {"type": "NFD"}

NORMALIZERS: dict[str, Any] = {
    **{form: {"type": form} for form in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt")},
    **{
        f"strip{' left' * left}{' right' * right}": strip(left, right)
        for left, right in itertools.product((False, True), repeat=2)
    },
    "prepend": prepend(SPACE),
    "prepend several": prepend("ab \u0301"),
    "replace": TO_META,
    "replace by more": replace("a", "bcd"),
    "replace by nothing": replace("e", ""),
    "replace several": replace("th", "é"),
    "replace marks": replace(".*", "$0\\1"),
    "replace spaces": replace(r"\s+", " ", "Regex"),
    "replace runs": replace(r" {2,}|\n(?=\n)", "_", "Regex"),
    "replace all but one": replace(r"[^A]", "", "Regex"),
    "replace letters": replace(r"\p{Lu}", "x", "Regex"),
    "llama": LLAMA_NORMALIZER,
    "llama the other way": steps("n", TO_META, prepend(SPACE)),
    "accents": steps("n", NFD, ACCENTS, LOWERCASE),
    "compatibility": steps(
        "n", LOWERCASE, {"type": "NFKC"}, replace(r"\s+", " ", "Regex"), strip(True, True)
    ),
    "strip and prepend": steps("n", strip(True, False), prepend(SPACE), TO_META),
    "remove and prepend": steps("n", replace(r"[A-Z]", "", "Regex"), prepend("_")),
    "nested": steps("n", steps("n", NFD, steps("n")), steps("n", ACCENTS)),
    "empty": steps("n"),
}

BEHAVIORS = ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")
SPLIT_PATTERNS = (
    (" ", "String"),
    ("ll", "String"),
    (r"\s+", "Regex"),
    (r"\p{L}+", "Regex"),
    (r"[aeiou]|\p{N}{2}", "Regex"),
    (r"\s+(?!\S)|e(?=r)|\Aa|.$", "Regex"),
    (r"(?=(\d{3})+(?!\d))", "Regex"),  # SuperBPE: digits in groups from the right
)
WORDS = {"type": "Whitespace"}
SPACES = {"type": "WhitespaceSplit"}

PRE_TOKENIZERS: dict[str, Any] = {
    **{
        f"{behavior} {pattern!r}{' inverted' * invert}": split(pattern, kind, behavior, invert)
        for behavior, invert, (pattern, kind) in itertools.product(BEHAVIORS, (False, True), SPLIT_PATTERNS)
    },
    "digits": digits(False),
    "each digit": digits(True),
    "punctuation": {"type": "Punctuation"},
    **{f"punctuation {b}": {"type": "Punctuation", "behavior": b} for b in BEHAVIORS},
    "words": WORDS,
    "spaces": SPACES,
    "delimiter": {"type": "CharDelimiterSplit", "delimiter": "e"},
    "bert": {"type": "BertPreTokenizer"},
    "fixed": {"type": "FixedLength", "length": 3},
    "fixed to one": {"type": "FixedLength", "length": 1},
    "fixed to the longest": {"type": "FixedLength", "length": 1000},
    "fixed by default": {"type": "FixedLength"},
    "several": steps(
        "p", SPACES, {"type": "Punctuation"}, digits(True), split("o", "String", "MergedWithNext")
    ),
    "strings with signs": steps(
        "p", split("w.", "String"), split("[-+]$^#", "String"), split(".", "String", "Removed")
    ),
    "nested": steps("p", steps("p", split("o"), split("r")), digits(True)),
    "cohere2": steps("p", split(r"\d{1,3}(?=(?:\d{3})*\b)"), split(PATTERNS["o200k"][0])),
    "removed twice": steps("p", split("e", "String", "Removed"), split("l", "String", "Removed")),
}
# What stands where a file of characters has its last step, or a file of bytes some before or behind.
METASPACES: dict[str, Any] = {
    f"metaspace {scheme}{' split' * splits} behind {name}": steps("p", *before, metaspace(scheme, splits))
    for scheme, splits in itertools.product(("always", "first", "never"), (True, False))
    for name, before in {
        "nothing": (),
        "spaces": (SPACES,),
        "digits": (digits(True),),
        "letters": (split("[a-f]", behavior="MergedWithPrevious"),),
    }.items()
} | {
    "metaspace and punctuation": steps("p", metaspace(), {"type": "Punctuation"}),
    "two metaspaces": steps("p", metaspace("first", split=False), metaspace("always")),
    "another replacement": metaspace() | {"replacement": "_"},
}
BYTE_LEVELS: dict[str, Any] = {
    "gpt2": byte_level(),
    "older": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False},
    "prefix space": byte_level(add_prefix_space=True),
    "prefix space alone": byte_level(add_prefix_space=True, use_regex=False),
    "bytes alone": NO_REGEX,
    "prefix space behind digits": steps("p", digits(True), byte_level(add_prefix_space=True)),
    "prefix space behind spaces": steps("p", SPACES, byte_level(add_prefix_space=True, use_regex=False)),
    "digits behind": steps("p", byte_level(), digits(False)),
    "each digit behind": steps("p", byte_level(add_prefix_space=True), digits(True)),
    "spaces behind": steps("p", byte_level(), SPACES),
    "words behind": steps("p", NO_REGEX, WORDS),
    "punctuation behind": steps("p", NO_REGEX, {"type": "Punctuation", "behavior": "MergedWithNext"}),
    "fixed behind": steps("p", NO_REGEX, {"type": "FixedLength", "length": 2}),
    "splits behind": steps(
        "p",
        split(r"\s+"),
        NO_REGEX,
        split("Ġ", "String", "Removed"),
        split("[Ã-Ï].", behavior="MergedWithPrevious"),
    ),
    **{
        f"{behavior} behind{' inverted' * invert}": steps(
            "p", NO_REGEX, split("[ĠĊÃâa-e]", behavior=behavior, invert=invert)
        )
        for behavior, invert in itertools.product(BEHAVIORS, (False, True))
    },
}

SMALL_ADDED: tuple[str | tuple[str, dict[str, bool]], ...] = (
    "<s>",
    "</s>",
    ("wor", PLAIN),
    ("[A b]", NORMALIZED),
)


def of_bytes(vocab: Vocab | None = None, **changes: Any) -> Document:
    ids, merges = vocab or trained()
    return tokenizer_json(ids, merges, **{"added": added(ids, *SMALL_ADDED)} | changes)


def small_characters(vocab: Vocab | None = None, **changes: Any) -> Document:
    ids = (vocab or characters())[0]
    tokens = added(ids, "<unk>", *SMALL_ADDED)
    return of_characters(vocab, **{"added": tokens, "post_processor": None} | changes)


DECODERS: dict[str, Any] = {
    "fuse": FUSE,
    "nothing": steps("d"),
    "replace": steps("d", TO_SPACE, FUSE),
    "replace alone": TO_SPACE,
    "fallback": steps("d", FALLBACK, FUSE),
    "strip": steps("d", TO_SPACE, FUSE, STRIP_ONE),
    "strip alone": steps("d", FUSE, STRIP_ONE),
    "strip nothing": steps("d", FUSE, STRIP_ONE | {"start": 0}),
    "metaspace": metaspace("first"),
    "metaspace never": metaspace("never"),
    "metaspace never and bytes": steps("d", metaspace("never"), FALLBACK, FUSE, STRIP_ONE),
}


def post_processors(bos: list[Any], eos: list[Any]) -> dict[str, Any]:
    """Every kind, for the names and ids of two added tokens."""
    ids = {bos[0]: bos[1:], eos[0]: eos[1:]}
    around = template(bos[0], "$A", eos[0], ids=ids)
    trimming = {"trim_offsets": True, "add_prefix_space": False}
    return {
        "none": None,
        "byte level": byte_level(trim_offsets=True),
        "bos": template(bos[0], "$A", ids=ids),
        "bos and eos": around,
        "several": template(bos[0], bos[0], "$A", eos[0], bos[0], ids=ids),
        "several ids": template("$A", "end", ids={"end": [eos[1], 104, bos[1]]}),
        "roberta": {"type": "RobertaProcessing", "sep": eos, "cls": bos} | trimming,
        "bert": {"type": "BertProcessing", "sep": eos, "cls": bos},
        "trims and more": steps("post", byte_level(trim_offsets=True), around),
    }


def vocabularies() -> dict[str, Build]:
    """Vocabularies that lack something, and merges that share a product."""

    def missing(**settings: Any) -> Document:
        absent = ["!", "Ã", "å", "a", "Ċ", "©"]
        return of_bytes(with_first(without(trained(), *absent), "<unk>"), **settings)

    def fallback(kept: Callable[[int], bool], **settings: Any) -> Document:
        absent = [f"<0x{byte:02X}>" for byte in range(256) if not kept(byte)]
        return small_characters(without(characters(), *absent, "é", "日", "e", "!"), **settings)

    def shared(merges: list[list[str]]) -> Document:
        tokens = dict.fromkeys("".join(merge) for merge in merges)
        return of_bytes((bytes_vocab(*tokens), merges))

    pairs = [["b", "c"], ["a", "b"], ["a", "bc"], ["ab", "c"], ["c", "a"], ["abc", "a"], ["ab", "ca"]]
    spaced = [["Ġ", "a"], ["Ġ", "Ġ"], ["ĠĠ", "ĠĠ"], ["Ġ", "ĠĠ"], ["ĠĠ", "Ġ"], ["ĠĠĠ", "a"], ["ĠĠ", "Ġa"]]
    return {
        "missing bytes": missing,
        "missing bytes, unknown": lambda: missing(unk_token="<unk>"),
        "missing bytes, unknown fused": lambda: missing(unk_token="<unk>", fuse_unk=True),
        "ignoring merges": lambda: of_bytes((bytes_vocab("world", "ab"), [["a", "b"]]), ignore_merges=True),
        "a merge that stands twice": lambda: shared([["a", "b"], ["b", "c"], ["a", "b"]]),
        "missing bytes, ignoring merges": lambda: missing(unk_token="<unk>", ignore_merges=True),
        "no characters, unknown": lambda: fallback(lambda byte: False, fuse_unk=False),
        "no characters, unknown fused": lambda: fallback(lambda byte: False),
        "no characters, dropped": lambda: fallback(lambda byte: False, unk_token=None),
        "no fallback, unknown": lambda: small_characters(byte_fallback=False, fuse_unk=False),
        "no fallback, dropped": lambda: small_characters(byte_fallback=False, unk_token=None),
        "characters ignoring merges": lambda: small_characters(
            ignore_merges=True, pre_tokenizer=metaspace("first")
        ),
        "some of the fallback, dropped": lambda: fallback(lambda byte: byte % 5 != 1, unk_token=None),
        "shared products": lambda: shared(pairs),
        "shared products of spaces": lambda: shared(spaced),
        "no merges": lambda: of_bytes((bytes_vocab(), [])),
    }


FLAGS = ("single_word", "lstrip", "rstrip", "normalized")
UNDER = ("empty", "Lowercase", "NFKD", "llama", "remove and prepend", "strip left right")


def with_flags(
    chosen: Sequence[str], normalizer: str, of: Callable[..., Document], vocab: Callable[[], Vocab]
) -> Document:
    flags = dict.fromkeys(chosen, True)
    tokens: list[str | tuple[str, dict[str, bool]]] = [
        "<s>",
        *((token, flags | {"special": token[0] == "<"}) for token in ("<M>", "wor", "<M><s>", "ḀT", "12 ")),
    ]
    ids = vocab()[0]
    first = ("<unk>",) if "<unk>" in ids else ()
    return of(added=added(ids, *first, *tokens), normalizer=NORMALIZERS[normalizer])


def flagged() -> dict[str, Build]:
    """Added tokens with every combination of flags, under normalisers that change their texts."""
    result: dict[str, Build] = {}
    for bits, name in itertools.product(itertools.product((False, True), repeat=4), UNDER):
        chosen = list(itertools.compress(FLAGS, bits))
        label = f"{' '.join(chosen) or 'no flags'} under {name}"
        result[f"bytes, {label}"] = partial(with_flags, chosen, name, of_bytes, trained)
        result[f"characters, {label}"] = partial(with_flags, chosen, name, small_characters, characters)
    return result


def parts() -> dict[str, Build]:
    """Every small file, by name."""
    result: dict[str, Build] = {}
    for name, step in NORMALIZERS.items():
        result[f"bytes, normalizer {name}"] = partial(of_bytes, normalizer=step)
        result[f"characters, normalizer {name}"] = partial(small_characters, normalizer=step)
    for name, step in PRE_TOKENIZERS.items():
        result[f"bytes, {name}"] = partial(of_bytes, pre_tokenizer=steps("p", step, NO_REGEX))
        result[f"characters, {name}"] = partial(small_characters, pre_tokenizer=step)
    for name, step in METASPACES.items():
        result[f"characters, {name}"] = partial(small_characters, pre_tokenizer=step)
    for name, step in BYTE_LEVELS.items():
        result[f"bytes, {name}"] = partial(of_bytes, pre_tokenizer=step)
    ids = [[token["content"], token["id"]] for token in of_bytes()["added_tokens"][:2]]
    for name, step in post_processors(*ids).items():
        result[f"bytes, post-processor {name}"] = partial(of_bytes, post_processor=step)
    result["bytes, a decoder in a sequence"] = partial(of_bytes, decoder=steps("d", byte_level()))
    # The library decodes what normalisation makes of an added token, so none is normalised.
    kept = added(characters()[0], "<unk>", *SMALL_ADDED[:-1])
    for name, step in DECODERS.items():
        build = partial(small_characters, decoder=step, normalizer=LLAMA_NORMALIZER, added=kept)
        result[f"characters, decoder {name}"] = build
    return result | vocabularies() | flagged()


CONTENTS = ("<s>", "</s>", "wor", "<M>", " x", "ET", "12 ", "▁a", "a b", "[A b]")


def random_file(seed: int) -> Document:
    """A small file of several steps of each kind, in any order that is allowed."""
    generator = random.Random(seed)

    def some(steps: Sequence[Any], *counts: int) -> list[Any]:
        return generator.choices(steps, k=generator.choice(counts))

    def often(probability: float) -> bool:
        return generator.random() < probability

    names = generator.sample(CONTENTS, k=generator.randint(0, 5))
    tokens = [(name, {flag: often(0.3) for flag in (*FLAGS, "special")}) for name in names]
    settings = {
        "normalizer": steps("n", *some(list(NORMALIZERS.values()), 0, 0, 1, 1, 2, 3)),
        "ignore_merges": often(0.3),
    }
    cuts = some(list(PRE_TOKENIZERS.values()), 0, 0, 1, 1, 2)
    if often(0.5):
        byte_levels = [byte_level(add_prefix_space=often(0.5), use_regex=often(0.5))]
        behind = some(list(PRE_TOKENIZERS.values()), 0, 0, 0, 1)
        pre_tokenizer = steps("p", *cuts, *byte_levels, *behind)
        return of_bytes(added=added(trained()[0], *tokens), pre_tokenizer=pre_tokenizer, **settings)
    if often(0.6):
        scheme = generator.choice(("always", "first", "never"))
        cuts.insert(generator.randint(0, len(cuts)), metaspace(scheme, often(0.5)))
    return small_characters(
        added=added(characters()[0], "<unk>", *tokens),
        pre_tokenizer=steps("p", *cuts),
        decoder=generator.choice(list(DECODERS.values())),
        byte_fallback=often(0.8),
        fuse_unk=often(0.5),
        **settings,
    )
