// How this process proves to others who it is, and how it knows them. In: three files, and the secrets of the calls that it
// makes and answers. Out: what connections are made with. Half a set, or a file that is none, is one line that says so.
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { asBacktalkError, kitErrors } from '../errors/backtalk-error.js';
import { type CallPair, callPairs } from '../topology/calls.js';

/** A secret for each pair of a caller and a callee; an empty or absent one is not asked for. */
export type CallTokens = Readonly<Partial<Record<CallPair, string>>>;

export interface WireConfig extends CallTokens {
  readonly tlsCa: string;
  readonly tlsCert: string;
  readonly tlsKey: string;
}

/** The contents of the three files. */
export interface TlsFiles {
  readonly ca: Buffer;
  readonly cert: Buffer;
  readonly key: Buffer;
}

export interface WireSecurity {
  /** Absent: everything is in clear. */
  readonly tls?: TlsFiles;
  readonly tokens: CallTokens;
}

export const openWire: WireSecurity = { tokens: {} };

export function wireSecurity(config: WireConfig): WireSecurity {
  const { tlsCa, tlsCert, tlsKey } = config;
  const tokens = Object.fromEntries(callPairs.map((pair) => [pair, config[pair] ?? '']));
  const files = { BACKTALK_TLS_CA: tlsCa, BACKTALK_TLS_CERT: tlsCert, BACKTALK_TLS_KEY: tlsKey };
  const missing = Object.entries(files).flatMap(([variable, path]) => (path === '' ? [variable] : []));
  if (missing.length === 3) return { tokens };
  if (missing.length > 0)
    throw invalid(
      `${missing.join(' and ')} ${missing.length === 1 ? 'is' : 'are'} not set; give all three files or none.`,
    );
  const read = (variable: string, path: string): Buffer => {
    try {
      return readFileSync(path);
    } catch (error) {
      throw invalid(`${variable} '${path}' cannot be read (${errorCode(error)}); give a PEM file.`);
    }
  };
  const tls = {
    ca: read('BACKTALK_TLS_CA', tlsCa),
    cert: read('BACKTALK_TLS_CERT', tlsCert),
    key: read('BACKTALK_TLS_KEY', tlsKey),
  };
  check('BACKTALK_TLS_CA', tlsCa, { ca: tls.ca, cert: tls.ca });
  check('BACKTALK_TLS_CERT', tlsCert, { cert: tls.cert });
  check('BACKTALK_TLS_KEY', tlsKey, { cert: tls.cert, key: tls.key });
  return { tls, tokens };
}

/** When the certificate ends, in seconds since 1970. Authorities count not: in a change of authorities an old one stands beside the new one. */
export function certificateEndsAt({ cert }: TlsFiles): number {
  return Date.parse(new X509Certificate(cert).validTo) / 1_000;
}

/** What keeps a start from being made with these settings, in one line each. */
export function wireProblems(config: WireConfig): readonly string[] {
  try {
    wireSecurity(config);
    return [];
  } catch (error) {
    return [asBacktalkError(error).message];
  }
}

function check(variable: string, path: string, parts: Partial<TlsFiles>): void {
  try {
    createSecureContext(parts);
  } catch (error) {
    throw invalid(
      `${variable} '${path}' does not fit (${errorCode(error)}); give a PEM file, and the key of its certificate.`,
    );
  }
}

function invalid(problem: string) {
  return kitErrors.configInvalid({ problems: [problem] });
}

function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unreadable';
}
