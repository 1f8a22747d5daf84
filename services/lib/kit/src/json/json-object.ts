/** A JSON object as it comes from outside. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** A JSON object: neither a list nor null. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
