// The rules a linter can check. Rules about the shape of the house stand in test/tidy.
import eslint from '@eslint/js';
import regexp from 'eslint-plugin-regexp';
import tseslint from 'typescript-eslint';

const linesOfFile = ['error', { max: 400 }];
const linesOfFunction = ['error', { max: 70 }];

export default tseslint.config(
  {
    ignores: ['**/dist/**', '**/gen/**', '**/node_modules/**', '**/vitest.config.ts', '.venv/**', '.backtalk/**'],
  },
  eslint.configs.recommended,
  {
    // A pattern whose work grows faster than its text can be made to stall a process.
    plugins: { regexp },
    rules: {
      'regexp/no-super-linear-backtracking': 'error',
      'regexp/no-super-linear-move': 'error',
      'regexp/no-contradiction-with-assertion': 'error',
      'regexp/no-misleading-unicode-character': 'error',
      'regexp/no-useless-assertions': 'error',
      'regexp/optimal-quantifier-concatenation': 'error',
    },
  },
  {
    files: ['**/*.{js,mjs}'],
    languageOptions: {
      globals: {
        AbortController: 'readonly',
        AbortSignal: 'readonly',
        Buffer: 'readonly',
        URL: 'readonly',
        clearInterval: 'readonly',
        clearTimeout: 'readonly',
        fetch: 'readonly',
        performance: 'readonly',
        process: 'readonly',
        setInterval: 'readonly',
        setTimeout: 'readonly',
      },
    },
    rules: { 'max-lines': linesOfFile, 'max-lines-per-function': linesOfFunction },
  },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      'max-lines': linesOfFile,
      'max-lines-per-function': linesOfFunction,
      'no-console': 'error',
      'no-restricted-properties': [
        'error',
        {
          object: 'process',
          property: 'env',
          message: 'Only the kit reads the environment: write a setting in config.ts.',
        },
      ],
      'no-restricted-globals': ['error', { name: 'fetch', message: 'Outputs call engines through an undici pool.' }],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/no-confusing-void-expression': 'off',
      '@typescript-eslint/no-misused-spread': ['error', { allow: ['string'] }],
      // Enums of the wire are strings, and come from data.
      '@typescript-eslint/no-unsafe-enum-assignment': 'off',
      // Interfaces of the house are written with method signatures; their objects are closures without `this`.
      '@typescript-eslint/unbound-method': 'off',
      // Narrowing that the compiler cannot see at run time (wire data, index access) is asked for on purpose.
      '@typescript-eslint/no-unnecessary-condition': 'off',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
    },
  },
  {
    // What a browser runs has no pool of its own to call through.
    files: ['services/console/src/*.ts'],
    rules: { 'no-restricted-globals': 'off' },
  },
  {
    // The only place that sees the environment.
    files: ['services/lib/kit/src/config/*.ts'],
    rules: { 'no-restricted-properties': 'off' },
  },
  {
    // A describe block is a list of guarantees, and may be long.
    files: ['**/*.test.ts'],
    rules: { 'max-lines-per-function': 'off' },
  },
  {
    // Commands, and a service's look at the broker's monitoring port when it starts, ask a few questions and end.
    files: ['services/cli/**/*.ts', 'services/lib/kit/src/installation/*.ts'],
    rules: { 'no-restricted-globals': 'off' },
  },
  {
    files: ['**/*.test.ts', '**/testing/**/*.ts', 'test/**/*.ts'],
    rules: {
      // They read what we wrote.
      'regexp/no-super-linear-move': 'off',
      'no-restricted-globals': 'off',
      '@typescript-eslint/require-await': 'off',
    },
  },
);
