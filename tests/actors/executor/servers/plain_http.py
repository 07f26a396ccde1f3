"""The server of `plain.py` over streamable HTTP: `plain_http.py FD`, the descriptor of a listening socket.

Each process is a session of its own: what a client of another one asks gets 404, as the protocol has it.
A call is answered as a stream of events, whose headers are sent before the tool acts.
"""

import json
import os
import socket
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from plain import response  # type: ignore[import-not-found]  # beside this file

SESSION = f"session-{os.getpid()}"


class Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if request.get("method") != "initialize" and self.headers.get("mcp-session-id") != SESSION:
            self._begin(HTTPStatus.NOT_FOUND, "content-length: 0")
        elif request.get("method") == "tools/call":
            self._begin(HTTPStatus.OK, "content-type: text/event-stream", "connection: close")
            self.wfile.write(b"data: " + json.dumps(response(request)).encode() + b"\n\n")
        elif said := response(request):
            body = json.dumps(said).encode()
            self._begin(HTTPStatus.OK, "content-type: application/json", f"content-length: {len(body)}")
            self.wfile.write(body)
        else:
            self._begin(HTTPStatus.ACCEPTED, "content-length: 0")

    def do_GET(self) -> None:
        self._begin(HTTPStatus.METHOD_NOT_ALLOWED, "content-length: 0")

    def do_DELETE(self) -> None:
        self._begin(HTTPStatus.OK, "content-length: 0")

    def _begin(self, status: HTTPStatus, *headers: str) -> None:
        self.send_response_only(status)
        for header in (f"mcp-session-id: {SESSION}", *headers):
            name, _, value = header.partition(": ")
            self.send_header(name, value)
        self.end_headers()
        self.wfile.flush()


server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint, bind_and_activate=False)
server.socket.close()
server.socket = socket.socket(fileno=int(sys.argv[1]))
server.serve_forever()
