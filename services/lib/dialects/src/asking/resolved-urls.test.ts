import { FakeClock, until } from '@backtalk/kit/testing';
import { describe, expect, it } from 'vitest';
import { ResolvedUrls } from './resolved-urls.js';

const events = { engineRefused: () => undefined };

function resolved(urls: string[], answers: Record<string, string[]>) {
  const clock = new FakeClock();
  const lookUp = (host: string) => {
    const addresses = answers[host];
    return addresses === undefined ? Promise.reject(new Error('no such name')) : Promise.resolve(addresses);
  };
  return { clock, places: new ResolvedUrls({ urls, clock, events, everyMs: 1_000, lookUp }) };
}

describe('judge URLs', () => {
  it('a judge URL becomes one address for each replica behind a name, and follows them as they come and go', async () => {
    const answers = { judges: ['10.0.0.1', '10.0.0.2'] };
    const { clock, places } = resolved(['http://judges:30030'], answers);
    let changes = 0;
    await places.start(() => (changes += 1));
    expect(places.current()).toEqual(['http://10.0.0.1:30030', 'http://10.0.0.2:30030']);
    answers.judges = ['10.0.0.2', '10.0.0.3', '10.0.0.4'];
    await clock.advance(1_000);
    await until(() => places.current().length === 3);
    expect(changes).toBe(2);
    places.stop();
  });

  it('judge URLs stay as they are with one address, with an address in place of a name, and with TLS', async () => {
    const urls = ['http://one:1', 'http://127.0.0.1:2', 'http://[::1]:3', 'https://many:4'];
    const { places } = resolved(urls, { one: ['10.0.0.1'], many: ['10.0.0.1', '10.0.0.2'] });
    await places.start(() => undefined);
    expect(places.current()).toEqual(urls);
    places.stop();
  });

  it('judge URLs are none while a name has no address', async () => {
    const lookUp = () => Promise.reject(Object.assign(new Error('no address'), { code: 'ENOTFOUND' }));
    const urls = ['http://judges:30030'];
    const places = new ResolvedUrls({ urls, clock: new FakeClock(), events, lookUp });
    await places.start(() => undefined);
    expect(places.current()).toEqual([]);
    places.stop();
  });

  it('judge URLs are looked up again every two seconds, where nothing else is said', async () => {
    const clock = new FakeClock();
    let looks = 0;
    const lookUp = () => {
      looks += 1;
      return Promise.resolve(['10.0.0.1', `10.0.1.${String(looks)}`]);
    };
    const places = new ResolvedUrls({ urls: ['http://judges:1'], clock, events, lookUp });
    await places.start(() => undefined);
    await clock.advance(1_999);
    expect(looks).toBe(1);
    await clock.advance(1);
    await until(() => places.current().includes('http://10.0.1.2:1'));
    places.stop();
  });

  it('judge URLs keep what was known while names cannot be looked up', async () => {
    const { places } = resolved(['http://gone:1'], {});
    await places.start(() => undefined);
    expect(places.current()).toEqual(['http://gone:1']);
    places.stop();
  });
});
