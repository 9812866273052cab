"""A tiny language model with random weights, in the forms that the engines read.

It is LLaMA-shaped: 2 layers, 64 wide, 512 ids. The weights go through half precision, so that the F16
matrices of the GGUF file are exact, and are large enough for the likeliest id to be far ahead of the next:
all engines take the same.
"""

from __future__ import annotations

import json
import sysconfig
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.formats.gguf.writing import metadata_pairs

__all__ = ["CONTEXT", "VOCAB_SIZE", "save_directory", "save_gguf", "tiny_tokenizer"]

VOCAB_SIZE = 512
CONTEXT = 256
SPECIAL_TOKENS = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>"]
SPECIAL_TOKENS.append("<|eot_id|>")
HEADS, KEY_VALUE_HEADS, WIDTH, INNER, LAYERS = 4, 2, 64, 128, 2

Array = np.ndarray[Any, np.dtype[Any]]


def tiny_tokenizer() -> BPETokenizer:
    """Train 512 ids on sources of the standard library."""
    library = Path(sysconfig.get_paths()["stdlib"])
    texts = [(library / name).read_text(encoding="utf-8") for name in ("argparse.py", "textwrap.py")]
    tokenizer = BPETokenizer(split_pattern="llama3", normalization=None)
    return tokenizer.train(texts, VOCAB_SIZE, special_tokens=SPECIAL_TOKENS, verbose=False)


def save_directory(directory: Path, tokenizer: BPETokenizer, seed: int = 0) -> Path:
    """Save a model directory as Transformers does, with the tokenizer's files.

    Its generation_config.json asks for what no backend may do by itself.
    """
    torch: Any = import_module("torch")
    transformers: Any = import_module("transformers")
    config = transformers.LlamaConfig(
        vocab_size=VOCAB_SIZE,
        hidden_size=WIDTH,
        intermediate_size=INNER,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KEY_VALUE_HEADS,
        max_position_embeddings=CONTEXT,
        initializer_range=0.3,
        tie_word_embeddings=False,
    )
    torch.manual_seed(seed)
    model = transformers.LlamaForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.half().float())
    tokenizer.save(directory)
    transformers.utils.logging.disable_progress_bar()
    model.save_pretrained(directory)
    transformers.utils.logging.enable_progress_bar()
    asked = {
        "do_sample": True,
        "top_k": 1,
        "repetition_penalty": 5.0,
        "min_p": 0.9,
        "eos_token_id": list(range(200)),
        "no_repeat_ngram_size": 1,
    }
    (directory / "generation_config.json").write_text(json.dumps(asked))
    return directory


def save_gguf(path: Path, directory: Path, tokenizer: BPETokenizer) -> Path:
    """Save the model of a directory as a GGUF file with F16 matrices, as llama.cpp and OpenVINO read it."""
    gguf: Any = import_module("gguf")
    weights = import_module("safetensors.numpy").load_file(directory / "model.safetensors")
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_VALUE_HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(VOCAB_SIZE)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    for key, kind, value in metadata_pairs(tokenizer.model):
        if key.startswith("tokenizer."):
            kinds = (gguf.GGUFValueType.ARRAY, gguf.GGUFValueType(kind))
            is_array = isinstance(value, list)
            writer.add_key_value(key, value, kinds[0 if is_array else 1], kinds[1] if is_array else None)
    for name, array in weights.items():
        tensor = _llama_cpp_name(name)
        if ".attn_q." in tensor or ".attn_k." in tensor:
            array = _rotary_order(array, HEADS if ".attn_q." in tensor else KEY_VALUE_HEADS)
        writer.add_tensor(tensor, array.astype(np.float16 if array.ndim == 2 else np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _llama_cpp_name(name: str) -> str:
    """Return llama.cpp's name of one of Transformers' weights.

    >>> _llama_cpp_name("model.layers.1.self_attn.q_proj.weight")
    'blk.1.attn_q.weight'
    """
    parts = {
        "model.embed_tokens": "token_embd",
        "model.norm": "output_norm",
        "lm_head": "output",
        "model.layers": "blk",
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
        "post_attention_layernorm": "ffn_norm",
        "input_layernorm": "attn_norm",
    }
    for theirs, ours in parts.items():
        name = name.replace(theirs, ours)
    return name


def _rotary_order(weight: Array, heads: int) -> Array:
    """Reorder the rows of each head: llama.cpp rotates neighbours, Transformers the two halves."""
    rows, columns = weight.shape
    halves = weight.reshape(heads, 2, rows // heads // 2, columns)
    return halves.swapaxes(1, 2).reshape(rows, columns)
