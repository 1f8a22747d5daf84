import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { asBacktalkError } from '@backtalk/kit';
import type { Dispatcher } from 'undici';
import { engineErrors } from '../errors.js';
import { EngineCall } from '../transport/engine-call.js';
import { FrameStream } from './frame-stream.js';

/** Turns that are given by hand. */
let turns: (() => void)[];
let stream: FrameStream;
let call: EngineCall;
let roomBytesMax: number;
let roomBytes: number;

beforeEach(() => {
  turns = [];
  roomBytesMax = Infinity;
  roomBytes = 0;
  const grow = (bytes: number): void => {
    if (roomBytes + bytes > roomBytesMax) throw engineErrors.overloaded({ retryAfterSeconds: 1 });
    roomBytes += bytes;
  };
  const shrink = (bytes: number): void => void (roomBytes -= bytes);
  const turn = () => new Promise<void>((resolve) => turns.push(resolve));
  stream = new FrameStream({ dialect: 'vllm', model: 'base', path: '/v1' }, { turn, room: { grow, shrink } });
  call = new EngineCall({ deadlineMs: 60_000 }, stream);
  stream.call = call;
});

afterEach(() => call.fail(engineErrors.aborted({})));

const event = (json: string) => Buffer.from(`data: ${json}\n\n`);
const word = (content: string, finish: string | null = null) =>
  event(JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: finish }] }));
const done = event('[DONE]');

/** What the stream gives: a word, `end`, or an error's code; `-` while it gives nothing. */
async function given(frame = stream.next()): Promise<string> {
  const said = frame.then(
    ({ value }) => value?.content ?? 'end',
    (error: unknown) => asBacktalkError(error).code,
  );
  return Promise.race([said, new Promise<string>((resolve) => setImmediate(() => resolve('-')))]);
}

it('what has come is read when it is the stream’s turn, all of it in one', async () => {
  const first = stream.next();
  expect(turns).toHaveLength(0);
  stream.data(word('a'));
  stream.data(word('b'));
  expect(await given(first)).toBe('-');
  turns[0]?.();
  expect([await given(first), await given()]).toEqual(['a', 'b']);
  expect(turns).toHaveLength(1);
});

it('an answer is whole where its end had come before the connection broke, though it was not read yet', async () => {
  stream.data(word('a'));
  stream.data(Buffer.concat([word('b', 'stop'), done]));
  stream.fail(engineErrors.streamBroken({ why: 'ECONNRESET' }));
  expect([await given(), await given(), await given()]).toEqual(['a', 'b', '-']);
  turns[0]?.();
  expect(await given()).toBe('end');
});

it('an answer that ends within a line is broken, and no reply that makes no sense', async () => {
  stream.data(word('a'));
  stream.data(Buffer.from('data: {"choi'));
  stream.end();
  expect((await stream.next()).value?.content).toBe('a');
  expect(await given()).toBe('-');
  turns[0]?.();
  expect(await given()).toBe('engine_stream_broken');
});

it.each([
  ['openai', 'end'],
  ['vllm', 'engine_stream_broken'],
])('an orderly end after the finish reason is, without the last word, for %s: %s', async (dialect, last) => {
  const other = new FrameStream({ dialect, model: 'base', path: '/v1' });
  other.data(word('a', 'stop'));
  other.end();
  expect(await given()).toBe('-');
  expect((await other.next()).value?.content).toBe('a');
  const end = other.next().then(
    ({ done: isDone }) => (isDone === true ? 'end' : 'a frame'),
    (error: unknown) => asBacktalkError(error).code,
  );
  expect(await end).toBe(last);
});

it('a last word without its line’s end is heard, and an error that is null is none', async () => {
  stream.data(event(JSON.stringify({ error: null, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })));
  stream.data(Buffer.from('data: [DONE]'));
  stream.end();
  expect(await stream.next()).toMatchObject({ done: false });
  expect(await given()).toBe('-');
  turns[0]?.();
  expect(await given()).toBe('end');
});

it('an answer that broke off is said after all that had come of it', async () => {
  stream.data(word('a'));
  stream.end();
  expect([await given(), await given()]).toEqual(['a', '-']);
  turns[0]?.();
  expect(await given()).toBe('engine_stream_broken');
});

it('an engine that says more than is read is held back until it is, and again where more waits in the socket', async () => {
  const large = word('x'.repeat(70 * 1024));
  const pause = vi.spyOn(call, 'pause');
  const resume = vi.spyOn(call, 'resume').mockImplementationOnce(() => stream.data(large));
  stream.data(word('a'));
  expect(pause).not.toHaveBeenCalled();
  stream.data(large);
  expect(pause).toHaveBeenCalledOnce();
  const first = stream.next();
  turns[0]?.();
  await first;
  expect([resume, pause].map(({ mock }) => mock.calls.length)).toEqual([1, 2]);
  await given();
  void given();
  turns.at(-1)?.();
  await expect.poll(() => resume.mock.calls.length).toBe(2);
});

it('an engine that is held back is not silent: that begins again where it may go on', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const calls = { abort: vi.fn(), pause: vi.fn(), resume: vi.fn() };
  const controller = calls as unknown as Dispatcher.DispatchController;
  call = new EngineCall({ deadlineMs: 60_000, idleMs: 1_000 }, stream);
  stream.call = call;
  call.onRequestStart(controller);
  call.onResponseStart(controller, 200, {});
  call.onResponseData(controller, word('x'.repeat(70 * 1024)));
  call.onResponseData(controller, word('more'));
  vi.advanceTimersByTime(30_000);
  expect([calls.pause.mock.calls.length > 0, calls.abort.mock.calls.length]).toEqual([true, 0]);
  const first = stream.next();
  turns[0]?.();
  await first;
  expect(calls.resume).toHaveBeenCalledOnce();
  vi.advanceTimersByTime(1_000);
  expect(calls.abort).toHaveBeenCalledOnce();
  vi.useRealTimers();
});

it('what has come takes room until it is read, and so does a line that has not ended', async () => {
  const [first, begun] = [word('a'), Buffer.from('data: {"choi')];
  stream.data(Buffer.concat([first, word('b'), begun]));
  expect(roomBytes).toBe(first.length * 2 + begun.length);
  const frame = stream.next();
  turns[0]?.();
  await frame;
  expect(roomBytes).toBeGreaterThan(begun.length);
  await stream.next();
  expect(roomBytes).toBe(begun.length);
});

it('an engine is held back where there is no room for what it says, and its answer comes all the same', async () => {
  roomBytesMax = 0;
  const pause = vi.spyOn(call, 'pause');
  const resume = vi.spyOn(call, 'resume');
  stream.data(word('a'));
  expect(pause).toHaveBeenCalledOnce();
  const first = stream.next();
  turns[0]?.();
  expect([await given(first), resume.mock.calls.length]).toEqual(['a', 1]);
});

it('a line that does not end is read no further where there is no room for it', async () => {
  roomBytesMax = 200 * 1024;
  const begun = Buffer.from(`data: ${'x'.repeat(60 * 1024)}`);
  const frame = stream.next();
  for (let pieces = 0; pieces < 3; pieces += 1) {
    stream.data(begun);
    turns.at(-1)?.();
    expect(await given(frame)).toBe('-');
  }
  stream.data(begun);
  turns.at(-1)?.();
  expect(await given(frame)).toBe('engine_overloaded');
});
