"""A tokenizer of this package in Megatron-LM: `python examples/tokenizer_for_megatron.py`.

It needs `megatron-core`, https://docs.nvidia.com/megatron-core/. In a fork of Megatron-LM the class is a file
of `megatron/core/tokenizers/text/libraries/`, and `register` is a line in the `__init__` there, one in
`TOKENIZER_MAPPING_LIBRARIES`, and a `tokenizer_type` in `build_tokenizer`.
"""

from __future__ import annotations

from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import tokenize_corpus
from shared import library_files, library_tokenizer

__all__ = ["BPETokenizerLibrary", "register"]

libraries: Any = import_module("megatron.core.tokenizers.text.libraries")
text_tokenizer: Any = import_module("megatron.core.tokenizers.text.text_tokenizer")
Abstract: Any = import_module(f"{libraries.__name__}.abstract_tokenizer").MegatronTokenizerTextAbstract


class BPETokenizerLibrary(Abstract):  # type: ignore[misc]  # Megatron-LM has no types
    """A tokenizer as Megatron-LM's data sets, training and inference call it.

    Args:
        path: A directory or a file that `BPETokenizer.load` reads.
        eod_token: The special token that ends documents; None for the EOS token.
        allow_special: Whether special tokens in a text are recognised. The default is that of
            `tokenize_corpus`: they are plain text.
        chat_template: The template of `apply_chat_template`; None for the tokenizer's own.
    """

    # In place of the base class's properties, which call themselves (0.16). The last four are of BERT.
    eod: int | None = None
    eos_id: int | None = None
    bos_id: int | None = None
    pad_id: int | None = None
    unk_id = mask_id = cls_id = sep_id = None

    def __init__(
        self,
        path: str,
        eod_token: str | None = None,
        allow_special: bool = False,
        chat_template: str | None = None,
    ) -> None:
        tokenizer = self.tokenizer = BPETokenizer.load(path)
        self.allow_special = allow_special
        self.chat_template = chat_template
        self.eos_id = tokenizer.eos_token_id
        self.eod = self.eos_id if eod_token is None else tokenizer.special_tokens[eod_token]
        if self.eod is None:
            raise ValueError(f"no token of {path} is known to end documents: name one as eod_token")
        self.pad_id = self.eod if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        self.bos_id = tokenizer.bos_token_id

    def text_to_ids(self, text: str) -> list[int]:
        """Return the ids of a text."""
        return self.tokenizer.encode(text, allowed_special="all" if self.allow_special else "none")

    def ids_to_text(self, ids: list[int], remove_special_tokens: bool = False) -> str:
        """Return the text of ids."""
        return self.tokenizer.decode(ids, skip_special_tokens=remove_special_tokens)

    def text_to_tokens(self, text: str) -> list[str]:
        """Return the names of the tokens of a text."""
        return self.ids_to_tokens(self.text_to_ids(text))

    def tokens_to_text(self, tokens: list[str]) -> str:
        """Return the text of the names of tokens."""
        return self.ids_to_text(self.tokens_to_ids(tokens))

    def ids_to_tokens(self, ids: list[int]) -> list[str]:
        """Return the names of ids, as of `tokenizer.json`."""
        return self.tokenizer.convert_ids_to_tokens(ids)

    def tokens_to_ids(self, tokens: list[str]) -> list[int]:
        """Return the ids of the names of tokens."""
        return self.tokenizer.convert_tokens_to_ids(tokens)

    def add_special_tokens(self, special_tokens: list[str] | dict[str, Any]) -> int:
        """Add special tokens after the vocabulary, and return how many are new."""
        names = special_tokens.values() if isinstance(special_tokens, dict) else special_tokens
        return self.tokenizer.add_special_tokens(
            [token for each in names for token in ([each] if isinstance(each, str) else each)]
        )

    def apply_chat_template(
        self, conversation: list[dict[str, str]], chat_template: str | None = None, **options: Any
    ) -> Any:
        """Return the ids of a conversation, or its text with `tokenize=False`."""
        return self.tokenizer.apply_chat_template(conversation, chat_template, **options)

    def offsets(self, ids: list[int], text: str) -> list[int]:
        """Return where each token starts in its text, in characters."""
        lengths = [len(self.tokenizer.decode_bytes([each])) for each in ids]
        data, starts = text.encode(), np.cumsum([0, *lengths[:-1]]).tolist()
        return [len(data[:start].decode(errors="ignore")) for start in starts]

    @property
    def additional_special_tokens_ids(self) -> list[int]:
        """The ids of the special tokens that have no role."""
        roles = {self.bos_id, self.eos_id, self.eod, self.pad_id}
        return [token for token in self.tokenizer.special_tokens.values() if token not in roles]

    @property
    def vocab_size(self) -> int:
        """The number of ids."""
        return self.tokenizer.n_vocab

    @property
    def vocab(self) -> dict[str, int]:
        """The ids of the names of tokens."""
        return self.tokenizer.get_vocab()

    @property
    def inv_vocab(self) -> dict[int, str]:
        """The names of ids."""
        return {token: name for name, token in self.vocab.items()}


def register() -> None:
    """Let `MegatronTokenizer.from_pretrained` find the class, as `{"library": "bpe-tokenizer"}`."""
    libraries.BPETokenizerLibrary = BPETokenizerLibrary
    text_tokenizer.TOKENIZER_MAPPING_LIBRARIES["bpe-tokenizer"] = "BPETokenizerLibrary"


def main() -> None:
    """Load a tokenizer in Megatron-LM, and read a corpus that this package has tokenized."""
    from_pretrained = import_module("megatron.core.tokenizers").MegatronTokenizer.from_pretrained
    indexed: Any = import_module("megatron.core.datasets.indexed_dataset").IndexedDataset
    register()
    files = library_files()[:20]
    with TemporaryDirectory() as directory:
        library_tokenizer().save(directory)
        tokenizer = from_pretrained(directory, {"library": "bpe-tokenizer"}, eod_token="<|endoftext|>")
        tokenize_corpus(
            files,
            f"{directory}/tokens",
            library_tokenizer(),
            "megatron",
            eos_token="<|endoftext|>",
            verbose=False,
        )
        shard = indexed(f"{directory}/tokens/tokens-00000")
        texts = [path.read_text(encoding="utf-8") for path in files]
        ids = [[*tokenizer.tokenize(text), tokenizer.eod] for text in texts]
        print("the same ids:", [each.tolist() for each in shard] == ids)
        print("the same texts:", [tokenizer.detokenize(each[:-1]) for each in ids] == texts)
        print(f"{tokenizer.vocab_size:,} ids, of which {tokenizer.eod} ends documents")


if __name__ == "__main__":
    main()
