// What an official TypeScript client does with the sample server: every step asserts what came back.
//
// Prints one line for each step, `step<TAB>ok` or `step<TAB>FAILED<TAB>why`; exits 1 if any step failed. It asks for a
// new start of the server by a line `restart-server` and waits for a line on stdin.
//
// `v1.mjs` and `v2.mjs` bring a connection in the words of their version of the SDK:
//   legacy            whether there is a session, or a handshake on a pipe
//   list(kind)        all entries of tools, resources, resourceTemplates or prompts
//   page(kind, cursor), call(name, arguments, options), read(uri), prompt(name, arguments), complete(ref, argument)
//   listen(filter)    a subscription of the modern era, with `honoredFilter` and `close()`
//   subscribe(uri), unsubscribe(uri)   their counterparts of the legacy era
//   startTask(name, arguments, ttl), task(id), taskResult(id), cancelTask(id), taskPage(cursor)   core tasks
//   followTask(name, arguments)   all that the SDK tells of a task to its end, where it follows one by itself
//   heard             notifications as they come, from `notifications()`
//   close()

import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';

const TIMEOUT = 30_000;
/** Milliseconds for what takes a few where it works. */
const PATIENCE = 3_000;
const SIMPLE_TEXT = 'This is a simple text response for testing.';
const WATCHED = 'test://watched-resource';
const COUNT = 'test://cancelled-calls';

export const NOTIFICATIONS = ['tools/list_changed', 'prompts/list_changed', 'resources/updated'].map(
  (name) => `notifications/${name}`,
);

/** The forms that the server asked for since a step looked at them. */
const asked = [];

/** Answers to what the server asks, by method. */
export const ANSWERS = {
  'elicitation/create': ({ params }) => {
    asked.push(params);
    const fields = Object.entries(params.requestedSchema.properties);
    const content = Object.fromEntries(fields.map(([name, { type }]) => [name, type === 'string' ? 'Alice' : true]));
    return { action: 'accept', content };
  },
  'sampling/createMessage': () => ({ role: 'assistant', model: 'interop', content: { type: 'text', text: 'Paris' } }),
  'roots/list': () => ({ roots: [{ uri: 'file:///work' }] }),
};

export const CAPABILITIES = { elicitation: {}, sampling: {}, roots: {} };

/** A queue of notifications that can be waited for. */
export function notifications() {
  const waiting = [];
  const queue = [];
  return {
    put: (notification) => (waiting.length > 0 ? waiting.shift()(notification) : queue.push(notification)),
    next: () => (queue.length > 0 ? queue.shift() : new Promise((resolve) => waiting.push(resolve))),
    /** Waits for one, passing over others. */
    async hears(method, uri) {
      for (;;) {
        const heard = await this.next();
        if (heard.method === method && (uri === undefined || heard.params.uri === uri)) return;
      }
    },
  };
}

const text = (result) => result.content[0].text;
const names = (entries) => entries.map((entry) => entry.name);

/** The message of a call that must be refused. */
async function refused(promise) {
  const outcome = await promise.then(
    (value) => ({ value }),
    (error) => ({ error }),
  );
  assert.ok(outcome.error, `it was not refused: ${JSON.stringify(outcome.value)}`);
  return String(outcome.error);
}

const STEPS = {
  async lists(client) {
    const tools = names(await client.list('tools'));
    assert.equal(tools[0], 'test_simple_text');
    assert.ok(tools.length >= 30 && new Set(tools).size === tools.length, tools.join());
    const resources = (await client.list('resources')).map((resource) => resource.uri);
    for (const uri of ['test://static-text', WATCHED, COUNT]) assert.ok(resources.includes(uri), resources.join());
    const templates = (await client.list('resourceTemplates')).map((template) => template.uriTemplate);
    assert.ok(templates.includes('test://template/{id}/data'), templates.join());
    const prompts = names(await client.list('prompts'));
    assert.ok(prompts.includes('test_prompt_with_arguments'), prompts.join());
  },

  async pages(client) {
    const found = [];
    let cursor;
    do {
      const page = await client.page('tools', cursor);
      found.push(names(page.tools));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    assert.ok(found.length > 3, `${found.length} pages`);
    found.slice(0, -1).forEach((page) => assert.equal(page.length, 10));
    assert.deepEqual(found.flat(), names(await client.list('tools')));
    assert.match(await refused(client.page('tools', 'no cursor of this server')), /cursor/i);
  },

  async call(client) {
    assert.equal(text(await client.call('test_simple_text', {})), SIMPLE_TEXT);
    const several = await client.call('test_multiple_content_types', {});
    assert.deepEqual(several.content.map((block) => block.type), ['text', 'image', 'resource']);
    // Over HTTP a client of the modern era repeats this argument in a header, which has to agree.
    assert.equal(text(await client.call('test_custom_header', { value: ' Grüße ' })), 'The header said:  Grüße ');
  },

  async structured(client) {
    const tool = (await client.list('tools')).find(({ name }) => name === 'test_structured_content');
    assert.deepEqual(new Set(tool.outputSchema.required), new Set(['city', 'celsius', 'sunny']));
    const result = await client.call('test_structured_content', { city: 'Lima' });
    assert.deepEqual(result.structuredContent, { city: 'Lima', celsius: 21.5, sunny: true });
    assert.deepEqual(JSON.parse(text(result)), result.structuredContent);
  },

  async progress(client, _connect, _isHttp, oneStream) {
    const seen = [];
    const onprogress = ({ progress, total, message }) => seen.push([progress, total, message]);
    await client.call('test_tool_with_progress', {}, { onprogress });
    const told = [[0, 100, 'started'], [50, 100, 'half done'], [100, 100, 'done']];
    // The client takes a result at once and a notice a moment later: of those that come in one read from a pipe, or from
    // the stream of a pair of endpoints, the notice before the result is lost.
    assert.deepEqual(seen, oneStream ? told.slice(0, Math.max(seen.length, 2)) : told);
  },

  async errors(client) {
    const failed = await client.call('test_error_handling', {});
    assert.ok(failed.isError);
    assert.match(text(failed), /always fails/);
    const invalid = await client.call('test_elicitation', { message: 7 });
    assert.ok(invalid.isError);
    assert.match(text(invalid), /\/message/);
    assert.match(await refused(client.call('no_such_tool', {})), /there is no tool/);
    assert.match(await refused(client.read('test://no-such')), /no such resource/);
    assert.match(await refused(client.prompt('no_such_prompt')), /no prompt/);
  },

  async resources(client) {
    const [content] = (await client.read('test://static-text')).contents;
    assert.equal(content.text, 'This is the text of a resource that does not change.');
    assert.equal(content.mimeType, 'text/plain');
    const [binary] = (await client.read('test://static-binary')).contents;
    assert.equal(binary.mimeType, 'image/png');
    assert.match(binary.blob, /^iVBOR/);
  },

  async templates(client) {
    const [data] = (await client.read('test://template/42/data')).contents;
    assert.equal(JSON.parse(data.text).id, '42');
    const reference = { type: 'ref/resource', uri: 'test://template/{id}/data' };
    const { completion } = await client.complete(reference, { name: 'id', value: '12' });
    assert.deepEqual(completion.values, ['12', '123']);
  },

  async prompts(client) {
    const filled = await client.prompt('test_prompt_with_arguments', { arg1: 'one', arg2: 'two' });
    assert.equal(filled.messages[0].content.text, "Prompt with arguments: arg1='one', arg2='two'");
    const asking = await client.prompt('test_input_required_result_prompt');
    assert.equal(asking.messages[0].content.text, 'Please answer with this in mind: Alice');
  },

  async completion(client) {
    const reference = { type: 'ref/prompt', name: 'test_prompt_with_arguments' };
    const { completion } = await client.complete(reference, { name: 'arg1', value: 'test-' });
    assert.deepEqual(completion.values, ['test-value-1', 'test-value-2']);
  },

  async elicitation(client) {
    const once = text(await client.call('test_elicitation', { message: 'Who are you?' }));
    assert.ok(once.includes('content={"username":"Alice","email":"Alice"}'), once);
    assert.equal(text(await client.call('test_input_required_result_multi_round', {})), 'Alice likes Alice.');
  },

  async sampling_and_roots(client) {
    assert.equal(text(await client.call('test_sampling', { prompt: 'Capital?' })), 'LLM response: Paris');
    const both = text(await client.call('test_input_required_result_multiple_inputs', {}));
    assert.equal(both, 'Hello, Alice! The model says: Paris. You work in: file:///work.');
  },

  async side_by_side(client) {
    const results = await Promise.all(Array.from({ length: 50 }, () => client.call('test_simple_text', {})));
    results.forEach((result) => assert.equal(text(result), SIMPLE_TEXT));
  },

  /** In the legacy era over HTTP the server ends the stream and the client comes back for the answer. */
  async let_go(client) {
    assert.equal(text(await client.call('test_reconnection', {})), 'The answer waited until you came back.');
  },

  async cancellation(client) {
    const before = await cancelledCalls(client);
    const withdrawal = new AbortController();
    // The first progress says that the call is under way.
    const options = { onprogress: () => withdrawal.abort('not wanted any more'), signal: withdrawal.signal };
    assert.match(await refused(client.call('test_wait_for_cancellation', {}, options)), /not wanted any more/);
    await cancellationArrives(client, before);
    assert.equal(text(await client.call('test_simple_text', {})), SIMPLE_TEXT);
  },

  async time_limit(client) {
    const before = await cancelledCalls(client);
    assert.match(await refused(client.call('test_wait_for_cancellation', {}, { timeout: 200 })), /timed out/i);
    await cancellationArrives(client, before);
    assert.equal(text(await client.call('test_simple_text', {})), SIMPLE_TEXT);
  },

  async list_changes(client) {
    const filter = { toolsListChanged: true, promptsListChanged: true };
    const subscription = client.legacy ? undefined : await client.listen(filter);
    if (subscription) assert.deepEqual(subscription.honoredFilter, filter);
    for (const kind of ['tool', 'prompt']) {
      await client.call(`test_trigger_${kind}_change`, {});
      await client.heard.hears(`notifications/${kind}s/list_changed`);
    }
    await subscription?.close();
  },

  async resource_updates(client) {
    const trigger = () => client.call('test_trigger_resource_update', {});
    const other = () => client.call('test_trigger_tool_change', {});
    if (client.legacy) {
      await client.subscribe(WATCHED);
      await trigger();
      await client.heard.hears('notifications/resources/updated', WATCHED);
      await client.unsubscribe(WATCHED);
      await trigger();
      // What would be told of the update comes before what is told of this.
      await other();
      assert.equal((await client.heard.next()).method, 'notifications/tools/list_changed');
      return;
    }
    const subscription = await client.listen({ resourceSubscriptions: [WATCHED] });
    assert.deepEqual(subscription.honoredFilter, { resourceSubscriptions: [WATCHED] });
    await trigger();
    await client.heard.hears('notifications/resources/updated', WATCHED);
    await subscription.close();
  },

  /** Calls that go on in the background: core tasks in the legacy era, those of the extension in the modern one. */
  async tasks(client) {
    if (!client.legacy) {
      assert.match(text(await client.call('confirm_delete', { filename: 'a.txt' })), /Deleted a\.txt/);
      return;
    }
    const slow = await client.startTask('slow_compute', { seconds: 0.3, label: 'this' }, 60_000);
    assert.deepEqual([slow.status, slow.ttl], ['working', 60_000]);
    assert.equal(await ended(client, slow), 'completed');
    // The result stays, and says whose it is.
    for (let time = 0; time < 2; time += 1) {
      const result = await client.taskResult(slow.taskId);
      assert.equal(text(result), 'Computed this in 0.3 s.');
      assert.equal(taskOf(result), slow.taskId);
    }
    const answered = [
      await answersWhileItWaits(client, 'confirm_delete', { filename: 'a.txt' }, 1, /^Deleted a\.txt/),
      await answersWhileItWaits(client, 'multi_input', {}, 2, /^Alice goes on\.$/),
    ];

    const failing = await client.startTask('failing_job', {});
    const failure = await client.taskResult(failing.taskId);
    assert.ok(failure.isError);
    assert.equal(text(failure), 'The job failed, as it always does.');
    assert.equal(await ended(client, failing), 'failed');
    const broken = await client.startTask('protocol_error_job', {});
    assert.match(await refused(client.taskResult(broken.taskId)), /internal error/);
    assert.equal(await ended(client, broken), 'failed');

    const endless = await client.startTask('slow_compute', { seconds: 60 });
    assert.equal((await client.cancelTask(endless.taskId)).status, 'cancelled');
    assert.equal(await ended(client, endless), 'cancelled');
    assert.match(await refused(client.cancelTask(endless.taskId)), /it is cancelled already/);
    const listed = await taskIds(client);
    const all = [slow, ...answered, failing, broken, endless].map((task) => task.taskId);
    assert.deepEqual(all.filter((id) => !listed.includes(id)), []);

    assert.match(await refused(client.startTask('greet', { name: 'Ann' })), /does not run as a task/);
    assert.match(await refused(client.task('no task of this server')), /no such task/);
    if (client.followTask) await follow(client);
  },

  /** Another process takes the server's place: the modern era goes on, a session has to begin anew. */
  async restart(client, connect, isHttp) {
    if (isHttp) {
      console.log('restart-server');
      const lines = createInterface({ input: process.stdin });
      await new Promise((resolve) => lines.once('line', resolve));
      lines.close();
    }
    if (isHttp && client.legacy) {
      assert.match(await refused(client.call('test_simple_text', {})), /session/i);
    } else {
      assert.equal(text(await client.call('test_simple_text', {})), SIMPLE_TEXT);
      if (isHttp) return STEPS.elicitation(client);
    }
    // On a pipe the first child is still there: both serve.
    const other = await connect();
    try {
      await STEPS.lists(other);
      assert.equal(text(await other.call('test_simple_text', {})), SIMPLE_TEXT);
    } finally {
      await other.close();
    }
  },
};

async function cancelledCalls(client) {
  return Number((await client.read(COUNT)).contents[0].text);
}

/** Asks until the handler of one more call has seen that it was cancelled. */
async function cancellationArrives(client, before) {
  const askedUntil = Date.now() + PATIENCE;
  while ((await cancelledCalls(client)) !== before + 1) {
    assert.ok(Date.now() < askedUntil, 'the server did not hear of the cancellation');
  }
}

/** The task that a message says it belongs to. */
const taskOf = ({ _meta }) => _meta?.['io.modelcontextprotocol/related-task']?.taskId;

/** The last state of a task, asked for as often as its server says. */
async function ended(client, { taskId }) {
  for (;;) {
    const { status, pollInterval } = await client.task(taskId);
    if (!['working', 'input_required'].includes(status)) return status;
    await new Promise((resolve) => setTimeout(resolve, pollInterval));
  }
}

/** The questions of a task come while the client waits for its result, and say whose they are. */
async function answersWhileItWaits(client, name, args, questions, answer) {
  asked.length = 0;
  const task = await client.startTask(name, args);
  assert.match(text(await client.taskResult(task.taskId)), answer);
  assert.deepEqual(asked.map(taskOf), Array(questions).fill(task.taskId));
  assert.equal(await ended(client, task), 'completed');
  return task;
}

async function taskIds(client) {
  const ids = [];
  let cursor;
  do {
    const page = await client.taskPage(cursor);
    ids.push(...page.tasks.map((task) => task.taskId));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return ids;
}

/** The SDK itself asks for the state of a task, answers its questions and brings its result. */
async function follow(client) {
  const told = async (name, args) => {
    const messages = [];
    for await (const message of client.followTask(name, args)) messages.push(message);
    assert.equal(messages[0].type, 'taskCreated', JSON.stringify(messages));
    const states = messages.slice(1, -1);
    assert.ok(states.length > 0);
    for (const { type, task } of states) assert.deepEqual([type, task.taskId], ['taskStatus', messages[0].task.taskId]);
    return { last: messages.at(-1), state: states.at(-1).task.status };
  };
  const done = await told('slow_compute', { seconds: 0.1 });
  assert.deepEqual([done.state, text(done.last.result)], ['completed', 'Computed it in 0.1 s.']);
  const asking = await told('multi_input', {});
  assert.deepEqual([asking.state, text(asking.last.result)], ['input_required', 'Alice goes on.']);
  const failed = await told('failing_job', {});
  assert.equal(failed.state, 'failed');
  assert.match(String(failed.last.error), /failed/);
}

/** Runs every step with the connection that `connect` makes. */
export async function run(connect, { isHttp, oneStream = !isHttp, legacy }) {
  const client = await connect();
  assert.equal(client.legacy, legacy);
  for (const [name, step] of Object.entries(STEPS)) {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error('it took too long')), TIMEOUT);
    });
    try {
      await Promise.race([step(client, connect, isHttp, oneStream), late]);
      console.log(`${name}\tok`);
    } catch (error) {
      process.exitCode = 1;
      console.log(`${name}\tFAILED\t${String(error).replace(/\s+/g, ' ')}`);
    } finally {
      clearTimeout(timer);
    }
  }
  await client.close();
}
