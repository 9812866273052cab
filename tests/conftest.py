"""Fixtures that all tests share, and the sampling of long tests: see "Sampled tests" in CONTRIBUTING.md."""

from __future__ import annotations

import gc
import os
import signal
import sysconfig
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from bpe_tokenizer import BPETokenizer
from case_ids import case_id
from sampling import DAY, SHARE, sample

_FIXTURES = "BPE_TOKENIZER_FIXTURES"

# A deadline would only measure what else the machine does.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")

# Tests change the working directory.
if os.environ.get(_FIXTURES):
    os.environ[_FIXTURES] = str(Path(os.environ[_FIXTURES]).resolve())


def pytest_report_header(config: pytest.Config) -> str:
    """Say which sample this run takes, so that it can be repeated."""
    share = os.environ.get(SHARE, "the share that each test states")
    return f"sampled tests: {DAY}={os.environ[DAY]}, {SHARE}: {share}"


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Name a case by its value."""
    return case_id(val)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the cases of sampled tests, and of groups of them, that do not belong to the day."""
    cases: defaultdict[tuple[str, float], list[pytest.Item]] = defaultdict(list)
    for item in items:
        marker = item.get_closest_marker("sampled")
        if item.nodeid in config.args:
            continue  # a case that the command line names always runs
        if marker is not None:
            share, *group = marker.args
            cases[group[0] if group else item.nodeid.partition("[")[0], share].append(item)
        elif item.get_closest_marker("slow") is not None:
            cases["slow", 1.0].append(item)
    kept = {each for (name, share), group in cases.items() for each in sample(group, share, name)}
    deselected = [item for group in cases.values() for item in group if item not in kept]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        dropped = set(deselected)
        items[:] = [item for item in items if item not in dropped]


def pytest_collection_finish() -> None:
    """Keep the million objects of the collected tests out of each later collection of garbage (0.4 s)."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The directory of real vocabularies and corpora."""
    directory = os.environ.get(_FIXTURES)
    if not directory:
        pytest.skip(f"{_FIXTURES} does not name the directory of vocabularies and corpora")
    return Path(directory)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Restore the default handler of SIGINT in this process and in the processes that the test starts.

    A shell without job control starts `make test &` with SIGINT ignored, and children inherit that.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


# Characters of every UTF-8 length, combining and precomposed, wide spaces, mixed newlines, a zero byte.
MIXED_TEXT = (
    "Grüße, naïve café! cafe\u0301 Ελληνικά Привет мир 日本語のテキスト 한국어 עברית हिन्दी\n"
    "emoji 👩‍👩‍👧 🇫🇷 ✓ 1234567 ½ ٣٤٥  two  spaces\t\ttabs\r\n\r\nI'll don't WE'RE it'S ſ K\u2003\u3000end\0."
)


@pytest.fixture(scope="session")
def stdlib_files() -> list[Path]:
    """Some sources of the standard library."""
    library = Path(sysconfig.get_paths()["stdlib"])
    names = [
        *("argparse.py", "ast.py", "datetime.py", "difflib.py"),
        *("inspect.py", "json/decoder.py", "textwrap.py"),
    ]
    return [path for path in map(library.joinpath, names) if path.is_file()]


@pytest.fixture(scope="session")
def stdlib_texts(stdlib_files: list[Path]) -> list[str]:
    """Their texts, one a file."""
    return [path.read_text(encoding="utf-8") for path in stdlib_files]


@pytest.fixture(scope="session")
def mixed_text() -> str:
    """A short text with every kind of character."""
    return MIXED_TEXT


@pytest.fixture(scope="session")
def tokenizer(stdlib_texts: list[str]) -> BPETokenizer:
    """Defaults (cl100k, NFC), 1,000 ids, with a token of each role at 256 to 259."""
    return BPETokenizer().train(
        [*stdlib_texts, MIXED_TEXT],
        vocab_size=1000,
        special_tokens=["<|bos|>", "<|eos|>", "<|pad|>", "<|unk|>"],
        verbose=False,
    )


@pytest.fixture(scope="session")
def plain_tokenizer(stdlib_texts: list[str]) -> BPETokenizer:
    """GPT-2's pattern, no normalisation, no special tokens: 600 ids."""
    tokenizer = BPETokenizer(split_pattern="gpt2", normalization=None)
    return tokenizer.train([*stdlib_texts, MIXED_TEXT], vocab_size=600, verbose=False)
