// Questions about a syntax tree that several rules ask. Pure.
import ts from 'typescript';

const nodesOfTree = new WeakMap<ts.SourceFile, readonly ts.Node[]>();

/** Every node below and including this one, parents first. A whole file's are kept, since every rule asks for them. */
export function nodesOf(node: ts.Node): readonly ts.Node[] {
  if (!ts.isSourceFile(node)) return collectNodes(node);
  const known = nodesOfTree.get(node) ?? collectNodes(node);
  nodesOfTree.set(node, known);
  return known;
}

function collectNodes(top: ts.Node): ts.Node[] {
  const nodes: ts.Node[] = [];
  const visit = (node: ts.Node): void => {
    nodes.push(node);
    ts.forEachChild(node, visit);
  };
  visit(top);
  return nodes;
}

/** What stands in string literals and in parts of templates. */
export function literalsOf(tree: ts.SourceFile): string[] {
  return nodesOf(tree).flatMap((node) =>
    ts.isLiteralExpression(node) || ts.isTemplateMiddleOrTemplateTail(node) || ts.isTemplateHead(node)
      ? [node.text]
      : [],
  );
}

export function lineOf(node: ts.Node): number {
  return node.getSourceFile().getLineAndCharacterOfPosition(node.getStart()).line + 1;
}

export interface Import {
  readonly specifier: string;
  readonly line: number;
  /** Nothing of it is left at run time. */
  readonly typeOnly: boolean;
  /** The names that are left at run time; `*` for a whole module. */
  readonly names: readonly string[];
}

/** Imports, re-exports and dynamic imports with a literal. */
export function importsOf(tree: ts.SourceFile): Import[] {
  return nodesOf(tree).flatMap((node) => {
    const specifier = specifierOf(node);
    if (specifier === undefined) return [];
    const names = namesOf(node);
    return [{ specifier, line: lineOf(node), names, typeOnly: names.length === 0 && hasClause(node) }];
  });
}

function specifierOf(node: ts.Node): string | undefined {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return literalText(node.moduleSpecifier);
  const dynamic = ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword;
  return dynamic ? literalText(node.arguments[0]) : undefined;
}

/** `import 'x'` has no clause: it is there for its effect at run time. */
function hasClause(node: ts.Node): boolean {
  return (ts.isImportDeclaration(node) && node.importClause !== undefined) || ts.isExportDeclaration(node);
}

function namesOf(node: ts.Node): string[] {
  if (ts.isExportDeclaration(node)) {
    if (node.isTypeOnly) return [];
    return node.exportClause === undefined ? ['*'] : namesOfBindings(node.exportClause);
  }
  if (!ts.isImportDeclaration(node)) return ['*'];
  const clause = node.importClause;
  if (clause === undefined || clause.phaseModifier === ts.SyntaxKind.TypeKeyword) return [];
  const whole = clause.name === undefined ? [] : ['default'];
  return clause.namedBindings === undefined ? whole : [...whole, ...namesOfBindings(clause.namedBindings)];
}

function namesOfBindings(bindings: ts.NamedImportBindings | ts.NamedExportBindings): string[] {
  if (!ts.isNamedImports(bindings) && !ts.isNamedExports(bindings)) return ['*'];
  const elements: readonly (ts.ImportSpecifier | ts.ExportSpecifier)[] = bindings.elements;
  return elements
    .filter((element) => !element.isTypeOnly)
    .map((element) => (element.propertyName ?? element.name).text);
}

export function literalText(node: ts.Node | undefined): string | undefined {
  return node !== undefined && ts.isStringLiteralLike(node) ? node.text : undefined;
}

/** `a.b` for a call `a.b(…)`, `f` for `f(…)`. */
export function calleeOf(call: ts.CallExpression): string {
  return call.expression.getText().replaceAll(/\s/g, '');
}

export function callsOf(tree: ts.Node): ts.CallExpression[] {
  return nodesOf(tree).filter((node) => ts.isCallExpression(node));
}
