"""Metrics and logs: every signal declared once."""
