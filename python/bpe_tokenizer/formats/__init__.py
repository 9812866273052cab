"""Tokenizer files: a module or folder for each format, with `load` (file to `Model`) and `save`.

A format reads what it can represent exactly. It refuses everything else with a `FormatError` that names the
file, the field and the value. `registry.FORMATS` lists all of them.
"""
