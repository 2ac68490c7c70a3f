"""FastMCP's client."""

import asyncio
import sys

import expect
from fastmcp import Client


async def main(url):
    async with Client(url) as client:
        expect.tools([tool.name for tool in await client.list_tools()])
        for call in expect.KNOWN["calls"]:
            result = await client.call_tool(call["tool"], call["arguments"], raise_on_error=False)
            expect.answer(call, result.is_error, [c.text for c in result.content], result.structured_content)
        refused = expect.KNOWN["refused"]
        result = await client.call_tool(refused["tool"], refused["arguments"], raise_on_error=False)
        expect.refusal(result.is_error, [c.text for c in result.content])


asyncio.run(main(sys.argv[1]))
