// Which weights and vocabulary a base model's folder holds. In: the folder, and what was found in it before. Out: a digest over them, the
// same that training workers write into each version. Files whose sizes and times are as they were are not read again.
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';

export const baseFiles = z.object({
  folder: z.string(),
  digest: z.string(),
  /** Of names, sizes and times. */
  stamp: z.string(),
});
export type BaseFiles = Readonly<z.infer<typeof baseFiles>>;

const ofTheBase = /(?:\.safetensors|\.bin|^tokenizer\.json)$/;

/** Nothing where the folder is gone or holds no such file. */
export async function baseFilesIn(folder: string, known?: BaseFiles): Promise<BaseFiles | undefined> {
  const entries = await readdir(folder).catch(() => []);
  const names = entries.filter((name) => ofTheBase.test(name)).sort();
  if (names.length === 0) return undefined;
  const looks = await Promise.all(
    names.map(async (name) => {
      const { size, mtimeMs } = await stat(join(folder, name));
      return `${name} ${size} ${mtimeMs}`;
    }),
  );
  const stamp = createHash('sha256').update(looks.join('\n')).digest('hex');
  if (known?.folder === folder && known.stamp === stamp) return known;
  const whole = createHash('sha256');
  for (const name of names) {
    const file = createHash('sha256');
    await pipeline(createReadStream(join(folder, name), { highWaterMark: 1024 * 1024 }), file);
    whole.update(`${name} ${file.digest('hex')}\n`);
  }
  return { folder, digest: whole.digest('hex'), stamp };
}
