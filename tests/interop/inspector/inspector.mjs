// The command line of the official inspector against the sample server: every step asserts the JSON that it prints.
//
// usage: inspector.mjs ERA URL
//        inspector.mjs ERA PROGRAM ARGUMENT..., a program that speaks on stdin and stdout
// ERA is what the inspector calls it: `legacy`, `auto` or `modern`. Each command is a process and a connection of its
// own. Prints one line for each step, `step<TAB>ok` or `step<TAB>FAILED<TAB>why`; exits 1 if any step failed.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const TIMEOUT = 30_000;
const [era, ...target] = process.argv.slice(2);
const launcher = fileURLToPath(
  new URL('node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js', import.meta.url),
);

/** Runs one method; what it printed, parsed, and how it ended. */
function run(method, ...options) {
  const inspector = [launcher, '--cli', '--quiet', '--protocol-era', era, '--method', method, ...options];
  const settings = { encoding: 'utf8', timeout: TIMEOUT, maxBuffer: 2 ** 24 };
  const { error, status, stdout, stderr } = spawnSync(process.execPath, [...inspector, '--', ...target], settings);
  if (error) throw error;
  return { status, stdout, stderr };
}

/** What a method that has to succeed printed. */
function succeed(method, ...options) {
  const { status, stdout, stderr } = run(method, ...options);
  assert.equal(status, 0, `${method} exited with ${status}: ${stderr}`);
  return JSON.parse(stdout);
}

/** What a method that has to fail said. */
function fail(method, ...options) {
  const { status, stderr } = run(method, ...options);
  assert.notEqual(status, 0);
  return stderr;
}

const call = (name, ...options) => succeed('tools/call', '--tool-name', name, ...options);

const STEPS = {
  lists() {
    const tools = succeed('tools/list').tools.map((tool) => tool.name);
    assert.equal(tools[0], 'test_simple_text');
    const resources = succeed('resources/list').resources.map((resource) => resource.uri);
    assert.ok(resources.includes('test://static-text'), resources.join());
    const templates = succeed('resources/templates/list').resourceTemplates.map((template) => template.uriTemplate);
    assert.ok(templates.includes('test://template/{id}/data'), templates.join());
    const prompts = succeed('prompts/list').prompts.map((prompt) => prompt.name);
    assert.ok(prompts.includes('test_prompt_with_arguments'), prompts.join());
  },

  /** The inspector walks through all pages by itself; none of the server's has more than ten entries. */
  pages() {
    const tools = succeed('tools/list', '--strict').tools.map((tool) => tool.name);
    assert.ok(tools.length >= 30 && new Set(tools).size === tools.length, tools.join());
  },

  call() {
    const { content } = call('test_simple_text');
    assert.deepEqual(content, [{ type: 'text', text: 'This is a simple text response for testing.' }]);
    const kinds = call('test_multiple_content_types').content.map((block) => block.type);
    assert.deepEqual(kinds, ['text', 'image', 'resource']);
    // Over HTTP a client of the modern era repeats this argument in a header, which has to agree.
    const mirrored = call('test_custom_header', '--tool-args-json', JSON.stringify({ value: ' Grüße ' }));
    assert.equal(mirrored.content[0].text, 'The header said:  Grüße ');
  },

  structured() {
    const result = call('test_structured_content', '--tool-arg', 'city=Lima');
    assert.deepEqual(result.structuredContent, { city: 'Lima', celsius: 21.5, sunny: true });
    assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
  },

  errors() {
    const { status, stdout } = run('tools/call', '--tool-name', 'test_error_handling');
    assert.equal(status, 5);
    assert.match(JSON.parse(stdout).content[0].text, /always fails/);
    assert.match(fail('tools/call', '--tool-name', 'no_such_tool'), /no_such_tool/);
    assert.match(fail('resources/read', '--uri', 'test://no-such'), /no such resource/);
    assert.match(fail('prompts/get', '--prompt-name', 'no_such_prompt'), /no prompt/);
  },

  resources() {
    const [content] = succeed('resources/read', '--uri', 'test://static-text').contents;
    assert.equal(content.text, 'This is the text of a resource that does not change.');
    const [binary] = succeed('resources/read', '--uri', 'test://static-binary').contents;
    assert.equal(binary.mimeType, 'image/png');
    assert.match(binary.blob, /^iVBOR/);
  },

  templates() {
    const [data] = succeed('resources/read', '--uri', 'test://template/42/data').contents;
    assert.equal(JSON.parse(data.text).id, '42');
  },

  prompts() {
    const name = ['--prompt-name', 'test_prompt_with_arguments'];
    const { messages } = succeed('prompts/get', ...name, '--prompt-args', 'arg1=one', 'arg2=two');
    assert.equal(messages[0].content.text, "Prompt with arguments: arg1='one', arg2='two'");
  },

  side_by_side() {
    const load = ['--load', '--load-requests', '50', '--load-concurrency', '50', '--format', 'json'];
    const { result } = call('test_simple_text', ...load);
    assert.deepEqual([result.ok, result.toolErrors, result.errors], [50, 0, 0]);
  },

  /** In the legacy era over HTTP the server ends the stream and the client comes back for the answer. */
  let_go() {
    assert.equal(call('test_reconnection').content[0].text, 'The answer waited until you came back.');
  },

  /** The extension of the sample server, with the inspector's own checks of it. */
  skills() {
    const { status, stdout, stderr } = run('skills/list', '--verify', '--require-digests');
    assert.equal(status, 0, stderr);
    const reports = stdout.trim().split('\n').map((line) => JSON.parse(line));
    assert.deepEqual(reports.map((report) => report.name).sort(), ['plant-care', 'tea-brewing']);
    for (const report of reports) assert.equal(report.outcome, 'verified', JSON.stringify(report));
  },

  elicitation() {
    const result = call('test_elicitation', '--tool-arg', 'message=Who');
    assert.match(result.content[0].text, /action=accept/);
  },

  sampling_and_roots() {
    const result = call('test_sampling', '--tool-arg', 'prompt=Capital?');
    assert.match(result.content[0].text, /LLM response/);
  },

  completion() {
    succeed('completion/complete');
  },
};

for (const [name, step] of Object.entries(STEPS)) {
  try {
    step();
    console.log(`${name}\tok`);
  } catch (error) {
    process.exitCode = 1;
    console.log(`${name}\tFAILED\t${String(error).replace(/\s+/g, ' ')}`);
  }
}
