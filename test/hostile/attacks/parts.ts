// Attacks from inside: a part that was taken over, or who reaches the ports between the parts.
import { ClientError, createChannel, createClient, Metadata, Status } from 'nice-grpc';
import { GatewayControlServiceDefinition } from '@backtalk/proto/control';
import { secretsIn, secretsOf } from '../../loop/secrets.js';
import type { Attack } from '../attack.js';
import { keys } from '../scene.js';

const durables: Attack = {
  name: 'foreign-consumer',
  about: "the gateway's broker user pulls from the trainer's durable consumer, and points it elsewhere",
  before: 'a judgement that the gateway may not read; the consumer follows its new subject',
  on: 'keyed',
  run: async ({ machine, rounds }) => {
    const broker = await machine.broker('gateway');
    const names = ['trainer_turnJudged_backtalk', 'collector_turnOpened', 'judge_turnContinued'];
    const subjects = names.flatMap((name) => [
      `$JS.API.CONSUMER.MSG.NEXT.TURNS.${name}`,
      `$JS.API.CONSUMER.INFO.TURNS.${name}`,
      `$JS.API.CONSUMER.DELETE.TURNS.${name}`,
      `$JS.API.CONSUMER.CREATE.TURNS.${name}.backtalk.turn.opened.>`,
    ]);
    const isAnswered = (subject: string) =>
      broker.nc.request(subject, '{"batch":1,"no_wait":true}', { timeout: 1_000 }).then(
        () => true,
        () => false,
      );
    const answered = new Set<string>();
    await rounds(async () => {
      for (const subject of subjects) if (await isAnswered(subject)) answered.add(subject);
    });
    await broker.close();
    const now =
      answered.size === 0 ? `all ${String(subjects.length)} refused` : `answered: ${[...answered].join(', ')}`;
    return { held: answered.size === 0, now };
  },
};

const commit: Attack = {
  name: 'foreign-commit',
  about:
    'a Commit with fence 2^53 on the port between the parts, with every token that loader and trainer hold, under each name',
  before: "obeyed: the publisher's versions are ignored until the gateway starts again",
  on: 'keyed',
  run: async ({ machine, rounds }) => {
    const channel = createChannel(`127.0.0.1:${String(machine.ports.grpc.gateway)}`);
    const client = createClient(GatewayControlServiceDefinition, channel);
    const version = 'backtalk-v0';
    const routes = { policy: 'backtalk', routes: [{ version, share: 1 }], fence: 2 ** 53 - 1, stable: version };
    const { publisherToLoader = '', trainerToTraining = '' } = machine.wire.tokens;
    const tries = ['publisher', 'loader', 'trainer', 'cli'].flatMap((caller) =>
      ['', publisherToLoader, trainerToTraining].map((token) =>
        Metadata({ 'backtalk-caller': caller, authorization: `Bearer ${token}` }),
      ),
    );
    const ask = (metadata: Metadata) =>
      client.commit({ routes }, { metadata }).then(
        () => 'obeyed',
        (error: unknown) => (error instanceof ClientError ? Status[error.code] : String(error)),
      );
    const ends = new Set<string>();
    await rounds(async () => {
      for (const metadata of tries) ends.add(await ask(metadata));
    });
    channel.close();
    const held = [...ends].every((end) => end === 'UNAUTHENTICATED' || end === 'PERMISSION_DENIED');
    return { held, now: [...ends].sort().join(', ') };
  },
};

const secrets: Attack = {
  name: 'secrets-in-logs',
  about: 'everything that all processes wrote until now is searched for keys and passwords',
  before: "Valkey's password, where it was wrong",
  on: 'keyed',
  unmeasured: 'nothing is asked of the installation',
  run: async ({ machine }) => {
    const secrets = new Map<string, string>([...secretsOf(machine), ...Object.entries(keys)]);
    const found = secretsIn(machine.logs(), secrets);
    return { held: found.length === 0, now: `${String(secrets.size)} secrets, ${String(found.length)} found` };
  },
};

export const partAttacks: readonly Attack[] = [durables, commit, secrets];
