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

  const textsOf = (bytes: Buffer) => decodeRecords(bytes).records.map(({ message }) => Buffer.from(message).toString());

  it('a changed byte costs the record that it hit, wherever it is, and no other', () => {
    const lengths = three.map((each) => encodeRecord(each).length);
    for (let at = 0; at < whole.length; at += 1) {
      const changed = Buffer.from(whole);
      changed.writeUInt8((changed[at] ?? 0) ^ 0x20, at);
      const hit = at < (lengths[0] ?? 0) ? 'one' : at < (lengths[0] ?? 0) + (lengths[1] ?? 0) ? 'two' : 'three';
      const { unreadable, tornBytes } = decodeRecords(changed);
      expect(textsOf(changed)).toEqual(['one', 'two', 'three'].filter((text) => text !== hit));
      expect(unreadable + Math.sign(tornBytes)).toBe(1);
    }
  });

  it('reading goes on behind a run of bytes that form no record', () => {
    const [first, second, third] = three.map(encodeRecord);
    const rot = Buffer.alloc(1000, 0xa5);
    const bytes = Buffer.concat([first ?? rot, rot, second ?? rot, rot.subarray(0, 3), third ?? rot]);
    expect(textsOf(bytes)).toEqual(['one', 'two', 'three']);
    expect(decodeRecords(bytes)).toMatchObject({ unreadable: 2, tornBytes: 0 });
  });

  it('a record of a kind that is not known here is counted, and those behind it are read', () => {
    const other = encodeRecord(Object.assign(record('later release'), { name: 'notKnownHere' }));
    const bytes = Buffer.concat([other, whole]);
    expect(textsOf(bytes)).toEqual(['one', 'two', 'three']);
    expect(decodeRecords(bytes)).toMatchObject({ unreadable: 1, tornBytes: 0 });
  });
});
