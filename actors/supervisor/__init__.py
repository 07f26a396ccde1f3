"""The run supervisor: owns each run's state, and alone decides what is put into its messages (A4).

Receives: everything addressed to a run (stream INBOX): commands, model reports, outcomes, candidates, timers;
    answers of evaluators and of a retriever to the questions of a barrier.
Emits: commits (stream RUNS), and what they owe: tool calls, model calls, timers; `turn.settled` and
    `hints.find` questions.
Guarantees: a commit is stored before anything that follows from it is sent, and a message is acknowledged
    only when what it brought is committed; at most one block a barrier; state equals the fold of the commits.
Loses: nothing that was committed. Barrier questions are best effort: an answer that misses its deadline is
    recorded as missed and not used.
"""
