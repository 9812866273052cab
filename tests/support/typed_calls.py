"""Calls of the public interface, with the types that a type checker must see.

`make lint` checks this file with all others. `assert_type` states the type of a result. A comment
`# type: ignore[code]` states an error: strict mypy reports such a comment that it does not need. Nothing
here runs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bpe_tokenizer import BPETokenizer, ChatSession, EncodingResult, PieceCounts, Reply, StreamDecoder, load
from bpe_tokenizer.chat.encoding import MessageSpan
from bpe_tokenizer.chat.segment import Segment
from bpe_tokenizer.chat.training_examples import TrainingExamples
from bpe_tokenizer.inference import Generation, GenerationOptions, LanguageModel, load_model
from bpe_tokenizer.view.visualization import Visualization

if TYPE_CHECKING:
    from typing import assert_type

Array = npt.NDArray[np.int64]
Ids = npt.NDArray[np.uint32]
TALK = [{"role": "user", "content": "Why?"}]


class Own(BPETokenizer):
    """A tokenizer of a user's class, which overrides a method with the signature that `help` shows."""

    def save(self, directory: str | PathLike[str], name: str = "tokenizer", verbose: bool = False) -> None:
        super().save(directory, name, verbose)


def encode(tokenizer: BPETokenizer, data: bytes) -> None:
    assert_type(tokenizer.encode("a"), list[int])
    assert_type(tokenizer.encode("a", allowed_special={"<s>"}, disallowed_special="all"), list[int])
    assert_type(tokenizer.encode_bytes(data), list[int])
    assert_type(tokenizer.encode_to_numpy("a"), Ids)
    assert_type(tokenizer.encode_ragged(["a"]), tuple[Ids, Array])
    assert_type(tokenizer.tokenize("a"), list[str])
    assert_type(tokenizer.count_tokens("a"), int)
    assert_type(tokenizer.split_by_tokens("a", 5), list[str])
    assert_type(tokenizer.encode_streaming(["a"]), Iterator[list[int]])
    assert_type(tokenizer.visualize("a"), Visualization)
    tokenizer.encode(data)  # type: ignore[arg-type]
    tokenizer.encode(["a"])  # type: ignore[arg-type]
    tokenizer.encode()  # type: ignore[call-arg]
    tokenizer.encode(input="a", out_type=str)  # type: ignore[call-arg]
    tokenizer.tokenize("a", pair="b")  # type: ignore[call-arg]
    tokenizer.encode("a", allowed_special="some")  # type: ignore[arg-type]
    tokenizer.encode_bytes("a")  # type: ignore[arg-type]
    tokenizer.encode_to_numpy(5)  # type: ignore[arg-type]


def call(tokenizer: BPETokenizer, text: str, texts: list[str], either: str | list[str], flag: bool) -> None:
    assert_type(tokenizer(text), list[int])
    assert_type(tokenizer(text, truncation=True, max_length=8), list[int])
    assert_type(tokenizer(text, text_pair=text), list[int])
    # What depends on an option has no type: `Any`.
    assert_type(tokenizer(text, padding="max_length", max_length=8), Any)
    assert_type(tokenizer(text, return_offsets_mapping=True), Any)
    assert_type(tokenizer(text, return_tensors="np"), Any)
    assert_type(tokenizer(texts), list[EncodingResult])
    assert_type(tokenizer(tuple(texts), padding=True), list[EncodingResult])
    assert_type(tokenizer(each for each in texts), list[EncodingResult])
    assert_type(tokenizer(texts, text_pair=texts), list[EncodingResult])
    assert_type(tokenizer(texts, return_dict=flag), Any)
    assert_type(tokenizer(texts, is_split_into_words=True), Any)
    assert_type(tokenizer(either), list[int] | list[EncodingResult])
    tokenizer(texts, texts)  # type: ignore[call-overload]
    tokenizer(5)  # type: ignore[call-overload]
    tokenizer(text, return_tensors="tf")  # type: ignore[call-overload]
    tokenizer(text, padding="longer")  # type: ignore[call-overload]


def encode_batch(tokenizer: BPETokenizer, texts: list[str], flag: bool) -> None:
    assert_type(tokenizer.encode_batch(texts), list[EncodingResult])
    assert_type(tokenizer.encode_batch(texts, text_pair=texts, stride=2), list[EncodingResult])
    assert_type(tokenizer.encode_batch([texts], is_split_into_words=True), list[EncodingResult])
    assert_type(tokenizer.encode_batch(texts, return_dict=True), Any)
    assert_type(tokenizer.encode_batch(texts, return_tensors="np"), dict[str, Array])
    assert_type(tokenizer.encode_batch(texts, return_tensors="pt", return_dict=flag), Any)
    assert_type(tokenizer.encode_batch(texts)[0].ids, list[int])
    assert_type(tokenizer.encode_batch(texts)[0]["attention_mask"], list[int])
    assert_type(tokenizer.encode_batch(texts)[0]["offset_mapping"], list[tuple[int, int]])
    assert_type(tokenizer.pad([[1], [2, 3]]), dict[str, Any])
    assert_type(tokenizer.pad(tokenizer.encode_batch(texts), return_tensors="np"), dict[str, Any])
    tokenizer.encode_batch(texts, truncate=True)  # type: ignore[call-overload]
    tokenizer.encode_batch([5])  # type: ignore[list-item]
    tokenizer.pad(["a"])  # type: ignore[list-item]
    tokenizer.pad([[1]], verbose=False)  # type: ignore[call-arg]


def decode(tokenizer: BPETokenizer, ids: list[int], array: Ids) -> None:
    assert_type(tokenizer.decode(ids), str)
    assert_type(tokenizer.decode(array), str)
    assert_type(tokenizer.decode(array[0]), str)
    assert_type(tokenizer.decode(5), str)
    assert_type(tokenizer.decode_bytes(range(5)), bytes)
    assert_type(tokenizer.decode_batch([ids, array]), list[str])
    tokenizer.decode("oops")  # type: ignore[arg-type]
    tokenizer.decode(token_ids=ids)  # type: ignore[call-arg]
    tokenizer.decode(ids, clean_up_tokenization_spaces=False)  # type: ignore[call-arg]
    tokenizer.decode(["oops"])  # type: ignore[list-item]
    tokenizer.decode(1.5)  # type: ignore[arg-type]
    tokenizer.decode_bytes("oops")  # type: ignore[arg-type]
    tokenizer.decode_batch(["oops"])  # type: ignore[list-item]
    decoder = StreamDecoder(tokenizer)
    assert_type(decoder.step(5) + decoder.step(ids) + decoder.step(array) + decoder.flush(), str)
    assert_type(decoder.decode(ids), Iterator[str])
    assert_type(decoder.decode([ids]), Iterator[str])
    decoder.step("oops")  # type: ignore[arg-type]


async def stream(tokenizer: BPETokenizer, texts: AsyncIterator[str], ids: AsyncIterator[int]) -> None:
    assert_type(tokenizer.encode_streaming_async(texts), AsyncIterator[list[int]])
    assert_type(StreamDecoder(tokenizer).decode_async(ids), AsyncIterator[str])
    tokenizer.encode_streaming_async(["a"])  # type: ignore[arg-type]
    assert_type(await tokenizer.chat_async(TALK, "model.gguf"), str)
    assert_type(await tokenizer.chat_async(TALK, "model.gguf", seed=1, stream=True), Reply)


def vocabulary(tokenizer: BPETokenizer, tokens: list[str], ids: list[int]) -> None:
    assert_type(tokenizer.vocab, dict[int, bytes])
    assert_type(tokenizer.get_vocab(), dict[str, int])
    assert_type(tokenizer.convert_tokens_to_ids("a"), int)
    assert_type(tokenizer.convert_tokens_to_ids(tokens), list[int])
    assert_type(tokenizer.convert_ids_to_tokens(5), str)
    assert_type(tokenizer.convert_ids_to_tokens(ids), list[str])
    assert_type(tokenizer.token_to_id("a"), int | None)
    assert_type(tokenizer.id_to_token(5), str | None)
    assert_type(tokenizer.eos_token, str | None)
    assert_type(tokenizer.eos_token_id, int | None)
    assert_type(tokenizer.add_special_tokens(["<s>"]), int)
    tokenizer.eos_token = 5  # type: ignore[assignment]
    tokenizer.eos_token_id = "</s>"  # type: ignore[assignment]
    tokenizer.vocab_size = 5  # type: ignore[misc]
    tokenizer.convert_tokens_to_ids(5)  # type: ignore[call-overload]
    tokenizer.convert_ids_to_tokens("a")  # type: ignore[arg-type]


def own_class(own: Own, counts: PieceCounts) -> None:
    """Whatever makes a tokenizer makes one of the class that was asked."""
    assert_type(Own.load("tokenizer.json"), Own)
    assert_type(Own.from_pretrained("directory"), Own)
    assert_type(Own.from_huggingface("owner/name"), Own)
    assert_type(Own.from_tiktoken("cl100k_base"), Own)
    assert_type(Own.load("model.gguf", "gguf"), Own)
    assert_type(Own.from_vocab({0: b"a"}), Own)
    assert_type(Own.from_model(own.model), Own)
    assert_type(Own.for_model("model.gguf"), Own)
    assert_type(own.train("corpus"), Own)
    assert_type(own.train_from_counts(counts), Own)
    assert_type(own.extend("corpus", 500), Own)
    assert_type(own.truncate_vocab(300), Own)
    assert_type(own.with_normalization(None), Own)
    assert_type(load("tokenizer.json"), BPETokenizer)
    Own.from_huggingface(5)  # type: ignore[arg-type]
    Own.from_tiktoken(5)  # type: ignore[arg-type]
    own.with_normalization("nfc")  # type: ignore[arg-type]
    own.train("corpus", tie_break="smallest")  # type: ignore[arg-type]
    own.train("corpus", show_progress=False)  # type: ignore[call-arg]
    own.save("directory", pretty=True)  # type: ignore[call-arg]
    own.add_special_tokens(special_tokens_dict={})  # type: ignore[call-arg]
    Own(vocab_size=300)  # type: ignore[call-arg]
    Own.load("hf:owner/name", revision="main")  # type: ignore[call-arg]


def templates(tokenizer: BPETokenizer, flag: bool, variables: dict[str, Any]) -> None:
    apply = tokenizer.apply_chat_template
    assert_type(apply(TALK), list[int])
    assert_type(apply(TALK, "chatml", tools=[], template_variables={"enable_thinking": True}), list[int])
    assert_type(apply(TALK, tokenize=False), str)
    assert_type(apply(TALK, return_assistant_mask=flag), Any)
    assert_type(apply(TALK, return_dict=True, return_message_spans=True), Any)
    assert_type(apply([TALK], return_tensors="np", padding=True), Any)
    apply("Why?")  # type: ignore[arg-type]
    assert_type(tokenizer.message_spans(TALK), list[MessageSpan])
    assert_type(tokenizer.chat_segments(TALK), list[tuple[Segment, list[int]]])
    assert_type(tokenizer.count_chat_tokens(TALK), int)
    assert_type(tokenizer.trim_messages(TALK, 100), list[Mapping[str, Any]])
    assert_type(tokenizer.stop_token_ids(), list[int])
    assert_type(tokenizer.training_examples([TALK, {"messages": TALK}]), TrainingExamples)


def chat(tokenizer: BPETokenizer, stop_ids: Collection[int]) -> None:
    assert_type(tokenizer.chat(TALK, "model.gguf"), str)
    assert_type(tokenizer.chat(TALK, load_model("model.gguf"), temperature=0, stop_ids=stop_ids), str)
    assert_type(tokenizer.chat(TALK, "model.gguf", None, None, 512, 0.7, 0.9, None, -1, 8192, True), str)
    assert_type(tokenizer.chat(TALK, "http://host:1", api_key="k", timeout=9), str)
    assert_type(tokenizer.chat(TALK, "model.gguf", max_new_tokens=9, stream=True), Reply)
    tokenizer.chat(TALK, "model.gguf", temprature=1)  # type: ignore[call-overload]
    with tokenizer.chat(TALK, "model.gguf", stream=True) as reply:
        assert_type(reply, Reply)
        assert_type(list(reply), list[str])
    with load_model("model.gguf") as model:
        assert_type(model, LanguageModel)
        assert_type(model.generate([1], GenerationOptions()), Generation)
    assert_type(list(ChatSession("model.gguf", tokenizer).send("Why?")), list[str])
    tokenizer.chat("Why?", "model.gguf")  # type: ignore[arg-type]
