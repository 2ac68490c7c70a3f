"""The second-generation Python client over HTTP (`URL MODE`) or stdio (`stdio BINARY FOLDER`)."""

import asyncio
import sys

import expect
from mcp import Client, StdioServerParameters, stdio_client


def connect(args):
    if args[0] == "stdio":
        return Client(stdio_client(StdioServerParameters(command=args[1], args=["mcp", *args[2:]])))
    return Client(args[0], mode=args[1])


async def main(args):
    mode = args[1] if args[0] != "stdio" else None
    async with connect(args) as client:
        wanted = {"legacy": "2025-11-25", None: client.protocol_version}.get(mode, "2026-07-28")
        if client.protocol_version != wanted:
            expect.fail(f"{mode} reached {client.protocol_version}, not {wanted}")
        expect.tools([tool.name for tool in (await client.list_tools()).tools])
        for call in expect.KNOWN["calls"]:
            result = await client.call_tool(call["tool"], call["arguments"])
            expect.answer(call, result.is_error, [c.text for c in result.content], result.structured_content)
        refused = expect.KNOWN["refused"]
        result = await client.call_tool(refused["tool"], refused["arguments"])
        expect.refusal(result.is_error, [c.text for c in result.content])
        if mode == "legacy":
            await client.send_ping()


asyncio.run(main(sys.argv[1:]))
