"""Honest training: one loop that sees only the cases it is given."""
