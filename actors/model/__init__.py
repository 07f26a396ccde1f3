"""The model caller: builds each request to a model from the run's commits, sends it, and reports the reply.

Receives: `ModelCall` from the queue `model.<pool>` (stream WORK, shared by all model callers of the pool).
Emits: one `ModelCompleted` or `ModelFailed` a call, to the run's inbox (kind `reply`).
Keeps: transcripts folded from commits, rendered, as caches that can be dropped at any time.
Guarantees: a request is sent only if its transcript has the digest that the supervisor decided on, and
    only if it keeps the provider's rules (A1, A2, A39). Earlier messages keep their bytes (A38). Each call
    delivered is reported at least once, under an id that makes repeats recognisable. Keys never leave this
    process.
Loses: nothing. A process that dies while it waits for a provider leaves the call to another one, which asks
    the provider again: a model may be asked twice, but its run hears one answer. So it is when a supervisor
    sends a call again after a reconnect and another process takes the repeat; the same process asks once.
"""
