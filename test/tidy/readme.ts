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

/** Names in back quotes in the first column, heading row and rule row left out; and what the line below says that services share. */
export function namesIn(text: string, heading: Heading): string[] {
  return sectionOf(text, heading)
    .split('\n')
    .flatMap((line) =>
      line.startsWith('|') ? (line.split('|')[1] ?? '') : line.startsWith('Shared with ') ? line : [],
    )
    .flatMap((cell) => [...cell.matchAll(/`([A-Za-z0-9_]+)`/g)].map(([, name]) => name ?? ''));
}
