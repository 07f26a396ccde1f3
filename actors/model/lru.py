"""A cache bounded by the bytes its values hold; what was used longest ago goes first."""

from collections import OrderedDict
from typing import Generic, TypeVar

V = TypeVar("V")


class ByteBounded(Generic[V]):
    """Values by key, up to `bytes_max` in all; a value larger than that is kept until the next one comes."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._values: OrderedDict[str, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: str) -> V | None:
        """Return a value and mark it as used, None if it isn't kept."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def put(self, key: str, value: V, size: int) -> None:
        """Keep a value of `size` bytes, in place of the one with the same key."""
        self.drop(key)
        self._values[key] = value, size
        self._bytes += size
        while self._bytes > self._bytes_max and len(self._values) > 1:
            _, (_, freed) = self._values.popitem(last=False)
            self._bytes -= freed

    def drop(self, key: str) -> None:
        """Forget a value, if it is kept."""
        _, freed = self._values.pop(key, (None, 0))
        self._bytes -= freed
