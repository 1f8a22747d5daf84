// Which of two versions is the older one? Pure.

export function isOlder(version: string, oldest: string): boolean {
  const [left, right] = [version, oldest].map((text) =>
    text.split(/[.-]/).map((part) => Number.parseInt(part, 10) || 0),
  );
  for (let i = 0; i < 3; i += 1) {
    const difference = (left?.[i] ?? 0) - (right?.[i] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}
