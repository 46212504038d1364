"""Callgate: rebuilds, checks and publishes the tool calls of LLM agents, exactly once."""

__version__ = "0.1.0"
