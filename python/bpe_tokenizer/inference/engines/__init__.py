"""The local engines, one file each. An engine imports its library when it loads a model.

To add one: add its name to `InferenceBackend`, write its file here, and list its record in `registry.py`.
"""
