// Removes a person's facts from the log. In: whose. Out: how many went, and the blobs that only they had named.
// The fact that says so (`personErased`) stays, because writers and spools look for it. Batches keep ids, never text.
import { brokerError, readStream, type Broker } from '../broker/index.js';
import { catalogue, type FactName } from './catalogue.js';
import { blobHeader } from './stored-fact.js';
import { subjectFilter } from './subjects.js';

export interface Person {
  readonly tenant: string;
  readonly user: string;
}

export interface Erased {
  readonly facts: number;
  /** To be deleted from the blob store by the caller. */
  readonly blobs: readonly string[];
}

/** Facts of one person. */
const personal = [
  'turnOpened',
  'turnCompleted',
  'turnContinued',
  'turnJudged',
  'sessionEnded',
  'sessionClosed',
  'feedbackGiven',
] as const satisfies readonly FactName[];

/** For users `collector`, `cli` and `admin`. Doing it twice changes nothing. */
export async function erasePerson(broker: Broker, { tenant, user }: Person): Promise<Erased> {
  const blobs = new Set<string>();
  let facts = 0;
  for (const name of personal) {
    const { stream } = catalogue[name];
    const filter = subjectFilter(name, { tenant, user });
    for (const digest of await blobsOf(broker, stream, filter)) blobs.add(digest);
    facts += await purge(broker, stream, filter);
  }
  return { facts, blobs: [...blobs] };
}

async function blobsOf(broker: Broker, stream: string, filter: string): Promise<string[]> {
  const digests: string[] = [];
  const reading = { broker, stream, filter, from: 1, until: Number.MAX_SAFE_INTEGER, headersOnly: true };
  for await (const { headers } of readStream(reading)) {
    const digest = headers?.get(blobHeader) ?? '';
    if (digest !== '') digests.push(digest);
  }
  return digests;
}

async function purge(broker: Broker, stream: string, filter: string): Promise<number> {
  try {
    const { purged } = await broker.jsm.streams.purge(stream, { filter });
    return purged;
  } catch (error) {
    throw brokerError(error, { doing: 'erase a person', stream });
  }
}
