// One number of a process's /metrics. In: the address of its health port and a metric's name, labels included.

export async function counterAt(health: string, series: string): Promise<number> {
  const text = await (await fetch(`${health}/metrics`)).text();
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${series} `));
  return line === undefined ? 0 : Number(line.slice(series.length + 1));
}
