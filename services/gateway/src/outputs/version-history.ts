// What became of each policy's versions, by the log. In: a policy. Out: its newest versions. What was read is kept, so that a request reads
// what is new alone; requests that come at once read one after the other.
import { asBacktalkError, MutexByKey, type FactReader } from '@backtalk/kit';
import { withStage, type VersionRow } from '../domain/version-list.js';
import { gatewayErrors } from '../errors.js';

const readMs = 5_000;
const retryAfterSeconds = 2;

interface Known {
  readonly rows: readonly VersionRow[];
  /** Stream sequence of the newest fact that was read. */
  readonly through: number;
}

const nothing: Known = { rows: [], through: 0 };

export class VersionHistory {
  private readonly known = new Map<string, Known>();
  private readonly reading = new MutexByKey();

  constructor(private readonly reader: Pick<FactReader, 'read'>) {}

  /** Newest first. What the log holds and no one can read is passed over: `dead-letters` names it. */
  async of(policy: string): Promise<readonly VersionRow[]> {
    return this.reading.run(policy, async () => {
      let { rows, through } = this.known.get(policy) ?? nothing;
      const options = {
        filter: { weightsStaged: { policy } },
        from: through + 1,
        signal: AbortSignal.timeout(readMs),
        onUnreadable: () => undefined,
      };
      try {
        for await (const { message, timeMs, sequence } of this.reader.read(['weightsStaged'], options)) {
          rows = withStage(rows, message, timeMs);
          through = sequence;
        }
      } catch (error) {
        throw gatewayErrors.logUnavailable({ retryAfterSeconds }, asBacktalkError(error));
      }
      this.known.set(policy, { rows, through });
      return rows;
    });
  }
}
