"""The first lines of newcomers with five habits: each line works, or its error says what to type."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

import bpe_tokenizer

TEXT = "low lower lowest the lowest low\nthe new newest, newer and lower\n" * 4
TALK = [{"role": "user", "content": "hi"}]
# Lines in the order of a session. After ` => ` stands the `repr` of a line's value, or, with `!!`, the
# pattern of its error.
HABITS = {
    "the documents": r"""
from bpe_tokenizer import BPETokenizer, ChatTemplate, SPLIT_PATTERNS
tokenizer = BPETokenizer(split_pattern=SPLIT_PATTERNS['cl100k'])
tokenizer.encode('low')  => !! call train.*BPETokenizer.load
tokenizer = tokenizer.train(TEXT, 290, 2, ['<s>', '</s>', '<pad>'], False)
tokenizer.decode(tokenizer.encode('Hello, world! 🙂'))  => 'Hello, world! 🙂'
len(tokenizer('Hello, world!', padding='max_length', truncation=True, max_length=64))  => 64
tokenizer.encode_batch(['low', 'newest'], True, 'none', True, True, 8)[0].attention_mask  => [1, 1, 1, 0, 0]
tokenizer.decode_batch([tokenizer.encode('low')], False, True)  => ['low']
tokenizer.save('demo', 'demo')
BPETokenizer.from_pretrained('demo') == tokenizer  => True
tokenizer.apply_chat_template(TALK)
=> !! no chat template, and lacks control tokens of the default 'llama3': choose one of template=
ChatTemplate.llama3(TALK)[:17]  => '<|begin_of_text|>'
sorted(tokenizer.get_cache_stats())  => ['hit_rate_pct', 'hits', 'misses', 'size']
tokenizer.decode([100000])  => !! id 100000 .* not in the vocabulary
tokenizer.decode([[108, 111], [119]])  => !! not \[108, 111\] at.*; decode_batch\(\) takes rows
tokenizer.decode(['lo', 'w'])  => !! not 'lo' at.*; convert_tokens_to_string\(\) takes tokens
tokenizer.save('demo.gguf')  => !! the name of a file, .*: export\(path, 'gguf'\) writes a .gguf file
bpe_tokenizer.load('demo.model')  => !! no such file or directory; did you mean 'demo'\?
bpe_tokenizer.load('chat.jinja')  => !! is a Jinja template, .*: pass its text as template= to
bpe_tokenizer.load('corpus.txt')  => !! is not of a known tokenizer format \(GGUF, minbpe .model,
tokenizer.encode_files('corpus.txt.gz')  => !! is compressed: unpack it first \(gzip -dk FILE\)
ChatTemplate('chatml')  => !! takes no arguments: ChatTemplate.get_template\(name\)\(messages\)
bpe_tokenizer.StreamDecoder('low')  => !! takes a BPETokenizer, not str
BPETokenizer.from_pretrained('nothing')  => !! no such file or directory; BPETokenizer.load takes
""",
    "tiktoken": r"""
import bpe_tokenizer.compat.tiktoken as tiktoken
from bpe_tokenizer import BPETokenizer
tiktoken.encoding_name_for_model('gpt-4o')  => 'o200k_base'
bpe_tokenizer.load('cl100k_base').encode('low lower')  => [10516, 4827]
bpe_tokenizer.load('p50k_base')  => !! for a download pass download=True
bpe_tokenizer.load('cl100k')  => !! not a published name
ranks = {bytes([byte]): byte for byte in range(256)} | {b'lo': 256, b'low': 257}
enc = tiktoken.Encoding('m', pat_str=r'\w+|\W+', mergeable_ranks=ranks, special_tokens={})
enc.decode(enc.encode('low lower'))  => 'low lower'
tokenizer = BPETokenizer.from_tiktoken(enc)
tokenizer.encode('low') == enc.encode('low')  => True
len(tokenizer.encode('low lower'))  => 5
tokenizer.n_vocab == enc.n_vocab  => True
tokenizer.encode_ordinary('low')  => !! object has no attribute 'encode_ordinary'
tokenizer.encode('low', disallowed_special=())  => [257]
tokenizer.encode(b'low')  => !! encode_bytes.. takes bytes
BPETokenizer('o200k_base')  => !! load\('o200k_base'\) loads a published tokenizer
bpe_tokenizer.count('low', 'gpt-4o')  => !! load\('gpt-4o'\)
tokenizer.count_chat_tokens(TALK)  => !! no chat template.*choose one of template='llama3', 'chatml', 'alpaca'
tokenizer.count_chat_tokens(TALK, model='gpt-4')
=> !! count_chat_tokens\(\) has no argument 'model'; a variable of the template goes into
enc.decode(5)  => !! tokens must be a sequence of int, not int
tokenizer.decode(tokens=[257])  => !! unexpected keyword argument 'tokens'
tokenizer.encode(['low', 'lower'])  => !! encode_batch.. takes several texts
""",
    "Hugging Face": r"""
from bpe_tokenizer import BPETokenizer
BPETokenizer.from_pretrained('gpt2')  => !! BPETokenizer.load takes published names
BPETokenizer.from_pretrained('hf:owner/name')  => !! BPETokenizer.load takes .* and hf:owner/name
BPETokenizer.from_pretrained('owner/name')  => !! BPETokenizer.load takes .* and hf:owner/name
BPETokenizer('owner/name')  => !! bpe_tokenizer.load\('hf:owner/name'\)
BPETokenizer.load('meta-llama/Llama-3.1-8B')  => !! hf:meta-llama/Llama-3.1-8B
tokenizer = BPETokenizer().train(TEXT, 290, special_tokens=['</s>'], verbose=False)
list(tokenizer('low', return_dict=True))  => ['input_ids', 'attention_mask']
tokenizer('low', return_tensors='np')['input_ids'].shape  => (1, 1)
tokenizer(['low', 'the low'], padding=True)  => !! tokenizer.pad_token = tokenizer.eos_token
tokenizer.pad_token = tokenizer.eos_token
tokenizer(['low', 'a low'], padding=True, truncation=True, max_length=2, return_tensors='np')
tokenizer(['low', 'the low'], return_tensors='np')  => !! pass padding=True
tokenizer('low', truncation=True)  => !! needs max_length
tokenizer('low', 'lower')  => !! add_special_tokens must be True or False, not str
tokenizer.padding_side = 'left'  => !! object has no attribute 'padding_side'
tokenizer.add_special_tokens(['<pad>'])  => 1
tokenizer.convert_tokens_to_ids(tokenizer.tokenize('low')) == tokenizer.encode('low')  => True
tokenizer.decode(tokenizer('low', add_special_tokens=True), skip_special_tokens=True)  => 'low'
tokenizer.save('tokenizer.json')  => !! writes a directory.*to_tokenizers
tokenizer.token_to_id('low') == tokenizer.get_vocab()['low']  => True
tokenizer.encode('low', max_length=3, truncation=True)  => !! unexpected keyword argument 'max_length'
tokenizer.decode([108], clean_up_tokenization_spaces=True)  => !! unexpected keyword
""",
    "sentencepiece": r"""
from bpe_tokenizer import BPETokenizer
bpe_tokenizer.load('sp.model')  => !! SentencePiece model.*tokenizer.json
tokenizer = BPETokenizer().train('corpus.txt', vocab_size=280, verbose=False)
tokenizer.encode('low')  => [269]
tokenizer.encode('low', out_type=str)  => !! unexpected keyword argument 'out_type'
tokenizer.decode([108], out_type=str)  => !! unexpected keyword argument 'out_type'
tokenizer.decode([269])  => 'low'
tokenizer.token_to_id('low'), tokenizer.id_to_token(269)  => (269, 'low')
tokenizer.convert_tokens_to_string(tokenizer.tokenize('low'))  => 'low'
tokenizer.piece_to_id('low')  => !! object has no attribute 'piece_to_id'
len(tokenizer) == tokenizer.n_vocab  => True
""",
    "minbpe": r"""
from bpe_tokenizer import BPETokenizer
tokenizer = BPETokenizer()
tokenizer.train(TEXT, 270, verbose=False).vocab_size  => 270
tokenizer.decode(tokenizer.encode('hello world'))  => 'hello world'
tokenizer.add_special_tokens({'<|endoftext|>': 270})  => 1
tokenizer.encode('<|endoftext|>', allowed_special='all')  => [270]
tokenizer.vocab[257], tokenizer.merges[1]  => (b'lo', (b'l', b'o'))
tokenizer.export('mine', 'minbpe')  => !! ends in .model: write 'mine.model'
tokenizer.export('mine.model', 'minbpe')  => !! with_normalization.None.
tokenizer.with_normalization(None).export('mine.model', 'minbpe')
BPETokenizer.load('mine.model').encode('low')  => [269]
BPETokenizer('gpt4')  => !! did you mean 'gpt2'
BPETokenizer('gpt-4o')  => !! load\('gpt-4o'\)
""",
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a corpus, the same compressed, a chat template, and a model of sentencepiece."""
    path = tmp_path_factory.mktemp("newcomer")
    (path / "corpus.txt").write_text(TEXT, encoding="utf-8")
    (path / "corpus.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
    (path / "chat.jinja").write_text("{% for message in messages %}{{ message.content }}{% endfor %}")
    pieces = [b"<unk>", b"<s>", b"</s>", b"\xe2\x96\x81low", *(bytes([65 + i]) for i in range(26))]
    entries = (b"\x0a" + bytes([len(piece)]) + piece + b"\x15\x00\x00\x00\x00" for piece in pieces)
    (path / "sp.model").write_bytes(b"".join(b"\x0a" + bytes([len(entry)]) + entry for entry in entries))
    return path


@pytest.fixture(autouse=True)
def offline(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without caches and without network."""
    monkeypatch.chdir(directory)
    for name in ("TIKTOKEN_CACHE_DIR", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.setenv(name, str(directory / "no-cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.mark.parametrize("habit", HABITS)
def test_the_lines_of_a_habit(habit: str) -> None:
    names: dict[str, Any] = {"bpe_tokenizer": bpe_tokenizer, "TEXT": TEXT, "TALK": TALK}
    lines = HABITS[habit].replace("\n=> ", " => ").strip().splitlines()
    assert len(lines) >= 10
    for line, _, wanted in (each.partition(" => ") for each in lines):
        if wanted.startswith("!! "):
            with pytest.raises(Exception, match=wanted.removeprefix("!! ")) as raised:
                exec(line, names)
            assert len(str(raised.value)) <= 300, line
        elif wanted:
            assert repr(eval(line, names)) == wanted, line
        else:
            exec(line, names)
