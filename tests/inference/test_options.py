"""The options of generation and loading, and sampling by them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer.errors import ArgumentTypeError, GenerationError, OptionError
from bpe_tokenizer.inference import GenerationOptions, LoadOptions
from bpe_tokenizer.inference.sampling import Sampler, nucleus


@pytest.mark.parametrize(
    ("kind", "error", "name", "values"),
    [
        (GenerationOptions, OptionError, "max_new_tokens", [0]),
        (GenerationOptions, OptionError, "temperature", [-0.1, float("nan"), float("inf")]),
        (GenerationOptions, OptionError, "top_p", [0, 1.01, float("nan")]),
        (GenerationOptions, OptionError, "seed", [-1, 2**32]),
        (GenerationOptions, ArgumentTypeError, "max_new_tokens", [1.5, True]),
        (GenerationOptions, ArgumentTypeError, "temperature", ["hot"]),
        (GenerationOptions, ArgumentTypeError, "top_p", [None]),
        (GenerationOptions, ArgumentTypeError, "seed", [0.5]),
        (GenerationOptions, ArgumentTypeError, "stop_ids", [5, "5", ["x"]]),
        (LoadOptions, OptionError, "n_gpu_layers", [-2]),
        (LoadOptions, OptionError, "n_ctx", [-1]),
        (LoadOptions, OptionError, "timeout", [0, float("inf")]),
        (LoadOptions, OptionError, "api_key", ["a\r\nHost: b"]),
        (LoadOptions, ArgumentTypeError, "device", [0]),
        (LoadOptions, ArgumentTypeError, "n_ctx", ["8k"]),
        (LoadOptions, ArgumentTypeError, "api_key", [5]),
    ],
)
def test_bad_options(kind: Any, error: type[Exception], name: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(error, match=name):
            kind(**{name: value})


def test_options_are_values() -> None:
    of_numpy: Any = (np.int64(5), np.float32(0), np.float64(1), np.uint32(7), {1, np.int64(2)})
    options = GenerationOptions(*of_numpy)
    assert options == GenerationOptions(5, 0.0, 1.0, 7, frozenset({1, 2}))
    numbers = (options.max_new_tokens, options.temperature, options.top_p, options.seed)
    assert [type(each) for each in numbers] == [int, float, float, int]
    assert hash(options) == hash(GenerationOptions(5, 0.0, 1.0, 7, frozenset({1, 2})))
    assert GenerationOptions() == GenerationOptions(512, 0.7, 0.9, None, frozenset())
    assert "secret" not in repr(LoadOptions(api_key="secret"))


def plain_nucleus(
    logits: np.ndarray[Any, Any], temperature: float, top_p: float
) -> tuple[list[int], list[float]]:
    """The definition, one step after the other: temperature, softmax, the likeliest up to top_p."""
    powers = np.exp((logits.astype(np.float64) - logits.max()) / temperature)
    shares = powers / powers.sum()
    kept: list[int] = []
    for token_id in np.argsort(-shares, kind="stable"):
        if kept and sum(shares[kept]) >= top_p:
            break
        kept.append(int(token_id))
    return kept, list(shares[kept] / shares[kept].sum())


@given(
    st.lists(st.floats(-30, 30, width=32), min_size=1, max_size=40),
    st.floats(0.05, 20),
    st.floats(0.001, 0.999),
)
def test_the_nucleus_is_what_it_is_defined_as(values: list[float], temperature: float, top_p: float) -> None:
    logits = np.array(values, np.float32)
    ids, weights = nucleus(logits, temperature, top_p)
    expected, shares = plain_nucleus(logits, temperature, top_p)
    # Where a sum meets top_p to the last bit, either is right.
    assert abs(len(ids) - len(expected)) <= 1
    shared = min(len(ids), len(expected))
    assert [values[i] for i in ids[:shared]] == [values[i] for i in expected[:shared]]
    if len(ids) == len(expected):
        np.testing.assert_allclose(weights / weights.sum(), shares, rtol=1e-6)


def test_hostile_logits() -> None:
    for temperature in (0, 1e-300, 1e-6, 1e6):
        sampler = Sampler(GenerationOptions(temperature=temperature, top_p=1.0))
        assert sampler.draw(np.array([1e30, -1e30, 3e30])) == 2
        for broken in ([np.nan, 1.0], [1.0, np.nan], [np.inf, 1.0], [-np.inf, -np.inf]):
            with pytest.raises(GenerationError, match="computes no numbers"):
                sampler.draw(np.array(broken, np.float32))
    masked = np.array([-np.inf, 0.0, -np.inf], np.float32)
    for top_p in (0.1, 1.0):
        drawn = {Sampler(GenerationOptions(temperature=5, top_p=top_p)).draw(masked) for _ in range(50)}
        assert drawn == {1}
    half = np.array([1, 2, 3], np.float16)
    assert Sampler(GenerationOptions(temperature=0)).draw(half) == 2
    assert half.tolist() == [1, 2, 3]


def test_draws_are_as_frequent_as_they_should_be() -> None:
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    sampler = Sampler(GenerationOptions(temperature=1.0, top_p=0.85, seed=4))
    counts = np.bincount([sampler.draw(np.log(shares)) for _ in range(20_000)], minlength=4)
    assert counts[3] == 0
    np.testing.assert_allclose(counts[:3] / 20_000, shares[:3] / 0.9, atol=0.015)
