// What a service's code promises to operators, read from the code: variables, metrics, error codes. Pure.
import ts from 'typescript';
import type { House } from './house.js';
import { productionPaths } from './rule.js';
import { calleeOf, callsOf, literalText, nodesOf } from './syntax.js';

export interface Contract {
  readonly variables: ReadonlySet<string>;
  readonly metrics: ReadonlySet<string>;
  readonly codes: ReadonlySet<string>;
}

const baseSettingsPath = 'services/lib/kit/src/config/base-settings.ts';

export function contractOfTypescript(house: House, service: string, folder: RegExp): Contract {
  const trees = productionPaths(house, folder).map((path) => house.tree(path));
  const base = settingsByKey(house.tree(baseSettingsPath));
  const groups = settingsByGroup(house.tree(baseSettingsPath));
  return {
    variables: new Set(
      trees.flatMap((tree) => [...variablesOf(tree), ...usedKeys(tree, base), ...usedGroups(tree, groups)]),
    ),
    metrics: new Set(trees.flatMap(metricsOf).map((name) => `backtalk_${service}_${name}`)),
    codes: new Set(trees.flatMap(codesOf)),
  };
}

/** In Python the names stand in the text as they are. */
export function contractOfPython(house: House, folder: RegExp): Contract {
  const text = house
    .paths(folder)
    .filter((path) => path.endsWith('.py') && !/(^|\/)(tests|gen)\//.test(path))
    .map((path) => house.text(path))
    .join('\n');
  return {
    variables: new Set(text.match(/\bBACKTALK_[A-Z0-9_]+\b/g)),
    metrics: new Set([...text.matchAll(/["'](backtalk_[a-z]+_[a-z0-9_]+)["']/g)].map(([, name]) => name ?? '')),
    codes: new Set(),
  };
}

function variablesOf(tree: ts.SourceFile): string[] {
  return callsOf(tree)
    .filter((call) => calleeOf(call).startsWith('setting.'))
    .flatMap((call) => literalText(call.arguments[0]) ?? []);
}

function settingsByKey(tree: ts.SourceFile): ReadonlyMap<string, string> {
  return new Map(
    nodesOf(tree).flatMap((node) => {
      if (!ts.isPropertyAssignment(node) || !ts.isCallExpression(node.initializer)) return [];
      const variable = variablesOf(tree).find((name) => name === literalText(firstArgument(node.initializer)));
      return variable === undefined ? [] : [[node.name.getText(), variable] as const];
    }),
  );
}

/** Constants that hold settings, with those of the groups that they spread. */
function settingsByGroup(tree: ts.SourceFile): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, readonly string[]>();
  for (const node of nodesOf(tree)) {
    if (!ts.isVariableDeclaration(node) || node.initializer === undefined) continue;
    const inside = nodesOf(node.initializer);
    const own = inside.flatMap((part) => {
      if (ts.isCallExpression(part) && calleeOf(part).startsWith('setting.'))
        return literalText(part.arguments[0]) ?? [];
      return ts.isSpreadAssignment(part) ? (groups.get(part.expression.getText()) ?? []) : [];
    });
    groups.set(node.name.getText(), own);
  }
  return groups;
}

/** `...blobSettings`, where the group is not the base of all. */
function usedGroups(tree: ts.SourceFile, groups: ReadonlyMap<string, readonly string[]>): string[] {
  return nodesOf(tree)
    .filter(ts.isSpreadAssignment)
    .flatMap((node) => groups.get(node.expression.getText()) ?? []);
}

function firstArgument(node: ts.Expression): ts.Expression | undefined {
  return ts.isCallExpression(node) ? node.arguments[0] : undefined;
}

/** `baseSettings.natsUrl`, `const { natsUrl } = baseSettings` and `...baseSettings`. */
function usedKeys(tree: ts.SourceFile, base: ReadonlyMap<string, string>): string[] {
  const keys = nodesOf(tree).flatMap((node) => {
    if (ts.isPropertyAccessExpression(node) && node.expression.getText() === 'baseSettings') return [node.name.text];
    if (ts.isSpreadAssignment(node) && node.expression.getText() === 'baseSettings') return [...base.keys()];
    if (!ts.isVariableDeclaration(node) || node.initializer?.getText() !== 'baseSettings') return [];
    if (!ts.isObjectBindingPattern(node.name)) return [];
    return node.name.elements.map((element) => (element.propertyName ?? element.name).getText());
  });
  return keys.flatMap((key) => base.get(key) ?? []);
}

function metricsOf(tree: ts.SourceFile): string[] {
  return callsOf(tree)
    .filter((call) => /\b(metrics|#metrics)\.(counter|gauge|histogram)$/.test(calleeOf(call)))
    .flatMap((call) => literalText(call.arguments[0]) ?? []);
}

function codesOf(tree: ts.SourceFile): string[] {
  return callsOf(tree)
    .filter((call) => calleeOf(call) === 'defineErrors')
    .flatMap((call) => nodesOf(call))
    .flatMap((node) => {
      if (!ts.isPropertyAssignment(node) || node.name.getText() !== 'code') return [];
      return literalText(node.initializer) ?? [];
    });
}
