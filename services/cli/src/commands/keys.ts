// `keys add`, `keys list`, `keys revoke`: who may ask the endpoint. A key is shown once, when it is made; only its SHA-256 is
// kept.
import { randomBytes } from 'node:crypto';
import { keyGrant, policiesOf, readConfig, sha256Hex, tenantsOf, type KeyGrant } from '@backtalk/kit';
import { keySettings } from '../config.js';
import type { CommandContext } from '../shell.js';
import { cliErrors } from '../errors.js';
import { withKeyStore } from '../key-store.js';

export interface KeyFlags {
  readonly tenant: string;
  readonly user: string;
  readonly train: boolean;
  readonly acceptUserField: boolean;
  readonly policies?: readonly string[];
  readonly requestsPerMinute?: number;
  readonly tokensPerMinute?: number;
  readonly concurrency?: number;
  readonly captureBytesPerDay?: number;
}

/** As gateways show it in their own counts: enough to tell keys apart. */
const idLength = 16;
const idLengthMin = 8;

export async function addKey({ connection, output }: CommandContext, flags: KeyFlags): Promise<void> {
  const given = readConfig(keySettings).key;
  const key = given ?? `bt_${randomBytes(24).toString('base64url')}`;
  const hash = sha256Hex(key);
  const { tenant, user, train, acceptUserField: acceptsUserField } = flags;
  const { policies, requestsPerMinute, tokensPerMinute, concurrency, captureBytesPerDay } = flags;
  const grant = keyGrant.parse({
    tenant,
    policies,
    user,
    train,
    acceptsUserField,
    limits: { requestsPerMinute, tokensPerMinute, concurrency, captureBytesPerDay },
  });
  const all = await withKeyStore(connection, async (store) => {
    await store.put(hash, grant);
    return store.list();
  });
  output.value({ id: hash.slice(0, idLength), ...grant, ...(given === undefined ? { key } : {}) });
  if (given === undefined) output.line(`${key}\n\nIt is not shown again. `);
  const opened = inWords(grant, all);
  output.line(`Key ${hash.slice(0, idLength)} opens ${opened} for ${grant.user} of ${grant.tenant}.`);
  output.line('Without a key no request is answered from now on; these commands take theirs from BACKTALK_API_KEY.');
  const unknown = policies?.filter((policy) => !connection.policies.includes(policy)) ?? [];
  if (unknown.length > 0)
    output.line(`There is no policy ${unknown.join(', ')} here: ${connection.policies.join(', ')}.`);
}

export async function listKeys({ connection, output }: CommandContext): Promise<void> {
  const keys = await withKeyStore(connection, (store) => store.list());
  for (const { hash, grant } of keys) output.value({ id: hash.slice(0, idLength), ...grant });
  if (keys.length === 0) return output.line('No keys: npx backtalk keys add');
  output.table(
    ['key', 'tenant', 'user', 'policies', 'learned from', 'limits'],
    keys.map(({ hash, grant }) => {
      const limits = Object.entries(grant.limits).map(([name, value]) => `${name} ${String(value)}`);
      const bounds = limits.length === 0 ? 'none' : limits.join(', ');
      const id = hash.slice(0, idLength);
      return [id, grant.tenant, grant.user, inWords(grant, keys), grant.train ? 'yes' : 'no', bounds];
    }),
  );
}

export async function revokeKey({ connection, output }: CommandContext, id: string): Promise<void> {
  if (!new RegExp(`^[0-9a-f]{${String(idLengthMin)},64}$`).test(id)) {
    throw cliErrors.badArgument({ name: 'key', value: id, wanted: "a key's name as `keys list` shows it" });
  }
  await withKeyStore(connection, async (store) => {
    const [found, second] = (await store.list()).filter(({ hash }) => hash.startsWith(id));
    if (found === undefined) throw cliErrors.nothingFound({ what: `key ${id}` });
    if (second !== undefined)
      throw cliErrors.badArgument({ name: 'key', value: id, wanted: 'the name of one key only' });
    await store.remove(found.hash);
    const left = (await store.list()).length;
    output.value({ revoked: found.hash.slice(0, idLength), left });
    output.line(`Key ${found.hash.slice(0, idLength)} opens nothing any more; gateways hear of it within seconds.`);
    if (left === 0) output.line('It was the last one: every request is refused until there is a key again.');
  });
}

/** What the key opens, among all the keys that there are. */
function inWords(grant: KeyGrant, all: readonly { readonly grant: KeyGrant }[]): string {
  const policies = policiesOf(grant, tenantsOf(all.map((key) => key.grant)));
  return policies === undefined ? 'all policies' : policies.join(', ');
}
