"""Tools with effects outside of the process: each writes a line to the file that it is given."""

import os
import sys
from pathlib import Path


def act(ledger: str, *, idempotency_key: str) -> str:
    """Do something, and say so in the ledger."""
    with Path(ledger).open("a", encoding="utf-8") as lines:
        lines.write(f"{idempotency_key}\n")
    return "acted"


def act_and_wait(ledger: str, *, idempotency_key: str) -> str:
    """Do something, say so to whoever started the process, and return when told to."""
    act(ledger, idempotency_key=idempotency_key)
    os.write(1, b"acting\n")
    sys.stdin.readline()
    return "acted"
