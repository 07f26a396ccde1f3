"""A subject that a NATS user may not use ends the bus, and is named."""

import anyio
import pytest

from temporality.actors.bus.nats import connect
from temporality.actors.bus.port import PermissionDenied
from temporality.deploy.embedded import embedded_server
from temporality.deploy.server_config import ServerUser
from temporality.protocol.streams import Retention, StreamSpec

EVALUATOR = ServerUser(
    "evaluator",
    "password",
    publish=("allowed.>", "$JS.API.STREAM.MSG.GET.KEPT"),
    subscribe=("allowed.>", "_INBOX_evaluator.>"),
    allow_responses=True,
)
KEPT = StreamSpec(
    name="KEPT", subjects=("allowed.kept", "Secret.Kept"), retention=Retention.LIMITS, private=True
)


@pytest.fixture(scope="module")
async def server(tmp_path_factory):
    async with embedded_server(tmp_path_factory.mktemp("users"), sync="default", users=[EVALUATOR]) as server:
        async with connect(server.url, name="owner") as bus:
            await bus.declare([KEPT])
        yield server


async def test_what_is_allowed_works_with_the_users_own_inbox(server):
    async with connect(server.url_of(EVALUATOR), name="evaluator") as bus:
        assert bus.inbox().startswith("_INBOX_evaluator.")
        await bus.publish("allowed.kept", b"x", message_id="1")
        assert (await bus.last("KEPT", "allowed.kept")).payload == b"x"


async def run_as_evaluator(server, body):
    async with connect(server.url_of(EVALUATOR), name="evaluator") as bus:
        await body(bus)


async def test_a_forbidden_publish_is_fatal_and_names_the_subject(server):
    async def publish(bus):
        await bus.publish("Secret.Kept", b"x", message_id="1", timeout_s=3600)

    with pytest.raises(PermissionDenied, match=r"Secret\.Kept"):
        await run_as_evaluator(server, publish)


async def test_a_forbidden_subscription_is_fatal_and_names_the_subject(server):
    async def subscribe(bus):
        async with bus.subscribe("Secret.Told"):
            pass

    with pytest.raises(PermissionDenied, match=r"Secret\.Told"):
        await run_as_evaluator(server, subscribe)


async def test_a_violation_ends_a_body_that_waits_for_something_else(server):
    async def send_and_wait(bus):
        await bus.send("secret.sent", b"x")
        await anyio.Event().wait()

    with pytest.raises(PermissionDenied, match=r"secret\.sent"):
        await run_as_evaluator(server, send_and_wait)


async def test_a_question_from_elsewhere_may_be_answered_although_its_inbox_is_foreign(server):
    async with (
        connect(server.url_of(EVALUATOR), name="evaluator") as evaluator,
        connect(server.url, name="owner") as owner,
        evaluator.subscribe("allowed.ask") as questions,
        anyio.create_task_group() as tasks,
    ):

        async def answer():
            question = await anext(questions)
            await evaluator.send(question.reply, b"yes")

        tasks.start_soon(answer)
        assert (await owner.request("allowed.ask", b"?", timeout_s=5)).payload == b"yes"
