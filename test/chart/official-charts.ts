// Users and permissions as the official chart of NATS wants them. In: the kit's table. Out: the text of
// ci/official-charts/nats.yaml, which makes a broker of three that production accepts.
import { stringify } from 'yaml';
import { userPermissions } from './broker-permissions.js';

const header = `# Values for the official chart of NATS (nats-io/k8s, chart nats, 1.x): a broker of three, synced writes, and one user for
# each service with exactly the permissions that it needs. Made by write-generated; passwords come from the Secret
# "backtalk" with the keys nats-<user>, which must be in the broker's namespace too: a pod reads no Secret of another one. The
# policy is "backtalk": another name needs other durable consumers.
`;

export function officialNatsFile(): string {
  const users = userPermissions('backtalk').map(({ user, publish, publishDenied, subscribe }) => ({
    user,
    // The chart writes what stands between the marks without quotes: nats-server takes it from its environment.
    password: `<< $NATS_PASSWORD_${user.toUpperCase()} >>`,
    permissions: {
      publish: publishDenied.length === 0 ? { allow: publish } : { allow: publish, deny: publishDenied },
      subscribe: { allow: subscribe },
    },
  }));
  const environment = users.map(({ user }): [string, unknown] => [
    `NATS_PASSWORD_${user.toUpperCase()}`,
    { valueFrom: { secretKeyRef: { name: 'backtalk', key: `nats-${user}` } } },
  ]);
  return (
    header +
    stringify(
      {
        config: {
          cluster: { enabled: true, replicas: 3 },
          jetstream: {
            enabled: true,
            fileStore: { enabled: true, pvc: { enabled: true, size: '200Gi' } },
            merge: { sync_interval: 'always' },
          },
          monitor: { enabled: true, port: 8222 },
          merge: { max_payload: '<< 8MB >>', ping_interval: '5s', ping_max: 2, authorization: { users } },
        },
        container: { env: Object.fromEntries(environment) },
        podTemplate: {
          topologySpreadConstraints: {
            'kubernetes.io/hostname': { maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule' },
          },
        },
        podDisruptionBudget: { enabled: true },
      },
      { lineWidth: 0, singleQuote: true },
    )
  );
}
