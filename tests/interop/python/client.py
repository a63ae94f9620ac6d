"""The official Python client against the sample server: every step asserts what came back.

usage: client.py TARGET MODE, where TARGET is a URL or the path of a program that speaks on stdin and stdout.
Prints one line for each step, `step<TAB>ok` or `step<TAB>FAILED<TAB>why`; exits 1 if any step failed.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters, types

TIMEOUT = 30


async def answer_form(_context, params):
    schema = params.requested_schema
    given = {name: "Alice" if field.get("type") == "string" else True for name, field in schema["properties"].items()}
    return types.ElicitResult(action="accept", content=given)


async def answer_sampling(_context, _params):
    text = types.TextContent(type="text", text="Paris")
    return types.CreateMessageResult(role="assistant", content=text, model="interop")


async def answer_roots(_context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///work")])


async def refused(call):
    """The error of a call that must be refused."""
    try:
        await call
    except Exception as error:  # noqa: BLE001 - the SDK's error type differs between versions
        return str(error)
    raise AssertionError("it was not refused")


def first_text(result):
    return result.content[0].text


def equal(found, expected):
    assert found == expected, f"{found!r} is not {expected!r}"


async def lists(client):
    names = [tool.name for tool in (await client.list_tools()).tools]
    equal(names[0], "test_simple_text")
    assert len(names) == len(set(names)) >= 28, names
    uris = [str(resource.uri) for resource in (await client.list_resources()).resources]
    assert "test://static-text" in uris, uris
    templates = [each.uri_template for each in (await client.list_resource_templates()).resource_templates]
    assert "test://template/{id}/data" in templates, templates
    prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
    assert "test_prompt_with_arguments" in prompts, prompts


async def call(client):
    result = await client.call_tool("test_simple_text", {})
    equal(first_text(result), "This is a simple text response for testing.")
    result = await client.call_tool("test_multiple_content_types", {})
    equal([block.type for block in result.content], ["text", "image", "resource"])


async def progress(client):
    seen = []

    async def note(done, total, _message):
        seen.append((done, total))

    await client.call_tool("test_tool_with_progress", {}, progress_callback=note)
    equal(seen, [(0.0, 100.0), (50.0, 100.0), (100.0, 100.0)])


async def errors(client):
    failed = await client.call_tool("test_error_handling", {})
    assert failed.is_error and failed.content, failed
    invalid = await client.call_tool("test_elicitation", {"message": 7})
    assert invalid.is_error and "/message" in first_text(invalid), invalid
    assert "there is no tool" in await refused(client.call_tool("no_such_tool", {}))
    assert "no such resource" in await refused(client.read_resource("test://no-such"))
    assert "no prompt" in await refused(client.get_prompt("no_such_prompt"))


async def resources(client):
    text = await client.read_resource("test://static-text")
    assert text.contents[0].text and text.contents[0].mime_type == "text/plain", text
    binary = await client.read_resource("test://static-binary")
    equal(binary.contents[0].mime_type, "image/png")
    data = await client.read_resource("test://template/42/data")
    equal(json.loads(data.contents[0].text)["id"], "42")


async def prompts(client):
    prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
    text = prompt.messages[0].content.text
    assert "one" in text and "two" in text, text


async def completion(client):
    reference = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
    result = await client.complete(reference, {"name": "arg1", "value": ""})
    assert isinstance(result.completion.values, list), result


async def elicitation(client):
    result = await client.call_tool("test_elicitation", {"message": "Who are you?"})
    assert "Alice" in first_text(result), result
    result = await client.call_tool("test_input_required_result_multi_round", {})
    assert "Alice" in first_text(result), result


async def sampling_and_roots(client):
    equal(first_text(await client.call_tool("test_sampling", {"prompt": "Capital?"})), "LLM response: Paris")
    both = first_text(await client.call_tool("test_input_required_result_multiple_inputs", {}))
    assert "Alice" in both and "Paris" in both and "file:///work" in both, both


async def side_by_side(client):
    calls = [client.call_tool("test_simple_text", {}) for _ in range(50)]
    texts = {first_text(result) for result in await asyncio.gather(*calls)}
    equal(texts, {"This is a simple text response for testing."})


STEPS = [
    lists, call, progress, errors, resources, prompts, completion, elicitation, sampling_and_roots, side_by_side,
]


async def main(target, mode):
    if not target.startswith("http"):
        target = StdioServerParameters(command=target, args=["--stdio"])
    client = Client(
        target,
        mode=mode,
        elicitation_callback=answer_form,
        sampling_callback=answer_sampling,
        list_roots_callback=answer_roots,
        read_timeout_seconds=TIMEOUT,
    )
    failed = False
    async with client:
        for step in STEPS:
            try:
                await asyncio.wait_for(step(client), TIMEOUT)
                print(f"{step.__name__}\tok", flush=True)
            except Exception as error:  # noqa: BLE001 - reported, and the next step runs
                failed = True
                why = f"{type(error).__name__}: {error}".replace("\n", " ").replace("\t", " ")
                print(f"{step.__name__}\tFAILED\t{why}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(1 if asyncio.run(main(sys.argv[1], sys.argv[2])) else 0)
