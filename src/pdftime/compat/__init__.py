"""Thin faces for other libraries; each holds nothing but the translation."""
