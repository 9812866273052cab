"""Inference servers over HTTP, token ids in and out: one module a protocol."""

from bpe_tokenizer.inference.servers.server import Server

__all__ = ["Server"]
