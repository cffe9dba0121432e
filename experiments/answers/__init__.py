"""Prompts with sets of answers, and the distribution over the answers under each method: exact, on
the trie of all their tokenizations."""
