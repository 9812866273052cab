"""A typical mistake in each exercise of chapter 6."""

from __future__ import annotations

from bpe_tokenizer.reference import RegexBPETokenizer, chatml_segments

Messages = list[dict[str, str]]


def render_chatml(messages: Messages, add_generation_prompt: bool) -> str:
    text = "".join(f"<|im_start|>{each['role']}\n{each['content']}<|im_end|>\n" for each in messages)
    return text + "<|im_start|>assistant\n"  # Whether it is asked for or not.


def llama3_segments(messages: Messages) -> list[tuple[str, bool]]:
    segments = [("<|begin_of_text|>", True)]
    for message in messages:
        header = f"<|start_header_id|>{message['role']}<|end_header_id|>\n\n"  # The role becomes markup.
        segments += [(header, True), (message["content"], False), ("<|eot_id|>", True)]
    return [*segments, ("<|start_header_id|>assistant<|end_header_id|>\n\n", True)]


def count_forged(messages: Messages) -> int:
    return sum("<|im_start|>" in message["content"] for message in messages)  # At most one for each message.


def ids_and_mask(messages: Messages, tokenizer: RegexBPETokenizer) -> tuple[list[int], list[int]]:
    ids: list[int] = []
    mask: list[int] = []
    for message in messages:
        is_assistant = message["role"] == "assistant"
        for number, (text, is_markup) in enumerate(chatml_segments([message], False)):
            part = tokenizer.encode(text, allowed_special="all" if is_markup else "none")
            ids += part
            mask += [int(is_assistant and number >= 3)] * len(part)  # The line end, too.
    return ids, mask


def read_chat(ids: list[int], tokenizer: RegexBPETokenizer) -> list[tuple[str, str]]:
    messages = []
    for part in tokenizer.decode(ids).split("<|im_start|>")[1:]:  # Cuts the text and not the ids.
        role, _, content = part.partition("\n")
        messages.append((role, content.removesuffix("\n").removesuffix("<|im_end|>")))
    return messages
