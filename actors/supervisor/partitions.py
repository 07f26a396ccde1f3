"""Which partitions of the inbox this supervisor serves: leases in a bucket whose keys expire.

A lease gives each run one busy owner, so that two supervisors don't do the same work. It is never needed for
safety: a commit's expected sequence is. Members announce themselves in the same bucket; each holds no more
than its fair share, so partitions move to a newcomer and away from the dead without anybody in charge.
"""

from collections.abc import Awaitable, Callable
from math import ceil

import anyio
from anyio.abc import TaskGroup, TaskStatus

from temporality.actors.bus.port import Bucket, BusError
from temporality.actors.host import Host
from temporality.protocol.streams import LEASES_BUCKET

MEMBER_PREFIX = "supervisor."
PARTITION_PREFIX = "partition."

LOOK_INTERVAL_S = 0.5
"""How often a member looks for leases that have expired, at the least: one read, and half of what a take-over
may take beyond the lease's life. Leases are renewed every third of it, which is one write each."""

Serve = Callable[..., Awaitable[None]]
"""Serve one partition until cancelled: `serve(partition, task_status=…)`."""


class Partitions:
    """Hold leases and run `serve` for each partition held; stop it as soon as a lease is lost."""

    def __init__(self, host: Host, *, count: int, ttl_s: float, serve: Serve, replicas: int = 1) -> None:
        self._host = host
        self._name = host.name.encode()
        self._count = count
        self._ttl_s = ttl_s
        self._replicas = replicas
        self._clock = host.clock
        self._interval_s = ttl_s / 3 / ceil(ttl_s / 3 / LOOK_INTERVAL_S)
        self._renewal_due = 0.0
        self._serve = serve
        self._revisions: dict[int, int] = {}
        self._scopes: dict[int, anyio.CancelScope] = {}
        self._member_revision: int | None = None

    @property
    def held(self) -> frozenset[int]:
        """Return the partitions this supervisor holds."""
        return frozenset(self._revisions)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Acquire, renew and give up leases for ever; started after the first round. Gives all up at the
        end.
        """
        bucket = await self._host.bus.bucket(LEASES_BUCKET, ttl_s=self._ttl_s, replicas=self._replicas)
        async with anyio.create_task_group() as tasks:
            try:
                await self._round(bucket, tasks)
                task_status.started()
                while True:
                    await self._clock.sleep_until(self._clock.monotonic() + self._interval_s)
                    await self._round(bucket, tasks)
            finally:
                with anyio.move_on_after(self._ttl_s, shield=True):
                    await self._give_up_all(bucket)

    async def _round(self, bucket: Bucket, tasks: TaskGroup) -> None:
        try:
            now = self._clock.monotonic()
            if now >= self._renewal_due:
                await self._announce(bucket)
                await self._renew(bucket)
                self._renewal_due = now + self._ttl_s / 3 - self._interval_s / 2
            keys = frozenset(await bucket.keys())
            members = sum(key.startswith(MEMBER_PREFIX) for key in keys)
            share = ceil(self._count / max(members, 1))
            await self._release_surplus(bucket, share)
            await self._acquire(bucket, keys, share, tasks)
        except BusError as error:
            # Without the bus nothing can be renewed; what is held will expire, and expected sequences
            # refuse the writes of anybody who goes on all the same.
            self._host.log.warning("leases could not be renewed: %s", type(error).__name__)

    async def _announce(self, bucket: Bucket) -> None:
        key = MEMBER_PREFIX + self._host.name
        if self._member_revision is not None:
            self._member_revision = await bucket.update(key, self._name, self._member_revision)
        if self._member_revision is None:
            self._member_revision = await bucket.create(key, self._name)

    async def _renew(self, bucket: Bucket) -> None:
        for partition, revision in list(self._revisions.items()):
            renewed = await bucket.update(_key(partition), self._name, revision)
            if renewed is None:
                self._lose(partition)
            else:
                self._revisions[partition] = renewed

    async def _release_surplus(self, bucket: Bucket, share: int) -> None:
        for partition in sorted(self._revisions)[share:]:
            revision = self._revisions[partition]
            self._lose(partition)
            await bucket.delete(_key(partition), revision)

    async def _acquire(self, bucket: Bucket, keys: frozenset[str], share: int, tasks: TaskGroup) -> None:
        for partition in range(self._count):
            if len(self._revisions) >= share:
                return
            if partition in self._revisions or _key(partition) in keys:
                continue
            revision = await bucket.create(_key(partition), self._name)
            if revision is None:
                continue
            self._revisions[partition] = revision
            self._scopes[partition] = scope = anyio.CancelScope()
            try:
                await tasks.start(self._serve_one, partition, scope)
            except BusError:
                self._lose(partition)  # a lease that is held and not served would stop its runs
                await bucket.delete(_key(partition), revision)
                raise
            self._host.log.debug("partition %d is taken", partition)

    async def _serve_one(
        self,
        partition: int,
        scope: anyio.CancelScope,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        with scope:
            await self._serve(partition, task_status=task_status)

    def _lose(self, partition: int) -> None:
        self._host.log.debug("partition %d is given up", partition)
        del self._revisions[partition]
        self._scopes.pop(partition).cancel()

    async def _give_up_all(self, bucket: Bucket) -> None:
        try:
            for partition, revision in list(self._revisions.items()):
                self._lose(partition)
                await bucket.delete(_key(partition), revision)
            if self._member_revision is not None:
                await bucket.delete(MEMBER_PREFIX + self._host.name, self._member_revision)
        except BusError as error:
            self._host.log.warning("leases were left to expire: %s", type(error).__name__)


def _key(partition: int) -> str:
    return f"{PARTITION_PREFIX}{partition}"
