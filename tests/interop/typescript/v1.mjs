// The TypeScript SDK of the legacy era: usage `v1.mjs legacy URL` (which ends in /sse for the pair of
// endpoints of 2024-11-05) or `v1.mjs legacy PROGRAM ARGUMENT...`.
//
// The environment's SDK names the installed package, for versions other than the current one. What a version does not
// have is left out here, and the steps that need it fail.

import { ANSWERS, CAPABILITIES, notifications, run } from './steps.mjs';

const [mode, target, ...programArguments] = process.argv.slice(2);
const isHttp = target.startsWith('http');

const sdk = process.env.SDK ?? '@modelcontextprotocol/sdk';
const { Client } = await import(`${sdk}/client/index.js`);
const types = await import(`${sdk}/types.js`);

const REQUESTS = {
  'elicitation/create': types.ElicitRequestSchema,
  'sampling/createMessage': types.CreateMessageRequestSchema,
  'roots/list': types.ListRootsRequestSchema,
};
const NOTICES = [
  types.ToolListChangedNotificationSchema,
  types.PromptListChangedNotificationSchema,
  types.ResourceUpdatedNotificationSchema,
];
const LISTS = {
  tools: 'listTools',
  resources: 'listResources',
  resourceTemplates: 'listResourceTemplates',
  prompts: 'listPrompts',
};

async function transport() {
  if (target.endsWith('/sse')) {
    // What the first versions expect of a browser.
    globalThis.EventSource ??= (await import('eventsource')).EventSource;
    const { SSEClientTransport } = await import(`${sdk}/client/sse.js`);
    return new SSEClientTransport(new URL(target));
  }
  if (isHttp) {
    const { StreamableHTTPClientTransport } = await import(`${sdk}/client/streamableHttp.js`);
    return new StreamableHTTPClientTransport(new URL(target));
  }
  const { StdioClientTransport } = await import(`${sdk}/client/stdio.js`);
  return new StdioClientTransport({ command: target, args: programArguments, stderr: 'inherit' });
}

async function connect() {
  const { elicitation, ...others } = CAPABILITIES;
  const capabilities = types.ElicitRequestSchema ? CAPABILITIES : others;
  const client = new Client({ name: 'interop', version: '1' }, { capabilities });
  for (const [method, schema] of Object.entries(REQUESTS)) {
    if (schema) client.setRequestHandler(schema, ANSWERS[method]);
  }
  const heard = notifications();
  for (const schema of NOTICES) client.setNotificationHandler(schema, (notification) => heard.put(notification));
  await client.connect(await transport());
  const page = (kind, cursor) => client[LISTS[kind]]({ cursor });
  const follow = (name, args, task = {}) =>
    client.experimental.tasks.callToolStream({ name, arguments: args }, undefined, { task });
  return {
    legacy: true,
    heard,
    page,
    async list(kind) {
      const entries = [];
      let cursor;
      do {
        const found = await page(kind, cursor);
        entries.push(...found[kind]);
        cursor = found.nextCursor;
      } while (cursor !== undefined);
      return entries;
    },
    call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
    read: (uri) => client.readResource({ uri }),
    prompt: (name, args) => client.getPrompt({ name, arguments: args }),
    complete: (ref, argument) => client.complete({ ref, argument }),
    async startTask(name, args, ttl) {
      // The SDK asks for the states of a task as they are taken from it.
      const { value } = await follow(name, args, { ttl }).next();
      if (value.type === 'error') throw value.error;
      return value.task;
    },
    followTask: follow,
    task: (id) => client.experimental.tasks.getTask(id),
    taskResult: (id) => client.experimental.tasks.getTaskResult(id, types.CallToolResultSchema),
    cancelTask: (id) => client.experimental.tasks.cancelTask(id),
    taskPage: (cursor) => client.experimental.tasks.listTasks(cursor),
    subscribe: (uri) => client.subscribeResource({ uri }),
    unsubscribe: (uri) => client.unsubscribeResource({ uri }),
    close: () => client.close(),
  };
}

const oneStream = !isHttp || target.endsWith('/sse');
await run(connect, { isHttp, oneStream, legacy: mode === 'legacy' });
