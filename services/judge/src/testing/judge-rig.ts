// A real broker, a real Valkey, an engine without a model whose grades the tests decide, and turns of a user of each
// test's own.
import { join } from 'node:path';
import { FactPublisher, FactReader, newId, type Broker } from '@backtalk/kit';
import { connectValkey } from '@backtalk/kit/valkey';
import {
  freePort,
  KeptWarnings,
  laptopInstallation,
  repositoryRoot,
  ServerProcess,
  silentLogger,
  startNats,
  startValkey,
  TemporaryDirectory,
  until,
  type TestNats,
  type TestValkey,
} from '@backtalk/kit/testing';
import { startFakeEngine, type FakeEngine } from '@backtalk/dialects/testing';
import {
  Conversation_Encoding,
  FeedbackGiven,
  Provenance,
  SessionClosed,
  type Outcome,
  TurnCompleted,
  TurnContinued,
  TurnOpened,
  TurnJudged,
  type TurnRejudged,
} from '@backtalk/proto/facts';
import type { JudgeConfig } from '../config.js';
import { createJudge, type Judge } from '../service.js';

export const tenant = 'tenant';
export const policy = 'backtalk';

export interface SaidNext {
  readonly text: string;
  readonly provenance?: Provenance;
  readonly tool?: string;
}

export interface Talk {
  readonly user: string;
  readonly turn: string;
  readonly session: string;
}

interface SpokenTalk extends Talk {
  readonly train: boolean;
  /** Of the answers in the request. */
  readonly answerKeys: readonly string[];
  /** What the person did in place of saying anything. */
  readonly act: string;
  readonly finishReason: string;
  /** JSON in place of the usual. */
  readonly messages: string;
}

export class JudgeRig {
  readonly blobs = new TemporaryDirectory('blobs');
  /** What the engine's model answers to the prompt of a vote. */
  grade: (prompt: string) => string = () => '\\boxed{+1}';
  /** Of the judges of this process. */
  readonly warnings = new KeptWarnings();
  private readonly judges: Judge[] = [];
  private readonly processes: ServerProcess[] = [];

  private constructor(
    readonly nats: TestNats,
    readonly valkey: TestValkey,
    readonly engine: FakeEngine,
    readonly admin: Broker,
    readonly gateway: FactPublisher,
    readonly collector: FactPublisher,
    private readonly operator: FactPublisher,
    readonly reader: FactReader,
  ) {
    engine.settings.reply = (messages) => this.grade(messages.map(({ content }) => content).join('\n'));
  }

  static async start(): Promise<JudgeRig> {
    const [nats, valkey, engine] = await Promise.all([startNats(), startValkey(), startFakeEngine()]);
    const admin = await nats.connect('admin');
    const gateway = new FactPublisher(await nats.connect('gateway'));
    const collector = new FactPublisher(await nats.connect('collector'));
    const operator = new FactPublisher(await nats.connect('cli'));
    return new JudgeRig(nats, valkey, engine, admin, gateway, collector, operator, new FactReader(admin));
  }

  async stop(): Promise<void> {
    await this.stopJudges();
    await Promise.all([this.nats.stop(), this.valkey.stop(), this.engine.stop()]);
    this.blobs.remove();
  }

  async stopJudges(): Promise<void> {
    await Promise.all(this.processes.splice(0).map((judge) => judge.kill()));
    await Promise.all(this.judges.splice(0).map((judge) => judge.stop()));
  }

  async judge(settings: Partial<JudgeConfig> = {}): Promise<Judge> {
    const { url: natsUrl, user: natsUser, password: natsPassword } = this.nats.credentials('judge');
    const judge = createJudge(
      {
        natsUrl,
        natsUser,
        natsPassword,
        valkeyUrl: this.valkey.url,
        ...laptopInstallation(this.blobs.path),
        engineHosts: ['127.0.0.1'],
        healthAddress: { host: '127.0.0.1', port: 0 },
        logLevel: 'silent',
        ackWaitMs: 2_000,
        instance: newId(),
        backend: 'free',
        votes: 3,
        engineUrls: [this.engine.url],
        engineDialect: 'vllm',
        engineKey: '',
        model: '',
        voteWaitMs: 20_000,
        voteConcurrency: 4,
        turnsInFlight: 8,
        queueCheckMs: 100,
        hintChoice: 'longest',
        atLeastOne: 'agree',
        voteShare: 1,
        verdictTokens: 24_000,
        thinkingTokens: 0,
        contextTokens: 8_192,
        pricePrompt: 0,
        priceCached: 1,
        priceAnswer: 0,
        versionsBehind: 3,
        plantedShare: 0,
        plantedAccuracyMin: 0.5,
        ...settings,
      },
      { logger: this.warnings, backOff: { firstMs: 20, mostMs: 200 } },
    );
    this.judges.push(judge);
    await judge.start();
    return judge;
  }

  /** A judge as a process of its own, to be killed. */
  async judgeProcess(): Promise<ServerProcess> {
    const { url, user, password } = this.nats.credentials('judge');
    const health = await freePort();
    const environment = {
      BACKTALK_NATS_URL: url,
      BACKTALK_NATS_USER: user,
      BACKTALK_NATS_PASSWORD: password,
      BACKTALK_VALKEY_URL: this.valkey.url,
      BACKTALK_HEALTH_ADDRESS: `127.0.0.1:${health}`,
      BACKTALK_BLOB_STORE: `folder:${this.blobs.path}`,
      BACKTALK_ACK_WAIT: '2s',
      BACKTALK_JUDGE_BACKEND: 'free',
      BACKTALK_JUDGE_URL: this.engine.url,
      BACKTALK_JUDGE_DIALECT: 'vllm',
      // Turns planted by chance would leave votes behind that the judges of the tests after it cast.
      BACKTALK_JUDGE_PLANTED_SHARE: '0',
    };
    const judge = new ServerProcess({
      program: 'env',
      arguments: [
        ...Object.entries(environment).map(([name, value]) => `${name}=${value}`),
        process.execPath,
        join(repositoryRoot(), 'services', 'judge', 'dist', 'main.js'),
      ],
      ready: async () => (await fetch(`http://127.0.0.1:${health}/readyz`)).ok,
    });
    this.processes.push(judge);
    await judge.start();
    return judge;
  }

  /** All that Valkey holds, as text. */
  async valkeyText(): Promise<string> {
    const client = connectValkey({ url: this.valkey.url, name: 'test', logger: silentLogger }, 'waiter');
    const read: Readonly<Record<string, (key: string) => Promise<unknown>>> = {
      string: (key) => client.get(key),
      hash: (key) => client.hgetall(key),
      list: (key) => client.lrange(key, 0, -1),
      set: (key) => client.smembers(key),
      zset: (key) => client.zrange(key, '0', '-1'),
      stream: (key) => client.xrange(key, '-', '+'),
    };
    const keys = await client.keys('*');
    const values = await Promise.all(keys.map(async (key) => read[await client.type(key)]?.(key)));
    client.disconnect();
    return JSON.stringify([keys, values]);
  }

  /** A turn in the log, with its answer, and with its next state where there is one. */
  async turn(next: readonly SaidNext[], talk: Partial<SpokenTalk> = {}): Promise<Talk> {
    const { user = newId(), turn = `turn_${newId()}`, session = `session_${newId()}`, train = true } = talk;
    const ids = { turn, tenant, user, policy };
    const usual = JSON.stringify([{ role: 'user', content: 'Why is the sky blue?' }]);
    const messages = Buffer.from(talk.messages ?? usual);
    const conversation = { encoding: Conversation_Encoding.ENCODING_JSON, messages };
    const consent = { train, source: train ? 'default' : 'request' };
    const answerKeys = [...(talk.answerKeys ?? [])];
    await this.gateway.publish('turnOpened', TurnOpened.fromPartial({ ...ids, conversation, consent, answerKeys }));
    const { finishReason = 'stop' } = talk;
    const answered = { ...ids, text: 'A very long answer about light.', provisionalSession: session, finishReason };
    await this.gateway.publish('turnCompleted', TurnCompleted.fromPartial(answered));
    const talked = { user, turn, session };
    if (next.length > 0 || talk.act !== undefined) await this.continue(talked, next, train, talk.act);
    return talked;
  }

  /** What came after a turn's answer, as the collector tells it. */
  async continue({ user, turn, session }: Talk, next: readonly SaidNext[], train = true, act = ''): Promise<void> {
    await this.collector.publish('turnContinued', continued({ turn, tenant, user, policy, session, act }, next, train));
  }

  async feedback({ user, turn }: Talk, given: Partial<FeedbackGiven>): Promise<void> {
    const message = FeedbackGiven.fromPartial({ turn, tenant, user, policy, digest: newId(), ...given });
    await this.gateway.publish('feedbackGiven', message);
  }

  /** A revision that is in the log already. */
  async stored({ user, turn, session }: Talk, judged: Partial<TurnJudged>): Promise<void> {
    const message = TurnJudged.fromPartial({ turn, tenant, user, policy, session, ...judged });
    await new FactPublisher(this.admin).publish('turnJudged', message);
  }

  /** As the collector notes it. */
  async withhold({ user, turn, session }: Talk, source: string): Promise<void> {
    await this.collector.publish('turnWithheld', { turn, tenant, user, session, source });
  }

  async close({ user, session }: Talk, turns: readonly string[], outcome?: Partial<Outcome>): Promise<void> {
    const message = SessionClosed.fromPartial({ session, tenant, user, policy, turns: [...turns], outcome });
    await this.collector.publish('sessionClosed', message);
  }

  /** A session that had one answer, after which nothing was said. */
  async closeAlone({ user, session, turn: alone }: Talk): Promise<void> {
    await this.collector.publish('sessionClosed', SessionClosed.fromPartial({ session, tenant, user, policy, alone }));
  }

  /** As an operator asks for a judgement beside the first. */
  async ask({ user, turn }: Talk, asked: string): Promise<void> {
    await this.operator.publish('judgementAsked', { turn, tenant, user, policy, asked });
  }

  untilRejudged({ user, turn }: Talk, asked: string): Promise<TurnRejudged> {
    const ids = { tenant, user, policy, turn, asked };
    const read = async () => (await this.reader.last('turnRejudged', ids))?.message;
    return until(read, { timeoutMs: 60_000, what: () => `What ${asked} comes to, ${this.warnings.text}` });
  }

  async judged({ user, turn }: Talk, revision = 0): Promise<TurnJudged | undefined> {
    return (await this.reader.last('turnJudged', { tenant, user, policy, turn, revision }))?.message;
  }

  untilJudged(talk: Talk, revision = 0): Promise<TurnJudged> {
    return until(() => this.judged(talk, revision), {
      timeoutMs: 60_000,
      what: () => `Revision ${revision}, ${this.warnings.text}`,
    });
  }

  /** How many judgements of a user there are in all. */
  async judgements(user: string): Promise<number> {
    let count = 0;
    for await (const row of this.reader.headers(['turnJudged'], { filter: { turnJudged: { user } } }))
      count += row.headers.turn === undefined ? 0 : 1;
    return count;
  }

  async metric(judge: Judge, line: string): Promise<number> {
    const response = await fetch(`http://127.0.0.1:${judge.ports.health}/metrics`, {
      signal: AbortSignal.timeout(5_000),
    });
    const found = (await response.text()).split('\n').find((one) => one.startsWith(`backtalk_judge_${line} `));
    return Number(found?.split(' ').at(-1) ?? 0);
  }
}

function continued(ids: object, next: readonly SaidNext[], train: boolean): TurnContinued {
  return TurnContinued.fromPartial({
    ...ids,
    continuedBy: 'next',
    main: true,
    consent: { train, source: 'request' },
    nextState: next.map(({ text, provenance = Provenance.PROVENANCE_USER, tool = '' }) => ({
      text,
      provenance,
      toolName: tool,
      toolCallId: '',
    })),
  });
}
