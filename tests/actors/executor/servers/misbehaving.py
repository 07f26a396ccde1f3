"""A server, written by hand, that breaks the rules in the way its first argument names.

`dies`, `hangs`, `junk` and `floods` never answer a handshake. `banner` prints a banner first; `bytes` and
`surrogates` answer a call with text that is no UTF-8, or that holds half a character; `code` answers a call
with the error code that the SDK uses for a lost connection; `endless` sends a line that doesn't end;
`stubborn` answers well, and stays when it is told to go.
"""

import json
import os
import signal
import sys

MODE = sys.argv[1]


def say(message: dict[str, object]) -> None:
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    sys.stdout.buffer.flush()


def before_the_handshake() -> None:
    if MODE == "dies":
        sys.stderr.write("cannot open the config file\n")
        sys.exit(7)
    if MODE in {"junk", "banner"}:
        os.write(1, b"Listening on port 80\n")
    if MODE == "floods":
        while True:
            os.write(1, b"no message\n")
    if MODE in {"hangs", "junk"}:
        sys.stdin.read()
        sys.exit(0)


def call(id_: int) -> None:
    if MODE == "bytes":
        content = b'{"content": [{"type": "text", "text": "a\xff\xfeb"}]}'
        os.write(1, b'{"jsonrpc": "2.0", "id": %d, "result": %s}\n' % (id_, content))
    elif MODE == "surrogates":
        say({"id": id_, "result": {"content": [{"type": "text", "text": "a\ud83db \U0001f600"}]}})
    elif MODE == "code":
        say({"id": id_, "error": {"code": -32000, "message": "quota exceeded"}})
    elif MODE == "endless":
        try:
            while True:
                os.write(1, b"x" * 65_536)
        except BrokenPipeError:
            sys.exit(1)
    else:
        say({"id": id_, "result": {"content": [{"type": "text", "text": "fine"}]}})


before_the_handshake()
if MODE == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    request = json.loads(line)
    if request.get("method") == "initialize":
        version = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
        say({"id": request["id"], "result": {**version, "serverInfo": {"name": "raw", "version": "1"}}})
    elif request.get("method") == "tools/call":
        call(request["id"])
    elif request.get("method") == "tools/list":
        say({"id": request["id"], "result": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}})
    elif "id" in request:
        say({"id": request["id"], "error": {"code": -32601, "message": "unknown method"}})
while MODE == "stubborn":
    signal.pause()
