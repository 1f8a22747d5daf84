// What a README promises: its headings, and the names in the first column of a section's table. Pure.

export const headings = [
  'What it does',
  'Takes and gives',
  'Configuration',
  'Metrics',
  'Errors',
  'When it fails',
] as const;

export type Heading = (typeof headings)[number];

export function headingsOf(text: string): string[] {
  return [...text.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading?.trim() ?? '');
}

export function sectionOf(text: string, heading: Heading): string {
  const [, after = ''] = text.split(new RegExp(`^## ${heading}\\s*$`, 'm'));
  return after.split(/^## /m)[0] ?? '';
}

/** Names in back quotes in the first column, heading row and rule row left out. */
export function firstColumn(text: string, heading: Heading): string[] {
  return sectionOf(text, heading)
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) => line.split('|')[1] ?? '')
    .flatMap((cell) => [...cell.matchAll(/`([A-Za-z0-9_]+)`/g)].map(([, name]) => name ?? ''));
}
