export {
  asBacktalkError,
  BacktalkError,
  defineErrors,
  isAbort,
  isBacktalkError,
  kitErrors,
  type CatalogueRow,
  type ErrorFactories,
  type ErrorFacts,
  type ErrorSpec,
  type Retry,
} from './backtalk-error.js';
