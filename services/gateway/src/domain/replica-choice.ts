// Which engine replica answers?
//
// In: the leases of engines, the version, the session and how many requests each replica is answering. Out: a replica,
// or none. The same session comes to the same replica while it can (its prefix is warm there); when that one carries
// more than its part, or all that it may, the next in the session's order takes over. Pure.
import { createHash } from 'node:crypto';
import { isBaseVersion } from '@backtalk/kit';
import type { EngineLease } from '@backtalk/proto/weights';

export interface Replica {
  readonly url: string;
  readonly dialect: string;
  readonly baseModel: string;
  readonly maxContext: number;
}

export interface ReplicaRequest {
  readonly engines: readonly EngineLease[];
  readonly version: string;
  readonly session: string;
  readonly inFlight: (url: string) => number;
  /** Requests that one replica may answer at once. */
  readonly slotsMax: number;
  /** Replicas that have just failed this request. */
  readonly excluded: ReadonlySet<string>;
}

/** A replica may carry this many times the mean, and always a few more, before a session spills over. */
const spillFactor = 1.25;
const spillSlack = 2;

export function canServe(engine: EngineLease, version: string): boolean {
  if (!engine.ready || !engine.pools.includes('serving')) return false;
  return isBaseVersion(version) || engine.versions.includes(version);
}

export function chooseReplica(request: ReplicaRequest): Replica | undefined {
  const { session, inFlight, slotsMax, excluded } = request;
  const free = ableOf(request).filter(({ url }) => !excluded.has(url) && inFlight(url) < slotsMax);
  const [only, second] = free;
  if (only === undefined || second === undefined) return only;
  const ranked = free
    .map((engine) => ({ engine, score: score(session, engine.url), load: inFlight(engine.url) }))
    .sort((left, right) => right.score - left.score);
  const mean = ranked.reduce((sum, { load }) => sum + load, 0) / ranked.length;
  const bound = mean * spillFactor + spillSlack;
  const least = [...ranked].sort((left, right) => left.load - right.load)[0];
  return (ranked.find(({ load }) => load < bound) ?? least)?.engine;
}

/** True when replicas hold the version, and none of them that is not excluded has a slot left. */
export function areFull(request: ReplicaRequest): boolean {
  const { inFlight, slotsMax, excluded } = request;
  const able = ableOf(request).filter(({ url }) => !excluded.has(url));
  return able.length > 0 && able.every(({ url }) => inFlight(url) >= slotsMax);
}

function ableOf({ engines, version }: ReplicaRequest): EngineLease[] {
  return engines.filter((engine) => canServe(engine, version));
}

/** Rendezvous hashing: adding or losing a replica moves only the sessions that were its own. */
function score(session: string, url: string): number {
  return createHash('sha1').update(session).update('\n').update(url).digest().readUInt32BE(0);
}
