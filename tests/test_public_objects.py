"""What people see of public objects: their `repr`, `help`, and the end of a `with` block."""

from __future__ import annotations

import inspect
import pydoc
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import bpe_tokenizer
from bpe_tokenizer import (
    AddedToken,
    BPETokenizer,
    ChatSession,
    InferenceBackend,
    PostProcessor,
    Progress,
    StreamDecoder,
    TokenizerError,
    count,
)
from bpe_tokenizer import chat as chat_room
from bpe_tokenizer import inference as inference_room
from bpe_tokenizer.chat import RoleMarkup, TurnTemplate
from bpe_tokenizer.chat.builtin_templates import BUILT_IN
from bpe_tokenizer.compat.tiktoken import Encoding
from bpe_tokenizer.corpus import tokenize_corpus
from bpe_tokenizer.distributed import CountSettings
from bpe_tokenizer.inference import (
    Cancellation,
    GenerationOptions,
    LanguageModel,
    LoadOptions,
    Machine,
    ModelCache,
    ModelKind,
)
from bpe_tokenizer.patterns import NAMED_PATTERNS
from bpe_tokenizer.view.reports.documents import Document
from bpe_tokenizer.view.reports.report import make_report

LONG = "low lower lowest " * 500
TALK = [{"role": "user", "content": LONG}]
# Classes without objects that users get: a namespace, and protocols.
WITHOUT_OBJECTS = {"ChatTemplate", "EngineModel", "OnProgress", "Template"}


class Parrot:
    """A model that repeats, and knows how it ends."""

    vocab_size, context_length = 1000, 100_000

    def __init__(self, ids: list[int]) -> None:
        self.ids, self.closed, self.ended = ids, 0, 0

    def generate(self, ids: object, options: GenerationOptions, cancellation: Cancellation) -> Iterator[int]:
        try:
            while True:
                yield from self.ids
        finally:
            self.ended += 1

    def close(self) -> None:
        self.closed += 1


@pytest.fixture(scope="module")
def tokenizer() -> BPETokenizer:
    special = ["<|im_start|>", "<|im_end|>", "<|pad|>"]
    return BPETokenizer().train(LONG, 300, special_tokens=special, verbose=False)


@pytest.fixture
def parrot(tokenizer: BPETokenizer) -> Parrot:
    return Parrot(tokenizer.encode("low "))


@pytest.fixture
def model(parrot: Parrot) -> LanguageModel:
    return LanguageModel(parrot, "parrot")


def test_the_repr_of_every_public_object_tells_its_main_facts(
    tokenizer: BPETokenizer, model: LanguageModel, tmp_path: Path
) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("low lower\n" * 10)
    made = tokenize_corpus(corpus, tmp_path / "ids", tokenizer, append_eos=False, verbose=False)
    report = make_report("small", tokenizer, [Document("corpus.txt", corpus)])
    ranks = {bytes([byte]): byte for byte in range(256)}
    reply = tokenizer.chat(TALK, model, "chatml", stream=True)
    session = ChatSession(model, tokenizer, "Be brief. " * 100, template="chatml")
    segment, _ = tokenizer.chat_segments(TALK, "chatml")[1]
    objects: list[tuple[object, list[str]]] = [
        (tokenizer, ["vocab_size=2", "merges=", "special_tokens=3"]),
        (BPETokenizer(), ["untrained", "NFC"]),
        (BPETokenizer("a|" * 5000 + "b", None), ["untrained", "None", "'a|a|"]),
        (tokenizer.model, ["tokens=2", "merges=", "added_tokens=3", "split_patterns=", "'NFC'"]),
        (tokenizer(["low"])[0], [f"input_ids={tokenizer.encode('low')}", "length=1"]),
        (tokenizer(LONG, return_offsets_mapping=True), ["length=1501", "offsets=[(0, 3)"]),
        (AddedToken("<s>", 5), ["'<s>'", "id=5", "special=True"]),
        (PostProcessor((1,), (2,)), ["(1,)", "(2,)"]),
        (count(LONG, "gpt2"), ["documents=1", "distinct="]),
        (Progress("Learning merges", 3, 9, "merges"), ["merges", "done=3"]),
        (StreamDecoder(tokenizer, skip_special_tokens=True), ["skip_special_tokens=True", "'replace'"]),
        (reply, ["text=''", "prompt_tokens=", "new_tokens=0", "finish_reason=None"]),
        (reply.generation, ["prompt_tokens=", "new_tokens=0", "finish_reason=None"]),
        (session, ["LanguageModel('parrot')", "messages=0", "'Be brief."]),
        (model, ["'parrot'"]),
        (LanguageModel(Parrot([]), "x" * 5000, InferenceBackend.CPU_LLAMA_CPP), ["'xxx", "CPU_LLAMA_CPP"]),
        (ModelCache(3), ["models=0", "max_models=3"]),
        (Cancellation(), ["is_cancelled=False"]),
        (GenerationOptions(), ["max_new_tokens=512"]),
        (LoadOptions(), ["n_ctx=8192"]),
        (Machine(), ["Linux"]),
        (ModelKind.GGUF, ["GGUF"]),
        (InferenceBackend.CPU_LLAMA_CPP, ["CPU_LLAMA_CPP"]),
        (tokenizer.training_examples([TALK], "chatml", 100), ["conversations=1", "max_length=100"]),
        (tokenizer.visualize(LONG), ["1,501 tokens", "8,500 characters"]),
        (BPETokenizer.eos_token, ["eos", "content"]),
        (segment, ["'low lower", "messages"]),
        (segment.origin, ["messages", "index=0"]),
        (BUILT_IN["chatml"].render(TALK), ["segments=", "'<|im_start|>"]),
        (RoleMarkup("Q: "), ["'Q: '"]),
        (TurnTemplate("plain", {"user": RoleMarkup("Q: ")}), ["'plain'"]),
        (BUILT_IN["alpaca"], ["InstructionTemplate('alpaca')"]),
        (CountSettings("o200k", None, [f"<{i}>" for i in range(1000)]), ["normalization=None", "'<0>'"]),
        (report, ["'small'", "files=1", "tokens="]),
        (made, ["documents=1", "tokens="]),
        (Encoding("small", pat_str="a", mergeable_ranks=ranks, special_tokens={}), ["small"]),
    ] + [(pattern, ["patterns=", "source="]) for pattern in NAMED_PATTERNS.values()]
    for each, facts in objects:
        shown = repr(each)
        assert type(each).__name__ in shown
        assert len(shown) <= 300, shown
        assert " object at 0x" not in shown
        assert "\n" not in shown
        assert [fact for fact in facts if fact not in shown] == [], shown
    known = {type(each).__name__ for each, _ in objects}
    public = {
        name
        for room in (bpe_tokenizer, chat_room, inference_room)
        for name in room.__all__
        if inspect.isclass(value := getattr(room, name)) and not issubclass(value, TokenizerError)
    }
    assert public - known == WITHOUT_OBJECTS


def test_a_with_block_ends_what_runs(tokenizer: BPETokenizer, parrot: Parrot) -> None:
    model = LanguageModel(parrot)
    with model:
        with tokenizer.chat(TALK, model, "chatml", stream=True) as reply:
            assert next(reply)
        assert (reply.finish_reason, parrot.ended) == ("cancelled", 1)
        with model.generate([1]) as generation:
            next(generation)
        assert (generation.finish_reason, parrot.ended) == ("cancelled", 2)
        with ChatSession(model, tokenizer, template="chatml") as session:
            texts = session.send("Why?")
            assert next(texts)
        assert session.reply is not None
        assert (session.reply.finish_reason, parrot.ended) == ("cancelled", 3)
        assert list(texts) == []
        assert [message["role"] for message in session.messages] == ["user", "assistant"]
        assert parrot.closed == 0
    assert parrot.closed == 1
    assert "closed" in repr(model)


def test_a_session_that_sent_nothing_closes(tokenizer: BPETokenizer, model: LanguageModel) -> None:
    with ChatSession(model, tokenizer, template="chatml") as session:
        pass
    session.close()
    assert session.reply is None


def test_leaving_without_closing_is_harmless() -> None:
    """What nobody closes ends with its last reference: without a warning, and the model is free again."""
    program = """
from bpe_tokenizer import BPETokenizer, ChatSession, StreamDecoder
from bpe_tokenizer.inference import LanguageModel

control = ["<|im_start|>", "<|im_end|>"]
tokenizer = BPETokenizer().train("user user", 261, special_tokens=control, verbose=False)

class Parrot:
    vocab_size, context_length = 261, 1000
    def generate(self, ids, options, cancellation):
        try:
            while True:
                yield from tokenizer.encode("Why?")
        finally:
            print("ended")
    def close(self):
        print("closed")

model = LanguageModel(Parrot())
talk = [{"role": "user", "content": "Why?"}]
next(tokenizer.chat(talk, model, "chatml", stream=True))
next(model.generate([1]))
next(ChatSession(model, tokenizer, template="chatml").send("Why?"))
next(tokenizer.encode_streaming(iter(["why ", "not ", "?"])))
StreamDecoder(tokenizer).step([0xC3])
reply = tokenizer.chat(talk, model, "chatml", stream=True)
print(next(reply))
"""
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", program]
    run = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert (run.stdout.split()[:4], run.stderr, run.returncode) == (["ended"] * 3 + ["W"], "", 0)


def test_help_shows_the_first_lines_to_type() -> None:
    shown = pydoc.plain(pydoc.render_doc(bpe_tokenizer))
    for line in ("from bpe_tokenizer import BPETokenizer", "tokenizer.encode(", "tokenizer.decode("):
        assert line in shown[:1500]
    assert "_core" not in shown.partition("\nCLASSES")[2].partition("\nDATA")[2]


def test_help_of_the_tokenizer_lists_public_methods_in_the_order_of_their_use() -> None:
    own = {name: value for name, value in vars(BPETokenizer).items() if not name.startswith("_")}
    assert [name for name, value in own.items() if not inspect.getdoc(value)] == []
    stages = [
        *("train", "load", "save", "add_special_tokens"),
        *("encode_batch", "decode_batch", "chat", "visualize"),
    ]
    assert [name for name in own if name in stages] == stages
    shown = pydoc.plain(pydoc.render_doc(BPETokenizer))
    words = re.sub(r"[\s|]+", " ", shown).replace("( ", "(")  # Python 3.15 breaks long signatures
    assert "encode(self, /, text, add_special_tokens=False" in words  # it is in the binding
    assert "The text of the EOS token" in shown
    assert "CompiledModel" not in shown
    assert " object at 0x" not in shown
