"""The tool executor: runs the tools that models call, and tells how each call ended.

Receives: `ToolCall` from the stream WORK, subject `tool.<pool>`, durable `tool-<pool>`, shared by all
executors of the pool; the question `ask.executor.tools` (`ListTools`).

Emits: `ToolFinished` to the run's inbox, kind `outcome`, id `<call>.outcome`; `OperationClaimed` and
`OperationRecorded` on `run.<run>.operation.<call>`; blobs with long replies; the answer `ToolsListed` or
`ToolsUnavailable`; a span `execute_tool <tool>` for each delivery of a call.

Guarantees: every call is answered, at least once, and always with the same outcome (effect `none` apart,
which is not recorded). A call with effect `once` acts at most once; one whose executor was lost is answered
`interrupted`, effect `uncertain`. A call with effect `idempotent` is repeated only with the same key. A call
that can't be shown to be claimed doesn't act.

Loses: nothing that was stored. What a tool printed beyond the reply's cap, structured data over 32 KiB and
the bytes of images are left out. Sessions of MCP servers (`session: run` too)
end with the process.
"""
