"""tokenizer.json files as those of published models are.

The components, the flags of the added tokens and the layout of the ids are theirs; the vocabulary is a real
one, or one trained here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from bpe_tokenizer import _core
from bpe_tokenizer.patterns import NAMED_PATTERNS
from hf_files import added_token, byte_level, split, template, tokenizer_json
from peers.hf_vocabularies import SPACE, Vocab, characters, gguf, gpt2, ranks, with_first, without

Document: TypeAlias = dict[str, Any]
Added: TypeAlias = str | tuple[str, dict[str, bool]]

PATTERNS = {name: list(named.patterns) for name, named in NAMED_PATTERNS.items()}


# -- parts of files -------------------------------------------------------------------------------------

NO_REGEX = byte_level(use_regex=False)
TRIMMED = byte_level(trim_offsets=True)
SPACED = byte_level(add_prefix_space=True)
BOTH = byte_level(add_prefix_space=True, trim_offsets=True)
WITHOUT_A_FIELD = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
NFC = {"type": "NFC"}


def steps(kind: str, *items: Any) -> Any:
    members = {"n": "normalizers", "p": "pretokenizers", "d": "decoders", "post": "processors"}[kind]
    return {"type": "Sequence", members: list(items)}


def splits(name: str, **named: Any) -> Any:
    patterns = [_core.SplitPattern(pattern).to_oniguruma() for pattern in PATTERNS[name]]
    return steps("p", *(split(pattern, **named) for pattern in patterns), NO_REGEX)


def digits(individual: bool) -> Any:
    return {"type": "Digits", "individual_digits": individual}


def added(vocab: Mapping[str, int], *tokens: Added) -> list[Any]:
    """Added tokens with the ids that the library gives them."""
    result = []
    following = len(vocab)
    for item in tokens:
        token, flags = (item, {}) if isinstance(item, str) else item
        result.append(added_token(vocab.get(token, following), token, **{"special": True} | flags))
        following += token not in vocab
    return result


def with_bos(vocab: Mapping[str, int], bos: str) -> Any:
    return template(bos, "$A", ids={bos: [vocab[bos]]})


def of_bytes(vocab: Vocab, *tokens: Added, as_texts: bool = True, **parts: Any) -> Document:
    """A byte-level file; older ones have their merges as texts."""
    ids, merges = vocab
    written = [" ".join(merge) for merge in merges] if as_texts else merges
    return tokenizer_json(ids, written, **{"added": added(ids, *tokens), "decoder": TRIMMED} | parts)


def flagged(names: Any, **flags: bool) -> list[Added]:
    return [(name, flags) for name in names]


def below(vocab: Vocab, size: int) -> Vocab:
    """The tokens with ids below this; the others are added tokens."""
    return {token: index for token, index in vocab[0].items() if index < size}, vocab[1]


PLAIN = {"special": False}
NORMALIZED = {"special": False, "normalized": True}
END = "<|endoftext|>"


# Bytes that no UTF-8 holds; DeepSeek has their characters as added tokens, which texts do hold.
NOT_IN_UTF8 = "øöúÿõ÷ûýÀùÁþü"


# -- byte-level models, on real vocabularies ------------------------------------------------------------


def model_gpt2(shared: Path) -> Document:
    empty: Any = {"unk_token": "", "continuing_subword_prefix": "", "end_of_word_suffix": ""}
    parts = {"pre_tokenizer": WITHOUT_A_FIELD, "post_processor": SPACED, "decoder": BOTH}
    return of_bytes(gpt2(shared), (END, {"normalized": True}), **parts, **empty)


def model_gpt_neox(shared: Path) -> Document:
    """Also OLMo and MPT. The vocabulary lacks the bytes that no UTF-8 holds."""
    vocab = with_first(without(gpt2(shared), END, *NOT_IN_UTF8), END, "<|padding|>")
    runs = flagged((" " * length for length in range(24, 1, -1)), **NORMALIZED)
    parts = {"normalizer": NFC, "pre_tokenizer": WITHOUT_A_FIELD, "post_processor": byte_level()}
    return of_bytes(vocab, END, "<|padding|>", *runs, **parts)


def model_llama3(shared: Path) -> Document:
    vocab = gguf(shared / "vocab/ggml-vocab-llama-bpe.gguf")
    around = steps("post", byte_level(), with_bos(vocab[0], "<|begin_of_text|>"))
    parts = {"pre_tokenizer": splits("llama3"), "post_processor": around, "ignore_merges": True}
    return of_bytes(below(vocab, 128_000), *list(vocab[0])[128_000:], **parts)


def model_nemo(shared: Path) -> Document:
    """Mistral Nemo: a thousand special tokens first."""
    specials = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", *(f"<SPECIAL_{i}>" for i in range(5, 1000))]
    vocab = with_first(ranks(shared / "vocab/cl100k_base.tiktoken"), *specials)
    parts = {"pre_tokenizer": splits("tekken"), "post_processor": with_bos(vocab[0], "<s>"), "decoder": BOTH}
    return of_bytes(vocab, *specials, as_texts=False, ignore_merges=True, **parts)


def model_qwen(shared: Path, pattern: str = "qwen2") -> Document:
    """Qwen 2, 2.5, 3 and 3.5, with the added tokens of 3."""
    vocab = below(gguf(shared / "vocab/ggml-vocab-qwen2.gguf"), 151_643)
    names = [END, "<|im_start|>", "<|im_end|>", "<|object_ref_start|>"]
    plain = flagged(("<tool_call>", "</tool_call>", "<think>", "</think>"), **PLAIN)
    parts = {"pre_tokenizer": splits(pattern), "post_processor": NO_REGEX, "decoder": NO_REGEX}
    empty: Any = {"continuing_subword_prefix": "", "end_of_word_suffix": ""}
    return of_bytes(vocab, *names, *plain, normalizer=NFC, **parts, **empty)


def deepseek(shared: Path, pre_tokenizer: Any) -> Document:
    vocab = without(gpt2(shared), END, *NOT_IN_UTF8)
    begin, end = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
    tokens = [*flagged((begin, end), normalized=True), *flagged(NOT_IN_UTF8, **NORMALIZED)]
    around = template(begin, "$A", ids={begin: [len(vocab[0])]})
    parts = {"pre_tokenizer": pre_tokenizer, "post_processor": around, "decoder": BOTH}
    return of_bytes(vocab, *tokens, normalizer=steps("n"), **parts)


def digits_behind(name: str) -> Any:
    """All patterns but the last, which splits digits."""
    return steps("p", *map(split, PATTERNS[name][:-1]), digits(True), NO_REGEX)


def model_falcon(shared: Path) -> Document:
    vocab = gguf(shared / "vocab/ggml-vocab-falcon.gguf")
    signs = {"type": "Punctuation", "behavior": "Contiguous"}
    cuts = steps("p", signs, byte_level(), digits(False), split("[0-9][0-9][0-9]"))
    return of_bytes(vocab, *list(vocab[0])[:12], pre_tokenizer=cuts, post_processor=byte_level())


def model_starcoder(shared: Path, **more: Any) -> Document:
    vocab = gguf(shared / "vocab/ggml-vocab-starcoder.gguf")
    parts = {"pre_tokenizer": steps("p", digits(True), byte_level()), "post_processor": SPACED}
    return of_bytes(vocab, *list(vocab[0])[:38], unk_token=END, **parts, **more)


def model_smollm(shared: Path) -> Document:
    names = [END, "<|im_start|>", "<|im_end|>", "<repo_name>", "<jupyter_code>"]
    vocab = with_first(without(gpt2(shared), END), *names)
    return of_bytes(vocab, *names, as_texts=False, pre_tokenizer=steps("p", digits(True), byte_level()))


def model_phi4(shared: Path) -> Document:
    ids, merges = ranks(shared / "vocab/cl100k_base.tiktoken")
    names = (END, "<|fim_prefix|>", "<|im_start|>", "<|im_sep|>", "<|im_end|>")
    dummy, tokens = "<|dummy_0|>", flagged(names, lstrip=True, rstrip=True)
    cuts = splits("llama3", behavior="Removed", invert=True)
    return of_bytes(
        (ids | {dummy: 100_256}, merges), dummy, *tokens, pre_tokenizer=cuts, post_processor=NO_REGEX
    )


def model_gpt_oss(shared: Path) -> Document:
    vocab = ranks(shared / "vocab/o200k_base.tiktoken")
    reserved = (f"<|reserved_{index}|>" for index in range(200_000, 200_030))
    parts = {"pre_tokenizer": splits("o200k"), "post_processor": SPACED, "decoder": BOTH}
    return of_bytes(vocab, "<|startoftext|>", END, *reserved, as_texts=False, **parts)


def model_roberta(shared: Path) -> Document:
    names = ("<s>", "<pad>", "</s>", "<unk>")
    ids, merges = with_first(without(gpt2(shared), END), *names)
    tokens = [*flagged(names, normalized=True), *flagged(["<mask>"], lstrip=True)]
    around: Document = {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0]}
    around |= {"trim_offsets": False, "add_prefix_space": True}
    parts = {"pre_tokenizer": BOTH, "post_processor": around, "decoder": BOTH}
    return of_bytes((ids | {"<mask>": len(ids)}, merges), *tokens, **parts)


REAL_MODELS: dict[str, Callable[[Path], Document]] = {
    "gpt2": model_gpt2,
    "gpt-neox": model_gpt_neox,
    "llama3": model_llama3,
    "nemo": model_nemo,
    "qwen3": model_qwen,
    "qwen3.5": partial(model_qwen, pattern="qwen3.5"),
    "deepseek-llm": lambda shared: deepseek(shared, digits_behind("deepseek-llm")),
    "deepseek-coder": lambda shared: deepseek(shared, digits_behind("deepseek-coder")),
    "deepseek-v3": lambda shared: deepseek(shared, splits("deepseek-v3")),
    "falcon": model_falcon,
    "starcoder": model_starcoder,
    "command-r": partial(model_starcoder, normalizer=NFC),
    "smollm": model_smollm,
    "phi4": model_phi4,
    "gpt-oss": model_gpt_oss,
    "roberta": model_roberta,
}


# -- models of characters, as SentencePiece's are converted ---------------------------------------------

TO_SPACE = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}


TO_META = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}


STRIP_ONE = {"type": "Strip", "content": " ", "start": 1, "stop": 0}


FALLBACK, FUSE = {"type": "ByteFallback"}, {"type": "Fuse"}


LLAMA_NORMALIZER = steps("n", {"type": "Prepend", "prepend": SPACE}, TO_META)


LLAMA_DECODER = steps("d", TO_SPACE, FALLBACK, FUSE, STRIP_ONE)


def metaspace(scheme: str | None = "always", split: bool | None = True, **others: Any) -> Any:
    fields = {"prepend_scheme": scheme, "split": split} | others
    given = {name: value for name, value in fields.items() if value is not None}
    return {"type": "Metaspace", "replacement": SPACE} | given


def of_characters(vocab: Vocab | None = None, **changes: Any) -> Document:
    ids, merges = vocab or characters()
    settings: dict[str, Any] = {
        "added": added(ids, "<unk>", "<s>", "</s>"),
        "pre_tokenizer": None,
        "post_processor": template("<s>", "$A", ids={"<s>": [1]}),
        "decoder": LLAMA_DECODER,
        "unk_token": "<unk>",
        "fuse_unk": True,
        "byte_fallback": True,
    }
    return tokenizer_json(ids, merges, **settings | changes)


def model_mistral_v3() -> Document:
    controls = ["[INST]", "[/INST]", "[TOOL_CALLS]", *(f"[control_{index}]" for index in range(8, 20))]
    tokens = list(characters()[0])
    ids = {token: index for index, token in enumerate([*tokens[:3], *controls, *tokens[3:]])}
    return of_characters(
        (ids, characters()[1]),
        added=added(ids, "<unk>", "<s>", "</s>", *controls),
        pre_tokenizer=metaspace("first", split=False),
    )


def model_gemma() -> Document:
    tokens = list(characters()[0])
    first = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "[multimodal]", "<unused0>", "<start_of_turn>"]
    runs = ["\n" * n for n in range(2, 9)] + [SPACE * n for n in range(2, 9)] + ["<table>", "</td>"]
    inside = [*first, *(t for t in tokens[3:] if t not in runs), *runs, "\t\t"]
    ids = {token: index for index, token in enumerate(dict.fromkeys(inside))}
    merges = [merge for merge in characters()[1] if all(part in ids for part in (*merge, "".join(merge)))]
    return of_characters(
        (ids, merges),
        added=added(ids, *first, *((run, PLAIN) for run in runs)),
        normalizer=TO_META,
        pre_tokenizer=split(" ", "String", "MergedWithPrevious"),
        post_processor=with_bos(ids, "<bos>"),
        decoder=steps("d", TO_SPACE, FALLBACK, FUSE),
    )


def model_phi3() -> Document:
    roles = flagged(("<|assistant|>", "<|system|>", "<|end|>", "<|user|>"), rstrip=True)
    tokens = ["<unk>", "<s>", *flagged(["</s>"], special=False, rstrip=True), END, *roles]
    return of_characters(added=added(characters()[0], *tokens), normalizer=LLAMA_NORMALIZER)


def model_finetuned() -> Document:
    """Tokens that somebody added to LLaMA 2, found in the normalised text."""
    tokens = flagged(("<unk>", "<s>", "</s>", "<pad>"), normalized=True)
    tokens += flagged(("<word>", "two words"), **NORMALIZED)
    return of_characters(added=added(characters()[0], *tokens), normalizer=LLAMA_NORMALIZER)


def model_tinyllama_old() -> Document:
    """The spelling of tokenizers before 0.14."""
    old = metaspace(None, None, add_prefix_space=True, str_rep=SPACE)
    return of_characters(pre_tokenizer=old, decoder=old, post_processor=None)


def with_metaspace(scheme: str, splits: bool) -> Callable[[], Document]:
    step = metaspace(scheme, splits)
    return lambda: of_characters(pre_tokenizer=step, decoder=step)


CHARACTER_MODELS: dict[str, Callable[[], Document]] = {
    "llama2": partial(of_characters, normalizer=LLAMA_NORMALIZER),
    "mistral v0.3": model_mistral_v3,
    "gemma": model_gemma,
    "phi3": model_phi3,
    "finetuned llama2": model_finetuned,
    "old tinyllama": model_tinyllama_old,
    **{
        f"metaspace {scheme}{' split' * splits}": with_metaspace(scheme, splits)
        for scheme in ("always", "first", "never")
        for splits in (True, False)
    },
}
