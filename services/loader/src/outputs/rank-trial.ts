// Does the engine take adapters of the policy's rank? It is given one that does nothing, which is unloaded again. Without
// the base's dimensions nothing can be tried: the first version then shows it.
import { tryAdapter, type CallOptions, type EngineClient } from '@backtalk/dialects';
import { isBacktalkError, type BacktalkError } from '@backtalk/kit';
import type { BaseShape } from '../domain/adapter-shape.js';
import type { LoaderEvents } from '../events.js';

export class RankTrial {
  constructor(
    private readonly engine: EngineClient,
    /** 0: not tried. */
    private readonly rank: number,
    private readonly directory: string,
    private readonly shape: BaseShape | undefined,
    private readonly events: LoaderEvents,
  ) {}

  async isTaken(baseModel: string, options: CallOptions): Promise<boolean> {
    const { engine, rank, directory, shape, events } = this;
    const widths = shape?.widths['o_proj'];
    if (rank === 0 || widths === undefined) return true;
    try {
      const onKept = (name: string, error: BacktalkError) => {
        events.unloadFailed(name, error);
      };
      await tryAdapter(engine, { directory, rank, widths, baseModel, onKept }, options);
      return true;
    } catch (error) {
      if (isBacktalkError(error, 'adapter_refused')) return false;
      throw error;
    }
  }
}
