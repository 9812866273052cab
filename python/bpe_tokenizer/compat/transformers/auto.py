"""Where tokenizers come from: names and directories, and objects of this package and of transformers."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, cast

from bpe_tokenizer.compat.transformers.face import CoreMixin, adopt
from bpe_tokenizer.errors import ArgumentTypeError
from bpe_tokenizer.libraries import import_library
from bpe_tokenizer.tokenizer import BPETokenizer

if TYPE_CHECKING:
    import os

    from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

__all__ = ["AutoTokenizer", "from_tokenizer", "register", "unregister"]


class AutoTokenizer:
    """transformers' `AutoTokenizer`, whose tokenizers run on the core."""

    @staticmethod
    def from_pretrained(
        pretrained_model_name_or_path: str | os.PathLike[str], *inputs: Any, **kwargs: Any
    ) -> PreTrainedTokenizerBase:
        """Load a tokenizer with transformers' `AutoTokenizer.from_pretrained`.

        Args:
            pretrained_model_name_or_path: As in transformers: the name of a repository, or a directory.
            *inputs: As in transformers.
            **kwargs: As in transformers.

        Returns:
            The tokenizer, in a subclass of transformers' class that runs on the core. A tokenizer that is not
            a fast BPE tokenizer is returned as transformers returns it.

        Raises:
            MissingDependencyError: transformers is not installed.
        """
        auto = _auto_tokenizer()
        load = _replaced.get(auto, vars(auto)["from_pretrained"]).__get__(None, auto)
        return cast(
            "PreTrainedTokenizerBase", _on_core(load(pretrained_model_name_or_path, *inputs, **kwargs))
        )


# transformers' class, while `register` is in effect, and the method of it that is replaced.
_replaced: dict[Any, Any] = {}


def from_tokenizer(tokenizer: BPETokenizer | PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    """Return a tokenizer with the interface of transformers that runs on the core.

    Args:
        tokenizer: A `BPETokenizer`, or a fast tokenizer of transformers. Later changes of it do not matter.

    Returns:
        A `PreTrainedTokenizerFast`.

    Raises:
        ArgumentTypeError: It is something else.
        FormatError: A tokenizer.json cannot hold the `BPETokenizer`.
        MissingDependencyError: transformers is not installed.

    >>> from bpe_tokenizer import BPETokenizer
    >>> tokenizer = BPETokenizer("gpt2", None).train("low low lower", 258, verbose=False)
    >>> from_tokenizer(tokenizer)("a low")["input_ids"]  # doctest: +SKIP
    [97, 32, 257]
    """
    if isinstance(tokenizer, BPETokenizer):
        return cast("PreTrainedTokenizerFast", adopt(tokenizer.to_transformers()))
    if isinstance(tokenizer, import_library("transformers", "transformers").PreTrainedTokenizerFast):
        copied = copy.deepcopy(tokenizer)
        return cast("PreTrainedTokenizerFast", copied if isinstance(copied, CoreMixin) else adopt(copied))
    raise ArgumentTypeError(
        f"expected a BPETokenizer or a fast tokenizer of transformers, not {type(tokenizer).__name__}"
    )


def register() -> None:
    """Let transformers' own `AutoTokenizer.from_pretrained` return tokenizers that run on the core.

    Pipelines, trainers and servers that load tokenizers with it then use the core. `unregister` ends it.

    Raises:
        MissingDependencyError: transformers is not installed.
    """
    auto = _auto_tokenizer()
    if auto not in _replaced:
        _replaced[auto] = vars(auto)["from_pretrained"]
        auto.from_pretrained = staticmethod(AutoTokenizer.from_pretrained)


def unregister() -> None:
    """End the effect of `register`."""
    for auto, method in _replaced.items():
        auto.from_pretrained = method
    _replaced.clear()


def _on_core(tokenizer: Any) -> Any:
    kind = import_library("transformers", "transformers").PreTrainedTokenizerFast
    if not isinstance(tokenizer, kind) or isinstance(tokenizer, CoreMixin):
        return tokenizer
    if type(tokenizer.backend_tokenizer.model).__name__ != "BPE":
        return tokenizer
    return adopt(tokenizer)


def _auto_tokenizer() -> Any:
    return import_library("transformers", "transformers").AutoTokenizer
