"""How an item looks to the index: the terms under which it is found, and what else a look-up needs of it.

The index does not know any language. Whoever opens it brings an `Analyser`, and the index keeps what that
gives, under the analyser's version: a newer version makes the index fold the stream again.
"""

from typing import Protocol

import msgspec

from temporality.protocol.editorial import KnowledgeItem


class Profile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The terms of one item.

    `keys` are exact facts (`tool:git_push`); `text` is the proposition in reading order, with repeats;
    `names` are terms of the item's id, entities and topics that its text lacks; `examples` are its example
    errors, in reading order. No term holds white space.
    """

    keys: tuple[str, ...]
    text: tuple[str, ...]
    names: tuple[str, ...]
    examples: tuple[tuple[str, ...], ...]

    @property
    def length(self) -> int:
        """Count the terms that the item says of itself."""
        return len(self.text) + len(self.names)

    def indexed(self) -> frozenset[str]:
        """Return every term under which the item is found."""
        return frozenset(
            (*self.keys, *self.text, *self.names, *(term for each in self.examples for term in each))
        )


class Analyser(Protocol):
    """Turns items into profiles; equal items give equal profiles under one version."""

    @property
    def version(self) -> str:
        """Name the analysis; changes whenever an item may get another profile."""
        ...

    def profile(self, item: KnowledgeItem) -> Profile:
        """Return the terms of `item`."""
        ...
