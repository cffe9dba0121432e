"""Texts drawn without a mask, against the exact numbers."""
