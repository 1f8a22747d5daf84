import { describe, expect, it } from 'vitest';
import { isBacktalkError } from '../errors/backtalk-error.js';
import { baseSettings } from './base-settings.js';
import { setting } from './setting.js';

const about = { description: 'For a test.' };

function complaintOf(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    if (isBacktalkError(error, 'config_invalid')) return error.message;
    throw error;
  }
  return 'no complaint';
}

describe('setting', () => {
  it('reads each kind of value from its text', () => {
    expect(setting.string('X', about).read(' hello ')).toBe('hello');
    expect(setting.integer('X', about).read('-3')).toBe(-3);
    expect(setting.number('X', about).read('0.25')).toBe(0.25);
    expect(setting.boolean('X', about).read('off')).toBe(false);
    expect(setting.oneOf('X', ['refuse', 'serve'], about).read('serve')).toBe('serve');
    expect(setting.url('X', about).read('nats://127.0.0.1:4222')).toBe('nats://127.0.0.1:4222');
    expect(setting.urls('X', about).read('nats://a:1, nats://b:2')).toBe('nats://a:1,nats://b:2');
    expect(setting.path('X', about).read('data/blobs')).toBe('data/blobs');
    expect(setting.list('X', about).read('a, b,,c')).toEqual(['a', 'b', 'c']);
  });

  it.each([
    ['500ms', 500],
    ['30s', 30_000],
    ['1.5m', 90_000],
    ['1h', 3_600_000],
  ])('reads the duration %s as %d milliseconds', (text, expected) => {
    expect(setting.durationMs('X', about).read(text)).toBe(expected);
  });

  it.each([
    ['127.0.0.1:30000', { host: '127.0.0.1', port: 30_000 }],
    ['[::1]:0', { host: '::1', port: 0 }],
    ['gateway.example:80', { host: 'gateway.example', port: 80 }],
  ])('reads the address %s', (text, expected) => {
    expect(setting.address('X', about).read(text)).toEqual(expected);
  });

  it('a name that is part of a subject has letters, digits, - and _ alone', () => {
    expect(setting.name('X', about).read('node-1')).toBe('node-1');
    for (const name of ['node-1.example.com', 'a b', 'x'.repeat(64), ''])
      expect(complaintOf(() => setting.name('X', about).read(name))).toContain('give 1 to 63 letters, digits, - and _');
  });

  it('policies are named as subjects and versions can be, and once each', () => {
    const { policies } = baseSettings;
    expect(policies.read('ada, ben_2')).toEqual(['ada', 'ben_2']);
    expect(policies.read('')).toEqual(['backtalk']);
    for (const wrong of ['qwen2.5-coder', 'ada,', 'ada-v1', 'ada ben'])
      expect(complaintOf(() => policies.read(wrong))).toMatch(
        /^BACKTALK_POLICIES: .* is no name of a policy; give names/,
      );
    expect(complaintOf(() => policies.read('ada,ben,ada'))).toContain('names a policy twice');
  });

  it('engines of the judge are named by whole URLs', () => {
    expect(baseSettings.judgeUrls.read('http://a:1, http://b:2')).toEqual(['http://a:1', 'http://b:2']);
    expect(baseSettings.judgeUrls.read('')).toEqual([]);
    expect(complaintOf(() => baseSettings.judgeUrls.read('judge:8000'))).toContain('BACKTALK_JUDGE_URL: "judge:8000"');
  });

  it('reads several addresses, and refuses one that stands there twice', () => {
    const reader = setting.addresses('BACKTALK_X', about);
    expect(reader.read('one:1, [::1]:2')).toEqual([
      { host: 'one', port: 1 },
      { host: '::1', port: 2 },
    ]);
    expect(complaintOf(() => reader.read('one:1,two:2,one:1'))).toContain('twice');
    expect(complaintOf(() => reader.read('one:1,two'))).toContain('host:port');
  });

  it('uses the default where the variable is unset or empty, and reads a default written as text', () => {
    expect(setting.integer('X', { ...about, default: 7 }).read(undefined)).toBe(7);
    expect(setting.durationMs('X', { ...about, default: '2s' }).read('  ')).toBe(2000);
    expect(setting.address('X', { ...about, default: 'localhost:1' }).read('')).toEqual({ host: 'localhost', port: 1 });
  });

  it('gives undefined for an optional setting that is left out, and still checks one that is given', () => {
    const reader = setting.optional(setting.url('X', about));
    expect(reader.read(undefined)).toBeUndefined();
    expect(complaintOf(() => reader.read('nonsense'))).toContain('X');
  });

  it.each([
    ['a word', () => setting.integer('BACKTALK_X', about).read('many')],
    ['a fraction', () => setting.integer('BACKTALK_X', about).read('1.5')],
    ['too little', () => setting.integer('BACKTALK_X', { ...about, min: 2 }).read('1')],
    ['too much', () => setting.durationMs('BACKTALK_X', { ...about, max: 1000 }).read('2s')],
    ['a duration without a unit', () => setting.durationMs('BACKTALK_X', about).read('30')],
    ['an unknown word', () => setting.oneOf('BACKTALK_X', ['a', 'b'], about).read('c')],
    ['a port that no machine has', () => setting.address('BACKTALK_X', about).read('h:70000')],
    ['an address without a port', () => setting.address('BACKTALK_X', about).read('localhost')],
    ['one of several that is no URL', () => setting.urls('BACKTALK_X', about).read('nats://a:1,b')],
    ['no URL', () => setting.url('BACKTALK_X', about).read('localhost')],
    ['neither true nor false', () => setting.boolean('BACKTALK_X', about).read('maybe')],
    ['nothing', () => setting.string('BACKTALK_X', about).read(undefined)],
  ])('names the variable and says what to give when it gets %s', (_what, read) => {
    expect(complaintOf(read)).toMatch(/^BACKTALK_X.*; give .+\.$/);
  });

  it('never shows a secret, neither its default nor a bad value', () => {
    const reader = setting.string('X', {
      ...about,
      min: 32,
      secret: true,
      default: 'hunter2hunter2hunter2hunter2hunter2',
    });
    expect(reader.shownDefault).toBe('hidden');
    expect(complaintOf(() => reader.read('swordfish'))).not.toContain('swordfish');
    // A password that was not made for URLs.
    expect(complaintOf(() => baseSettings.valkeyUrl.read('redis://:sword/fish@valkey:6379'))).not.toContain('sword');
    expect(baseSettings.valkeyUrl.shownDefault).toBe('redis://127.0.0.1:30042');
  });

  it('shows what a default is, where it differs from machine to machine', () => {
    const reader = setting.string('X', { ...about, default: 'this-machine', shownDefault: 'host name' });
    expect(reader.shownDefault).toBe('host name');
    expect(reader.read(undefined)).toBe('this-machine');
    expect(baseSettings.instance.shownDefault).toBe('host name');
  });
});
