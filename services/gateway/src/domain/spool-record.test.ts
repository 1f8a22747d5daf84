import { describe, expect, it } from 'vitest';
import { decodeRecords, encodeRecord, type SpoolRecord } from './spool-record.js';

const record = (text: string): SpoolRecord => ({
  name: 'turnCompleted',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  message: Buffer.from(text),
});
const three = ['one', 'two', 'three'].map(record);
const whole = Buffer.concat(three.map(encodeRecord));

describe('spool records', () => {
  it('spool records come back as they were written', () => {
    const { records, tornBytes } = decodeRecords(whole);
    expect(tornBytes).toBe(0);
    expect(records.map((read) => ({ ...read, message: Buffer.from(read.message) }))).toEqual(three);
  });

  it('spool records come back up to the one that was torn, wherever the write was cut', () => {
    const starts = three.map((_, index) => Buffer.concat(three.slice(0, index).map(encodeRecord)).length);
    for (let cut = 0; cut < whole.length; cut += 1) {
      const { records, tornBytes } = decodeRecords(whole.subarray(0, cut));
      const complete = starts.filter((start, index) => index > 0 && start <= cut).length;
      expect(records.length).toBe(complete);
      expect(tornBytes).toBe(cut - (starts[complete] ?? 0));
    }
  });

  it('spool records are not believed when a byte was changed', () => {
    for (let at = 0; at < whole.length; at += 7) {
      const changed = Buffer.from(whole);
      changed.writeUInt8((changed[at] ?? 0) ^ 0x20, at);
      expect(decodeRecords(changed).records.length).toBeLessThan(3);
    }
  });
});
