// The TypeScript client of both eras: usage `v2.mjs MODE URL` or `v2.mjs MODE PROGRAM ARGUMENT...`, where MODE is
// `auto` (by a probe), `legacy` (the handshake) or a revision of the modern era.

import { Client, StreamableHTTPClientTransport, specTypeSchemas } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { ANSWERS, CAPABILITIES, NOTIFICATIONS, notifications, run } from './steps.mjs';

const [mode, target, ...programArguments] = process.argv.slice(2);
const isHttp = target.startsWith('http');

const LISTS = {
  tools: ['tools/list', 'listTools'],
  resources: ['resources/list', 'listResources'],
  resourceTemplates: ['resources/templates/list', 'listResourceTemplates'],
  prompts: ['prompts/list', 'listPrompts'],
};

/** A server answers with tasks of the extension only whom declares it. */
const capabilities = { ...CAPABILITIES, extensions: { 'io.modelcontextprotocol/tasks': {} } };

async function connect() {
  const versionNegotiation = { mode: ['auto', 'legacy'].includes(mode) ? mode : { pin: mode } };
  const client = new Client({ name: 'interop', version: '1' }, { capabilities, versionNegotiation });
  for (const [method, answer] of Object.entries(ANSWERS)) client.setRequestHandler(method, answer);
  const heard = notifications();
  for (const method of NOTIFICATIONS) {
    client.setNotificationHandler(method, (notification) => heard.put(notification));
  }
  const transport = isHttp
    ? new StreamableHTTPClientTransport(new URL(target))
    : new StdioClientTransport({ command: target, args: programArguments, stderr: 'inherit' });
  await client.connect(transport);
  // It has the types of core tasks and no methods.
  const { CallToolResult, CancelTaskResult, CreateTaskResult, GetTaskResult, ListTasksResult } = specTypeSchemas;
  const request = (method, params, result) => client.request({ method, params }, result);
  return {
    legacy: client.getNegotiatedProtocolVersion() < '2026',
    heard,
    // Asked without a cursor, the methods of the client walk through all pages.
    list: async (kind) => (await client[LISTS[kind][1]]())[kind],
    page: (kind, cursor) => client.request({ method: LISTS[kind][0], params: { cursor } }),
    call: (name, args, options) => client.callTool({ name, arguments: args }, options),
    read: (uri) => client.readResource({ uri }),
    prompt: (name, args) => client.getPrompt({ name, arguments: args }),
    complete: (ref, argument) => client.complete({ ref, argument }),
    startTask: async (name, args, ttl) =>
      (await request('tools/call', { name, arguments: args, task: { ttl } }, CreateTaskResult)).task,
    task: (taskId) => request('tasks/get', { taskId }, GetTaskResult),
    taskResult: (taskId) => request('tasks/result', { taskId }, CallToolResult),
    cancelTask: (taskId) => request('tasks/cancel', { taskId }, CancelTaskResult),
    taskPage: (cursor) => request('tasks/list', { cursor }, ListTasksResult),
    listen: (filter) => client.listen(filter),
    subscribe: (uri) => client.subscribeResource({ uri }),
    unsubscribe: (uri) => client.unsubscribeResource({ uri }),
    close: () => client.close(),
  };
}

await run(connect, { isHttp, legacy: mode === 'legacy' });
