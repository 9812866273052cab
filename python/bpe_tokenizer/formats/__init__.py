"""Tokenizer files: one module a format, each with `load` (file to `Model`) and `save` (`Model` to file).

A format reads what it can represent exactly and refuses the rest with a `FormatError` that names the file,
the field and the value; it never guesses. `registry.FORMATS` lists all of them.
"""
