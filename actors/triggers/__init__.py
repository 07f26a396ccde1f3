"""Trigger evaluators: each says which situations of a settled turn may deserve a look-up of knowledge.

Receives: `turn.settled` (core question, one member of each kind's queue group answers).
Emits: `turn.evaluated` with candidates; a micro-service registration that the supervisor's roster reads.
Guarantees: a candidate is a pure function of the turn, so the same turn gives the same candidates; one
trigger that fails, hangs or lies costs its own answer and no other trigger's; nothing is injected here (A4).
Loses: a turn that settles while no process of a kind is alive is not evaluated by that kind; the supervisor
records the missed answer (A11).
"""
