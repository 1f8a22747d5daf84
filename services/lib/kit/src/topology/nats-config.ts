// The configuration of nats-server, as text. In: passwords, ports, a folder. Out: a file in which every service has a
// user with its own permissions. Deployments and tests use the same one. Passwords stand in it in clear: keep the file private.
import { permissionsOf } from './permissions.js';
import { adminUser, brokerServices, type BrokerUser } from './users.js';

interface NatsConfigOptions {
  readonly passwords: Readonly<Record<BrokerUser, string>>;
  readonly storeDirectory: string;
  readonly host?: string;
  readonly port: number;
  /** `/healthz`, `/jsz`; left out, there is no monitoring port. */
  readonly monitorPort?: number;
  /** First part of every path there: the monitor knows no users, so that a secret must stand in its addresses. */
  readonly monitorPath?: string;
  readonly serverName?: string;
  /** Left out, the server stands alone. */
  readonly cluster?: {
    readonly port: number;
    /** `host:port` of the others' cluster ports. */
    readonly peers: readonly string[];
  };
  /** Suffixes of durable consumers that exist beside the plain ones: the names of policies. */
  readonly durableSuffixes?: readonly string[];
  /** Bound of all streams together; by default what the broker takes by itself, three quarters of the free disk. */
  readonly fileStoreBytesMax?: number;
}

export function natsConfig(options: NatsConfigOptions): string {
  const { host = '127.0.0.1', port, monitorPort, monitorPath, serverName = 'backtalk', fileStoreBytesMax } = options;
  const suffixes = options.durableSuffixes ?? ['backtalk'];
  const admin = { user: adminUser, publish: ['>'], publishDenied: [], subscribe: ['>'] } as const;
  const rows = [admin, ...brokerServices.map((user) => ({ user, ...permissionsOf(user, suffixes) }))];
  const list = (subjects: readonly string[]) => `[${subjects.map(quote).join(', ')}]`;
  const denied = (subjects: readonly string[]) => (subjects.length === 0 ? '' : `, deny: ${list(subjects)}`);
  const users = rows.flatMap(({ user, publish, publishDenied, subscribe }) => [
    `    { user: ${quote(user)}, password: ${quote(options.passwords[user])}, permissions: {`,
    `      publish: { allow: ${list(publish)}${denied(publishDenied)} }`,
    `      subscribe: { allow: ${list(subscribe)} }`,
    '    } }',
  ]);
  const { cluster } = options;
  const routes = cluster?.peers.map((peer) => quote(`nats-route://${peer}`)) ?? [];
  const clusterBlock =
    cluster === undefined
      ? []
      : [
          'cluster {',
          '  name: backtalk',
          `  listen: ${quote(`${host}:${cluster.port}`)}`,
          `  routes: [${routes.join(', ')}]`,
          '}',
        ];
  return [
    `server_name: ${quote(serverName)}`,
    `host: ${quote(host)}`,
    `port: ${port}`,
    ...(monitorPort === undefined ? [] : [`http: ${quote(`${host}:${monitorPort}`)}`]),
    ...(monitorPath === undefined ? [] : [`http_base_path: ${quote(`/${monitorPath}`)}`]),
    'max_payload: 8MB',
    // A peer that has stopped without closing is noticed within 15 seconds.
    'ping_interval: "5s"',
    'ping_max: 2',
    'write_deadline: "10s"',
    ...clusterBlock,
    'jetstream {',
    `  store_dir: ${quote(options.storeDirectory)}`,
    // Without it an acknowledged fact may be lost with the power.
    '  sync_interval: always',
    ...(fileStoreBytesMax === undefined ? [] : [`  max_file_store: ${fileStoreBytesMax}`]),
    '}',
    'authorization {',
    '  users: [',
    ...users,
    '  ]',
    '}',
    '',
  ].join('\n');
}

function quote(text: string): string {
  return JSON.stringify(text);
}
