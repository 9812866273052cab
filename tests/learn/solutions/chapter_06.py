"""Right answers to the exercises of chapter 6."""

from __future__ import annotations

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
