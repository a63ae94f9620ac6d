"""What an official Python client does with the sample server: every step asserts what came back.

Prints one line for each step, `step<TAB>ok` or `step<TAB>FAILED<TAB>why`; exits 1 if any step failed. It asks for a new
start of the server by a line `restart-server` and waits for a line on stdin.

`client.py` and `session.py` bring a connection in the words of their version of the SDK. What comes back is the JSON of
the protocol, as dictionaries:

    legacy, http                       whether there is a handshake, and which carrier it is
    page(kind, cursor)                 one page of tools, resources, resourceTemplates or prompts
    call(name, arguments, progress, timeout), read(uri), prompt(name, arguments), complete(reference, argument)
    listen(filter)                     a subscription of the modern era: an asynchronous context
    subscribe(uri), unsubscribe(uri)   their counterparts of the legacy era
    heard                              a queue of notifications
    start_task(name, arguments), task_states(task), task_result(task), cancel_task(task), task_ids()
                                       core tasks of 2025-11-25; left out where the SDK has no words for them
    another()                          a second connection to the same server: an asynchronous context
"""

import asyncio
import json
import sys

SIMPLE_TEXT = "This is a simple text response for testing."
WATCHED = "test://watched-resource"
COUNT = "test://cancelled-calls"
# Seconds for what takes milliseconds where it works.
PATIENCE = 3


def form_content(schema):
    """What the user fills in."""
    return {name: "Alice" if field.get("type") == "string" else True for name, field in schema["properties"].items()}


def as_json(result):
    """A result of the SDK as it was on the wire."""
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


async def refused(call):
    """The error of a call that must be refused."""
    try:
        await call
    except Exception as error:  # noqa: BLE001 - whatever the SDK raises
        return str(error)
    raise AssertionError("it was not refused")


def text(result):
    return result["content"][0]["text"]


def equal(found, expected):
    assert found == expected, f"{found!r} is not {expected!r}"


async def pages_of(client, kind):
    pages, cursor = [], None
    while True:
        page = await client.page(kind, cursor)
        pages.append(page[kind])
        cursor = page.get("nextCursor")
        if cursor is None:
            return pages


async def entries(client, kind):
    return [entry for page in await pages_of(client, kind) for entry in page]


async def hears(client, method, uri=None):
    """Waits for a notification, passing over others."""
    while True:
        heard = await client.heard.get()
        if heard["method"] == method and uri in (None, heard.get("params", {}).get("uri")):
            return


async def lists(client):
    tools = [tool["name"] for tool in await entries(client, "tools")]
    equal(tools[0], "test_simple_text")
    assert len(tools) == len(set(tools)) >= 30, tools
    resources = {resource["uri"] for resource in await entries(client, "resources")}
    assert {"test://static-text", WATCHED, COUNT} <= resources, resources
    templates = [template["uriTemplate"] for template in await entries(client, "resourceTemplates")]
    assert "test://template/{id}/data" in templates, templates
    prompts = [prompt["name"] for prompt in await entries(client, "prompts")]
    assert "test_prompt_with_arguments" in prompts, prompts


async def pages(client):
    pages = await pages_of(client, "tools")
    sizes = [len(page) for page in pages]
    assert len(sizes) > 3 and set(sizes[:-1]) == {10} and 0 < sizes[-1] <= 10, sizes
    assert not {tool["name"] for tool in pages[0]} & {tool["name"] for tool in pages[1]}
    assert "ursor" in await refused(client.page("tools", "no cursor of this server"))


async def call(client):
    equal(text(await client.call("test_simple_text", {})), SIMPLE_TEXT)
    result = await client.call("test_multiple_content_types", {})
    equal([block["type"] for block in result["content"]], ["text", "image", "resource"])
    # Over HTTP a client of the modern era repeats this argument in a header, which has to agree.
    equal(text(await client.call("test_custom_header", {"value": " Grüße "})), "The header said:  Grüße ")


async def structured(client):
    tools = {tool["name"]: tool for tool in await entries(client, "tools")}
    schema = tools["test_structured_content"].get("outputSchema", {})
    equal(set(schema.get("required", ())), {"city", "celsius", "sunny"})
    result = await client.call("test_structured_content", {"city": "Lima"})
    equal(result["structuredContent"], {"city": "Lima", "celsius": 21.5, "sunny": True})
    equal(json.loads(text(result)), result["structuredContent"])


async def progress(client):
    seen = []

    async def note(done, total, message=None):
        seen.append((done, total, message))

    await client.call("test_tool_with_progress", {}, progress=note)
    equal(seen, [(0.0, 100.0, "started"), (50.0, 100.0, "half done"), (100.0, 100.0, "done")])


async def errors(client):
    failed = await client.call("test_error_handling", {})
    assert failed["isError"] and "always fails" in text(failed), failed
    invalid = await client.call("test_elicitation", {"message": 7})
    assert invalid["isError"] and "/message" in text(invalid), invalid
    assert "there is no tool" in await refused(client.call("no_such_tool", {}))
    assert "no such resource" in await refused(client.read("test://no-such"))
    assert "no prompt" in await refused(client.prompt("no_such_prompt"))


async def resources(client):
    [content] = (await client.read("test://static-text"))["contents"]
    equal(content["text"], "This is the text of a resource that does not change.")
    equal(content["mimeType"], "text/plain")
    [binary] = (await client.read("test://static-binary"))["contents"]
    equal(binary["mimeType"], "image/png")
    assert binary["blob"].startswith("iVBOR"), binary


async def templates(client):
    [data] = (await client.read("test://template/42/data"))["contents"]
    equal(json.loads(data["text"])["id"], "42")
    reference = {"type": "ref/resource", "uri": "test://template/{id}/data"}
    completed = await client.complete(reference, {"name": "id", "value": "12"})
    equal(completed["completion"]["values"], ["12", "123"])


async def prompts(client):
    filled = await client.prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
    equal(filled["messages"][0]["content"]["text"], "Prompt with arguments: arg1='one', arg2='two'")
    asking = await client.prompt("test_input_required_result_prompt")
    equal(asking["messages"][0]["content"]["text"], "Please answer with this in mind: Alice")


async def completion(client):
    reference = {"type": "ref/prompt", "name": "test_prompt_with_arguments"}
    completed = await client.complete(reference, {"name": "arg1", "value": "test-"})
    equal(completed["completion"]["values"], ["test-value-1", "test-value-2"])


async def elicitation(client):
    once = text(await client.call("test_elicitation", {"message": "Who are you?"}))
    assert 'content={"username":"Alice","email":"Alice"}' in once, once
    equal(text(await client.call("test_input_required_result_multi_round", {})), "Alice likes Alice.")


async def sampling_and_roots(client):
    equal(text(await client.call("test_sampling", {"prompt": "Capital?"})), "LLM response: Paris")
    equal(text(await client.call("test_input_required_result_list_roots", {})), "You work in: file:///work.")
    both = text(await client.call("test_input_required_result_multiple_inputs", {}))
    equal(both, "Hello, Alice! The model says: Paris. You work in: file:///work.")


async def side_by_side(client):
    results = await asyncio.gather(*(client.call("test_simple_text", {}) for _ in range(50)))
    equal({text(result) for result in results}, {SIMPLE_TEXT})


async def let_go(client):
    """In the legacy era over HTTP the server ends the stream and the client comes back for the answer."""
    equal(text(await client.call("test_reconnection", {})), "The answer waited until you came back.")


async def cancelled_calls(client):
    return int((await client.read(COUNT))["contents"][0]["text"])


async def cancellation_arrives(client, before):
    """Asks until the handler of one more call has seen that it was cancelled."""
    asked_until = asyncio.get_running_loop().time() + PATIENCE
    while await cancelled_calls(client) != before + 1:
        assert asyncio.get_running_loop().time() < asked_until, "the server did not hear of the cancellation"


async def cancellation(client):
    before = await cancelled_calls(client)
    runs = asyncio.Event()

    async def note(_done, _total, _message=None):
        runs.set()

    calling = asyncio.ensure_future(client.call("test_wait_for_cancellation", {}, progress=note))
    waiting = asyncio.ensure_future(runs.wait())
    await asyncio.wait([calling, waiting], return_when=asyncio.FIRST_COMPLETED)
    calling.cancel()
    waiting.cancel()
    [outcome] = await asyncio.gather(calling, return_exceptions=True)
    assert isinstance(outcome, asyncio.CancelledError), repr(outcome)
    await cancellation_arrives(client, before)
    equal(text(await client.call("test_simple_text", {})), SIMPLE_TEXT)


async def time_limit(client):
    before = await cancelled_calls(client)
    late = await refused(client.call("test_wait_for_cancellation", {}, timeout=0.2))
    assert "imed out" in late, late
    await cancellation_arrives(client, before)
    equal(text(await client.call("test_simple_text", {})), SIMPLE_TEXT)


async def list_changes(client):
    if client.legacy:
        for kind in ("tool", "prompt"):
            await client.call(f"test_trigger_{kind}_change", {})
            await hears(client, f"notifications/{kind}s/list_changed")
        return
    async with client.listen({"toolsListChanged": True, "promptsListChanged": True}) as subscription:
        equal(subscription.honored, {"toolsListChanged": True, "promptsListChanged": True})
        for kind in ("tool", "prompt"):
            await client.call(f"test_trigger_{kind}_change", {})
            equal(await subscription.next(), {"type": f"{kind.title()}sListChanged"})


async def resource_updates(client):
    trigger = "test_trigger_resource_update"
    if client.legacy:
        await client.subscribe(WATCHED)
        await client.call(trigger, {})
        await hears(client, "notifications/resources/updated", WATCHED)
        await client.unsubscribe(WATCHED)
        await client.call(trigger, {})
        # What would be told of the update comes before what is told of this.
        await client.call("test_trigger_tool_change", {})
        equal((await client.heard.get())["method"], "notifications/tools/list_changed")
        return
    async with client.listen({"resourceSubscriptions": [WATCHED]}) as subscription:
        equal(subscription.honored, {"resourceSubscriptions": [WATCHED]})
        await client.call(trigger, {})
        equal(await subscription.next(), {"type": "ResourceUpdated", "uri": WATCHED})


async def restart(client):
    """Another process takes the server's place: the modern era goes on, a session has to begin anew."""
    if client.http:
        print("restart-server", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
    if client.http and client.legacy:
        gone = await refused(client.call("test_simple_text", {}))
        # With the pair of endpoints the stream is the session, and its end leaves nobody to say a word.
        assert client.pair or "session" in gone.lower(), gone
    else:
        equal(text(await client.call("test_simple_text", {})), SIMPLE_TEXT)
        if client.http:
            return await elicitation(client)
    # On a pipe the first child is still there: both serve.
    async with client.another() as other:
        await lists(other)
        equal(text(await other.call("test_simple_text", {})), SIMPLE_TEXT)


async def ended(client, task):
    """The last state of a task, asked for as often as its server says."""
    async for state in client.task_states(task):
        last = state
    return last["status"]


async def tasks(client):
    task = await client.start_task("slow_compute", {"seconds": 0.3, "label": "this"})
    equal(task["status"], "working")
    equal(await ended(client, task), "completed")
    assert "Computed this" in text(await client.task_result(task))
    # The question comes while the client waits for the result, tied to its task.
    task = await client.start_task("confirm_delete", {"filename": "a.txt"})
    assert "Deleted a.txt" in text(await client.task_result(task))
    task = await client.start_task("multi_input", {})
    equal(text(await client.task_result(task)), "Alice goes on.")
    task = await client.start_task("failing_job", {})
    result = await client.task_result(task)
    assert result["isError"], result
    equal(await ended(client, task), "failed")
    task = await client.start_task("slow_compute", {"seconds": 60})
    equal((await client.cancel_task(task))["status"], "cancelled")
    equal(await ended(client, task), "cancelled")
    assert task["taskId"] in await client.task_ids()
    await refused(client.start_task("greet", {"name": "Ann"}))


STEPS = [
    lists, pages, call, structured, progress, errors, resources, templates, prompts, completion, elicitation,
    sampling_and_roots, side_by_side, let_go, cancellation, time_limit, list_changes, resource_updates, tasks, restart,
]


async def run(connection, legacy, limit):
    """Runs every step, each for at most `limit` seconds; the exit status."""
    failed = False
    async with connection as client:
        equal(client.legacy, legacy)
        for step in STEPS:
            if step is tasks and not hasattr(client, "start_task"):
                continue
            try:
                await asyncio.wait_for(step(client), limit)
                print(f"{step.__name__}\tok", flush=True)
            except Exception as error:  # noqa: BLE001 - reported, and the next step runs
                failed = True
                why = " ".join(f"{type(error).__name__}: {error}".split())
                print(f"{step.__name__}\tFAILED\t{why}", flush=True)
    return int(failed)
