// Reads the header of a safetensors file: which tensors it says it holds, and whether the bytes are there. In: the file's
// bytes. Out: tensors by name, or why the file is broken. Pure; it never touches tensor data.
import { isJsonObject, type JsonObject } from '@backtalk/kit';

export interface TensorInfo {
  readonly dtype: string;
  readonly shape: readonly number[];
}

export type SafetensorsResult =
  | { readonly ok: true; readonly tensors: ReadonlyMap<string, TensorInfo> }
  | { readonly ok: false; readonly why: string };

const headerBytesMax = 8 * 1024 * 1024;
const lengthBytes = 8;
const elementBytes: Readonly<Record<string, number>> = { F64: 8, F32: 4, F16: 2, BF16: 2 };

export function readSafetensors(bytes: Uint8Array): SafetensorsResult {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (buffer.length < lengthBytes) return broken('it is shorter than a header');
  const headerBytes = Number(buffer.readBigUInt64LE(0));
  const dataAt = lengthBytes + headerBytes;
  if (headerBytes > headerBytesMax || dataAt > buffer.length) return broken('its header is truncated');
  const header = parseObject(buffer.toString('utf8', lengthBytes, dataAt));
  if (header === undefined) return broken('its header is not JSON');
  const tensors = new Map<string, TensorInfo>();
  const ranges: (readonly [number, number])[] = [];
  for (const [name, entry] of Object.entries(header)) {
    if (name === '__metadata__') continue;
    const tensor = tensorIn(entry);
    if (tensor === undefined) return broken(`tensor ${name} is described wrongly`);
    tensors.set(name, tensor.info);
    ranges.push(tensor.range);
  }
  // The format asks for data without holes, to the last byte.
  const sorted = ranges.toSorted((a, b) => a[0] - b[0]);
  const hasGaps = sorted.some(([from], at) => from !== (sorted[at - 1]?.[1] ?? 0));
  const end = sorted.at(-1)?.[1] ?? 0;
  if (hasGaps || end !== buffer.length - dataAt) return broken('its data is truncated or has gaps');
  return { ok: true, tensors };
}

function tensorIn(entry: unknown): { info: TensorInfo; range: readonly [number, number] } | undefined {
  if (!isJsonObject(entry)) return undefined;
  const { dtype, shape, data_offsets: offsets } = entry;
  if (typeof dtype !== 'string' || !isCounts(shape) || !isCounts(offsets)) return undefined;
  const [from, to] = offsets;
  const size = elementBytes[dtype];
  if (size === undefined || from === undefined || to === undefined || offsets.length !== 2) return undefined;
  const expected = shape.reduce((product, length) => product * length, size);
  return to - from === expected ? { info: { dtype, shape }, range: [from, to] } : undefined;
}

export function parseObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isCounts(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && Number(item) >= 0);
}

function broken(why: string): SafetensorsResult {
  return { ok: false, why };
}
