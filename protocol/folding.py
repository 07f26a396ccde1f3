"""How far a fold has come: asked by whoever has stored something and waits until it is seen."""

from temporality.protocol.message import Message


class AskPosition(Message, frozen=True, kw_only=True, tag="position.ask"):
    """Ask a folding actor for its position (`ask.<actor>.position`)."""


class FoldPosition(Message, frozen=True, kw_only=True, tag="position"):
    """The sequence up to which the stream is folded; a reader sees everything up to it."""

    sequence: int
