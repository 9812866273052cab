"""The engines: one adapter each, which imports its library when it loads a model."""
