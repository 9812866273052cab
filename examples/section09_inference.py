"""§9: inference: language models and the engines that run them.

No engine has to be installed: the model is one of our own, `library_expert.py`.
"""

from __future__ import annotations

import asyncio
import io
from contextlib import redirect_stderr
from pathlib import Path
from tempfile import TemporaryDirectory

from bpe_tokenizer import (
    BPETokenizer,
    ChatSession,
    ContextLengthError,
    GenerationError,
    InferenceBackend,
    MismatchError,
    MissingDependencyError,
    OptionError,
    Reply,
    detect_best_backend,
)
from bpe_tokenizer.inference import (
    Cancellation,
    FinishReason,
    Generation,
    GenerationOptions,
    LanguageModel,
    LoadOptions,
    Machine,
    ModelCache,
    ModelKind,
    backends_for,
    cached_models,
    check_match,
    choose_backend,
    free_model,
    free_models,
    install_command,
    kind_of,
    load_model,
    tokenizer_path,
)
from library_expert import NextIds, asked, expert, first_lines
from shared import heading, library_files, library_tokenizer, refused, show


def main() -> None:
    """Let a model reply in every way, and choose engines for larger models."""
    heading(9, "Inference")
    model = expert()
    show(f"A language model that has read about {len(first_lines())} modules", model)
    replies(model)
    streams(model)
    asyncio.run(without_blocking(model))
    ids_only(model)
    sessions(model)
    what_goes_wrong(model)
    backends()
    with TemporaryDirectory() as directory:
        models_in_files(Path(directory))
        kinds_of_models(Path(directory))
    model.close()
    assert model.is_closed


def replies(model: LanguageModel) -> None:
    """Ask for replies: the most likely one, sampled ones, one with a report."""
    tokenizer = library_tokenizer()
    reply = tokenizer.chat(asked("argparse"), model, "chatml", temperature=0)
    assert reply == first_lines()["argparse"]
    show("What is argparse?", reply)
    drawn = {
        seed: tokenizer.chat(asked("hammer"), model, "chatml", temperature=1.5, top_p=1.0, seed=seed)
        for seed in (1, 2, 3)
    }
    assert drawn[1] == tokenizer.chat(asked("hammer"), model, "chatml", temperature=1.5, top_p=1.0, seed=1)
    show(
        "What is hammer? It was never told, so it makes something up, the same for the same seed",
        *drawn.values(),
    )
    report = io.StringIO()
    with redirect_stderr(report):
        tokenizer.chat(asked("copy"), model, "chatml", temperature=0, max_new_tokens=3, verbose=True)
    show("With a report", report.getvalue())


def streams(model: LanguageModel) -> None:
    """Stream a reply, and cancel one."""
    tokenizer = library_tokenizer()
    reply = tokenizer.chat(asked("calendar"), model, "chatml", temperature=0, stream=True)
    assert isinstance(reply, Reply)
    parts = list(reply)
    assert "".join(parts) == reply.text == first_lines()["calendar"]
    assert reply.finish_reason == "stop"
    assert reply.generation.stop_id in tokenizer.stop_token_ids("chatml")
    assert reply.seconds_to_first_token is not None
    assert reply.tokens_per_second is not None
    show("What is calendar?", "|".join(parts), f"{reply.new_tokens} ids after {reply.prompt_tokens}")
    with tokenizer.chat(asked("cmd"), model, "chatml", temperature=0, stream=True) as interrupted:
        next(interrupted)
        interrupted.cancel()
        assert list(interrupted) == []
    show("Cancelled after a piece", interrupted.summary())
    left = tokenizer.chat(asked("cmd"), model, "chatml", stream=True)
    left.close()
    assert left.text == ""


async def without_blocking(model: LanguageModel) -> None:
    """Ask two questions concurrently in asyncio; the model answers in sequence."""
    tokenizer = library_tokenizer()
    answers = await asyncio.gather(
        *(tokenizer.chat_async(asked(name), model, "chatml", temperature=0) for name in ("bisect", "cmd"))
    )
    assert answers == [first_lines()["bisect"], first_lines()["cmd"]]
    reply = await tokenizer.chat_async(asked("bdb"), model, "chatml", temperature=0, stream=True)
    assert isinstance(reply, Reply)
    prompt = tokenizer.apply_chat_template(asked("bdb"), "chatml")
    generation = model.generate(prompt, GenerationOptions(temperature=0))
    first = await anext(generation)
    await generation.aclose()
    assert generation.ids == [first]
    show("Two concurrent replies, and a streamed one", *answers, "|".join([text async for text in reply]))
    stopped = await tokenizer.chat_async(asked("bdb"), model, "chatml", temperature=0, stream=True)
    assert isinstance(stopped, Reply)
    begun = await anext(stopped)
    await stopped.aclose()
    assert (stopped.text, stopped.finish_reason) == (begun, "cancelled")


def ids_only(model: LanguageModel) -> None:
    """Talk to the model without a tokenizer: ids in, ids out."""
    tokenizer = library_tokenizer()
    prompt = tokenizer.apply_chat_template(asked("copy"), "chatml")
    stop_ids = frozenset(tokenizer.stop_token_ids("chatml"))
    options = GenerationOptions(max_new_tokens=5, temperature=0, stop_ids=stop_ids)
    assert options.is_greedy
    generation = model.generate(prompt, options)
    assert isinstance(generation, Generation)
    ids = list(generation)
    reason: FinishReason | None = generation.finish_reason
    assert (reason, generation.new_tokens, generation.ids) == ("length", 5, ids)
    assert first_lines()["copy"].startswith(tokenizer.decode(ids))
    show("Ids in, ids out", f"{prompt} -> {ids} ({reason})")
    with model.generate(prompt, options) as cancelled:
        next(cancelled)
        cancelled.cancel()
        assert next(cancelled, None) is None
    assert cancelled.finish_reason == "cancelled"
    never_begun = model.generate(prompt, options)
    never_begun.close()
    assert never_begun.ids == []

    # A Cancellation asks an engine to stop, and wakes a waiting one.
    cancellation = Cancellation()
    woken: list[str] = []
    cancellation.call(lambda: woken.append("connection"))
    cancellation.cancel()
    assert cancellation.is_cancelled
    assert woken == ["connection"]


def sessions(model: LanguageModel) -> None:
    """Hold a conversation, undo a turn, save and resume it."""
    session = ChatSession(model, library_tokenizer(), "You know Python.", template="chatml", temperature=0)
    assert session.tokenizer is library_tokenizer()
    first = "".join(session.send("What is argparse?"))
    for name in ("ast", "bdb", "calendar", "cmd"):  # more than the context holds: the oldest turns stay out
        "".join(session.send(f"What is {name}? And please tell me more about it than the last time I asked."))
    assert len(session.messages) == 10
    assert session.reply is not None
    assert session.reply.prompt_tokens < 200 < sum(len(ids) for _, ids in session.segments())
    assert session.undo()
    assert len(session.messages) == 8
    with TemporaryDirectory() as directory:
        session.save(Path(directory, "talk.json"))
        other = ChatSession(model, library_tokenizer(), template="chatml")
        other.load(Path(directory, "talk.json"))
    assert other.conversation() == session.conversation()
    show("A session", *(f"{each['role']}: {each['content']}" for each in other.conversation()[:3]))
    assert other.messages[1]["content"] == first
    other.reset()
    assert other.conversation() == [{"role": "system", "content": "You know Python."}]
    with other:
        asking = other.send("What is copy?")
        assert next(asking)
        other.close()  # as the end of the block does: the running reply ends
        assert other.reply is not None
        assert other.reply.finish_reason == "cancelled"


def what_goes_wrong(model: LanguageModel) -> None:
    """Show the errors for prompts that are too long, and for engines that fail."""
    tokenizer = library_tokenizer()
    with refused(ContextLengthError, "A prompt that is longer than the context"):
        tokenizer.chat(asked("x" * 1000), model, "chatml")
    with refused(OptionError, "A temperature below zero"):
        tokenizer.chat(asked("x"), model, "chatml", temperature=-1)
    closed = LanguageModel(NextIds([], 300, 200), "another model")
    assert (closed.vocab_size, closed.context_length, closed.backend) == (300, 200, None)
    closed.close()
    with refused(GenerationError, "A model that was closed"):
        tokenizer.chat(asked("x"), closed, "chatml")


def backends() -> None:
    """Find the best backend for several machines, and for this one."""
    machines = {
        InferenceBackend.APPLE_MLX: Machine(
            system="Darwin", architecture="arm64", libraries=frozenset({"mlx_lm"})
        ),
        InferenceBackend.NVIDIA_CUDA: Machine(
            has_nvidia_gpu=True, libraries=frozenset({"llama_cpp"}), llama_cpp_builds=frozenset({"cuda"})
        ),
        InferenceBackend.AMD_ROCM: Machine(
            has_amd_gpu=True, libraries=frozenset({"llama_cpp"}), llama_cpp_builds=frozenset({"hip"})
        ),
        InferenceBackend.INTEL_OPENVINO: Machine(
            has_intel_hardware=True, libraries=frozenset({"openvino_genai"})
        ),
        InferenceBackend.CPU_LLAMA_CPP: Machine(libraries=frozenset({"llama_cpp"})),
        InferenceBackend.HUGGINGFACE_TRANSFORMERS: Machine(libraries=frozenset({"transformers", "torch"})),
    }
    for backend, machine in machines.items():
        assert machine.is_apple_silicon == (backend is InferenceBackend.APPLE_MLX)
        assert machine.libraries.issuperset(backend.libraries)
        assert detect_best_backend(machine=machine) is backend
    assert choose_backend(kind_of("http://localhost:8000")) is InferenceBackend.OPENAI_HTTP
    show(
        "The backends, what each needs, and how it is installed",
        *(f"{each.label}: {install_command(each) or 'nothing'}" for each in InferenceBackend),
    )
    assert install_command(InferenceBackend.APPLE_MLX, "Darwin") == "pip install mlx-lm"
    report = io.StringIO()
    with redirect_stderr(report):
        best = detect_best_backend(verbose=True)
    assert best is detect_best_backend(machine=Machine.here())
    show(f"The best one here is {best.name}", report.getvalue())
    with refused(MissingDependencyError, "A GGUF file without an installed engine"):
        choose_backend(ModelKind.GGUF, machine=Machine())


def models_in_files(here: Path) -> None:
    """Find the tokenizer in a model's own file, check that it is the right one, and try to load the model."""
    tokenizer = BPETokenizer("gpt2", normalization=None).train(library_files()[:30], 600, verbose=False)
    path = here / "model.gguf"
    tokenizer.export(path, "gguf")  # a model's file with everything but its weights
    assert kind_of(path) is ModelKind.GGUF
    assert tokenizer_path(path) == path
    assert BPETokenizer.for_model(path).vocab == tokenizer.vocab
    check_match(path, tokenizer.vocab, vocab_size=600)
    with refused(MismatchError, "Another tokenizer than the model's"):
        library_tokenizer().chat(asked("x"), path, "chatml")
    with refused((MissingDependencyError, GenerationError), "A model without weights, or without an engine"):
        load_model(path)
    with refused(OptionError, "A missing model"):
        load_model(here / "missing.gguf")
    own_cache = ModelCache(max_models=1)
    assert own_cache.max_models == 1
    options = LoadOptions(n_gpu_layers=0, n_ctx=512, verbose=False, api_key=None, timeout=5, device="CPU")
    with refused((MissingDependencyError, GenerationError), "The same with a separate cache"):
        own_cache.load(path, options=options)
    assert own_cache.models() == cached_models() == []
    assert free_model(path) == free_models() == own_cache.free(path) == own_cache.free_all() == 0


def kinds_of_models(here: Path) -> None:
    """Detect the kinds of models, and find engines that load them."""
    files = {
        ModelKind.SAFETENSORS: ("config.json", "model.safetensors"),
        ModelKind.OPENVINO_IR: ("openvino_model.xml", "openvino_model.bin"),
    }
    for kind, names in files.items():
        (here / kind.name).mkdir()
        for name in names:
            (here / kind.name / name).touch()
        assert kind_of(here / kind.name) is kind
        assert tokenizer_path(here / kind.name) is None
    assert kind_of("https://example.org/v1") is ModelKind.SERVER
    show(
        "What can be loaded, and by which backends",
        *(f"{kind.value}: {', '.join(backend.name for backend in backends_for(kind))}" for kind in ModelKind),
    )


if __name__ == "__main__":
    main()
