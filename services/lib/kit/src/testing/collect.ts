// Everything that an asynchronous flow gives, as a list.

export async function collect<T>(flow: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of flow) all.push(one);
  return all;
}
