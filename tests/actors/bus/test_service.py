"""Micro services, on the model and on a real server alike, and beside nats-py's own."""

import anyio
import msgspec
import nats
import nats.micro
import pytest
from nats.micro.service import ServiceInfo

from temporality.actors.bus.port import BusClosed
from temporality.actors.bus.service import (
    INSTANCE_HEADER,
    Endpoint,
    ServiceError,
    serve,
    service_error,
    service_infos,
)


def echo(**changes):
    async def handler(request):
        return request.payload

    return Endpoint(**{"name": "echo", "subject": "ask.service.echo", "handler": handler, **changes})


async def test_an_endpoint_answers_without_echoing_the_requests_headers(bus, other, broker):
    async with serve(bus, name="s", version="1.0.0", endpoints=[echo()]) as service:
        question = other.request("ask.service.echo", b"x", timeout_s=5, headers={"traceparent": "00-a"})
        answer = await broker.soon(question)
    assert (answer.payload, dict(answer.headers), service_error(answer)) == (
        b"x",
        {INSTANCE_HEADER: service.info.id},
        None,
    )


async def test_the_roster_tells_every_live_instance_and_what_it_says_about_itself(bus, other, broker):
    async with serve(bus, name="roll", version="1.2.3", endpoints=[echo()], metadata={"kind": "a"}) as first:
        async with serve(other, name="roll", version="1.2.3", endpoints=[], metadata={"kind": "b"}) as second:
            infos = await broker.soon(service_infos(other, "roll", timeout_s=0.3, clock=broker.clock))
            assert [info.id for info in infos] == sorted([first.info.id, second.info.id])
            assert {info.metadata["kind"] for info in infos} == {"a", "b"}
        assert await broker.soon(service_infos(other, "roll", timeout_s=0.3, clock=broker.clock)) == [
            first.info
        ]
    assert await broker.soon(service_infos(other, "roll", timeout_s=0.3, clock=broker.clock)) == []


async def test_an_answer_that_is_no_info_is_left_out_of_the_roster(bus, other, broker):
    async with (
        serve(bus, name="odd", version="1.0.0", endpoints=[]) as service,
        other.subscribe("$SRV.INFO.odd") as questions,
        anyio.create_task_group() as tasks,
    ):

        async def lie():
            question = await anext(questions)
            await other.send(question.reply, b"{not json")

        tasks.start_soon(lie)
        assert await broker.soon(service_infos(bus, "odd", timeout_s=0.3, clock=broker.clock)) == [
            service.info
        ]


@pytest.mark.parametrize("suffix", ["", ".asked", ".asked.{id}"])
@pytest.mark.parametrize("verb", ["PING", "INFO", "STATS"])
async def test_a_service_answers_the_three_questions_to_all_by_name_and_by_id(
    bus, other, broker, verb, suffix
):
    async with serve(bus, name="asked", version="1.0.0", endpoints=[echo()]) as service:
        await broker.soon(other.request("ask.service.echo", b"x", timeout_s=5))
        subject = f"$SRV.{verb}" + suffix.format(id=service.info.id)
        found = msgspec.json.decode((await broker.soon(other.request(subject, b"", timeout_s=5))).payload)
    assert found["type"] == f"io.nats.micro.v1.{verb.lower()}_response"
    assert (found["name"], found["id"], found["version"]) == ("asked", service.info.id, "1.0.0")
    if verb == "STATS":
        assert found["endpoints"][0]["num_requests"] == 1
        assert found["endpoints"][0]["num_errors"] == 0


async def test_a_refusal_and_a_fault_of_a_handler_are_answers_and_are_counted(bus, other, broker, caplog):
    async def refuse(request):
        if request.payload == b"no":
            raise ServiceError(400, "not like this")
        raise RuntimeError("holds a secret")

    async with serve(bus, name="s", version="1.0.0", endpoints=[echo(handler=refuse)]) as service:
        refusal = await broker.soon(other.request("ask.service.echo", b"no", timeout_s=5))
        fault = await broker.soon(other.request("ask.service.echo", b"!", timeout_s=5))
        subject = f"$SRV.STATS.s.{service.info.id}"
        stats = msgspec.json.decode((await broker.soon(other.request(subject, b"", timeout_s=5))).payload)
    assert (service_error(refusal).code, service_error(refusal).description) == (400, "not like this")
    assert (service_error(fault).code, service_error(fault).description) == (500, "RuntimeError")
    assert {a.headers[INSTANCE_HEADER] for a in (refusal, fault)} == {service.info.id}
    assert stats["endpoints"][0]["num_errors"] == 2
    assert "secret" not in str(stats)
    assert "RuntimeError at " in caplog.text
    assert "secret" not in caplog.text, "the text of an exception may be anything"


async def test_requests_are_worked_on_together_up_to_the_limit(bus, other, broker):
    running, most = 0, 0
    two_are_in, go = anyio.Event(), anyio.Event()

    async def slow(_request):
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 2:
            two_are_in.set()
        await go.wait()
        running -= 1
        return b""

    slow_echo = echo(handler=slow, in_flight_max=2)
    async with (
        serve(bus, name="s", version="1.0.0", endpoints=[slow_echo]),
        anyio.create_task_group() as tasks,
    ):
        for _ in range(6):
            tasks.start_soon(lambda: other.request("ask.service.echo", b"", timeout_s=10))
        await broker.soon(two_are_in.wait())
        await other.request("$SRV.PING.s", b"", timeout_s=10)  # answered while both slots are taken
        go.set()
    assert most == 2


async def test_a_handler_may_choose_not_to_answer(bus, other, broker):
    seen = anyio.Event()

    async def silent(_request):
        seen.set()

    async with serve(bus, name="s", version="1.0.0", endpoints=[echo(handler=silent)]):
        inbox = other.inbox()
        async with other.subscribe(inbox) as answers:
            await other.send("ask.service.echo", b"", reply=inbox)
            await broker.soon(seen.wait())
            await other.request("$SRV.PING.s", b"", timeout_s=5)
            assert len(answers) == 0


async def test_instances_of_one_queue_group_share_the_requests(bus, other, broker):
    counts = {"one": 0, "two": 0}

    def counting(name):
        async def handler(_request):
            counts[name] += 1
            return b""

        return echo(handler=handler, queue="g")

    async with (
        serve(bus, name="s", version="1.0.0", endpoints=[counting("one")]),
        serve(other, name="s", version="1.0.0", endpoints=[counting("two")]),
    ):
        for _ in range(40):
            await broker.soon(other.request("ask.service.echo", b"", timeout_s=5))
    assert sum(counts.values()) == 40
    assert all(counts.values())


async def test_a_closed_bus_ends_its_services(bus):
    async def serve_until_closed():
        async with serve(bus, name="s", version="1.0.0", endpoints=[echo()]):
            await bus.aclose()
            await anyio.Event().wait()

    with pytest.raises(BusClosed):
        await serve_until_closed()


async def test_nats_own_services_and_ours_find_each_other(nats_server, nats_bus):
    client = await nats.connect(nats_server.url)
    try:
        theirs = await nats.micro.add_service(client, name="met", version="2.0.0", metadata={"by": "nats-py"})
        async with serve(nats_bus, name="met", version="1.0.0", endpoints=[echo()], metadata={"by": "us"}):
            by = {info.metadata["by"]: info.version for info in await service_infos(nats_bus, "met", 0.3)}
            inbox = client.new_inbox()
            answers = await client.subscribe(inbox)
            await client.publish("$SRV.INFO.met", b"", reply=inbox)
            found = [
                ServiceInfo.from_dict(msgspec.json.decode((await answers.next_msg(5)).data)) for _ in range(2)
            ]
        await theirs.stop()
    finally:
        await client.close()
    assert by == {"nats-py": "2.0.0", "us": "1.0.0"}
    ours = next(info for info in found if info.metadata["by"] == "us")
    assert (ours.endpoints[0].name, ours.endpoints[0].subject) == ("echo", "ask.service.echo")
