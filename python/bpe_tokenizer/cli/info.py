"""`bpe-tokenizer info`."""

from __future__ import annotations

import json
import unicodedata
from typing import Annotated, Any, Literal, cast

import typer

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.cli.options import AsJson, Debug, Download, TokenizerPath
from bpe_tokenizer.console import count_noun
from bpe_tokenizer.errors import escaped
from bpe_tokenizer.special_tokens import ROLES
from bpe_tokenizer.view.terminal import print_tokens

__all__ = ["info"]

_SAMPLE_TEXT = "Hello, world! Grüße, привет, 你好 🙂 x = 3.14"
_SHOWN = 10
# Characters of a special token, of a line, and bytes of a token, which may be a stranger's.
_MAX_NAME, _MAX_LINE, _MAX_TOKEN = 60, 10_000, 100


def info(
    tokenizer: TokenizerPath,
    sample_text: Annotated[
        str, typer.Option(metavar="TEXT", help="Text to encode and decode.")
    ] = _SAMPLE_TEXT,
    as_json: AsJson = False,
    download: Download = False,
    debug: Debug = False,
) -> None:
    """Show a tokenizer's sizes, special tokens and a round trip."""
    loaded = BPETokenizer.load(tokenizer, download=download)
    if as_json:
        print(json.dumps(_describe(loaded, sample_text)))
    else:
        _show(loaded, sample_text)


def _describe(tokenizer: BPETokenizer, sample_text: str) -> dict[str, Any]:
    ids = sorted(tokenizer.vocab)
    encoded = tokenizer.encode(sample_text)
    size = len(sample_text.encode("utf-8", errors="replace"))
    return {
        "vocab_size": tokenizer.vocab_size,
        "n_vocab": tokenizer.n_vocab,
        "tokens": len(tokenizer),
        "merges": len(tokenizer.merges),
        "split_pattern": tokenizer.split_pattern,
        "normalization": tokenizer.normalization,
        "special_tokens": dict(tokenizer.special_tokens),
        **{f"{role}_token": getattr(tokenizer, f"{role}_token") for role in ROLES},
        "first_tokens": _tokens(tokenizer, ids[:_SHOWN]),
        "last_tokens": _tokens(tokenizer, ids[-_SHOWN:]),
        "sample": {
            "text": sample_text,
            "ids": encoded,
            "tokens": tokenizer.convert_ids_to_tokens(encoded),
            "bytes_per_token": round(size / len(encoded), 3) if encoded else None,
            "round_trip": _round_trips(tokenizer, sample_text, encoded),
        },
    }


def _tokens(tokenizer: BPETokenizer, ids: list[int]) -> list[dict[str, Any]]:
    tokens = tokenizer.convert_ids_to_tokens(ids)
    return [{"id": each, "token": token} for each, token in zip(ids, tokens, strict=True)]


def _round_trips(tokenizer: BPETokenizer, text: str, ids: list[int]) -> bool:
    """Return whether decoding restores the text, after the tokenizer's normalisation."""
    well_formed = text.encode("utf-16", errors="surrogatepass").decode("utf-16", errors="replace")
    form = cast("Literal['NFC', 'NFD', 'NFKC', 'NFKD'] | None", tokenizer.normalization)
    expected = well_formed if form is None else unicodedata.normalize(form, well_formed)
    return tokenizer.decode(ids) == expected


def _show(tokenizer: BPETokenizer, sample_text: str) -> None:
    from rich.text import Text

    from bpe_tokenizer.console import new_console

    console = new_console(highlight=False)
    facts = _describe(tokenizer, sample_text)
    sample = facts["sample"]

    def line(name: str, value: object) -> None:
        text = Text.assemble((f"{name:<16}", "bold"), escaped(str(value), _MAX_LINE))
        console.print(text, soft_wrap=not console.is_terminal)

    added = facts["tokens"] - facts["vocab_size"]
    note = f", and {count_noun(added, 'special token')} outside it" if added else ""
    line("vocabulary size", f"{facts['vocab_size']:,}{note}")
    line("embedding rows", f"{facts['n_vocab']:,} (n_vocab, the largest id + 1)")
    line("merges", f"{facts['merges']:,}")
    pattern = facts["split_pattern"]
    line("split pattern", pattern if isinstance(pattern, str) else "  then  ".join(pattern))
    line("normalization", facts["normalization"] or "none")
    line(
        "special tokens",
        ", ".join(f"{escaped(name, _MAX_NAME)} {each}" for name, each in facts["special_tokens"].items())
        or "none",
    )
    for role in ROLES:
        if facts[f"{role}_token"] is not None:
            line(f"{role} token", escaped(facts[f"{role}_token"], _MAX_NAME))
    for name in ("first_tokens", "last_tokens"):
        line(name.replace("_", " "), f"ids {facts[name][0]['id']} to {facts[name][-1]['id']}")
        print_tokens((tokenizer.vocab[each["id"]][:_MAX_TOKEN] for each in facts[name]), console)
    rate = f", {sample['bytes_per_token']} bytes per token" if sample["ids"] else ""
    line("sample", f"{count_noun(len(sample['ids']), 'token')}{rate}")
    print_tokens((tokenizer.decode_bytes([each]) for each in sample["ids"]), console)
    line("round trip", "exact" if sample["round_trip"] else "NOT exact")
