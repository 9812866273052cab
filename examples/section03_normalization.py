"""§3: Unicode normalisation, surrogates, and bytes."""

from __future__ import annotations

import unicodedata

from bpe_tokenizer import BPETokenizer, OptionError
from shared import heading, library_files, refused, show

# The e with its accent as one character, and as two; a ligature; a Hangul syllable.
TEXT = "caf\u00e9 cafe\u0301 \ufb01ne \ud55c"


def main() -> None:
    """Encode the same text in every normal form."""
    heading(3, "Normalisation")
    normal_forms()
    surrogates()
    any_bytes()
    with refused(OptionError, "A form that Unicode does not know"):
        BPETokenizer(normalization="NFX")  # type: ignore[arg-type]


def normal_forms() -> None:
    """Show what each form keeps of a text."""
    corpus = library_files()[:20]
    show(f"{TEXT!r} decoded again")
    for form in ("NFC", "NFD", "NFKC", "NFKD", None):
        tokenizer = BPETokenizer(normalization=form).train(corpus, 300, verbose=False)
        decoded = tokenizer.decode(tokenizer.encode(TEXT))
        assert tokenizer.normalization == form
        assert decoded == (unicodedata.normalize(form, TEXT) if form else TEXT)
        print(f"    {form!s:<5} {decoded!a}")
    assert BPETokenizer().normalization == "NFC"
    composed = tokenizer.with_normalization("NFC")
    assert composed.decode(composed.encode(TEXT)) == unicodedata.normalize("NFC", TEXT)
    assert composed.model.with_normalization(None).core.normalization is None


def surrogates() -> None:
    """Join surrogate pairs and replace lone surrogates, in every method."""
    tokenizer = BPETokenizer().train(library_files()[:20], 300, verbose=False)
    joined, alone = "\ud83d\ude42", "a\ud83d"
    assert tokenizer.decode(tokenizer.encode(joined)) == "🙂"
    assert tokenizer.decode(tokenizer.encode(alone)) == "a\ufffd"
    assert tokenizer.encode_batch([alone])[0].input_ids == tokenizer.encode(alone)
    assert tokenizer.count_tokens(alone) == len(tokenizer.encode(alone))
    show("Surrogates: a pair is one character, a lone one is replaced", "🙂", "a\ufffd")


def any_bytes() -> None:
    """Encode bytes, which are never normalised and need not be text."""
    tokenizer = BPETokenizer().train(library_files()[:20], 300, verbose=False)
    data = bytes(range(256)) + "e\u0301".encode()
    ids = tokenizer.encode_bytes(data)
    assert tokenizer.decode_bytes(ids) == data
    show("All 256 bytes in a row", f"{len(data)} bytes -> {len(ids)} ids -> the same {len(data)} bytes")


if __name__ == "__main__":
    main()
