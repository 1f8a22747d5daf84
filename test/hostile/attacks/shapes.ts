// What attacks have in common: their words, and the shapes that several of them take.
import { until } from '@backtalk/kit/testing';
import type { Message } from '../../loop/talk.js';
import type { Attack } from '../attack.js';
import { send, statusesOf, type Reply, type Scene } from '../scene.js';

export const chat = '/v1/chat/completions';
export const user = (content: string): Message => ({ role: 'user', content });
export const assistant = (content: string): Message => ({ role: 'assistant', content });

/** Whether it comes true within that time. */
export function within(ms: number, condition: () => Promise<boolean>, everyMs = 250): Promise<boolean> {
  return until(condition, { what: 'It', timeoutMs: ms, everyMs }).then(
    () => true,
    () => false,
  );
}

/** So many at a time, in rounds. */
export async function repliesTo(scene: Scene, atOnce: number, one: () => Promise<Reply>): Promise<Reply[]> {
  return (await scene.rounds(() => Promise.all(Array.from({ length: atOnce }, one)))).flat();
}

type Told = Pick<Attack, 'name' | 'about' | 'before' | 'on'>;

/** Every request is answered with one of these statuses. */
export function refused(
  told: Told,
  statuses: readonly number[],
  round: (scene: Scene) => readonly Promise<Reply>[],
): Attack {
  const run = async (scene: Scene) => {
    const replies = (await scene.rounds(() => Promise.all(round(scene)))).flat();
    return { held: replies.every(({ status }) => statuses.includes(status)), now: statusesOf(replies) };
  };
  return { ...told, run };
}

interface Bodies {
  /** How many at a time. */
  readonly atOnce?: number;
  /** A body within the bounds may be answered. */
  readonly isServed?: boolean;
  body(): string | Buffer;
}

/** The same body again and again, which the gateway outlives, and refuses where it is not within the bounds. */
export function bodies(told: Omit<Told, 'on'>, { atOnce = 1, isServed = false, body }: Bodies): Attack {
  const run = async (scene: Scene) => {
    const before = scene.machine.pid('gateway');
    const bytes = body();
    const replies = await repliesTo(scene, atOnce, () => scene.post(chat, bytes));
    const lives = scene.machine.pid('gateway') === before && (await isAlive(scene));
    const isRefused = replies.every(({ status }) => status >= 400 && status < 500);
    return {
      held: lives && (isServed || isRefused),
      now: `${lives ? '' : 'the gateway ended; '}${statusesOf(replies)}`,
    };
  };
  return { ...told, on: 'keyed', run };
}

async function isAlive({ machine }: Scene): Promise<boolean> {
  const { status } = await send(`http://127.0.0.1:${String(machine.ports.health.gateway)}/livez`, { method: 'GET' });
  return status === 200;
}
