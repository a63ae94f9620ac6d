"""The Python SDK of the legacy era, from its first versions on.

usage: session.py legacy URL, whose end tells the pair of endpoints of 2024-11-05 (/sse) from the newer one
       session.py legacy PROGRAM ARGUMENT..., a program that speaks on stdin and stdout

What a version does not have is left out here, and the steps that need it fail.
"""

import asyncio
import inspect
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from pydantic import AnyUrl

from steps import as_json, form_content, run

# Nothing takes longer; what a version cannot do mostly shows by an endless wait.
LIMIT = 8
METHODS = {"resourceTemplates": "list_resource_templates"}


async def answer_form(_context, params):
    return types.ElicitResult(action="accept", content=form_content(params.requestedSchema))


async def answer_sampling(_context, _params):
    text = types.TextContent(type="text", text="Paris")
    return types.CreateMessageResult(role="assistant", content=text, model="interop")


async def answer_roots(_context):
    return types.ListRootsResult(roots=[types.Root(uri=AnyUrl("file:///work"))])


class Connection:
    legacy = True

    def __init__(self, session, heard, target, another):
        self._session, self.heard, self.another = session, heard, another
        self.http, self.pair = target.startswith("http"), target.endswith("/sse")

    async def page(self, kind, cursor):
        method = getattr(self._session, METHODS.get(kind, f"list_{kind}"))
        return as_json(await (method() if cursor is None else method(cursor)))

    async def call(self, name, arguments, progress=None, timeout=None):
        limits = {}
        if timeout is not None:
            limits["read_timeout_seconds"] = timedelta(seconds=timeout)
        if progress is not None:
            limits["progress_callback"] = progress
        return as_json(await self._session.call_tool(name, arguments, **limits))

    async def read(self, uri):
        return as_json(await self._session.read_resource(AnyUrl(uri)))

    async def prompt(self, name, arguments=None):
        return as_json(await self._session.get_prompt(name, arguments))

    async def complete(self, reference, argument):
        template = getattr(types, "ResourceTemplateReference", getattr(types, "ResourceReference", None))
        kinds = {"ref/prompt": types.PromptReference, "ref/resource": template}
        return as_json(await self._session.complete(kinds[reference["type"]](**reference), argument))

    async def start_task(self, name, arguments):
        return as_json(await self._session.experimental.call_tool_as_task(name, arguments))["task"]

    async def task_states(self, task):
        async for state in self._session.experimental.poll_task(task["taskId"]):
            yield as_json(state)

    async def task_result(self, task):
        return as_json(await self._session.experimental.get_task_result(task["taskId"], types.CallToolResult))

    async def cancel_task(self, task):
        return as_json(await self._session.experimental.cancel_task(task["taskId"]))

    async def task_ids(self):
        return [task["taskId"] for task in as_json(await self._session.experimental.list_tasks())["tasks"]]

    async def subscribe(self, uri):
        await self._session.subscribe_resource(AnyUrl(uri))

    async def unsubscribe(self, uri):
        await self._session.unsubscribe_resource(AnyUrl(uri))


@asynccontextmanager
async def connect(target):
    heard = asyncio.Queue()

    async def hear(message):
        if isinstance(message, types.ServerNotification):
            heard.put_nowait(as_json(message.root))

    answers = {
        "elicitation_callback": answer_form,
        "sampling_callback": answer_sampling,
        "list_roots_callback": answer_roots,
        "message_handler": hear,
    }
    known = inspect.signature(ClientSession.__init__).parameters
    http = target[0].startswith("http")
    async with AsyncExitStack() as stack:
        if http and target[0].endswith("/sse"):
            from mcp.client.sse import sse_client

            streams = await stack.enter_async_context(sse_client(target[0]))
        elif http:
            from mcp.client.streamable_http import streamablehttp_client

            streams = await stack.enter_async_context(streamablehttp_client(target[0]))
        else:
            program = StdioServerParameters(command=target[0], args=target[1:])
            streams = await stack.enter_async_context(stdio_client(program))
        answers = {name: answer for name, answer in answers.items() if name in known}
        session = await stack.enter_async_context(ClientSession(streams[0], streams[1], **answers))
        await session.initialize()
        yield Connection(session, heard, target[0], lambda: connect(target))


if __name__ == "__main__":
    _, mode, *target = sys.argv
    sys.exit(asyncio.run(run(connect(target), mode == "legacy", LIMIT)))
