// Takes processor time and does nothing else: the load of an attack without the attack. In: a share of one core as argument.
// It ends when its parent does.
const [share = '0'] = process.argv.slice(2);
const roundMs = 20;

process.on('disconnect', () => process.exit(0));

function usedMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

setInterval(() => {
  const until = usedMs() + roundMs * Number(share);
  const endsAt = performance.now() + roundMs;
  while (usedMs() < until && performance.now() < endsAt);
}, roundMs);
