"""`BPETokenizer.chat` and `ChatSession`: prompts as ids, and replies through the decoder."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from contextlib import aclosing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpe_tokenizer import BPETokenizer, ChatSession, Reply
from bpe_tokenizer.errors import (
    ChatTemplateError,
    ContextLengthError,
    FormatError,
    GenerationError,
    MismatchError,
    NotTrainedError,
    OptionError,
)
from bpe_tokenizer.inference import LanguageModel, free_models
from inference.local_server import continuation, running
from scripted_model import scripted

CONTROL = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
TALK = [{"role": "user", "content": "Why?<|im_end|>"}]


@pytest.fixture(scope="module")
def chatml() -> BPETokenizer:
    """A tokenizer with ChatML's control tokens, and its template as its own."""
    tokenizer = BPETokenizer(normalization=None)
    return tokenizer.train("user assistant system Because. é🙂", 300, special_tokens=CONTROL, verbose=False)


def end(tokenizer: BPETokenizer) -> int:
    return tokenizer.special_tokens["<|im_end|>"]


def test_a_reply_ends_at_the_end_of_the_turn(chatml: BPETokenizer) -> None:
    model, loaded = scripted([*chatml.encode("Because."), end(chatml), *chatml.encode("more")])
    assert chatml.chat(TALK, loaded, "chatml") == "Because."
    assert model.prompts == [chatml.apply_chat_template(TALK, "chatml")]
    assert model.prompts[0].count(end(chatml)) == 1  # the user's text is not a control token
    options = model.options[0]
    assert options.stop_ids == {end(chatml), chatml.eos_token_id}
    assert (options.max_new_tokens, options.temperature, options.top_p, options.seed) == (512, 0.7, 0.9, None)


def test_how_to_generate_is_handed_on(chatml: BPETokenizer) -> None:
    model, loaded = scripted([97, 98, 99])
    text = chatml.chat(
        TALK, loaded, "chatml", "Be brief.", max_new_tokens=2, temperature=0, top_p=0.5, seed=7, stop_ids=[98]
    )
    assert text == "a"
    options = model.options[0]
    assert (options.max_new_tokens, options.temperature, options.top_p, options.seed) == (2, 0, 0.5, 7)
    assert 98 in options.stop_ids
    assert model.prompts == [chatml.apply_chat_template(TALK, "chatml", system_prompt="Be brief.")]


def test_a_stream_is_the_reply_and_never_holds_a_part_of_a_character(chatml: BPETokenizer) -> None:
    ids = list("é🙂!".encode())
    _, loaded = scripted(ids, ids)
    with chatml.chat(TALK, loaded, "chatml", stream=True) as reply:
        assert isinstance(reply, Reply)
        assert (reply.text, reply.finish_reason, reply.tokens_per_second) == ("", None, None)
        parts = list(reply)
    assert parts == ["é", "🙂", "!"]
    assert reply.text == chatml.chat(TALK, loaded, "chatml") == "é🙂!"
    assert (reply.new_tokens, reply.finish_reason) == (len(ids), "stop")
    assert reply.prompt_tokens == chatml.count_chat_tokens(TALK, "chatml")
    assert reply.tokens_per_second is not None
    assert reply.seconds_to_first_token is not None
    assert reply.summary().startswith(f"{len(ids)} tokens after a prompt of {reply.prompt_tokens}, ")


def test_a_summary_has_length_speed_and_reason(chatml: BPETokenizer) -> None:
    _, loaded = scripted([], [97, 98], pause=0.001)
    reply = chatml.chat(TALK, loaded, "chatml", stream=True)
    assert reply.summary() == f"0 tokens after a prompt of {reply.prompt_tokens}"
    assert list(reply) == []
    assert reply.summary() == f"0 tokens after a prompt of {reply.prompt_tokens} (stop)"
    reply = chatml.chat(TALK, loaded, "chatml", max_new_tokens=2, stream=True)
    assert list(reply) == ["a", "b"]
    expected = rf"2 tokens after a prompt of {reply.prompt_tokens}, \d+\.\d tokens/s \(length\)"
    assert re.fullmatch(expected, reply.summary())


def test_what_is_no_text_at_the_end_comes_at_the_end(chatml: BPETokenizer) -> None:
    _, loaded = scripted([97, 0xC3])
    reply = chatml.chat(TALK, loaded, "chatml", stream=True)
    assert list(reply) == ["a", "\ufffd"]
    assert list(reply) == []
    assert reply.text == "a\ufffd"


def test_control_tokens_are_not_in_the_text(chatml: BPETokenizer) -> None:
    _, loaded = scripted([97, chatml.special_tokens["<|im_start|>"], 98])
    assert chatml.chat(TALK, loaded, "chatml") == "ab"


def test_a_reply_can_be_cancelled(chatml: BPETokenizer) -> None:
    _, loaded = scripted([97] * 100, [98])
    reply = chatml.chat(TALK, loaded, "chatml", stream=True)
    for _ in reply:
        reply.cancel()
    assert (reply.text, reply.finish_reason) == ("a", "cancelled")
    assert chatml.chat(TALK, loaded, "chatml") == "b"  # the model can be used again


# Each reply as its parts, a stop string or several, and the text up to it.
STOPPED = [
    (["a STOP b"], "STOP", "a "),
    (["a S", "TO", "P b"], "STOP", "a "),
    (["a", "\n", "\n", "b"], "\n\n", "a"),
    (["SSTO", "SSTOP"], "STOP", "SSTOS"),
    (["aaab"], ["aab"], "a"),
    (["abc"], ["abc", "b"], "a"),  # "b" is complete first
    (["xabc"], ["bc", "abc"], "x"),
    (["é🙂", "é"], "🙂é", "é"),
    (["a ST"], "STOP", "a ST"),
    (["never"], ["STOP", "x"], "never"),
    (["STOP"], ("STOP",), ""),
    (["ab<|im_start|>c"], "<|im_start|>", "ab"),  # a special token
]


@pytest.mark.parametrize(("parts", "stop", "text"), STOPPED)
@pytest.mark.parametrize("by_byte", [False, True])
def test_a_stop_string_ends_a_reply(
    chatml: BPETokenizer, parts: list[str], stop: Any, text: str, by_byte: bool
) -> None:
    ids = [token_id for part in parts for token_id in chatml.encode(part, allowed_special="all")]
    if by_byte and stop != "<|im_start|>":
        ids = list("".join(parts).encode())
    model, loaded = scripted(*[[*ids, *chatml.encode(" more")] if "".join(parts) != text else ids] * 4)
    assert chatml.chat(TALK, loaded, "chatml", stop=stop) == text
    reply = chatml.chat(TALK, loaded, "chatml", stop=stop, stream=True)
    assert ("".join(reply), reply.text, reply.finish_reason) == (text, text, "stop")
    assert list(reply) == []
    assert asyncio.run(chatml.chat_async(TALK, loaded, "chatml", stop=stop)) == text
    session = ChatSession(loaded, chatml, template="chatml", stop=stop)
    assert "".join(session.send("Why?")) == session.messages[-1]["content"] == text
    assert len(model.prompts) == 4  # each generation ended, so the next one began


def test_a_stop_string_ends_the_engine(chatml: BPETokenizer) -> None:
    sampled: list[int] = []
    _, loaded = scripted(list(b"ab, END, and much more") * 2, list(b"a EN"), before_each=sampled.append)
    reply = chatml.chat(TALK, loaded, "chatml", stop="END", stream=True)
    # Only text that could begin a stop string waits.
    assert list(reply) == ["a", "b", ",", " "]
    assert (sampled, reply.new_tokens, reply.generation.finish_reason) == ([*range(7)], 7, "stop")
    reply = chatml.chat(TALK, loaded, "chatml", stop="END", stream=True, max_new_tokens=4)
    assert list(reply) == ["a", " ", "EN"]
    assert reply.finish_reason == "length"
    # A stop string at the last id that is allowed is the reason.
    _, loaded = scripted(list(b"aEND"))
    reply = chatml.chat(TALK, loaded, "chatml", stop="END", stream=True, max_new_tokens=4)
    assert (list(reply), reply.finish_reason) == (["a"], "stop")


def test_stop_strings_that_are_none(chatml: BPETokenizer) -> None:
    wrong: Any
    for wrong, message in (
        (3, "not int"),
        (b"a", "holds b.a"),
        (np.array(5), "not ndarray"),
        ([1], "it holds 1"),
        (["a", ""], "empty"),
    ):
        with pytest.raises((TypeError, OptionError), match=message):
            chatml.chat(TALK, scripted([])[1], "chatml", stop=wrong)


def test_an_id_without_a_token_is_a_replacement_character(chatml: BPETokenizer) -> None:
    """Embeddings have padding rows, and a model can draw their ids."""
    _, loaded = scripted([97, 0xC3, 5000, 98], vocab_size=5120)
    assert chatml.chat(TALK, loaded, "chatml") == "a\ufffd\ufffdb"


def test_a_reply_ends_where_the_models_files_say(chatml: BPETokenizer) -> None:
    start = chatml.special_tokens["<|im_start|>"]
    model, _ = scripted([97, start, 98], [97, 98])
    loaded = LanguageModel(model, stop_ids=[start, 98, 10_000])
    assert chatml.chat(TALK, loaded, "chatml") == "a"
    assert model.options[0].stop_ids == {start, end(chatml), chatml.eos_token_id}
    # A word is none, whatever a file says.
    assert chatml.chat(TALK, loaded, "chatml") == "ab"


def test_a_reply_is_closed_in_a_loop(chatml: BPETokenizer) -> None:
    async def first() -> str:
        _, loaded = scripted([97] * 100, [98])
        async with aclosing(await chatml.chat_async(TALK, loaded, "chatml", stream=True)) as reply:
            async for text in reply:
                assert text == "a"
                break
        assert reply.finish_reason == "cancelled"
        whole = await chatml.chat_async(TALK, loaded, "chatml")
        assert isinstance(whole, str)
        return whole

    assert asyncio.run(first()) == "b"


def test_nothing_is_printed_unless_asked(chatml: BPETokenizer, capfd: pytest.CaptureFixture[str]) -> None:
    _, loaded = scripted([97], [97])
    chatml.chat(TALK, loaded, "chatml")
    assert capfd.readouterr() == ("", "")
    chatml.chat(TALK, loaded, "chatml", verbose=True)
    assert "1 token after a prompt of" in capfd.readouterr().err


def test_a_prompt_that_does_not_fit(chatml: BPETokenizer) -> None:
    length = chatml.count_chat_tokens(TALK, "chatml")
    for context in (length - 1, length):
        _, loaded = scripted([97], context_length=context)
        with pytest.raises(ContextLengthError, match=f"{length} ids.*{context}") as raised:
            chatml.chat(TALK, loaded, "chatml")
        assert (raised.value.length, raised.value.limit) == (length, context)
    _, loaded = scripted([97, 98], context_length=length + 1)
    assert chatml.chat(TALK, loaded, "chatml") == "a"


def test_what_goes_wrong_says_so(chatml: BPETokenizer, tmp_path: Path) -> None:
    _, loaded = scripted([97, ValueError("out of order")])
    with pytest.raises(GenerationError, match="out of order"):
        chatml.chat(TALK, loaded, "chatml")
    with pytest.raises(OptionError, match="temperature"):
        chatml.chat(TALK, loaded, "chatml", temperature=-1)
    with pytest.raises(ChatTemplateError):
        chatml.chat(TALK, loaded, "{{ raise_exception('no') }}")
    with pytest.raises(OptionError, match="no such file"):
        chatml.chat(TALK, tmp_path / "nowhere.gguf", "chatml")
    with pytest.raises(NotTrainedError):
        BPETokenizer().chat(TALK, loaded, "chatml")


def test_another_models_tokenizer_is_refused_before_anything_is_loaded(
    chatml: BPETokenizer, tokenizer: BPETokenizer, tmp_path: Path
) -> None:
    chatml.export(tmp_path / "model.gguf", "gguf")
    with pytest.raises(MismatchError, match="id 256"):
        tokenizer.chat(TALK, tmp_path / "model.gguf", "chatml", plain_markup=True)


def test_the_models_own_tokenizer(chatml: BPETokenizer, tmp_path: Path) -> None:
    chatml.export(tmp_path / "model.gguf", "gguf")
    assert BPETokenizer.for_model(tmp_path / "model.gguf").vocab == chatml.vocab
    # It is not read again to be compared with itself.
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr("bpe_tokenizer.inference.tokenizer_match.check_match")
        load_model = "bpe_tokenizer.inference.tokenizer_match.load_model"
        patch.setattr(load_model, lambda *_, **__: scripted([97])[1])
        own = BPETokenizer.for_model(tmp_path / "model.gguf")
        assert own.chat(TALK, tmp_path / "model.gguf", "chatml") == "a"
        with pytest.raises(NameError):
            chatml.chat(TALK, tmp_path / "model.gguf", "chatml")
    directory = tmp_path / "model"
    chatml.save(directory)
    (directory / "config.json").write_text("{}")
    (directory / "model.safetensors").write_bytes(b"")
    assert BPETokenizer.for_model(directory).vocab == chatml.vocab
    with pytest.raises(OptionError, match="without a tokenizer"):
        BPETokenizer.for_model("http://localhost:1")


def test_a_server_is_a_model() -> None:
    tokenizer = BPETokenizer(normalization=None).train("abab", 259, special_tokens=CONTROL, verbose=False)
    with running() as server:
        prompt = tokenizer.apply_chat_template(TALK, "chatml")
        expected = bytes(continuation(prompt, 20)).decode("ascii")
        server.kind = "llamacpp"  # it tells the size of its vocabulary
        with pytest.raises(MismatchError, match="is not below the model's 100"):
            tokenizer.chat(TALK, server.address, "chatml")
        free_models()
        server.kind = "vllm"
        assert tokenizer.chat(TALK, server.address, "chatml", max_new_tokens=20) == expected
    free_models()


# -- sessions -------------------------------------------------------------------------------------------


def session_of(
    tokenizer: BPETokenizer, *replies: str, **settings: object
) -> tuple[ChatSession, list[list[int]]]:
    model, loaded = scripted(*(tokenizer.encode(reply) for reply in replies), **settings)
    return ChatSession(loaded, tokenizer, template="chatml"), model.prompts


def test_a_session_remembers(chatml: BPETokenizer) -> None:
    session, prompts = session_of(chatml, "One.", "Two.")
    assert session.reply is None
    assert ["".join(session.send(text)) for text in ("1?", "2?")] == ["One.", "Two."]
    said = [("user", "1?"), ("assistant", "One."), ("user", "2?"), ("assistant", "Two.")]
    assert session.messages == [{"role": role, "content": content} for role, content in said]
    assert prompts[1] == chatml.apply_chat_template(session.messages[:3], "chatml")
    session.reset()
    assert session.messages == []
    assert not session.undo()


def test_undo_removes_the_last_turn_of_any_number(chatml: BPETokenizer) -> None:
    session, _ = session_of(chatml, "One.", "Two.", "Three.")
    for text in ("1?", "2?", "3?"):
        list(session.send(text))
    for left in (4, 2, 0):
        assert session.undo()
        assert len(session.messages) == left


def test_the_system_prompt_comes_first(chatml: BPETokenizer) -> None:
    session, prompts = session_of(chatml, "One.")
    session.system_prompt = "Be brief."
    list(session.send("1?"))
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1?"}]
    assert prompts == [chatml.apply_chat_template(asked, "chatml")]
    assert session.conversation()[:2] == asked
    prompted = ChatSession(session._model, chatml, "Rhyme.", template="chatml")
    assert prompted.conversation() == [{"role": "system", "content": "Rhyme."}]


@pytest.mark.parametrize("limit", [1000, 90])
def test_every_system_message_of_a_file_is_sent(chatml: BPETokenizer, tmp_path: Path, limit: int) -> None:
    roles = ("system", "system", "user", "assistant", "system")
    talk = [{"role": role, "content": f"{role} {number}"} for number, role in enumerate(roles)]
    (tmp_path / "talk.json").write_text(json.dumps({"messages": talk}))
    session, prompts = session_of(chatml, "Yes.", context_length=limit)
    session.load(tmp_path / "talk.json")
    assert session.conversation() == talk
    list(session.send("1?"))
    kept = talk if limit == 1000 else talk[:2]
    assert prompts == [chatml.apply_chat_template([*kept, {"role": "user", "content": "1?"}], "chatml")]


def test_an_empty_system_prompt_is_none(chatml: BPETokenizer) -> None:
    session, prompts = session_of(chatml, "One.")
    session.system_prompt = ""
    list(session.send("1?"))
    assert prompts == [chatml.apply_chat_template(session.conversation()[:1], "chatml")]


def test_a_failed_turn_is_taken_back(chatml: BPETokenizer) -> None:
    _, loaded = scripted([97, RuntimeError("broken")], [98])
    session = ChatSession(loaded, chatml, template="chatml")
    with pytest.raises(GenerationError, match="broken"):
        list(session.send("1?"))
    assert session.messages == []
    assert list(session.send("1?")) == ["b"]
    assert [message["content"] for message in session.messages] == ["1?", "b"]


def test_of_a_stopped_reply_what_there_is_stays(chatml: BPETokenizer) -> None:
    session, _ = session_of(chatml, "aaaa", "bbbb")
    texts = session.send("1?")
    next(texts)
    texts.close()
    assert [message["content"] for message in session.messages] == ["1?", "a"]
    assert "".join(session.send("2?")) == "bbbb"

    def interrupt(count: int) -> None:
        if count == 2:
            raise KeyboardInterrupt

    _, loaded = scripted(list(b"aaaa"), before_each=interrupt)
    session = ChatSession(loaded, chatml, template="chatml")
    with pytest.raises(KeyboardInterrupt):
        list(session.send("1?"))
    assert [message["content"] for message in session.messages] == ["1?", "aa"]


def test_the_oldest_turns_leave_the_prompt(chatml: BPETokenizer) -> None:
    one = chatml.count_chat_tokens([{"role": "user", "content": "x" * 20}], "chatml")
    session, prompts = session_of(chatml, *["y"] * 10, context_length=3 * one)
    for _ in range(10):
        assert "".join(session.send("x" * 20)) == "y"
    assert len(session.messages) == 20
    assert max(map(len, prompts)) < 3 * one
    newest = session.messages[18]
    assert chatml.apply_chat_template([newest], "chatml")[-one:] == prompts[-1][-one:]
    with pytest.raises(ContextLengthError, match="the context of scripted holds"):
        list(session.send("x" * 1000))
    assert (len(session.messages), session.reply) == (20, None)
    strict = ChatSession(session._model, chatml, trim=False, template="chatml")
    strict.messages = list(session.messages)
    with pytest.raises(ContextLengthError):
        list(strict.send("x"))


# A token for each character, so that a turn has two.
CONTENTS = "{% for message in messages %}{{ message.content }}{% endfor %}"


@pytest.mark.parametrize(("options", "room"), [({}, 25), ({"max_new_tokens": 5}, 5), ({"seed": 1}, 25)])
def test_a_trimmed_prompt_leaves_room_for_the_reply(
    options: dict[str, Any], room: int, chatml: BPETokenizer
) -> None:
    """The requested room, and at most a quarter of the context."""
    model, loaded = scripted([], context_length=100)
    session = ChatSession(loaded, chatml, template=CONTENTS, **options)
    session.messages = [{"role": role, "content": "x"} for role in ("user", "assistant")] * 60
    list(session.send("x"))
    longest = 100 - room
    assert [len(prompt) for prompt in model.prompts] == [longest - (longest + 1) % 2]


def test_the_last_turn_may_fill_the_context_up_to_one_token(chatml: BPETokenizer) -> None:
    model, loaded = scripted([97], context_length=100)
    session = ChatSession(loaded, chatml, template=CONTENTS)
    session.messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "x"}]
    assert "".join(session.send("x" * 99)) == "a"
    assert [len(prompt) for prompt in model.prompts] == [99]


def test_a_context_without_room_for_any_turn(chatml: BPETokenizer) -> None:
    _, loaded = scripted([97], context_length=1)
    session = ChatSession(loaded, chatml, template=CONTENTS)
    session.messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "x"}]
    with pytest.raises(ContextLengthError) as raised:
        list(session.send("xx"))
    assert (raised.value.length, raised.value.limit) == (4, 1)


def test_sessions_are_saved_and_loaded(chatml: BPETokenizer, tmp_path: Path) -> None:
    session, _ = session_of(chatml, "É🙂")
    session.system_prompt = "Be brief."
    list(session.send("1?\ud800"))
    session.save(tmp_path / "talk.json")
    saved = json.dumps({"messages": session.conversation()}, indent=2, ensure_ascii=False) + "\n"
    assert (tmp_path / "talk.json").read_bytes() == saved.encode("utf-8", "surrogatepass")
    other, _ = session_of(chatml)
    other.load(tmp_path / "talk.json")
    assert (other.messages, other.system_prompt) == (session.messages, "Be brief.")
    for broken in ("", "[]", "{}", '{"messages": []}', '{"messages": [{"role": 1}]}', "\xff", "[" * 10**5):
        (tmp_path / "broken.json").write_text(broken, encoding="latin-1")
        with pytest.raises(FormatError, match=r"broken\.json"):
            other.load(tmp_path / "broken.json")
    (tmp_path / "broken.json").write_text('[{"role": "user", "content": "1?"}]')
    with pytest.raises(FormatError, match="not an object with 'messages'"):
        other.load(tmp_path / "broken.json")
    assert other.messages == session.messages


def test_a_session_without_messages_is_not_saved(chatml: BPETokenizer, tmp_path: Path) -> None:
    session, _ = session_of(chatml)
    with pytest.raises(OptionError, match="there are no messages"):
        session.save(tmp_path / "talk.json")
    assert not (tmp_path / "talk.json").exists()


@pytest.mark.parametrize(
    "fields",
    [{"content": [{"type": "text", "text": "Be brief."}]}, {"content": "Be brief.", "name": "rules"}],
)
def test_a_system_message_that_is_no_text_is_loaded_as_it_is(
    chatml: BPETokenizer, tmp_path: Path, fields: dict[str, object]
) -> None:
    talk = [{"role": "system", **fields}, {"role": "user", "content": "1?"}]
    (tmp_path / "talk.json").write_text(json.dumps({"messages": talk}))
    session, _ = session_of(chatml)
    session.load(tmp_path / "talk.json")
    assert (session.system_prompt, session.conversation()) == (None, talk)


def test_a_session_needs_a_tokenizer(chatml: BPETokenizer, tmp_path: Path) -> None:
    _, loaded = scripted([97])
    with pytest.raises(OptionError, match="pass tokenizer="):
        ChatSession(loaded)
    chatml.export(tmp_path / "model.gguf", "gguf")
    assert ChatSession(tmp_path / "model.gguf").tokenizer.vocab == chatml.vocab
    shutil.rmtree(tmp_path)
