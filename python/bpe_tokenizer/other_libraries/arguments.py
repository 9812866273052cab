"""The keyword arguments that calls of other libraries take, for the error of an unknown argument."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from bpe_tokenizer.errors import did_you_mean, shorten

__all__ = ["other_arguments", "unknown_argument"]


def _rows(*rows: tuple[str, str]) -> dict[str, str]:
    """Return the advice for each argument, from rows of arguments that have the same advice."""
    return {name: advice for names, advice in rows for name in names.split()}


# Keyword arguments of calls that the other libraries name as we do, or that do the same there. "{name}" in an
# advice is the argument.
_NO_SAMPLING: Final = "leave it out: equal texts have equal ids"
_KEEPS_SPACES: Final = "leave it out: texts keep their spaces"
_IN_FACE: Final = "leave it out, or use bpe_tokenizer.compat.transformers.from_tokenizer(tokenizer)"
_TOKEN_MASK: Final = "use [i in tokenizer.special_tokens.values() for i in ids]"
_NO_CODE: Final = "leave it out: loading never runs the code of a repository"
_ROLES: Final = "use add_special_tokens([text]), then set tokenizer.{name} = text"
_HUB: Final = "use BPETokenizer.from_huggingface('owner/name', {name}=...)"
_SIDE: Final = "use encode_batch(texts, {name}=...): it is an option of each call"
_NOT_BYTE_LEVEL: Final = "leave it out: byte-level tokens do not have it"
_ALL_BYTES: Final = "leave it out: the vocabulary holds all bytes, so no text is unknown"
_PATTERN: Final = "use BPETokenizer(split_pattern=...).train(corpus)"
_NORMALIZATION: Final = "use BPETokenizer(normalization=...).train(corpus)"
_COUNTS_ALL: Final = "leave it out: training counts the whole corpus; max_memory=n limits the memory"

_OPTIONS_OF_SENTENCEPIECE: Final = _rows(
    ("emit_unk_piece", _ALL_BYTES), ("enable_sampling nbest_size alpha", _NO_SAMPLING)
)
_ENCODE_OF_SENTENCEPIECE: Final = _OPTIONS_OF_SENTENCEPIECE | _rows(
    ("add_bos add_eos", "use add_special_tokens=True"), ("reverse", "reverse the result")
)
# `tokenizer(text, ...)` of transformers, without what ours takes.
_CALL_OF_TRANSFORMERS: Final = _rows(
    ("return_attention_mask", "use tokenizer(text, return_dict=True), which always holds attention_mask"),
    ("return_token_type_ids", _IN_FACE),
    ("return_special_tokens_mask", _TOKEN_MASK),
    ("return_length", "use len(row) of each row of input_ids"),
    ("verbose", "leave it out: encoding prints nothing"),
    ("text_target text_pair_target", "use tokenizer(texts) for the labels, in a call of their own"),
    ("tokenizer_kwargs", "pass its items as arguments"),
    ("split_special_tokens", "use allowed_special='none' for True, allowed_special='all' for False"),
)
# Settings of a tokenizer's object.
_SETTINGS_OF_TRANSFORMERS: Final = _rows(
    ("bos_token eos_token unk_token pad_token", _ROLES),
    (
        "sep_token cls_token mask_token additional_special_tokens extra_special_tokens added_tokens_decoder",
        "use add_special_tokens([text, ...])",
    ),
    ("padding_side truncation_side", _SIDE),
    ("model_max_length max_len", "use encode_batch(texts, truncation=True, max_length=n)"),
    ("chat_template", "use apply_chat_template(messages, template)"),
    ("clean_up_tokenization_spaces", "leave it out: decode(ids) never removes spaces"),
    ("split_special_tokens", "use encode(text, allowed_special='none'), the default, or 'all'"),
    ("add_bos_token add_eos_token", "use encode(text, add_special_tokens=True)"),
    ("add_prefix_space", "use encode(' ' + text)"),
    ("model_input_names", "use encode_batch(texts, return_dict=True), and take the columns you need"),
)
_HUB_OF_TRANSFORMERS: Final = _rows(("cache_dir local_files_only token revision", _HUB))
_LOADING_OF_TRANSFORMERS: Final = _SETTINGS_OF_TRANSFORMERS | _rows(
    ("pretrained_model_name_or_path", "use BPETokenizer.load(path), for a directory or 'hf:owner/name'"),
    ("use_auth_token", "use BPETokenizer.from_huggingface('owner/name', token=...)"),
    (
        "force_download resume_download",
        "use BPETokenizer.load('hf:owner/name', download=True), which downloads what is not cached",
    ),
    ("trust_remote_code code_revision", _NO_CODE),
    (
        "use_fast from_slow legacy tokenizer_type config mistral_format fix_mistral_regex",
        "leave it out: the files say what the tokenizer does",
    ),
    ("subfolder", "use BPETokenizer.from_pretrained(path), with the path of the folder"),
    ("proxies", "leave it out: the environment variable HTTPS_PROXY names a proxy"),
    ("gguf_file", "use BPETokenizer.from_gguf(path)"),
    ("tokenizer_file vocab_file merges_file", "use BPETokenizer.load(path)"),
)
_HUB_OF_TOKENIZERS: Final = _rows(("revision token", _HUB))
_LOADING_OF_TOKENIZERS: Final = _rows(
    ("identifier", "use BPETokenizer.load('hf:owner/name')"),
    ("auth_token", "use BPETokenizer.from_huggingface('owner/name', token=...)"),
)
# Fields of the model and of the trainer.
_BPE_OF_TOKENIZERS: Final = _rows(
    ("continuing_subword_prefix end_of_word_suffix", _NOT_BYTE_LEVEL),
    ("limit_alphabet initial_alphabet", "leave it out: the vocabulary holds all 256 bytes"),
)
_TRAIN_OF_TOKENIZERS: Final = _BPE_OF_TOKENIZERS | _rows(
    ("files", "use train([Path(file) for file in files])"),
    ("iterator", "use train(texts)"),
    ("trainer", "pass its settings, as in train(corpus, vocab_size, min_frequency=2, special_tokens=[...])"),
    ("length", "leave it out: training counts the texts"),
    ("show_progress progress_format", "use verbose=False or verbose=True"),
)
_SAVING_OF_TRANSFORMERS: Final = _rows(
    ("save_directory", "use save(directory)"),
    ("filename_prefix", "use save(directory, name=...)"),
    ("legacy_format save_format", "leave it out, or use save_gpt2(directory) for vocab.json and merges.txt"),
    (
        "push_to_hub repo_id commit_message private token",
        "use save(directory), then huggingface_hub.upload_folder: saving never touches the network",
    ),
    ("save_jinja_files", "leave it out: the chat template is part of tokenizer_config.json"),
)
_TRAIN_OF_SENTENCEPIECE: Final = _rows(
    ("input", "use train(Path(file)), or train([Path(file), ...]) for several"),
    ("sentence_iterator sentence_reader", "use train(texts)"),
    ("model_prefix model_writer", "use train(corpus).save(directory)"),
    ("model_type", "leave it out: every model is BPE"),
    ("num_threads", "use threads=n"),
    ("logstream minloglevel", "use verbose=False"),
    ("max_sentencepiece_length", "use max_token_length=n, in bytes"),
    ("user_defined_symbols control_symbols", "use special_tokens=[...]"),
    ("bos_id eos_id pad_id unk_id", "use special_tokens={text: id}, with ids from 256 on"),
    ("bos_piece eos_piece pad_piece unk_piece", "use special_tokens=[...]"),
    ("unk_surface byte_fallback required_chars", _ALL_BYTES),
    ("character_coverage auto_character_coverage accept_language", _ALL_BYTES),
    ("normalization_rule_name normalization_rule_tsv normalizer", _NORMALIZATION),
    ("denormalization_rule_tsv", "leave it out: decode(ids) changes nothing"),
    ("add_dummy_prefix remove_extra_whitespaces escape_whitespaces", _KEEPS_SPACES),
    ("split_by_unicode_script split_by_number split_by_whitespace split_digits", _PATTERN),
    ("treat_whitespace_as_suffix allow_whitespace_only_pieces pretokenization_delimiter", _PATTERN),
    ("pretokenizer allow_inconsistent_pretokenization", _PATTERN),
    ("input_sentence_size shuffle_input_sentence max_sentence_length", _COUNTS_ALL),
    ("train_extremely_large_corpus mining_sentence_size training_sentence_size", _COUNTS_ALL),
    ("seed_sentencepiece_size seed_sentencepieces_file", "leave it out: BPE starts from bytes"),
    ("shrinking_factor num_sub_iterations use_all_vocab", "leave it out: BPE has no such step"),
    ("vocabulary_output_piece_score", "leave it out: the ids are the ranks"),
    ("hard_vocab_limit", "leave it out: a corpus with fewer pairs gives a smaller vocabulary"),
    ("self_test_sample_size random_seed", "leave it out: training takes no samples"),
    (
        "enable_differential_privacy differential_privacy_noise_level "
        "differential_privacy_clipping_threshold",
        "leave it out: training adds no noise; min_frequency=n drops rare pairs",
    ),
)
_DECODE_OF_TRANSFORMERS: Final = _rows(
    ("clean_up_tokenization_spaces", "leave it out: decode(ids) never removes spaces"),
    ("spaces_between_special_tokens", "leave it out: decode(ids) adds no spaces"),
    ("use_source_tokenizer", "leave it out"),
)
# For each call, the arguments of each library; "" for those of ours that another call has.
_ARGUMENTS: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = {
    "__init__": {
        "tiktoken": _rows(
            ("pat_str", "use BPETokenizer(split_pattern)"),
            ("name", "leave it out; to_tiktoken(name) takes it"),
            (
                "mergeable_ranks",
                "use BPETokenizer.from_vocab({rank: token for token, rank in ranks.items()})",
            ),
            ("explicit_n_vocab", "leave it out: n_vocab is the largest id + 1"),
            (
                "special_tokens",
                "use BPETokenizer().train(corpus, special_tokens=[...]), or "
                "BPETokenizer.from_vocab(vocab, special_tokens={text: id})",
            ),
        ),
        "tokenizers": _BPE_OF_TOKENIZERS
        | _rows(
            ("model", "use BPETokenizer().train(corpus, vocab_size), or BPETokenizer.load(path)"),
            (
                "vocab merges",
                "use BPETokenizer.from_gpt2(path) for files, or BPETokenizer.from_vocab(vocab, merges) for "
                "tokens in bytes",
            ),
            ("unk_token fuse_unk byte_fallback", _ALL_BYTES),
            ("dropout", _NO_SAMPLING),
            ("cache_capacity", "use limit_cache(max_bytes)"),
            ("ignore_merges", "leave it out: BPETokenizer.load(path) reads it from the file"),
            ("add_prefix_space", "use encode(' ' + text)"),
            ("lowercase", "use text.lower() before train(texts) and encode(text)"),
            ("unicode_normalizer", "use BPETokenizer(normalization=...)"),
            ("trim_offsets", "use encode_with_offsets(text), whose spans hold the spaces"),
        ),
        "transformers": _SETTINGS_OF_TRANSFORMERS
        | _rows(
            ("tokenizer_object", "use BPETokenizer.from_huggingface(tokenizer)"),
            ("tokenizer_file vocab_file merges_file", "use BPETokenizer.load(path)"),
            ("gguf_file", "use BPETokenizer.from_gguf(path)"),
            ("vocab_size", "use BPETokenizer().train(corpus, vocab_size)"),
        ),
        "sentencepiece": _OPTIONS_OF_SENTENCEPIECE
        | _rows(
            ("add_bos add_eos", "use encode(text, add_special_tokens=True)"),
            ("reverse", "use encode(text)[::-1]"),
            ("model_file", "use BPETokenizer.load(path), with the tokenizer.json of the model"),
            ("model_proto", "use BPETokenizer.load(path)"),
            ("out_type return_type", "use encode(text) for ids, tokenize(text) for token strings"),
            ("num_threads", "use encode_batch(texts, threads=n)"),
        ),
        "minbpe": _rows(("pattern", "use BPETokenizer(split_pattern)")),
        "": _rows(
            (
                "min_frequency verbose tie_break max_token_length threads weights max_memory on_memory "
                "spill_directory min_count sample "
                "checkpoint checkpoint_seconds",
                "use BPETokenizer().train(corpus, {name}=...)",
            ),
            ("corpus", "use BPETokenizer().train(corpus)"),
        ),
    },
    "train": {
        "tiktoken": _rows(("training_data", "use train(corpus)"), ("pat_str", _PATTERN)),
        "tokenizers": _TRAIN_OF_TOKENIZERS,
        "transformers": _rows(
            ("text_iterator", "use train(texts)"),
            ("length", "leave it out: training counts the texts"),
            ("new_special_tokens", "use special_tokens=[...]"),
            ("special_tokens_map", "use special_tokens=[...], then set tokenizer.eos_token = text"),
        ),
        "sentencepiece": _TRAIN_OF_SENTENCEPIECE,
        "minbpe": _rows(("text", "use train(corpus)"), ("pattern", _PATTERN)),
        "": _rows(("split_pattern", _PATTERN), ("normalization", _NORMALIZATION)),
    },
    "add_special_tokens": {
        "tokenizers": _rows(("tokens", "use add_special_tokens([text, ...])")),
        "transformers": _rows(
            (
                "special_tokens_dict",
                "use add_special_tokens([text]), then set tokenizer.pad_token = text",
            ),
            (
                "replace_extra_special_tokens replace_additional_special_tokens",
                "leave it out: add_special_tokens([text]) keeps all tokens",
            ),
            ("new_tokens", "use add_special_tokens([text, ...])"),
        ),
    },
    "load": {
        "tiktoken": _rows(("encoding_name", "use load('o200k_base')"), ("model_name", "use load('gpt-4o')")),
        "transformers": _LOADING_OF_TRANSFORMERS | _HUB_OF_TRANSFORMERS,
        "tokenizers": _LOADING_OF_TOKENIZERS | _HUB_OF_TOKENIZERS,
        "sentencepiece": _rows(
            ("model_file", "use load(path), with the tokenizer.json of the model"),
            ("model_proto", "use load(path)"),
        ),
        "minbpe": _rows(("model_file", "use load(path)")),
        "": _rows(("verbose", "leave it out: load(path) prints nothing")),
    },
    "from_pretrained": {
        "transformers": _LOADING_OF_TRANSFORMERS | _HUB_OF_TRANSFORMERS,
        "tokenizers": _LOADING_OF_TOKENIZERS | _HUB_OF_TOKENIZERS,
        "": _rows(
            ("split_pattern special_tokens download", "use BPETokenizer.load(path, {name}=...)"),
            ("name", "use BPETokenizer.load(path), with the path of the file"),
        ),
    },
    "from_huggingface": {
        "transformers": _LOADING_OF_TRANSFORMERS,
        "tokenizers": _LOADING_OF_TOKENIZERS,
    },
    "save": {
        "tokenizers": _rows(
            ("path", "use save(directory), or to_tokenizers().save(path) for one file"),
            ("pretty", "leave it out: the file is easy to read"),
            ("prefix", "use save(directory, name=...)"),
        ),
        "transformers": _SAVING_OF_TRANSFORMERS,
        "minbpe": _rows(("file_prefix", "use save_minbpe(path)")),
        "": _rows(
            (
                "format format_name",
                "use save_minbpe(path), save_gguf(path), save_tiktoken(path), save_gpt2(directory) or "
                "save_base64_json(path)",
            ),
        ),
    },
    "encode_batch": {
        "tiktoken": _rows(("text", "use encode_batch(texts)"), ("num_threads", "use threads=n")),
        "transformers": _CALL_OF_TRANSFORMERS
        | _rows(("text batch_text_or_text_pairs", "use encode_batch(texts, text_pair=...) for pairs")),
        "tokenizers": _rows(
            ("input inputs", "use encode_batch(texts)"), ("is_pretokenized", "use is_split_into_words=True")
        ),
    },
    "__call__": {"transformers": _CALL_OF_TRANSFORMERS},
    "pad": {
        "transformers": _rows(
            ("encoded_inputs", "use pad(rows)"),
            ("return_attention_mask", "leave it out: pad(rows) always returns attention_mask"),
            ("verbose", "leave it out: padding prints nothing"),
        )
    },
    "tokenize": {
        "transformers": _rows(("pair", "use tokenize(text) for each of the two texts")),
        "sentencepiece": _ENCODE_OF_SENTENCEPIECE
        | _rows(
            ("input", "use tokenize(text)"),
            (
                "out_type return_type",
                "leave it out for token strings, use encode(text) for ids, encode_with_offsets(text) for "
                "spans",
            ),
            ("return_bytes", "use encode_with_offsets(text, unit='byte')"),
            ("num_threads thread_pool", "use encode_batch(texts, threads=n), whose rows hold tokens"),
        ),
    },
    "decode_bytes": {"tiktoken": _rows(("tokens", "use decode_bytes(ids)"))},
    "decode_batch": {
        "tiktoken": _rows(("batch", "use decode_batch(rows)"), ("num_threads", "use threads=n")),
        "tokenizers": _rows(("sequences", "use decode_batch(rows)")),
        "transformers": _DECODE_OF_TRANSFORMERS | _rows(("sequences", "use decode_batch(rows)")),
    },
    "get_vocab": {"tokenizers": _rows(("with_added_tokens", "leave it out: get_vocab() holds all tokens"))},
    "id_to_token": {"tokenizers": _rows(("id", "use id_to_token(token_id)"))},
    "convert_ids_to_tokens": {
        "transformers": _rows(
            (
                "skip_special_tokens",
                "use convert_ids_to_tokens([i for i in ids if i not in tokenizer.special_tokens.values()])",
            )
        )
    },
    "apply_chat_template": {
        "transformers": _rows(
            ("conversation", "use apply_chat_template(messages)"),
            ("chat_template", "use template=..."),
            ("return_assistant_tokens_mask", "use return_assistant_mask=True"),
            ("tokenizer_kwargs", "pass its items as arguments, as in max_length=n"),
            ("sanitize_control_tokens", "leave it out: a message never becomes control tokens"),
        )
    },
}
_SHOWN_CALLS: Final = {"__init__": "BPETokenizer", "__call__": "tokenizer"}


def other_arguments(call: str, names: Iterable[str]) -> list[str]:
    """Return those names that are arguments of this call in another library.

    >>> other_arguments("apply_chat_template", ["enable_thinking", "chat_template"])
    ['chat_template']
    """
    libraries = _ARGUMENTS.get(call, {}).values()
    return [name for name in names if any(name in arguments for arguments in libraries)]


def unknown_argument(call: str, name: str, parameters: Iterable[str]) -> str:
    """Return the message of the error for a keyword argument that a call does not have.

    Args:
        call: The name of the method.
        name: The argument.
        parameters: The arguments that the call has.

    >>> unknown_argument("encode", "threads_", ["text", "threads"])
    "encode() has no argument 'threads_'; did you mean 'threads'?"
    >>> print(unknown_argument("id_to_token", "id", ["token_id"]))
    id_to_token() has no argument 'id', which tokenizers has; use id_to_token(token_id)
    """
    message = f"{_SHOWN_CALLS.get(call, call)}() has no argument {shorten(name)}"
    found = {
        library: arguments[name]
        for library, arguments in _ARGUMENTS.get(call, {}).items()
        if name in arguments
    }
    if not found:
        suggestion = did_you_mean(name, parameters)
        method = "BPETokenizer" if call == "__init__" else f"BPETokenizer.{call}"
        return message + (suggestion if suggestion != "." else f"; help({method}) lists its arguments")
    owners = [library for library in found if library]
    whose = f", which {' and '.join(owners)} {'has' if len(owners) == 1 else 'have'}" if owners else ""
    return f"{message}{whose}; {next(iter(found.values())).replace('{name}', name)}"
