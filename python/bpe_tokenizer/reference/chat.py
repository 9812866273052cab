r"""6. Chats: special tokens are the grammar of a conversation, so a message must not be able to write them.

A template puts special tokens around messages. Once everything is a single string, nobody can tell the
template's `<|im_end|>` from one that a user typed. So the template stays a list of *segments*, each marked as
markup or content, and only markup is encoded with special tokens.
"""

from collections.abc import Iterable, Mapping

from .naive import NaiveBPETokenizer


def chatml_segments(
    messages: Iterable[Mapping[str, str]], add_generation_prompt: bool = True
) -> list[tuple[str, bool]]:
    r"""Write a conversation in ChatML as segments.

    Args:
        messages: The messages, each with `role` and `content`.
        add_generation_prompt: Whether to open the assistant's turn at the end.

    Returns:
        The text of each segment, and whether it is markup.

    >>> chatml_segments([{"role": "user", "content": "Hi"}], add_generation_prompt=False)
    [('<|im_start|>', True), ('user', False), ('\n', True), ('Hi', False), ('<|im_end|>\n', True)]
    """
    segments: list[tuple[str, bool]] = []
    for message in messages:
        segments += [("<|im_start|>", True), (message["role"], False), ("\n", True)]
        segments += [(message["content"], False), ("<|im_end|>\n", True)]
    return segments + ([("<|im_start|>assistant\n", True)] if add_generation_prompt else [])


def encode_segments(tokenizer: NaiveBPETokenizer, segments: Iterable[tuple[str, bool]]) -> list[int]:
    """Turn segments into ids: special tokens are recognised in markup only.

    >>> from bpe_tokenizer.reference import RegexBPETokenizer
    >>> tokenizer = RegexBPETokenizer().train("Hi", 257)
    >>> tokenizer.register_special_tokens({"<|im_end|>": 300})
    >>> encode_segments(tokenizer, [("Hi", False), ("<|im_end|>", True)])
    [256, 300]
    >>> len(encode_segments(tokenizer, [("<|im_end|>", False)]))
    10
    """
    ids: list[int] = []
    for text, is_markup in segments:
        ids += tokenizer.encode(text, allowed_special="all" if is_markup else "none")
    return ids
