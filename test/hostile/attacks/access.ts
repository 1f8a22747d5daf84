// Attacks on doors: who may ask, for what, and with which fields.
import { writeFileSync } from 'node:fs';
import { until } from '@backtalk/kit/testing';
import { ask } from '../../loop/talk.js';
import type { Attack } from '../attack.js';
import { send, statusesOf } from '../scene.js';
import { chat, refused, user, within } from './shapes.js';

const messages = [user('hi')];
/** An answer of one token: one without an end would hold its attack up. */
const plain = { model: 'backtalk', messages, max_tokens: 1 };

const ownFields = ['rid', 'custom_logit_processor', 'return_hidden_states', 'guided_regex', 'mm_processor_kwargs'];

const fields = refused(
  {
    name: 'engine-fields',
    about: `an engine's own fields: ${ownFields.join(', ')}`,
    before: 'passed on to the engine',
    on: 'keyed',
  },
  [400],
  ({ post }) => ownFields.map((field) => post(chat, { ...plain, [field]: 'x' })),
);

const template: Attack = {
  name: 'own-template',
  about: 'a chat template of the caller that counts to 10^15, by way of the gateway',
  before: 'rendered in the engine, which answers nobody for the rest of its life',
  on: 'laptop',
  run: async ({ post, machine, rounds }) => {
    const loop =
      '{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}{% endfor %}{% endfor %}';
    const body = { ...plain, chat_template_kwargs: { chat_template: loop } };
    const replies = await rounds(() => post(chat, body, { withinMs: 15_000 }));
    const health = await send(`${machine.engine}/health`, { method: 'GET', withinMs: 5_000 });
    const held = replies.every(({ status }) => status === 400) && health.status === 200;
    return { held, now: `${statusesOf(replies)}; the engine's health: ${statusesOf([health])}` };
  },
};

const rebinding = refused(
  {
    name: 'rebound-name',
    about: 'a page whose name was bound to 127.0.0.1 asks, gives feedback and lists models, without a key',
    before: '200 for all of them',
    on: 'keyless',
  },
  [403],
  ({ post, machine }) => {
    const headers = { host: `attacker.example:${String(machine.ports.endpoint)}` };
    return [
      post(chat, plain, { headers }),
      post('/v1/feedback', { turn_id: 'turn_a', score: -1 }, { headers }),
      send(`${machine.gateway}/v1/models`, { method: 'GET', headers }),
    ];
  },
);

const crossSite = refused(
  {
    name: 'cross-site',
    about: 'a page of another site asks the keyless gateway, by Origin and by Sec-Fetch-Site',
    before: '200 for a client that sends JSON',
    on: 'keyless',
  },
  [403],
  ({ post }) => [
    post(chat, plain, { headers: { origin: 'https://attacker.example' } }),
    post(chat, plain, { headers: { 'sec-fetch-site': 'cross-site' } }),
  ],
);

const engineDoor = refused(
  {
    name: 'engine-from-a-page',
    about: 'a page unloads weights of the built-in engine: no media type, no key, a foreign name',
    before: 'obeyed without a media type',
    on: 'laptop',
  },
  [401, 403, 415],
  ({ machine }) => {
    const url = `${machine.engine}/v1/unload_lora_adapter`;
    const body = JSON.stringify({ lora_name: 'backtalk-v7' });
    return [
      send(url, { body }),
      send(url, { body, type: 'application/json' }),
      send(url, { body, type: 'application/json', headers: { host: 'attacker.example' } }),
    ];
  },
);

const lastKey: Attack = {
  name: 'last-key-revoked',
  about: 'a client without a key asks after a key was made and the last one was revoked',
  before: 'answered: the gateway is open again, for the revoked key too',
  on: 'keyless',
  unmeasured: 'the other client has no key either',
  run: async ({ machine, post }) => {
    const write = (keys: readonly unknown[]) => writeFileSync(machine.data.keys, JSON.stringify({ keys }));
    const status = async () => (await post(chat, plain)).status;
    write([{ sha256: 'a'.repeat(64), tenant: 'default', user: 'local' }]);
    const isClosed = async () => (await status()) === 401;
    await until(isClosed, { what: 'The gateway asks for keys', timeoutMs: 30_000, everyMs: 200 });
    write([]);
    // The file is read again within seconds: until then a refusal would say nothing.
    const opened = await within(15_000, async () => (await status()) === 200, 500);
    return { held: !opened, now: opened ? 'open' : 'still 401 after 15 s' };
  },
};

const foreignTurn: Attack = {
  name: 'foreign-turn',
  about: "feedback on another tenant's turn, and the end of its session",
  before: '404',
  on: 'keyed',
  run: async ({ machine, bob, post, mallory, rounds }) => {
    const { turn, session } = await ask(machine.gateway, { messages, headers: bob });
    const round = async () => [
      await post('/v1/feedback', { turn_id: turn, score: -1 }),
      await send(`${machine.gateway}/v1/sessions/${session}`, { method: 'DELETE', headers: mallory }),
    ];
    const replies = (await rounds(round)).flat();
    return {
      // 503: the attacker's own turns were not looked through in time, and nothing is said of any.
      held: turn !== '' && replies.every(({ status }) => [404, 429, 503].includes(status)),
      now: statusesOf(replies),
    };
  },
};

export const accessAttacks: readonly Attack[] = [
  fields,
  foreignTurn,
  rebinding,
  crossSite,
  engineDoor,
  template,
  lastKey,
];
