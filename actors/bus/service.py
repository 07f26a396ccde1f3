"""NATS micro services over the port: who serves what, found with any NATS tool (`nats micro ls`).

A service answers its endpoints' subjects and three questions about itself: PING, INFO and STATS, each to
all, by name, and by name and id. An answer says which instance it is from, and carries none of the request's
headers: echoing them would carry its trace context backwards. Endpoints run concurrently up to a limit, and a
handler that fails answers with an error header and harms nobody else.
"""

import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import anyio
import msgspec

from temporality.actors.bus.background import beside
from temporality.actors.bus.port import Bus, Message, Subscription
from temporality.actors.clock import Clock, SystemClock
from temporality.protocol.errors import fault

IN_FLIGHT_MAX = 64
"""Requests of one endpoint worked on at once; more wait in the subscription."""
INSTANCE_HEADER = "Temporality-Instance"
"""On every answer, errors too: which instance it is from, so that a broken one is told from the others."""
ERROR_HEADER = "Nats-Service-Error"
ERROR_CODE_HEADER = "Nats-Service-Error-Code"

Handler = Callable[[Message], Awaitable[bytes | None]]
"""Answers one request; None sends no answer. A `ServiceError` is sent as the error that it is."""

_INFO_TYPE = "io.nats.micro.v1.info_response"
_PING_TYPE = "io.nats.micro.v1.ping_response"
_STATS_TYPE = "io.nats.micro.v1.stats_response"
_log = logging.getLogger(__name__)


class ServiceError(Exception):
    """What a service answers instead of a result: a code as in HTTP, and one line."""

    def __init__(self, code: int, description: str) -> None:
        self.code = code
        self.description = description
        super().__init__(f"{code} {description}")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One subject a service answers; with `queue` each request goes to one of its instances."""

    name: str
    subject: str
    handler: Handler
    queue: str | None = "q"
    metadata: Mapping[str, str] = field(default_factory=dict)
    in_flight_max: int = IN_FLIGHT_MAX


class EndpointInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint as INFO tells it."""

    name: str
    subject: str
    queue_group: str = ""
    metadata: dict[str, str] | None = None


class ServiceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A service instance as INFO tells it."""

    name: str
    id: str
    version: str
    type: str = _INFO_TYPE
    description: str | None = ""
    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    endpoints: list[EndpointInfo] = msgspec.field(default_factory=list)


class _Ping(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    id: str
    version: str
    metadata: dict[str, str]
    type: str = _PING_TYPE


class _EndpointStats(msgspec.Struct, kw_only=True):
    name: str
    subject: str
    queue_group: str
    num_requests: int = 0
    num_errors: int = 0
    last_error: str = ""
    processing_time: int = 0
    average_processing_time: int = 0


class _Stats(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    id: str
    version: str
    metadata: dict[str, str]
    started: str
    endpoints: list[_EndpointStats]
    type: str = _STATS_TYPE


class Service:
    """A running instance; `info` is what it tells about itself."""

    def __init__(self, bus: Bus, info: ServiceInfo, endpoints: Sequence[Endpoint], clock: Clock) -> None:
        self.info = info
        self._bus = bus
        self._clock = clock
        self._endpoints = endpoints
        self._requests: list[Subscription] = []
        self._questions: list[Subscription] = []
        self._started = clock.now().isoformat().replace("+00:00", "Z")
        self._stats = [
            _EndpointStats(name=e.name, subject=e.subject, queue_group=e.queue or "") for e in endpoints
        ]

    async def open(self, stack: AsyncExitStack) -> None:
        """Subscribe everything; `stack` undoes it."""
        enter, bus, info = stack.enter_async_context, self._bus, self.info
        for endpoint in self._endpoints:
            self._requests.append(await enter(bus.subscribe(endpoint.subject, queue=endpoint.queue)))
        for verb in ("PING", "INFO", "STATS"):
            for subject in (f"$SRV.{verb}", f"$SRV.{verb}.{info.name}", f"$SRV.{verb}.{info.name}.{info.id}"):
                self._questions.append(await enter(bus.subscribe(subject)))

    async def run(self) -> None:
        """Answer until cancelled."""
        async with anyio.create_task_group() as tasks:
            for requests, endpoint, stats in zip(self._requests, self._endpoints, self._stats, strict=True):
                tasks.start_soon(self._serve, requests, endpoint, stats)
            for questions in self._questions:
                tasks.start_soon(self._tell, questions)

    async def _serve(self, requests: Subscription, endpoint: Endpoint, stats: _EndpointStats) -> None:
        free = anyio.Semaphore(endpoint.in_flight_max)

        async def answer(request: Message) -> None:
            try:
                await self._answer(request, endpoint, stats)
            finally:
                free.release()

        async with anyio.create_task_group() as tasks:
            async for request in requests:
                await free.acquire()
                tasks.start_soon(answer, request)

    async def _answer(self, request: Message, endpoint: Endpoint, stats: _EndpointStats) -> None:
        started = self._clock.monotonic()
        failed: ServiceError | None = None
        try:
            payload = await endpoint.handler(request)
        except ServiceError as error:
            payload, failed = b"", error
        except Exception as error:  # noqa: BLE001  # a fault in one answer must not end the service
            _log.error("endpoint %s of service %s failed: %s", endpoint.name, self.info.name, fault(error))
            # The type only: an exception's text may hold what the request held.
            payload, failed = b"", ServiceError(500, type(error).__name__)
        stats.num_requests += 1
        stats.processing_time += int((self._clock.monotonic() - started) * 1e9)
        stats.average_processing_time = stats.processing_time // stats.num_requests
        headers = {INSTANCE_HEADER: self.info.id}
        if failed is not None:
            stats.num_errors += 1
            stats.last_error = f"{failed.code}:{failed.description}"
            headers |= _error_headers(failed)
        if request.reply is not None and payload is not None:
            await self._bus.send(request.reply, payload, headers=headers)

    async def _tell(self, questions: Subscription) -> None:
        async for question in questions:
            if question.reply is not None:
                verb = question.subject.split(".")[1]
                await self._bus.send(question.reply, msgspec.json.encode(self._about(verb)))

    def _about(self, verb: str) -> msgspec.Struct:
        info = self.info
        if verb == "INFO":
            return info
        if verb == "PING":
            return _Ping(name=info.name, id=info.id, version=info.version, metadata=info.metadata)
        return _Stats(
            name=info.name,
            id=info.id,
            version=info.version,
            metadata=info.metadata,
            started=self._started,
            endpoints=self._stats,
        )


@asynccontextmanager
async def serve(
    bus: Bus,
    *,
    name: str,
    version: str,
    endpoints: Sequence[Endpoint],
    metadata: Mapping[str, str] | None = None,
    description: str = "",
    clock: Clock | None = None,
) -> AsyncIterator[Service]:
    """Register a service and answer its endpoints while the context is open (name: `A-Z a-z 0-9 _ -`).

    When the context is entered the service can be found and asked. Requests are core messages: at most once;
    leaving cancels the ones under way. Raises `BusClosed` in the body when the bus is over.
    """
    info = ServiceInfo(
        name=name,
        id=uuid.uuid4().hex,
        version=version,
        description=description,
        metadata=dict(metadata or {}),
        endpoints=[
            EndpointInfo(name=e.name, subject=e.subject, queue_group=e.queue or "", metadata=dict(e.metadata))
            for e in endpoints
        ],
    )
    service = Service(bus, info, endpoints, clock or SystemClock())
    async with AsyncExitStack() as stack:
        await service.open(stack)
        async with beside(service.run):
            yield service


async def service_infos(
    bus: Bus, name: str, timeout_s: float, *, clock: Clock | None = None
) -> list[ServiceInfo]:
    """Ask who serves `name` and return the answers of `timeout_s`, sorted by id; none is a normal result.

    Nobody knows how many will answer, so the whole time is waited unless there is no service at all.
    Answers that don't decode are left out.
    """
    clock = clock or SystemClock()
    found: dict[str, ServiceInfo] = {}
    inbox = f"{bus.inbox()}.info"
    async with bus.subscribe(inbox) as answers:
        await bus.send(f"$SRV.INFO.{name}", b"", reply=inbox)
        with anyio.CancelScope() as waiting:
            cancel = clock.call_at(clock.monotonic() + timeout_s, waiting.cancel)
            try:
                await _gather(answers, found)
            finally:
                cancel()
    return [found[instance] for instance in sorted(found)]


async def _gather(answers: Subscription, found: dict[str, ServiceInfo]) -> None:
    async for answer in answers:
        if answer.headers.get("Status") == "503":
            return
        try:
            info = msgspec.json.decode(answer.payload, type=ServiceInfo)
        except msgspec.DecodeError:
            continue
        found[info.id] = info


def service_error(answer: Message) -> ServiceError | None:
    """Return the error that an answer stands for, or None if it is a result."""
    code = answer.headers.get(ERROR_CODE_HEADER)
    if code is None:
        return None
    number = int(code) if code.isascii() and code.isdigit() else 500
    return ServiceError(number, answer.headers.get(ERROR_HEADER, ""))


def _error_headers(error: ServiceError) -> dict[str, str]:
    return {ERROR_HEADER: error.description, ERROR_CODE_HEADER: str(error.code)}
