// Finds the lowest point of a smooth convex function: L-BFGS with a step that is halved until it goes down. In: the function with its
// gradient. Out: where it is lowest, the same each time.

type Vector = Float64Array;
type Measured = (at: Vector) => { readonly loss: number; readonly gradient: Vector };

interface Move {
  readonly step: Vector;
  readonly change: Vector;
}

const movesMax = 80;
/** Moves that the curvature is read from. */
const remembered = 8;
/** A move that gains less than this share of the loss is the last. */
const gainMin = 1e-4;
const halvingsMax = 20;

export function minimise(measure: Measured, size: number): Vector {
  let at: Vector = new Float64Array(size);
  let found = measure(at);
  const moves: Move[] = [];
  for (let count = 0; count < movesMax; count += 1) {
    const direction = directionFrom(found.gradient, moves);
    const next = stepAlong(measure, at, found, direction);
    const gained = found.loss - next.loss;
    const step = difference(next.at, at);
    const change = difference(next.gradient, found.gradient);
    if (dot(step, change) > 0) moves.push({ step, change });
    if (moves.length > remembered) moves.shift();
    at = next.at;
    found = next;
    if (gained <= gainMin * found.loss) break;
  }
  return at;
}

function directionFrom(gradient: Vector, moves: readonly Move[]): Vector {
  const direction = scaled(gradient, -1);
  const shares: number[] = [];
  for (const { step, change } of moves.toReversed()) {
    const share = dot(step, direction) / dot(change, step);
    shares.push(share);
    add(direction, change, -share);
  }
  const newest = moves.at(-1);
  const scale =
    newest === undefined
      ? 1 / Math.max(1, Math.sqrt(dot(gradient, gradient)))
      : dot(newest.step, newest.change) / dot(newest.change, newest.change);
  const scaledDirection = scaled(direction, scale);
  for (const { step, change } of moves) {
    const share = shares.pop() ?? 0;
    add(scaledDirection, step, share - dot(change, scaledDirection) / dot(change, step));
  }
  return scaledDirection;
}

function stepAlong(measure: Measured, at: Vector, { loss, gradient }: ReturnType<Measured>, direction: Vector) {
  const slope = dot(gradient, direction);
  let length = 1;
  let next = { at, loss, gradient };
  for (let count = 0; count < halvingsMax; count += 1) {
    const moved = plus(at, direction, length);
    next = { at: moved, ...measure(moved) };
    if (next.loss <= loss + 1e-4 * length * slope) break;
    length /= 2;
  }
  return next;
}

function dot(a: Vector, b: Vector): number {
  let sum = 0;
  for (let at = 0; at < a.length; at += 1) sum += (a[at] ?? 0) * (b[at] ?? 0);
  return sum;
}

// Plain loops: these run over a hundred thousand numbers some thousand times.

function add(a: Vector, b: Vector, share: number): void {
  for (let at = 0; at < a.length; at += 1) a[at] = (a[at] ?? 0) + share * (b[at] ?? 0);
}

function plus(a: Vector, b: Vector, share: number): Vector {
  const sum = a.slice();
  add(sum, b, share);
  return sum;
}

function scaled(a: Vector, scale: number): Vector {
  const product = new Float64Array(a.length);
  for (let at = 0; at < a.length; at += 1) product[at] = scale * (a[at] ?? 0);
  return product;
}

function difference(a: Vector, b: Vector): Vector {
  return plus(a, b, -1);
}
