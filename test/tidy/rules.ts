// Every rule of the house, in the order in which a reader asks.
import { codeRules } from './code-rules.js';
import { dialectRules } from './dialect-rules.js';
import { documentRules } from './document-rules.js';
import { domainRules } from './domain-rules.js';
import { linkRules } from './link-rules.js';
import { measuringRules } from './measuring-rules.js';
import type { Rule } from './rule.js';
import { serviceRules } from './service-rules.js';
import { sizeRules } from './size-rules.js';
import { textRules } from './text-rules.js';
import { workspaceRules } from './workspace-rules.js';

export const rules: readonly Rule[] = [
  ...serviceRules,
  ...domainRules,
  ...measuringRules,
  ...sizeRules,
  ...codeRules,
  ...dialectRules,
  ...textRules,
  ...documentRules,
  ...linkRules,
  ...workspaceRules,
];
