"""Jinja chat templates, rendered with dynamic taint tracking: each output character knows who wrote it.

Source of the term: Schwartz, Avgerinos, Brumley, "All You Ever Wanted to Know About Dynamic Taint Analysis
and Forward Symbolic Execution", IEEE S&P 2010, https://doi.org/10.1109/SP.2010.26. Text of messages, tools,
documents and variables is tainted. Text of the template is not. An unknown operation taints its whole result.
"""
