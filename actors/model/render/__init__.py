"""From the transcript to a provider's messages, and the rules those messages must obey; pure.

One file a provider, `words.py` for what a model reads of an outcome, `checks.py` for the providers' rules. No
other place of the system knows a provider's format.
"""
