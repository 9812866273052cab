"""What a corpus is read as, checked when it is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from bpe_tokenizer.arguments import check_choice
from bpe_tokenizer.errors import ArgumentTypeError, OptionError

__all__ = ["DocumentEnd", "InputFormat", "OnError", "ReadOptions"]

InputFormat: TypeAlias = Literal["text", "jsonl", "parquet", "arrow"]
DocumentEnd: TypeAlias = Literal["line", "file"]
OnError: TypeAlias = Literal["stop", "skip"]


@dataclass(frozen=True)
class ReadOptions:
    r"""How the documents of a corpus are found in its files.

    Args:
        input_format: The format of all files; None decides by their contents.
        documents: Whether a document of text is a `"line"` or a `"file"`; with a separator always `"line"`.
        separator: Text that separates the documents of a text instead.
        field: The field of JSON Lines or the column of tables that holds the text.
        on_error: `"stop"` at or `"skip"` a row that is not valid UTF-8 or JSON or has no text.

    Raises:
        ArgumentTypeError: A value is of the wrong type.
        OptionError: A value is unknown, or two values contradict each other.

    >>> ReadOptions(separator="<|endoftext|>").separator
    '<|endoftext|>'
    """

    input_format: InputFormat | None = None
    documents: DocumentEnd = "file"
    separator: str | None = None
    field: str = "text"
    on_error: OnError = "stop"

    def __post_init__(self) -> None:
        if self.input_format is not None:
            check_choice("input_format", self.input_format, get_args(InputFormat))
        check_choice("documents", self.documents, get_args(DocumentEnd))
        check_choice("on_error", self.on_error, get_args(OnError))
        for name, value in (("separator", self.separator), ("field", self.field)):
            if not isinstance(value, str) and not (value is None and name == "separator"):
                raise ArgumentTypeError(f"{name} must be a str, not {type(value).__name__}")
            try:
                (value or "").encode()
            except UnicodeEncodeError:
                raise OptionError(f"{name} holds a lone surrogate, which UTF-8 cannot encode") from None
        if self.separator == "":
            raise OptionError("separator is empty; it must be the text between two documents")
        if self.separator is not None:
            object.__setattr__(self, "documents", "line")

    @property
    def is_whole(self) -> bool:
        """Whether a file of text is one document."""
        return self.documents == "file"
