// What `helm test` runs: one real request through the gateway, and whether what comes back is an answer that was recorded.
const { ENDPOINT = '', MODEL = '', API_KEY = 'none' } = process.env;
const response = await fetch(`${ENDPOINT}/chat/completions`, {
  method: 'POST',
  headers: { 'content-type': 'application/json', authorization: `Bearer ${API_KEY}` },
  body: JSON.stringify({ model: MODEL, max_tokens: 8, messages: [{ role: 'user', content: 'Say hello.' }] }),
  signal: AbortSignal.timeout(120_000),
});
const body = await response.text();
const turn = response.headers.get('x-backtalk-turn');
if (!response.ok || turn === null || JSON.parse(body).id !== turn) {
  process.stderr.write(`The gateway answered ${response.status} without a turn: ${body.slice(0, 500)}\n`);
  process.exit(1);
}
process.stdout.write(`Turn ${turn} was answered by ${response.headers.get('x-backtalk-weights')}.\n`);
