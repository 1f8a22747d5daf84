// What `helm test` runs: one real request through the gateway, and whether what comes back is an answer that was recorded.
// Without a key (keys in the broker's bucket are known to clients only): whether the gateway refuses who has none.
const { ENDPOINT = '', MODEL = '', API_KEY = '' } = process.env;
const response = await fetch(`${ENDPOINT}/chat/completions`, {
  method: 'POST',
  headers: { 'content-type': 'application/json', authorization: `Bearer ${API_KEY === '' ? 'none' : API_KEY}` },
  body: JSON.stringify({ model: MODEL, max_tokens: 8, messages: [{ role: 'user', content: 'Say hello.' }] }),
  signal: AbortSignal.timeout(120_000),
});
const body = await response.text();
const turn = response.headers.get('x-backtalk-turn');
const isAnswered = response.ok && turn !== null && JSON.parse(body).id === turn;
if (isAnswered) {
  process.stdout.write(`Turn ${turn} was answered by ${response.headers.get('x-backtalk-weights')}.\n`);
} else if (API_KEY === '' && response.status === 401) {
  process.stdout.write(
    'The gateway asks for a key. Set gateway.keys.existingSecret (client-key) for a real request.\n',
  );
} else {
  process.stderr.write(`The gateway answered ${response.status} without a turn: ${body.slice(0, 500)}\n`);
  process.exitCode = 1;
}
