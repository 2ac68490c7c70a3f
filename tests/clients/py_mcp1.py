"""The first-generation Python client."""

import asyncio
import sys

import expect
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def main(url):
    async with streamablehttp_client(url) as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        expect.tools([tool.name for tool in (await session.list_tools()).tools])
        for call in expect.KNOWN["calls"]:
            result = await session.call_tool(call["tool"], call["arguments"])
            expect.answer(call, result.isError, [c.text for c in result.content], result.structuredContent)
        refused = expect.KNOWN["refused"]
        result = await session.call_tool(refused["tool"], refused["arguments"])
        expect.refusal(result.isError, [c.text for c in result.content])
        await session.send_ping()


asyncio.run(main(sys.argv[1]))
