"""The Python SDK of both eras.

usage: client.py MODE URL
       client.py MODE PROGRAM ARGUMENT..., a program that speaks on stdin and stdout

MODE is `auto` (by a probe), `legacy` (the handshake) or a revision of the modern era.
"""

import asyncio
import sys
from contextlib import asynccontextmanager

from mcp import Client, StdioServerParameters, types

from steps import as_json, form_content, run

TIMEOUT = 30


async def answer_form(_context, params):
    return types.ElicitResult(action="accept", content=form_content(params.requested_schema))


async def answer_sampling(_context, _params):
    text = types.TextContent(type="text", text="Paris")
    return types.CreateMessageResult(role="assistant", content=text, model="interop")


async def answer_roots(_context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///work")])


class Subscription:
    def __init__(self, subscription):
        self._events = aiter(subscription)
        self.honored = as_json(subscription.honored)

    async def next(self):
        event = await anext(self._events)
        return {"type": type(event).__name__, **vars(event)}


class Connection:
    pair = False

    def __init__(self, client, heard, another):
        self._client, self.heard, self.another = client, heard, another
        self.legacy = client.protocol_version < "2026"
        self.http = isinstance(client.server, str)
        self.subscribe, self.unsubscribe = client.subscribe_resource, client.unsubscribe_resource

    async def page(self, kind, cursor):
        methods = {"resourceTemplates": "list_resource_templates"}
        return as_json(await getattr(self._client, methods.get(kind, f"list_{kind}"))(cursor=cursor))

    async def call(self, name, arguments, progress=None, timeout=None):
        limits = {"read_timeout_seconds": timeout, "progress_callback": progress}
        return as_json(await self._client.call_tool(name, arguments, **limits))

    async def read(self, uri):
        return as_json(await self._client.read_resource(uri))

    async def prompt(self, name, arguments=None):
        return as_json(await self._client.get_prompt(name, arguments))

    async def complete(self, reference, argument):
        kinds = {"ref/prompt": types.PromptReference, "ref/resource": types.ResourceTemplateReference}
        return as_json(await self._client.complete(kinds[reference["type"]](**reference), argument))

    @asynccontextmanager
    async def listen(self, wanted):
        wanted = types.SubscriptionFilter.model_validate(wanted).model_dump(exclude_none=True)
        async with self._client.listen(**wanted) as subscription:
            yield Subscription(subscription)


@asynccontextmanager
async def connect(mode, target):
    heard = asyncio.Queue()

    async def hear(message):
        if not isinstance(message, Exception):
            heard.put_nowait(as_json(message))

    server = target[0] if target[0].startswith("http") else StdioServerParameters(command=target[0], args=target[1:])
    client = Client(
        server,
        mode=mode,
        elicitation_callback=answer_form,
        sampling_callback=answer_sampling,
        list_roots_callback=answer_roots,
        message_handler=hear,
        read_timeout_seconds=TIMEOUT,
    )
    async with client:
        yield Connection(client, heard, lambda: connect(mode, target))


if __name__ == "__main__":
    _, mode, *target = sys.argv
    sys.exit(asyncio.run(run(connect(mode, target), mode == "legacy", TIMEOUT)))
