"""`callgate schemas lint`: what is odd in the schemas of a registry, before a model or an executor finds out.

Owns the checks and their words. It reads schemas only, never a record, and changes no decision.
"""
