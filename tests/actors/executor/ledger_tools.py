"""Tools with effects outside of the process: each writes a line to the file named by LEDGER."""

import os
import sys
from pathlib import Path


def act(*, idempotency_key: str) -> str:
    """Do something, and say so in the ledger."""
    with Path(os.environ["LEDGER"]).open("a", encoding="utf-8") as ledger:
        ledger.write(f"{idempotency_key}\n")
    return "acted"


def act_and_wait(*, idempotency_key: str) -> str:
    """Do something, say so to whoever started the process, and return when told to."""
    act(idempotency_key=idempotency_key)
    os.write(1, b"acting\n")
    sys.stdin.readline()
    return "acted"
