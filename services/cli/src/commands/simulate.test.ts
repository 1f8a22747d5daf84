import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { repositoryRoot, TemporaryDirectory } from '@backtalk/kit/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { simulate } from './simulate.js';

let checkout: TemporaryDirectory;
const { signal } = new AbortController();

beforeEach(() => {
  checkout = new TemporaryDirectory('checkout');
  write('test/simulate/main.ts', '');
});
afterEach(() => {
  checkout.remove();
});

function write(path: string, text: string): void {
  const whole = checkout.join(path);
  mkdirSync(dirname(whole), { recursive: true });
  writeFileSync(whole, text);
}

/** A set-up that notes what it was asked, and leaves what it installs. */
function setUpEnding(status: number): void {
  write(
    'deploy/start.mjs',
    `import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
     appendFileSync('${checkout.join('asked')}', process.argv.slice(2).join(' ') + '\\n');
     mkdirSync('${checkout.join('.venv/stamps')}', { recursive: true });
     mkdirSync('${checkout.join('test/dist/simulate')}', { recursive: true });
     writeFileSync('${checkout.join('.venv/stamps/embeddings')}', '');
     writeFileSync('${checkout.join('test/dist/simulate/main.js')}', 'process.exit(7);');
     process.exit(${String(status)});`,
  );
}

const asked = () => (existsSync(checkout.join('asked')) ? readFileSync(checkout.join('asked'), 'utf8') : '');

describe('simulate', () => {
  it('installs what it needs by itself, once, and then runs', async () => {
    setUpEnding(0);
    expect(await simulate(['--sessions', '2'], signal, checkout.path)).toBe(7);
    expect(await simulate(['--sessions', '2'], signal, checkout.path)).toBe(7);
    expect(asked()).toBe('setup --with scoring\n');
  });

  it('ends with the set-up’s status where that fails, and runs nothing', async () => {
    setUpEnding(4);
    expect(await simulate([], signal, checkout.path)).toBe(4);
  });

  it('a command that ends before its tool tells the tool to end, too', async () => {
    write('.venv/stamps/embeddings', '');
    write(
      'test/dist/simulate/main.js',
      `process.on('SIGINT', () => { console.log('interrupted'); process.exit(0); });
       setTimeout(() => process.exit(1), 20_000);
       console.log('talks');`,
    );
    const file = pathToFileURL(join(repositoryRoot(), 'services/cli/dist/commands/simulate.js')).href;
    const program = `
      const { simulate } = await import(${JSON.stringify(file)});
      process.on('SIGUSR2', () => process.exit(130));
      await simulate([], new AbortController().signal, ${JSON.stringify(checkout.path)});`;
    const command = spawn(process.execPath, ['--input-type=module', '-e', program], { timeout: 30_000 });
    let said = '';
    command.stdout.on('data', (data: Buffer) => (said += data.toString()));
    await once(command.stdout, 'data');
    command.kill('SIGUSR2');
    await once(command, 'close');
    expect(said).toBe('talks\ninterrupted\n');
  });

  it('says in one line that it needs a checkout where there is none', async () => {
    await expect(simulate([], signal, checkout.join('deploy'))).rejects.toMatchObject({ code: 'checkout_needed' });
  });
});
