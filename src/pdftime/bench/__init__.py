"""Comparison on benchmark archives: archives, methods, a sweep that survives being killed, rows, an audit."""
