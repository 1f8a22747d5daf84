// Everything that may happen to a loop in a bad week, within a minute: what dashboards must be able to show.
// In: a machine under load. Out: a machine under load that has seen it all, and works.
import { asBacktalkError } from '@backtalk/kit';
import { grpcClient } from '@backtalk/kit/grpc';
import { until } from '@backtalk/kit/testing';
import { PublisherControlServiceDefinition } from '@backtalk/proto/control';
import { breakEngine, metric } from '../loop/controls.js';
import type { TestMachine } from '../loop/machine.js';
import { ask } from '../loop/talk.js';

const json = { 'content-type': 'application/json' };

/** What clients do beside asking: nonsense, feedback, tools, a goodbye. */
export async function behave({ gateway }: TestMachine): Promise<void> {
  await fetch(`${gateway}/v1/chat/completions`, { method: 'POST', headers: json, body: '{"model":' });
  const first = await ask(gateway, { messages: [{ role: 'user', content: 'What is in the harbour?' }] });
  const feedback = JSON.stringify({ turn_id: first.turn, score: -1, comment: 'Answer in one short sentence.' });
  await until(
    async () => (await fetch(`${gateway}/v1/feedback`, { method: 'POST', headers: json, body: feedback })).ok,
    { what: 'Feedback is taken' },
  );
  await runTool(gateway);
  await fetch(`${gateway}/v1/sessions/${first.session}`, { method: 'DELETE' });
}

/** A tool that failed, which is evidence; the request after it continues the answer that called it. */
async function runTool(gateway: string): Promise<void> {
  const question = { role: 'user' as const, content: 'Run the tests, please.' };
  const called = await ask(gateway, { messages: [question] });
  const messages = [
    question,
    { role: 'assistant', content: called.text },
    { role: 'tool', tool_call_id: 'call_1', content: '{"exit_code": 1}' },
  ];
  await fetch(`${gateway}/v1/chat/completions`, {
    method: 'POST',
    headers: json,
    body: JSON.stringify({ model: 'backtalk', messages }),
  });
}

/** The engine breaks answers off, and forgets what it holds. */
export async function hurtEngine(machine: TestMachine): Promise<void> {
  const { engine, gateway } = machine;
  await breakEngine(engine, { dieAfterTokens: { tokens: 2, how: 'socket' } });
  await ask(gateway, { messages: [{ role: 'user', content: 'Will you finish?' }] });
  await breakEngine(engine, {});
  const askedAgain = async () => (await metric(machine, 'gateway', 'backtalk_gateway_engine_retries_total')) > 0;
  // The loader may notice before anybody asks: then it is forgotten once more.
  const forget = async () => {
    await fetch(`${engine}/fake/forget`, { method: 'POST' });
    await ask(gateway, { messages: [{ role: 'user', content: 'Do you remember?' }] });
    return askedAgain();
  };
  await until(forget, { what: 'An answer asked for again', timeoutMs: 60_000 });
  // An engine that can load nothing more must hold what serves by then.
  const answers = async () => (await ask(gateway, { messages: [{ role: 'user', content: 'And now?' }] })).finished;
  await until(answers, { what: 'The engine remembers', timeoutMs: 60_000 });
}

/** Valkey hangs for as long as one question takes. */
export async function hangValkey(machine: TestMachine): Promise<void> {
  machine.kill('valkey', 'SIGSTOP');
  await ask(machine.gateway, { messages: [{ role: 'user', content: 'Who remembers?' }] });
  machine.kill('valkey', 'SIGCONT');
}

/** An engine that cannot load, then one whose logprobs are not those of the trainer: left out, then burned. */
export async function refuseVersion(machine: TestMachine): Promise<void> {
  const count = (name: string, label = '') => metric(machine, 'publisher', `backtalk_publisher_${name}`, label);
  await breakEngine(machine.engine, { loadStatus: 500 });
  await until(async () => (await count('loaders_left_out_total')) > 0, {
    what: 'A loader left out',
    timeoutMs: 150_000,
  });
  await breakEngine(machine.engine, { lie: 'wrong_scores' });
  await until(async () => (await count('versions_total', 'burned')) > 0, {
    what: 'A burned version',
    timeoutMs: 150_000,
  });
  await breakEngine(machine.engine, {});
}

/** The version before is put back while a gateway does not listen. */
export async function rollBackUnheard(machine: TestMachine): Promise<void> {
  const address = `127.0.0.1:${String(machine.ports.grpc.publisher)}`;
  const publisher = grpcClient(PublisherControlServiceDefinition, address, { caller: 'cli', wire: machine.wire });
  machine.kill('gateway', 'SIGSTOP');
  const rolledBack = () =>
    publisher.rollback({ policy: 'backtalk', why: 'a drill' }, { deadlineMs: 20_000 }).catch((error: unknown) => {
      // A version became stable meanwhile: whoever asks decides again what to go back to.
      if (asBacktalkError(error).code === 'stable_changed') return undefined;
      throw error;
    });
  try {
    await until(rolledBack, { what: 'The version before', timeoutMs: 60_000 });
  } finally {
    machine.kill('gateway', 'SIGCONT');
    publisher.close();
  }
}
