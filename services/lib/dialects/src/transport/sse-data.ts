// Cuts a byte stream of server-sent events into the values of its `data:` lines.
//
// In: chunks as the socket gives them. Out: one string for each complete data line. Comments and other fields are
// left out: engines send each event as one data line. Bytes are decoded only when a line is whole, so a character that
// is split over two chunks stays whole. Never holds more than `lineBytesMax` of an unfinished line.

const lineFeed = 10;
const carriageReturn = 13;
const dataPrefix = Buffer.from('data:');
const space = 32;

const lineBytesMax = 16 * 1024 * 1024;

export class SseData {
  private carried: Buffer[] = [];
  private carriedBytes = 0;

  /** Of a line that has begun. */
  get unfinishedBytes(): number {
    return this.carriedBytes;
  }

  /** False when a line grew beyond the bound: the stream is not to be read on. */
  feed(chunk: Buffer, onData: (data: string) => void): boolean {
    let start = 0;
    for (let end = chunk.indexOf(lineFeed); end !== -1; end = chunk.indexOf(lineFeed, start)) {
      let line = chunk.subarray(start, end);
      start = end + 1;
      if (this.carriedBytes > 0) {
        line = Buffer.concat([...this.carried, line]);
        this.carried = [];
        this.carriedBytes = 0;
      }
      const prefixBytes = dataPrefix.length;
      if (line.length < prefixBytes || line.compare(dataPrefix, 0, prefixBytes, 0, prefixBytes) !== 0) continue;
      const valueAt = line[prefixBytes] === space ? prefixBytes + 1 : prefixBytes;
      const valueEnd = line[line.length - 1] === carriageReturn ? line.length - 1 : line.length;
      onData(line.toString('utf8', valueAt, valueEnd));
    }
    if (start < chunk.length) {
      this.carried.push(chunk.subarray(start));
      this.carriedBytes += chunk.length - start;
    }
    return this.carriedBytes <= lineBytesMax;
  }
}
