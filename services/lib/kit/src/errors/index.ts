export { BacktalkError, isBacktalkError, type ErrorFacts, type Retry } from './backtalk-error.js';
export { defineErrors, type CatalogueRow, type ErrorFactories, type ErrorSpec } from './define-errors.js';
export { asBacktalkError, isAbort } from './as-backtalk-error.js';
export { kitErrors } from './kit-errors.js';
