// The adapters that a fake engine holds, by name. Loading reads the files, as an engine does, and keeps their digest.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { baseDigest } from './fake-tokens.js';

export interface FakeAnswer {
  readonly status: number;
  readonly body: unknown;
}

interface Adapter {
  readonly path: string;
  readonly digest: string;
}

export class FakeAdapters {
  private readonly held = new Map<string, Adapter>();

  constructor(private readonly baseModel: string) {}

  /** The digest of the weights behind a model's name; undefined when the engine does not hold it. */
  digestOf(model: string): string | undefined {
    if (model === this.baseModel) return baseDigest;
    const adapter = this.held.get(model);
    if (adapter === undefined) return undefined;
    // What was asked least recently comes first.
    this.held.delete(model);
    this.held.set(model, adapter);
    return adapter.digest;
  }

  get names(): string[] {
    return [...this.held.keys()];
  }

  pathOf(name: string): string | undefined {
    return this.held.get(name)?.path;
  }

  /** What a restart of an engine does. */
  forget(): void {
    this.held.clear();
  }

  async load(
    name: string,
    path: string,
    bounds: { adaptersMax: number; rankMax: number; evicts?: boolean },
  ): Promise<FakeAnswer> {
    if (name === this.baseModel || this.held.has(name)) return refusal(400, alreadyLoaded(name), 'InvalidUserInput');
    if (this.held.size >= bounds.adaptersMax && bounds.evicts !== true)
      return refusal(500, 'No free slot for another adapter.', 'InternalServerError');
    try {
      const config: unknown = JSON.parse(await readFile(join(path, 'adapter_config.json'), 'utf8'));
      if (rankOf(config) > bounds.rankMax)
        return refusal(500, 'LoRA rank is greater than max_lora_rank.', 'InternalServerError');
      const bytes = await readFile(join(path, 'adapter_model.safetensors'));
      this.held.set(name, { path, digest: createHash('sha256').update(bytes).digest('hex') });
      for (const oldest of this.names.slice(0, -bounds.adaptersMax)) this.held.delete(oldest);
    } catch {
      return refusal(404, `Loading lora ${name} failed: No adapter found.`, 'NotFoundError');
    }
    return { status: 200, body: `Success: LoRA adapter '${name}' added successfully.` };
  }

  unload(name: string): FakeAnswer {
    if (!this.held.delete(name)) return refusal(404, `The lora adapter '${name}' cannot be found.`, 'NotFoundError');
    return { status: 200, body: `Success: LoRA adapter '${name}' removed successfully.` };
  }
}

function rankOf(config: unknown): number {
  const rank: unknown = typeof config === 'object' && config !== null ? Reflect.get(config, 'r') : 0;
  return typeof rank === 'number' ? rank : 0;
}

export function refusal(status: number, message: string, type: string, param: string | null = null): FakeAnswer {
  return { status, body: { error: { message, type, param, code: status } } };
}

function alreadyLoaded(name: string): string {
  return `The lora adapter '${name}' has already been loaded. If you want to load the adapter in place, set 'load_inplace' to True.`;
}
