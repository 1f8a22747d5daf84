// A line chart as SVG. In: named series of points, y from 0 to `top`. Out: the picture's text, the same for the same input.

export interface Series {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
  /** What the series is compared with, drawn as a dashed line over the whole width. */
  readonly ceiling?: number;
}

export interface ChartText {
  readonly title: string;
  readonly x: string;
  readonly y: string;
  readonly top: number;
}

const colours = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#7f7f7f', '#000000'];
const width = 720;
const height = 360;
const frame = { left: 56, right: 180, top: 36, bottom: 44 };
const inner = { width: width - frame.left - frame.right, height: height - frame.top - frame.bottom };
const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const text = (x: number, y: number, words: string, more = '') =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${more}>${escaped(words)}</text>`;
const line = (x1: number, y1: number, x2: number, y2: number, more: string) =>
  `<line x1="${x1.toFixed(1)}" y1="${y1.toFixed(1)}" x2="${x2.toFixed(1)}" y2="${y2.toFixed(1)}" ${more}/>`;

interface Scale {
  x(value: number): number;
  y(value: number): number;
}

export function lineChart(about: ChartText, series: readonly Series[]): string {
  const farthest = Math.max(1, ...series.flatMap(({ points }) => points.map(([x]) => x)));
  const scale: Scale = {
    x: (value) => frame.left + (value / farthest) * inner.width,
    y: (value) => frame.top + (1 - Math.min(1, value / about.top)) * inner.height,
  };
  const drawn = series.map((one, index) => drawnSeries(one, index, scale));
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${String(width)} ${String(height)}" font-family="sans-serif" font-size="12">`;
  const ground = `<rect width="${String(width)}" height="${String(height)}" fill="#ffffff"/>`;
  return `${[head, ground, ...axes(about, farthest, scale), ...drawn.flat(), '</svg>'].join('\n')}\n`;
}

function axes({ title, x, y, top }: ChartText, farthest: number, scale: Scale): string[] {
  const shares = [0, 0.25, 0.5, 0.75, 1].map((part) => part * top);
  const every = Math.max(1, Math.ceil(farthest / 12));
  const stops = Array.from({ length: Math.floor(farthest / every) + 1 }, (_, index) => index * every);
  const right = frame.left + inner.width;
  const bottom = frame.top + inner.height;
  return [
    text(frame.left, 20, title, 'font-size="14" font-weight="bold"'),
    ...shares.map((value) => line(frame.left, scale.y(value), right, scale.y(value), 'stroke="#dddddd"')),
    ...shares.map((value) => text(frame.left - 6, scale.y(value) + 4, value.toFixed(2), 'text-anchor="end"')),
    ...stops.map((stop) => text(scale.x(stop), bottom + 16, String(stop), 'text-anchor="middle"')),
    line(frame.left, bottom, right, bottom, 'stroke="#333333"'),
    text(frame.left + inner.width / 2, height - 8, x, 'text-anchor="middle"'),
    text(
      14,
      frame.top + inner.height / 2,
      y,
      `text-anchor="middle" transform="rotate(-90 14 ${String(frame.top + inner.height / 2)})"`,
    ),
  ];
}

function drawnSeries({ name, points, ceiling }: Series, index: number, scale: Scale): string[] {
  const colour = colours[index % colours.length] ?? '#000000';
  const right = frame.left + inner.width;
  const at = points.map(([x, y]) => [scale.x(x), scale.y(y)] as const);
  const dashed = `stroke="${colour}" stroke-dasharray="4 4" opacity="0.6"`;
  return [
    `<polyline points="${at.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(' ')}" fill="none" stroke="${colour}" stroke-width="2"/>`,
    ...at.map(([x, y]) => `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="3" fill="${colour}"/>`),
    ...(ceiling === undefined ? [] : [line(frame.left, scale.y(ceiling), right, scale.y(ceiling), dashed)]),
    line(
      right + 12,
      frame.top + 12 + index * 18,
      right + 32,
      frame.top + 12 + index * 18,
      `stroke="${colour}" stroke-width="2"`,
    ),
    text(right + 38, frame.top + 16 + index * 18, name),
  ];
}
