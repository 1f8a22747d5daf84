import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '@backtalk/kit/testing';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { copies, imagesOf, only, stagesOf } from './dockerfile.js';

const readRoot = (name: string) => readFileSync(join(repositoryRoot(), name), 'utf8');

describe.each(['services', 'worker'])('the recipe of %s', (name) => {
  const { building, last } = stagesOf(name);

  it('a recipe ends in a stage that runs as a number, from a base that can be pinned', () => {
    expect(only(last, 'USER')).toMatch(/^[1-9]\d+:[1-9]\d+$/);
    expect(last.base).toMatch(/^\$\{(NODE|PYTHON)_IMAGE\}$/);
    const known = [last.base, ...building.map((stage) => stage.name)];
    expect(building.filter(({ base }) => !known.includes(base))).toEqual([]);
    expect(last.instructions.filter(({ word }) => word === 'RUN' || word === 'ADD')).toEqual([]);
  });

  it('a recipe starts from images named by tag and digest', () => {
    const images = imagesOf(name);
    expect(images.length).toBeGreaterThan(0);
    expect(images.filter((image) => !pinned.test(image))).toEqual([]);
  });

  it('a recipe copies nothing but what .dockerignore lets through', () => {
    const open = readRoot('.dockerignore').match(/(?<=^!).+$/gm) ?? [];
    const taken = building.flatMap((stage) => copies(stage)).flatMap(({ sources }) => sources);
    const isOpen = (path: string) => open.some((known) => path === known || path.startsWith(`${known}/`));
    expect(taken.filter((path) => !isOpen(path))).toEqual([]);
  });

  // COPY keeps the modes of a checkout, which under a umask of 077 are its owner's alone; the image runs as another user.
  it('a recipe lets any user read what it takes from a checkout', () => {
    const taken = building.flatMap((stage) => copies(stage)).flatMap(({ sources }) => sources);
    for (const stage of building) {
      const kept = last.instructions
        .filter(({ word, rest }) => word === 'COPY' && rest.startsWith(`--from=${stage.name} /app/`))
        .map(({ rest }) => (rest.split(/\s+/)[1] ?? '').replace(/^\/app\/|\/$/g, ''));
      const opened = stage.instructions
        .filter(({ word }) => word === 'RUN')
        .flatMap(({ rest }) => /chmod -R a\+rX ([^&]+)/.exec(rest)?.[1]?.trim().split(' ') ?? []);
      expect(kept.filter((path) => taken.includes(path) && !opened.includes(path))).toEqual([]);
    }
  });

  it('a recipe puts no secret into a layer', () => {
    expect(JSON.stringify([building, last])).not.toMatch(/PASSWORD|SECRET|TOKEN|_KEY/);
  });
});

describe('the recipe of services', () => {
  const { building } = stagesOf('services');
  const manifests = building.find((stage) => stage.name === 'manifests');

  it('packages are installed from the lists of all workspaces, before any source is copied', () => {
    const { workspaces } = z.object({ workspaces: z.array(z.string()) }).parse(JSON.parse(readRoot('package.json')));
    const folders = workspaces.flatMap((folder) => (folder === 'services/lib/*' ? libraries : [folder]));
    const lists = ['package.json', ...folders.map((folder) => `${folder}/package.json`)];
    const taken = manifests === undefined ? [] : copies(manifests).flatMap(({ sources }) => sources);
    expect(taken).toEqual(expect.arrayContaining([...lists, 'package-lock.json']));
    expect(taken.filter((path) => !lists.includes(path) && !neededToInstall.includes(path))).toEqual([]);
  });

  it('sources are copied after the packages are installed', () => {
    for (const { instructions } of building) {
      const words = instructions.map(({ word, rest }) => `${word} ${rest}`);
      const source = words.findIndex((line) => line === 'COPY services services');
      const installed = words.findLastIndex((line) => line.startsWith('RUN npm ci'));
      expect(source === -1 || source > installed).toBe(true);
    }
  });
});

describe('images of others', () => {
  const shape = z.object({ repository: z.string(), tag: z.string(), digest: z.string() });
  const { images } = z.object({ images: z.looseObject({}) }).parse(parse(readRoot('charts/backtalk/values.yaml')));
  const inChart = new Map(
    Object.entries(images).flatMap(([name, image]) => {
      const { data } = shape.safeParse(image);
      const own = data === undefined || data.repository.startsWith('backtalk/');
      return own ? [] : [[name, `${data.repository}:${data.tag}`] as const];
    }),
  );

  it('the chart names images of others by digest, but for those that no digest is known of', () => {
    expect([...inChart].filter(([, image]) => !pinned.test(image)).map(([name]) => name)).toEqual(withoutDigest);
  });

  it('the compose files name the images of others that the chart names', () => {
    const text = readRoot('deploy/compose.yaml') + readRoot('deploy/compose.gpu.yaml');
    const named = [...text.matchAll(/^ +image: (?:\$\{\w+:-)?([^\s}]+)\}?$/gm)].map(([, image = '']) => image);
    const others = [...new Set(named.filter((image) => !image.startsWith('backtalk/')))];
    expect(others.sort()).toEqual([inChart.get('nats'), inChart.get('valkey'), inChart.get('vllm')].sort());
  });
});

const pinned = /^[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}$/;
/** As `deploy/images/README.md` says of each. */
const withoutDigest = ['vllm', 'sglang', 'nats'];
const libraries = ['services/lib/kit', 'services/lib/dialects'];
const neededToInstall = ['package-lock.json', 'tsconfig.base.json', 'services/cli/bin'];
