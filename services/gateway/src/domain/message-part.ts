// May this part of a message go to an engine?
//
// In: one object of a message's content. Out: the key that speaks against it and why, or undefined. Text may bring what clients write beside
// it, but nothing that names media: engines look for it in whatever part, and take a text by its address for a picture. Media brings its own data and nothing beside: engines would fetch any address, also
// a private one, take embeddings in place of a picture, or a name under which another caller's picture is kept. Pure.
import { isJsonObject, type JsonObject } from '@backtalk/kit/pure';

interface PartFlaw {
  readonly key: string;
  readonly why: string;
}

const textKinds: ReadonlySet<unknown> = new Set(['text', 'input_text', 'output_text', 'refusal', 'thinking']);
/** By kind, the key that holds the data. */
const mediaKinds: ReadonlyMap<unknown, string> = new Map([
  ['image_url', 'image_url'],
  ['input_image', 'image_url'],
  ['input_audio', 'input_audio'],
  ['audio_url', 'audio_url'],
  ['video_url', 'video_url'],
  ['file', 'file'],
]);
const namesMedia = /image|audio|video|file|media|embed|url|uuid/i;
const besideMedia: ReadonlySet<string> = new Set(['type', 'detail', 'cache_control']);

export function flawOfPart(part: JsonObject): PartFlaw | undefined {
  const { type } = part;
  if (textKinds.has(type)) {
    const key = Object.keys(part).find((name) => namesMedia.test(name));
    return key === undefined ? undefined : { key, why: 'it is not taken beside text' };
  }
  const holder = mediaKinds.get(type);
  if (holder === undefined) return { key: 'type', why: 'parts of this kind are not taken here' };
  for (const key of Object.keys(part)) {
    if (key === holder) {
      if (!isOwnData(holder, part[key])) return { key, why: 'addresses are not fetched; send the data itself' };
    } else if (!besideMedia.has(key)) return { key, why: 'it is not taken beside this kind of data' };
  }
  return undefined;
}

/** A training worker reads words alone: what is learned from such a request would be learned without its pictures. */
export function holdsMedia(messages: readonly JsonObject[]): boolean {
  return messages.some(({ content }) => Array.isArray(content) && content.some((part) => isMedia(part)));
}

function isMedia(part: unknown): boolean {
  return isJsonObject(part) && mediaKinds.has(part['type']);
}

function isOwnData(holder: string, value: unknown): boolean {
  if (!holder.endsWith('_url')) return true;
  const address = typeof value === 'object' && value !== null && 'url' in value ? value.url : value;
  return typeof address === 'string' && address.startsWith('data:');
}
