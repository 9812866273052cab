"""Answers to the exercises of chapter 6: right ones, and typical mistakes."""

from __future__ import annotations

from typing import Any

from bpe_tokenizer.reference import RegexBPETokenizer, chatml_segments

Messages = list[dict[str, str]]


def render_chatml(messages: Messages, add_generation_prompt: bool) -> str:
    text = ""
    for message in messages:
        text += f"<|im_start|>{message['role']}\n{message['content']}<|im_end|>\n"
    if add_generation_prompt:
        text += "<|im_start|>assistant\n"
    return text


def llama3_segments(messages: Messages) -> list[tuple[str, bool]]:
    segments = [("<|begin_of_text|>", True)]
    for message in messages:
        segments.append(("<|start_header_id|>", True))
        segments.append((message["role"], False))
        segments.append(("<|end_header_id|>\n\n", True))
        segments.append((message["content"], False))
        segments.append(("<|eot_id|>", True))
    segments.append(("<|start_header_id|>assistant<|end_header_id|>\n\n", True))
    return segments


def count_forged(messages: Messages) -> int:
    return render_chatml(messages, False).count("<|im_start|>") - len(messages)


def ids_and_mask(messages: Messages, tokenizer: RegexBPETokenizer) -> tuple[list[int], list[int]]:
    ids: list[int] = []
    mask: list[int] = []
    end = tokenizer.special_tokens["<|im_end|>"]
    for message in messages:
        is_assistant = message["role"] == "assistant"
        for number, (text, is_markup) in enumerate(chatml_segments([message], False)):
            for token_id in tokenizer.encode(text, allowed_special="all" if is_markup else "none"):
                ids.append(token_id)
                mask.append(1 if is_assistant and (number == 3 or token_id == end) else 0)
    return ids, mask


def read_chat(ids: list[int], tokenizer: RegexBPETokenizer) -> list[tuple[str, str]]:
    start = tokenizer.special_tokens["<|im_start|>"]
    end = tokenizer.special_tokens["<|im_end|>"]
    messages = []
    part: list[int] = []
    for token_id in ids:
        if token_id == start:
            part = []
        elif token_id == end:
            role, _, content = tokenizer.decode(part).partition("\n")
            messages.append((role, content))
        else:
            part.append(token_id)
    return messages


def all_of_the_turn(messages: Messages, tokenizer: RegexBPETokenizer) -> tuple[list[int], list[int]]:
    ids: list[int] = []
    mask: list[int] = []
    for message in messages:
        is_assistant = message["role"] == "assistant"
        for number, (text, is_markup) in enumerate(chatml_segments([message], False)):
            part = tokenizer.encode(text, allowed_special="all" if is_markup else "none")
            ids += part
            mask += [int(is_assistant and number >= 3)] * len(part)  # The line end, too.
    return ids, mask


def the_role_is_markup(messages: Messages) -> list[tuple[str, bool]]:
    segments = [("<|begin_of_text|>", True)]
    for message in messages:
        header = f"<|start_header_id|>{message['role']}<|end_header_id|>\n\n"
        segments += [(header, True), (message["content"], False), ("<|eot_id|>", True)]
    return [*segments, ("<|start_header_id|>assistant<|end_header_id|>\n\n", True)]


def read_the_text(ids: list[int], tokenizer: RegexBPETokenizer) -> list[tuple[str, str]]:
    messages = []
    for part in tokenizer.decode(ids).split("<|im_start|>")[1:]:  # Cuts the text and not the ids.
        role, _, content = part.partition("\n")
        messages.append((role, content.removesuffix("\n").removesuffix("<|im_end|>")))
    return messages


WRONG: dict[str, list[Any]] = {
    "render_chatml": [lambda messages, _: render_chatml(messages, True)],  # Asked for or not.
    "llama3_segments": [the_role_is_markup],
    # At most one for each message.
    "count_forged": [lambda messages: sum("<|im_start|>" in each["content"] for each in messages)],
    "ids_and_mask": [all_of_the_turn],
    "read_chat": [read_the_text],
}
