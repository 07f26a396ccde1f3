"""The telemetry sink: makes public facts of private commits, and a timeline of public facts.

Receives: commits (stream RUNS, durable consumer `telemetry`); public facts (stream FACTS, ordered).
Emits: public facts (stream FACTS), redacted and bounded (A47), with ids derived from their commit (A49).
Guarantees: every fact of every commit is published at least once, also after any time of this actor's
absence; a timeline row and the position in FACTS become true in one transaction, so rows have no gap and
no repeat. Nothing waits for this actor (A43).
Loses: nothing; facts may be late, and facts of one run may be stored out of order after a failure (`number`
and `index` say the order).
"""
