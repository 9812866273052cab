"""Other libraries' interfaces over this package: programs change an import and nothing else."""

from __future__ import annotations

__all__ = ["tiktoken", "tokenizers", "transformers"]


def __getattr__(name: str) -> object:
    """Import an interface when it is first used."""
    if name in __all__:
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
