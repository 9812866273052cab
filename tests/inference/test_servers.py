"""Models in servers: the protocols of vLLM, SGLang and llama-server, and their failures."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from bpe_tokenizer.errors import ContextLengthError, GenerationError, OptionError
from bpe_tokenizer.inference import (
    GenerationOptions,
    InferenceBackend,
    LanguageModel,
    LoadOptions,
    ModelCache,
    check_match,
)
from bpe_tokenizer.inference.servers.http_client import HttpClient
from inference.local_server import END_OF_TURN, LocalServer, continuation, running

KINDS = ["vllm", "sglang", "llamacpp"]
STREAMING = KINDS[:2]
PROMPT = [3, 1, 4]


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with running() as local:
        yield local


def load(server: LocalServer, suffix: str = "", **options: object) -> LanguageModel:
    return ModelCache().load(server.address + suffix, None, LoadOptions(**options))  # type: ignore[arg-type]


def expected(kind: str, count: int) -> list[int]:
    ids = continuation(PROMPT, count)
    if kind == "llamacpp" and END_OF_TURN in ids:
        return ids[: ids.index(END_OF_TURN)]
    return ids


# -- successes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("per_event", [1, 3, 64])
@pytest.mark.parametrize("kind", KINDS)
def test_ids_come_as_the_model_gives_them(server: LocalServer, kind: str, per_event: int) -> None:
    server.kind, server.per_event = kind, per_event
    model = load(server)
    assert model.backend is InferenceBackend.OPENAI_HTTP
    generation = model.generate(PROMPT, GenerationOptions(40))
    assert list(generation) == expected(kind, 40)
    assert generation.finish_reason == ("stop" if len(expected(kind, 40)) < 40 else "length")


@pytest.mark.parametrize("per_event", [1, 5])
def test_sglang_may_send_only_what_is_new(server: LocalServer, per_event: int) -> None:
    server.kind, server.is_incremental, server.per_event = "sglang", True, per_event
    assert list(load(server).generate(PROMPT, GenerationOptions(23))) == continuation(PROMPT, 23)


@pytest.mark.parametrize("fault", ["", "stop id left out"])
@pytest.mark.parametrize("per_event", [1, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_it_ends_at_a_stop_id(server: LocalServer, kind: str, per_event: int, fault: str) -> None:
    server.kind, server.per_event, server.fault = kind, per_event, fault
    ids = continuation(PROMPT, 6)
    stop_id = ids[5]
    assert stop_id not in ids[:5]
    generation = load(server).generate(PROMPT, GenerationOptions(30, stop_ids=frozenset({stop_id, 98})))
    assert list(generation) == ids[:5]
    assert (generation.finish_reason, generation.stop_id) == ("stop", stop_id)


def test_llama_server_stops_at_the_models_own_stop_id(server: LocalServer) -> None:
    server.kind = "llamacpp"
    prompt = next([start] for start in range(90) if END_OF_TURN in continuation([start], 12)[3:])
    ids = continuation(prompt, 12)
    ids = ids[: ids.index(END_OF_TURN)]
    own = load(server).generate(prompt, GenerationOptions(50))
    assert list(own) == ids
    assert (own.finish_reason, own.stop_id) == ("stop", None)
    ours = load(server).generate(prompt, GenerationOptions(50, stop_ids=frozenset({END_OF_TURN})))
    assert list(ours) == ids
    assert (ours.finish_reason, ours.stop_id) == ("stop", END_OF_TURN)


VLLM = {"model": "tiny", "prompt": PROMPT, "max_tokens": 5, "temperature": 0.3, "top_p": 0.8, "seed": 11}
VLLM |= {"stop_token_ids": [98, 99], "ignore_eos": True, "top_k": 0, "min_p": 0, "repetition_penalty": 1}
VLLM |= {"presence_penalty": 0, "frequency_penalty": 0, "stream": True, "return_token_ids": True}
SGLANG = {"input_ids": PROMPT, "stream": True, "max_new_tokens": 5, "temperature": 0.3, "top_p": 0.8}
SGLANG |= {"sampling_seed": 11, "ignore_eos": True, "top_k": -1, "min_p": 0, "repetition_penalty": 1}


@pytest.mark.parametrize(("kind", "asked"), [("vllm", VLLM), ("sglang", SGLANG)])
def test_what_a_server_that_streams_is_asked(
    server: LocalServer, kind: str, asked: dict[str, object]
) -> None:
    server.kind = kind
    list(load(server).generate(PROMPT, GenerationOptions(5, 0.3, 0.8, 11, frozenset({98, 99}))))
    body = server.requests[-1]
    assert asked.items() <= (body | body.get("sampling_params", {})).items()
    list(load(server).generate(PROMPT, GenerationOptions(5)))
    body = server.requests[-1]
    assert not {"seed", "sampling_seed"} & (body | body.get("sampling_params", {})).keys()


def test_what_llama_server_is_asked(server: LocalServer) -> None:
    server.kind = "llamacpp"
    ids = list(load(server).generate(PROMPT, GenerationOptions(20, 0.3, 0.8, 2**32 - 2)))
    assert ids == expected("llamacpp", 20)
    counts = [asked["n_predict"] for asked in server.requests]
    assert counts == [1, 2, 4, 8, 5]
    assert [asked["seed"] for asked in server.requests[:3]] == [2**32 - 2, 2**32 - 1, 1]
    asked = server.requests[2]
    assert asked["prompt"] == PROMPT + ids[:3]
    assert asked["samplers"] == ["temperature", "top_p"]
    assert (asked["temperature"], asked["top_p"], asked["cache_prompt"]) == (0.3, 0.8, True)
    assert (asked["return_tokens"], asked["stream"]) == (True, False)


def test_the_sizes_that_servers_tell(server: LocalServer) -> None:
    assert (load(server).vocab_size, load(server).context_length) == (None, 200)
    with pytest.raises(ContextLengthError, match="200 ids"):
        load(server).generate([1] * 200)
    assert load(server).generate([1] * 199).max_new_tokens == 1
    server.kind = "llamacpp"
    model = load(server)
    assert (model.vocab_size, model.context_length) == (100, 150)
    with pytest.raises(OptionError, match="100 is not in"):
        model.generate([100])
    check_match(server.address, {0: b"a", 99: b"b"}, model.vocab_size)


def test_names_keys_and_paths(server: LocalServer) -> None:
    server.names, server.api_key = ("first", "a/second model"), "secret"
    with pytest.raises(GenerationError, match=r"HTTP 401 Unauthorized.*api_key.*Unauthorized"):
        load(server)
    with pytest.raises(OptionError, match="'third'; its models are first, a/second model"):
        load(server, "/v1#third", api_key="secret")
    model = load(server, "/v1/#a/second%20model", api_key="secret")
    assert list(model.generate(PROMPT, GenerationOptions(5))) == continuation(PROMPT, 5)
    assert server.requests[-1]["model"] == "a/second model"
    with pytest.raises(GenerationError, match="HTTP 404"):
        load(server, "/é x", api_key="secret")


# -- cancelling -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", STREAMING)
def test_closing_ends_the_servers_work(server: LocalServer, kind: str) -> None:
    server.kind, server.fault = kind, "pause"
    model = load(server)
    generation = model.generate(PROMPT, GenerationOptions(190))
    assert list(itertools.islice(generation, 3)) == continuation(PROMPT, 3)
    generation.close()
    assert server.has_lost_client.wait(60)
    assert generation.finish_reason == "cancelled"
    server.fault = ""
    assert list(model.generate(PROMPT, GenerationOptions(9))) == continuation(PROMPT, 9)


@pytest.mark.parametrize("kind", KINDS)
def test_cancelling_wakes_who_waits(server: LocalServer, kind: str) -> None:
    server.kind, server.fault = kind, "silence"
    generation = load(server).generate(PROMPT)

    def cancel() -> None:
        while not server.requests:
            time.sleep(0.001)
        time.sleep(0.1)  # until it waits for the answer
        generation.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    assert list(generation) == []
    assert generation.finish_reason == "cancelled"
    assert server.has_lost_client.wait(60)
    thread.join()


# -- failures -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "fault", "message"),
    [
        ("vllm", "refusal", "HTTP 400 Bad Request: temperature must be warm"),
        ("sglang", "refusal", "HTTP 400 Bad Request: temperature must be warm"),
        ("llamacpp", "refusal", "HTTP 400 Bad Request: temperature must be warm"),
        ("vllm", "crash", "HTTP 500 .*Internal Server Error"),
        ("llamacpp", "crash", "HTTP 500 .*Internal Server Error"),
        ("vllm", "page", "answers with text/html instead of events: <html>Please log in"),
        ("vllm", "no ids", r"sends no token ids \(choices\[0\].token_ids is missing\)"),
        ("sglang", "no ids", r"sends no token ids \(output_ids is missing\)"),
        ("llamacpp", "no ids", r"sends no token ids \(tokens is missing\)"),
        ("vllm", "bad ids", r"choices\[0\].token_ids must be a list of ids, and is \['x'\]"),
        ("sglang", "lost ids", "lost ids: 1 were generated, and 0 sent"),
        ("llamacpp", "lost ids", "lost ids: 1 were generated, and 0 sent"),
        ("llamacpp", "garbage", r"did not send a JSON object: \[1, 2"),
    ],
)
def test_a_bad_answer_is_an_error_that_says_what(
    server: LocalServer, kind: str, fault: str, message: str
) -> None:
    server.kind, server.fault = kind, fault
    model = load(server, timeout=60)
    generation = model.generate(PROMPT)
    with pytest.raises(GenerationError, match=f"^{server.address}: {message}"):
        next(generation)
    assert generation.finish_reason == "error"
    assert list(generation) == []
    server.fault = ""
    assert list(model.generate(PROMPT, GenerationOptions(9))) == expected(kind, 9)


@pytest.mark.parametrize("kind", ["vllm", "llamacpp"])
def test_a_server_that_says_nothing(server: LocalServer, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    server.kind, server.fault = kind, "silence"
    # What does answer may take longer on a busy machine.
    monkeypatch.setattr(HttpClient, "get", lambda *_: {"data": [server.card("tiny")]})
    generation = load(server, timeout=0.2).generate(PROMPT)
    with pytest.raises(GenerationError, match=f"^{server.address}: sent nothing for 0.2 seconds"):
        next(generation)
    assert generation.finish_reason == "error"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("cut", "the connection failed|broke off"),
        ("end", "broke off before the answer was complete"),
        ("garbage", "did not send a JSON object: {oops"),
        ("error event", "out of memory"),
    ],
)
@pytest.mark.parametrize("kind", STREAMING)
def test_what_came_before_a_failure_is_there(
    server: LocalServer, kind: str, fault: str, message: str
) -> None:
    server.kind, server.fault = kind, fault
    generation = load(server).generate(PROMPT, GenerationOptions(20))
    assert list(itertools.islice(generation, 3)) == continuation(PROMPT, 3)
    with pytest.raises(GenerationError, match=message):
        next(generation)
    assert (generation.finish_reason, generation.ids) == ("error", continuation(PROMPT, 3))


@pytest.mark.parametrize(("kind", "what"), [("vllm", "event"), ("sglang", "event"), ("llamacpp", "answer")])
def test_an_answer_without_end_does_not_fill_the_memory(
    server: LocalServer, kind: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bpe_tokenizer.inference.servers.http_client._MAX_ANSWER", 1 << 17)
    server.kind, server.fault = kind, "endless"
    generation = load(server).generate(PROMPT, GenerationOptions(20))
    with pytest.raises(GenerationError, match=f"^{server.address}: sent an {what} of more than 131,072 b"):
        list(generation)


@pytest.mark.parametrize(
    ("fault", "message"), [("no models", "lists no models"), ("portal", "did not send a JSON object")]
)
def test_what_is_no_inference_server(server: LocalServer, fault: str, message: str) -> None:
    server.fault = fault
    with pytest.raises(GenerationError, match=message):
        load(server)


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]  # of nobody else, as long as it is bound
        with pytest.raises(GenerationError, match=rf"http://127.0.0.1:{port}: nothing listens there"):
            ModelCache().load(f"http://127.0.0.1:{port}")


WRONG = "http:// http://:80 http://host:port http://host?x=1 http://[::1 http://me:secret@host http://a..b:80"


@pytest.mark.parametrize("address", [*WRONG.split(), f"http://{'a' * 70}.com", "http://ho\0st:80"])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(OptionError) as caught:
        ModelCache().load(address)
    assert "secret" not in str(caught.value)
