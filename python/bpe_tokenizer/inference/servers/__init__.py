"""Inference servers over HTTP, token ids in and out: one file a protocol, listed in `server.py`."""
