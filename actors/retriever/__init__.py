"""The knowledge retriever: answers what earlier work taught about a situation, and nothing else.

Receives: records of knowledge items (stream KNOWLEDGE, ordered); `hints.find` questions, one batch a barrier;
    questions for its position.
Emits: hints with reasons and cautions; it never touches a run (A4).
Guarantees: an answer is a function of the folded records and the question; records are folded in order, each
    once, with the position in the same transaction; only reviewed and challenged items are offered (A21).
Loses: nothing; an index that is lost is folded anew. A question that comes before a record is folded is
    answered without it.
"""
