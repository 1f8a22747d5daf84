import { readFileSync } from 'node:fs';
import { connect as connectPlain, type AddressInfo, type Socket } from 'node:net';
import { createServer, type Server } from 'node:tls';
import { connect } from 'nats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectBroker, type BrokerOptions } from '../broker/connect.js';
import { type CertificatePaths, makeCertificates } from '../testing/certificates.js';
import {
  silentLogger,
  startNats,
  startValkey,
  TemporaryDirectory,
  until,
  type TestNats,
  type TestValkey,
} from '../testing/index.js';
import { connectValkey } from '../valkey/valkey.js';
import { wireSecurity, type TlsFiles } from './wire-security.js';

const folders = new TemporaryDirectory('certificates');
let own: TlsFiles;
/** Of an authority that the servers do not know. */
let foreign: TlsFiles;

const filesOf = (paths: CertificatePaths): TlsFiles => {
  const { tls } = wireSecurity(paths);
  if (tls === undefined) throw new TypeError('The certificates were not read.');
  return tls;
};

let nats: TestNats;
let valkey: TestValkey;
/** The Valkey that the project installs is built without TLS: this stands in front of it, as a mesh or stunnel would. */
let front: Server;
let valkeyUrl: string;

beforeAll(async () => {
  const paths = makeCertificates(folders);
  own = filesOf(paths);
  foreign = filesOf(makeCertificates(folders));
  [nats, valkey] = await Promise.all([startNats({ certificates: paths, streams: false }), startValkey()]);
  front = await startFront(paths, valkey.port);
  valkeyUrl = `rediss://127.0.0.1:${(front.address() as AddressInfo).port}`;
});

afterAll(async () => {
  front.close();
  await Promise.all([nats.stop(), valkey.stop()]);
  folders.remove();
});

function startFront({ tlsCa, tlsCert, tlsKey }: CertificatePaths, port: number): Promise<Server> {
  const [ca, cert, key] = [tlsCa, tlsCert, tlsKey].map((path) => readFileSync(path));
  const server = createServer({ ca, cert, key, requestCert: true, rejectUnauthorized: true }, (socket) => {
    const behind: Socket = connectPlain(port, '127.0.0.1');
    socket.pipe(behind).pipe(socket);
    const close = () => {
      socket.destroy();
      behind.destroy();
    };
    for (const end of [socket, behind]) end.on('error', close).on('close', close);
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

/** One try, and its end. */
async function brokerAnswers(changes: Partial<BrokerOptions>): Promise<string> {
  const options = { ...nats.credentials('admin'), name: 'test', logger: silentLogger, connectTimeoutMs: 0 };
  try {
    const broker = await connectBroker({ ...options, ...changes });
    await broker.ask({ subject: '$JS.API.INFO', doing: 'ask', timeoutMs: 5_000 });
    await broker.close();
    return 'answered';
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
  }
}

/** A service has all three files or none; who has the authority alone comes from elsewhere. */
async function valkeyAnswers(files: Partial<TlsFiles>): Promise<string> {
  const client = connectValkey({ url: valkeyUrl, name: 'test', logger: silentLogger, tls: files as TlsFiles });
  // The front closes the connection of a certificate that it does not know, without a word.
  const refused = new Promise<string>((resolve) => client.once('close', () => resolve('refused')));
  const answered = until(() => client.ping().catch(() => undefined), { what: 'An answer' });
  try {
    return await Promise.race([answered, refused]);
  } finally {
    answered.catch(() => undefined);
    client.disconnect();
  }
}

describe('the broker over TLS', () => {
  it('answers who has the authority and a certificate of it', async () => {
    expect(await brokerAnswers({ tls: own })).toBe('answered');
  });

  it('refuses who has no certificate, or one of another authority', async () => {
    const { url: servers, user, password: pass } = nats.credentials('admin');
    const bare = connect({ servers, user, pass, tls: { ca: own.ca.toString() }, reconnect: false, timeout: 5_000 });
    await expect(bare).rejects.toThrow(/certificate required|disconnect|ECONNRESET|timeout/i);
    expect(await brokerAnswers({ tls: { ca: own.ca, cert: foreign.cert, key: foreign.key } })).toBe(
      'broker_unavailable',
    );
  });

  it('a broker of an authority that the service does not know is refused', async () => {
    expect(await brokerAnswers({ tls: { ca: foreign.ca, cert: own.cert, key: own.key } })).toBe('broker_unavailable');
    // Whom the system trusts: not an authority that was just made.
    expect(await brokerAnswers({})).toBe('broker_unavailable');
  });
});

describe('Valkey over TLS', () => {
  it('answers who has the authority and a certificate of it', async () => {
    expect(await valkeyAnswers(own)).toBe('PONG');
  });

  it('refuses who has no certificate, and is refused where its authority is unknown', async () => {
    expect(await valkeyAnswers({ ca: own.ca })).toBe('refused');
    expect(await valkeyAnswers({ ca: own.ca, cert: foreign.cert, key: foreign.key })).toBe('refused');
    expect(await valkeyAnswers({ ca: foreign.ca, cert: own.cert, key: own.key })).toBe('refused');
    expect(await valkeyAnswers({})).toBe('refused');
  });
});
