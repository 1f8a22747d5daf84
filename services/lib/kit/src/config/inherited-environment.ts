// What a process hands on to the processes that it starts: what any program needs, and the settings of Backtalk that were
// made on purpose. Secrets of other programs stay behind.

const passedOn: ReadonlySet<string> = new Set([
  'PATH',
  'HOME',
  'LANG',
  'LC_ALL',
  'TMPDIR',
  'TZ',
  'LD_LIBRARY_PATH',
  'SSL_CERT_FILE',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_HEADERS',
]);

export function inheritedEnvironment(environment: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const entries = Object.entries(environment).filter(([name]) => passedOn.has(name) || name.startsWith('BACKTALK_'));
  return Object.fromEntries(entries.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}
