"""tokenizer.json files as those of published models are.

The components, the flags of the added tokens and the layout of the ids are theirs; the vocabulary is a real
one, or one trained here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from bpe_tokenizer import _core
from bpe_tokenizer.patterns import NAMED_PATTERNS
from hf_files import added_token, byte_level, split, template, tokenizer_json
from peers.hf_vocabularies import SPACE, Vocab, behind, characters, gguf, gpt2, ranks, without

__all__ = ["CHARACTER_MODELS", "REAL_MODELS"]

Document: TypeAlias = dict[str, Any]

PATTERNS = {name: list(named.patterns) for name, named in NAMED_PATTERNS.items()}


# -- parts of files -------------------------------------------------------------------------------------

NO_REGEX = byte_level(use_regex=False)
TRIMMED = byte_level(trim_offsets=True)
NFC = {"type": "NFC"}


def steps(kind: str, *items: Any) -> Any:
    members = {"n": "normalizers", "p": "pretokenizers", "d": "decoders", "post": "processors"}[kind]
    return {"type": "Sequence", members: list(items)}


def splits(name: str, **named: Any) -> Any:
    patterns = [_core.SplitPattern(pattern).to_oniguruma() for pattern in PATTERNS[name]]
    return steps("p", *(split(pattern, **named) for pattern in patterns), NO_REGEX)


def digits(individual: bool) -> Any:
    return {"type": "Digits", "individual_digits": individual}


def added(vocab: Mapping[str, int], *tokens: str | tuple[str, dict[str, bool]]) -> list[Any]:
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


PLAIN = {"special": False}
NORMALIZED = {"special": False, "normalized": True}


# Bytes that no UTF-8 holds; DeepSeek has their characters as added tokens, which texts do hold.
NOT_IN_UTF8 = "øöúÿõ÷ûýÀùÁþü"


# -- byte-level models, on real vocabularies ------------------------------------------------------------


def model_gpt2(shared: Path) -> Document:
    vocab, merges = gpt2(shared)
    return tokenizer_json(
        vocab,
        [" ".join(merge) for merge in merges],
        added=added(vocab, ("<|endoftext|>", {"normalized": True})),
        pre_tokenizer={"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
        post_processor=byte_level(add_prefix_space=True),
        decoder=byte_level(add_prefix_space=True, trim_offsets=True),
        unk_token="",
        continuing_subword_prefix="",
        end_of_word_suffix="",
    )


def model_gpt_neox(shared: Path) -> Document:
    """Also OLMo and MPT. The vocabulary lacks the bytes that no UTF-8 holds."""
    vocab, merges = behind(
        without(gpt2(shared), "<|endoftext|>", *NOT_IN_UTF8), "<|endoftext|>", "<|padding|>"
    )
    runs = [(" " * length, NORMALIZED) for length in range(24, 1, -1)]
    return tokenizer_json(
        vocab,
        [" ".join(merge) for merge in merges],
        added=added(vocab, "<|endoftext|>", "<|padding|>", *runs),
        normalizer=NFC,
        pre_tokenizer={"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
        post_processor=byte_level(),
        decoder=TRIMMED,
    )


def model_llama3(shared: Path) -> Document:
    vocab, merges = gguf(shared / "vocab/ggml-vocab-llama-bpe.gguf")
    specials = list(vocab)[128_000:]
    inside = {token: index for token, index in vocab.items() if index < 128_000}
    return tokenizer_json(
        inside,
        [" ".join(merge) for merge in merges],
        added=added(inside, *specials),
        pre_tokenizer=splits("llama3"),
        post_processor=steps("post", byte_level(), with_bos(vocab, "<|begin_of_text|>")),
        decoder=TRIMMED,
        ignore_merges=True,
    )


def model_nemo(shared: Path) -> Document:
    """Mistral Nemo: a thousand special tokens first."""
    specials = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", *(f"<SPECIAL_{i}>" for i in range(5, 1000))]
    vocab, merges = behind(ranks(shared / "vocab/cl100k_base.tiktoken"), *specials)
    return tokenizer_json(
        vocab,
        merges,
        added=added(vocab, *specials),
        pre_tokenizer=splits("tekken"),
        post_processor=with_bos(vocab, "<s>"),
        decoder=byte_level(add_prefix_space=True, trim_offsets=True),
        ignore_merges=True,
    )


def model_qwen(shared: Path, pattern: str = "qwen2") -> Document:
    """Qwen 2, 2.5, 3 and 3.5, with the added tokens of 3."""
    vocab, merges = gguf(shared / "vocab/ggml-vocab-qwen2.gguf")
    inside = {token: index for token, index in vocab.items() if index < 151_643}
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>"]
    plain = [(name, PLAIN) for name in ("<tool_call>", "</tool_call>", "<think>", "</think>")]
    return tokenizer_json(
        inside,
        [" ".join(merge) for merge in merges],
        added=added(inside, *names, *plain),
        normalizer=NFC,
        pre_tokenizer=splits(pattern),
        post_processor=NO_REGEX,
        decoder=NO_REGEX,
        continuing_subword_prefix="",
        end_of_word_suffix="",
    )


def model_qwen35(shared: Path) -> Document:
    return model_qwen(shared, "qwen3.5")


def deepseek(shared: Path, name: str, **named: Any) -> Document:
    vocab, merges = without(gpt2(shared), "<|endoftext|>", *NOT_IN_UTF8)
    begin, end = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
    normalized = {"normalized": True}
    tokens = added(vocab, (begin, normalized), (end, normalized), *((c, NORMALIZED) for c in NOT_IN_UTF8))
    return tokenizer_json(
        vocab,
        [" ".join(merge) for merge in merges],
        added=tokens,
        normalizer=steps("n"),
        post_processor=template(begin, "$A", ids={begin: [len(vocab)]}),
        decoder=byte_level(add_prefix_space=True, trim_offsets=True),
        **named,
    )


def model_deepseek_llm(shared: Path) -> Document:
    *patterns, _ = PATTERNS["deepseek-llm"]
    return deepseek(
        shared,
        "deepseek-llm",
        pre_tokenizer=steps("p", *map(split, patterns), digits(True), byte_level(use_regex=False)),
    )


def model_deepseek_coder(shared: Path) -> Document:
    *patterns, _ = PATTERNS["deepseek-coder"]
    return deepseek(
        shared, "deepseek-coder", pre_tokenizer=steps("p", *map(split, patterns), digits(True), NO_REGEX)
    )


def model_deepseek_v3(shared: Path) -> Document:
    return deepseek(shared, "deepseek-v3", pre_tokenizer=splits("deepseek-v3"))


def model_falcon(shared: Path) -> Document:
    vocab, merges = gguf(shared / "vocab/ggml-vocab-falcon.gguf")
    return tokenizer_json(
        vocab,
        [" ".join(merge) for merge in merges],
        added=added(vocab, *list(vocab)[:12]),
        pre_tokenizer=steps(
            "p",
            {"type": "Punctuation", "behavior": "Contiguous"},
            byte_level(),
            digits(False),
            split("[0-9][0-9][0-9]"),
        ),
        post_processor=byte_level(),
        decoder=TRIMMED,
    )


def model_starcoder(shared: Path) -> Document:
    vocab, merges = gguf(shared / "vocab/ggml-vocab-starcoder.gguf")
    return tokenizer_json(
        vocab,
        [" ".join(merge) for merge in merges],
        added=added(vocab, *list(vocab)[:38]),
        pre_tokenizer=steps("p", digits(True), byte_level()),
        post_processor=byte_level(add_prefix_space=True),
        decoder=TRIMMED,
        unk_token="<|endoftext|>",
    )


def model_command_r(shared: Path) -> Document:
    return model_starcoder(shared) | {"normalizer": NFC}


def model_smollm(shared: Path) -> Document:
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<jupyter_code>"]
    vocab, merges = behind(without(gpt2(shared), "<|endoftext|>"), *names)
    return tokenizer_json(
        vocab,
        merges,
        added=added(vocab, *names),
        pre_tokenizer=steps("p", digits(True), byte_level()),
        decoder=TRIMMED,
    )


def model_phi4(shared: Path) -> Document:
    vocab, merges = ranks(shared / "vocab/cl100k_base.tiktoken")
    vocab = vocab | {"<|dummy_0|>": 100_256}
    stripping = {"lstrip": True, "rstrip": True}
    names = ("<|endoftext|>", "<|fim_prefix|>", "<|im_start|>", "<|im_sep|>", "<|im_end|>")
    return tokenizer_json(
        vocab,
        [" ".join(merge) for merge in merges],
        added=added(vocab, "<|dummy_0|>", *((name, stripping) for name in names)),
        pre_tokenizer=splits("llama3", behavior="Removed", invert=True),
        post_processor=NO_REGEX,
        decoder=TRIMMED,
    )


def model_gpt_oss(shared: Path) -> Document:
    vocab, merges = ranks(shared / "vocab/o200k_base.tiktoken")
    reserved = (f"<|reserved_{index}|>" for index in range(200_000, 200_030))
    return tokenizer_json(
        vocab,
        merges,
        added=added(vocab, "<|startoftext|>", "<|endoftext|>", *reserved),
        pre_tokenizer=splits("o200k"),
        post_processor=byte_level(add_prefix_space=True),
        decoder=byte_level(add_prefix_space=True, trim_offsets=True),
    )


def model_roberta(shared: Path) -> Document:
    vocab, merges = behind(without(gpt2(shared), "<|endoftext|>"), "<s>", "<pad>", "</s>", "<unk>")
    vocab = vocab | {"<mask>": len(vocab)}
    normalized = {"normalized": True}
    return tokenizer_json(
        vocab,
        [" ".join(merge) for merge in merges],
        added=added(
            vocab,
            *((name, normalized) for name in ("<s>", "<pad>", "</s>", "<unk>")),
            ("<mask>", {"lstrip": True}),
        ),
        pre_tokenizer=byte_level(add_prefix_space=True, trim_offsets=True),
        post_processor={
            "type": "RobertaProcessing",
            "sep": ["</s>", 2],
            "cls": ["<s>", 0],
            "trim_offsets": False,
            "add_prefix_space": True,
        },
        decoder=byte_level(add_prefix_space=True, trim_offsets=True),
    )


REAL_MODELS: dict[str, Callable[[Path], Document]] = {
    "gpt2": model_gpt2,
    "gpt-neox": model_gpt_neox,
    "llama3": model_llama3,
    "nemo": model_nemo,
    "qwen3": model_qwen,
    "qwen3.5": model_qwen35,
    "deepseek-llm": model_deepseek_llm,
    "deepseek-coder": model_deepseek_coder,
    "deepseek-v3": model_deepseek_v3,
    "falcon": model_falcon,
    "starcoder": model_starcoder,
    "command-r": model_command_r,
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


def model_llama2() -> Document:
    return of_characters(normalizer=LLAMA_NORMALIZER)


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
    ids, _ = characters()
    stripping = {"rstrip": True}
    roles = [(name, stripping) for name in ("<|assistant|>", "<|system|>", "<|end|>", "<|user|>")]
    return of_characters(
        added=added(
            ids, "<unk>", "<s>", ("</s>", {"special": False, "rstrip": True}), "<|endoftext|>", *roles
        ),
        normalizer=LLAMA_NORMALIZER,
    )


def model_finetuned() -> Document:
    """Tokens that somebody added to LLaMA 2, found in the normalised text."""
    ids, _ = characters()
    normalized = {"normalized": True}
    return of_characters(
        added=added(
            ids,
            *((name, normalized) for name in ("<unk>", "<s>", "</s>", "<pad>")),
            ("<word>", NORMALIZED),
            ("two words", NORMALIZED),
        ),
        normalizer=LLAMA_NORMALIZER,
    )


def model_tinyllama_old() -> Document:
    """The spelling of tokenizers before 0.14."""
    old = metaspace(None, None, add_prefix_space=True, str_rep=SPACE)
    return of_characters(pre_tokenizer=old, decoder=old, post_processor=None)


def with_metaspace(scheme: str, splits: bool) -> Callable[[], Document]:
    step = metaspace(scheme, splits)
    return lambda: of_characters(pre_tokenizer=step, decoder=step)


CHARACTER_MODELS: dict[str, Callable[[], Document]] = {
    "llama2": model_llama2,
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
