// The commands of `npx backtalk`, their options and help. It parses and hands over; what a command does is in its own file,
// which is loaded when it is asked for where that takes long.
import { Argument, Option, type Command } from 'commander';
import { backup } from './commands/backup.js';
import { abandonBatch, listBatches } from './commands/batches.js';
import { burnVersion, type BurnFlags } from './commands/burn.js';
import { listDeadLetters, replayDeadLetters } from './commands/dead-letters.js';
import { doctor } from './commands/doctor.js';
import { exportFacts, exportKinds, type ExportKind } from './commands/export.js';
import { exportWeights, type WeightsFlags } from './commands/export-weights.js';
import { giveFeedback, type FeedbackWords } from './commands/feedback.js';
import { quantizations } from '@backtalk/kit';
import { fit, type FitFlags } from './commands/fit.js';
import { forget, type ForgetFlags } from './commands/forget.js';
import { evalHelp, evaluateJudge, type JudgeEvalFlags } from './commands/judge-eval.js';
import { addKey, listKeys, revokeKey, type KeyFlags } from './commands/keys.js';
import { setLearning } from './commands/learning.js';
import {
  activateLesson,
  addLesson,
  editLesson,
  lessonsHelp,
  listLessons,
  retireLesson,
  showLesson,
  type LessonFlags,
} from './commands/lessons.js';
import { checkReceipt } from './commands/receipt.js';
import { showRecipe, showRecipeOf } from './commands/recipe.js';
import { rebuild } from './commands/rebuild.js';
import { replay, type ReplayFlags } from './commands/replay.js';
import type { RolloutFlags } from './commands/rollout.js';
import { restore } from './commands/restore.js';
import { rollback, type RollbackFlags } from './commands/rollback.js';
import { simulate } from './commands/simulate.js';
import { status } from './commands/status.js';
import { ensureAll } from './commands/streams.js';
import { trimTurns, type TrimFlags } from './commands/turns.js';
import { undo, type UndoFlags } from './commands/undo.js';
import { listVersions, showVersion } from './commands/versions.js';
import { cliErrors } from './errors.js';
import { age, createShell, listing, name, names, size, whole, words, type Run, type Shell } from './shell.js';

const weightsKind = 'weights';

export function createProgram(signal: AbortSignal): Command {
  const description = 'Talk to the model that learns from what you answer, and see what it learned.';
  const shell = createShell('backtalk', description, signal);
  addTalking(shell, signal);
  addWatching(shell);
  addLessons(shell);
  addSteering(shell);
  addMakingAgain(shell);
  addInstalling(shell);
  return shell.program;
}

/** @param what waits, and for whom */
function waiting(what: string, ms: number, words: string): Option {
  return new Option('--wait <time>', `${what}: 1h, 30m or 45s`).argParser(age).default(ms, words);
}

function addTalking({ program, run, attempt }: Shell, signal: AbortSignal): void {
  program
    .command('chat')
    .description('talk to the model in the terminal')
    .option('--max-tokens <n>', 'longest answer in tokens', whole(1), 256)
    .option('--no-train', 'nothing that is said is learned from')
    .option('--remind', 'show the model your lessons until it has learned them', false)
    .action((flags: { maxTokens: number; train: boolean; remind: boolean }) =>
      run(async (context) => (await import('./commands/chat.js')).chat(context, flags)),
    );
  program
    .command('simulate [words...]')
    .description('let a seeded, simulated user talk, and watch held-out scores version by version (in a checkout)')
    .helpOption(false)
    .allowUnknownOption()
    .action((words: readonly string[]) =>
      attempt(async (_output, { json, data, policy }) => {
        const named = Object.entries({ '--data': data, '--policy': policy });
        const shared = named.flatMap(([flag, value]) => (value === undefined ? [] : [flag, value]));
        process.exitCode = await simulate([...(json === true ? ['--json'] : []), ...shared, ...words], signal);
      }),
    );
  program
    .command('rollout <tasks>')
    .description(
      'let the model try tasks, one JSON value a line, each several times, in environments that say how well it did (docs/agents.md)',
    )
    .requiredOption('--environment <command>', 'a program that is given a task and each answer, as lines of JSON')
    .option('--attempts <n>', 'at each task, rewarded beside each other', whole(1, 1_024), 8)
    .option('--rounds <n>', 'how often the file is gone through', whole(1), 1)
    .option('--at-once <n>', 'attempts that are made at once', whole(1, 1_024), 4)
    .option('--steps <n>', 'answers in one attempt, at most', whole(1), 16)
    .option('--max-tokens <n>', 'length of an answer', whole(1), 256)
    .addOption(waiting('for a line of the environment', 60_000, '1m'))
    .option('--no-train', 'only measure: nothing is learned from')
    .action((tasks: string, flags: RolloutFlags) =>
      run(async (context) => (await import('./commands/rollout.js')).rollout(context, tasks, flags)),
    );
  program
    .command('feedback <turn>')
    .description('say what an answer was worth; it outranks the judge')
    .addOption(new Option('--score <score>', 'what it was worth').choices(['-1', '0', '1']))
    .option('--comment <words>', 'why', words)
    .option('--correction <words>', 'how to answer instead', words)
    .action((turn: string, words: FeedbackWords) => run((context) => giveFeedback(context, turn, words)));
}

function addWatching({ program, run, attempt }: Shell): void {
  program
    .command('status')
    .description('is everything up, and where are turns in the loop')
    .action(() => run(status));
  program
    .command('doctor')
    .description('look for what is commonly set up wrong, and say what to do; exit status 1 where something was found')
    .action(() => attempt((output, flags) => doctor(output, flags)));
  const versions = program
    .command('versions [version]')
    .description('every weights version; with a name: from which words it was made')
    .action((version?: string) =>
      run((context) => (version === undefined ? listVersions(context) : showVersion(context, version))),
    );
  versions
    .command('burn <version>')
    .description('give up a trained version that is neither served nor refused; training goes on without it')
    .option('--why <words>', 'kept with the burned version', 'burned by an operator')
    .action((version: string, flags: BurnFlags) => run((context) => burnVersion(context, version, flags)));
  program
    .command('recipe [preset]')
    .description('all numbers of training and what they mean: of a preset, or of a JSON file')
    .option('--set <numbers>', 'numbers that differ, such as effective=4,learningRate=1e-4')
    .addOption(new Option('--of <version>', 'with which numbers a version was made').conflicts('set'))
    .action((preset: string | undefined, { set, of }: { set?: string; of?: string }) =>
      of === undefined
        ? attempt((output) => Promise.resolve(showRecipe(output, preset, set)))
        : run((context) => showRecipeOf(context, of, preset)),
    );
  program
    .command('fit <model>')
    .description(
      'what serving, judging and training a model take of cards: a folder, a config.json, or its fields (hidden_size=…,…)',
    )
    .requiredOption('--gpu <size>', 'memory of each card, such as 24GB', size)
    .option('--context <tokens>', 'prompt and answer together (default: the model’s own, 32768 at most)', whole(1_024))
    .option('--conversations <n>', 'of full length at once', whole(1), 4)
    .option('--rank <n>', "of the adapter (default: the recipe's)", whole(1))
    .option('--sample <tokens>', "longest sample (default: the recipe's)", whole(16))
    .option('--judge <model>', 'the model that judges (default: the same)')
    .addOption(new Option('--quantization <how>', 'of its linear layers').choices(quantizations).default('none'))
    .action((model: string, flags: FitFlags) => attempt((output) => Promise.resolve(fit(output, model, flags))));
  addExports({ program, run, attempt });
  const judge = program.command('judge').description('look at the judge');
  judge
    .command('eval')
    .description(
      'measure verdicts by words, or by votes of the serving engine, on labelled turns (whatever backend judges)',
    )
    .addOption(new Option('--split <name>', 'which part of the set').choices(['test', 'dev']).default('test'))
    .option('--file <jsonl>', 'your own labelled turns: lines of context, answer, next, label, hint and kind')
    .option('--votes <n>', 'votes for each turn of the file, with --backend free', whole(1), 3)
    .addOption(new Option('--backend <name>', 'what judges the file').choices(['words', 'free']).default('words'))
    .addHelpText('after', evalHelp)
    .action((flags: JudgeEvalFlags) => run((context) => evaluateJudge(context, flags)));
}

function addExports({ program, run, attempt }: Shell): void {
  program
    .command('export')
    .addArgument(new Argument('<kind>', 'which part of the log, or weights').choices([...exportKinds, weightsKind]))
    .argument('[version]', 'weights: which version (default: the one that answers)')
    .description('write the log as JSON lines; or weights as a folder in Hugging Face’s layout')
    .option('--to <path>', 'write to a file instead of standard output; weights: to a new folder')
    .option('--merged', 'weights: merged into the base model, not as an adapter', false)
    .option('--follow', 'weights: each version that comes to answer, in a folder of its own in this one', false)
    .option('--keep <n>', 'weights with --follow: so many of the newest', whole(1), 5)
    .action((kind: ExportKind | typeof weightsKind, version: string | undefined, flags: WeightsFlags) => {
      if (kind === weightsKind) return run((context) => exportWeights(context, version, flags));
      if (version === undefined && !flags.merged && !flags.follow)
        return run((context) => exportFacts(context, kind, flags.to));
      const name = version === undefined ? (flags.merged ? '--merged' : '--follow') : 'version';
      const refusal = cliErrors.badArgument({ name, value: version ?? 'true', wanted: 'usable but with weights' });
      return attempt(() => Promise.reject(refusal));
    });
}

function addLessons({ program, run }: Shell): void {
  const lessons = program
    .command('lessons')
    .description('what is being learned of your wishes')
    .addHelpText('after', lessonsHelp);
  const whose = ['--user <name>', 'the person, where the key speaks for several', name] as const;
  listing(lessons)
    .description('every lesson, with its state')
    .option(...whose)
    .action((flags: LessonFlags) => run((context) => listLessons(context, flags)));
  lessons
    .command('show <lesson>')
    .description('one lesson: its words, how far it has come, why it ended')
    .option(...whose)
    .action((id: string, flags: LessonFlags) => run((context) => showLesson(context, id, flags)));
  lessons
    .command('add <words...>')
    .description('give a lesson in so many words; on the laptop it is learned at once')
    .option(...whose)
    .action((words: string[], flags: LessonFlags) => run((context) => addLesson(context, words, flags)));
  lessons
    .command('edit <lesson> <words...>')
    .description('put a lesson in other words')
    .option(...whose)
    .action((id: string, words: string[], flags: LessonFlags) =>
      run((context) => editLesson(context, id, words, flags)),
    );
  lessons
    .command('retire <lesson>')
    .description('end a lesson, with what it covers')
    .option(...whose)
    .action((id: string, flags: LessonFlags) => run((context) => retireLesson(context, id, flags)));
  lessons
    .command('activate <lesson>')
    .description('learn a lesson (again) that is retired, learned, unteachable or only heard')
    .option(...whose)
    .action((id: string, flags: LessonFlags) => run((context) => activateLesson(context, id, flags)));
}

function addMakingAgain(shell: Shell): void {
  const { program, run } = shell;
  program
    .command('rebuild <version>')
    .description('make a version again from the log, and say whether it is the same byte for byte')
    .addOption(waiting('for the trainer, which does it between batches', 1_800_000, '30m'))
    .action((version: string, flags: { wait: number }) => run((context) => rebuild(context, version, flags.wait)));
  program
    .command('replay')
    .description(
      'take the steps of a row of versions again, as they were, with another recipe or with the judge of now; nothing serves the result',
    )
    .requiredOption('--from <version>', 'the first of them')
    .option('--to <version>', 'the last of them; the one that answers where it is left out')
    .option('--recipe <numbers>', 'what the steps have otherwise than they had: learningRate=5e-4,optimizerSteps=2', '')
    .option(
      '--judge [asking]',
      'with what the judge that runs now makes of their turns, in place of what was judged then; or with what it said when it was asked before',
    )
    .option('--save <dir>', 'a new folder for what the last one comes out as, an adapter in Hugging Face’s layout')
    .addOption(
      waiting('for the judge, and then again for the trainer, which does it between batches', 1_800_000, '30m'),
    )
    .action((flags: ReplayFlags) => run((context) => replay(context, flags)));
}

function addSteering(shell: Shell): void {
  const { program, run } = shell;
  program
    .command('rollback')
    .description('put the version before this one back, at once')
    .option('--to <version>', 'one that answered earlier, in place of the one before; all since are burned')
    .option('--why <words>', 'kept with the burned version', 'rolled back by an operator')
    .option('--forget', 'retire the lessons that it was being taught; otherwise they are learned again', false)
    .action((flags: RollbackFlags) => run((context) => rollback(context, flags)));
  program
    .command('undo <lesson>')
    .description('as if it had never been taught: end a lesson, and go back to the version before the first that was')
    .option('--why <words>', 'kept with the burned versions', 'undone by an operator')
    .option('--dry-run', 'only say what would be done', false)
    .addOption(waiting('for a version that was taught it and is being made', 600_000, '10m'))
    .action((lesson: string, flags: UndoFlags) => run((context) => undo(context, lesson, flags)));
  program
    .command('pause')
    .description('stop learning; chat goes on')
    .action(() => run((context) => setLearning(context, true)));
  program
    .command('resume')
    .description('learn again')
    .action(() => run((context) => setLearning(context, false)));
  program
    .command('backup')
    .description('copy streams, weights, keys and secrets into a folder while everything runs')
    .requiredOption('--to <dir>', 'a new folder; npm start -- --data NEW --restore DIR starts from it')
    .action((flags: { to: string }) => run((context) => backup(context, flags.to)));
  program
    .command('restore')
    .description('put a backup into a broker that has never been used, before services start; for the user admin')
    .requiredOption('--from <dir>', 'folder of the backup')
    .action((flags: { from: string }) => run((context) => restore(context, flags.from)));
  const batches = program.command('batches').description('what turns were trained on together');
  listing(batches)
    .description('the newest batches: trained, open, given up, and why')
    .action(() => run(listBatches));
  batches
    .command('abandon <policy> <number>')
    .description('give up a closed batch that cannot be trained; learning goes on with the next one')
    .option('--yes', 'do not ask', false)
    .action((policy: string, number: string, flags: { yes: boolean }) =>
      run((context) => abandonBatch(context, policy, batchNumber(number), flags.yes)),
    );
  addTrimming(program, run);
  addForgetting(program, shell);
  const dead = program.command('dead-letters').description('facts that could not be handled');
  listing(dead)
    .description('what failed, where and why')
    .action(() => run(listDeadLetters));
  dead
    .command('replay <number>')
    .description("give one to its service again, or 'all'")
    .action((which: string) => run((context) => replayDeadLetters(context, which)));
}

function addTrimming(program: Command, run: Run): void {
  program
    .command('turns')
    .description('the log of turns')
    .command('trim')
    .description('delete old turns and their payloads, but none that the trainer still needs')
    .requiredOption('--older-than <age>', 'about which nothing was said for so long: 30d, 12h, 30m or 45s', age)
    .option('--tenant <name>', "only this tenant's", name)
    .option('--user <name>', "only this user's, of the tenant (default: default)", name)
    .option('--also-needed', 'also those that the trainer still needs: they are never learned from', false)
    .option('--dry-run', 'say what would go, and delete nothing', false)
    .option('--yes', 'do not ask', false)
    .action((flags: TrimFlags) => run((context) => trimTurns(context, flags)));
}

function addForgetting(program: Command, { run, attempt }: Shell): void {
  program
    .command('forget <user>')
    .description(
      'a person leaves (local, on a machine without keys): their turns, what was learned from them and what those versions were; gives a signed receipt',
    )
    .option('--tenant <name>', 'of this tenant (default: default)', name)
    .option('--dry-run', 'only say what would be done', false)
    .option('--yes', 'do not ask', false)
    .addOption(waiting('for the trainer, and for a version that is being made', 600_000, '10m'))
    .option('--key <file>', 'Ed25519 key that signs (default: one of the machine, made when first needed)')
    .option('--receipt <file>', 'where the receipt goes (default: a new file in the folder of the machine, else here)')
    .action((user: string, flags: ForgetFlags) => run((context) => forget(context, user, flags)));
  program
    .command('receipt <file>')
    .description('whether a receipt of `forget` is as it was signed')
    .action((file: string) =>
      attempt((output) => {
        checkReceipt(output, file);
        return Promise.resolve();
      }),
    );
}

function batchNumber(text: string): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1)
    throw cliErrors.badArgument({ name: 'number', value: text, wanted: "a batch's number" });
  return number;
}

function addInstalling({ program, run }: Shell): void {
  const streams = program.command('streams').description("the broker's streams and buckets");
  streams
    .command('ensure')
    .description('make and change them as the environment says; for the user admin')
    .option('--wait <seconds>', 'how long to wait for the broker', whole(0), 0)
    .action((flags: { wait: number }) => run((context) => ensureAll(context, flags.wait)));
  const keys = program.command('keys').description('who may ask the endpoint');
  keys
    .command('add')
    .description('make a key, and show it once')
    .option('--tenant <name>', 'whose data it is', name, 'default')
    .option('--user <name>', 'whose wishes are learned', name, 'local')
    .option('--no-train', 'nothing that comes with it is learned from')
    .option('--accept-user-field', "take the request's `user` for the user", false)
    .option(
      '--policies <names>',
      'policies that it opens, with commas between (all; among several tenants the one named like its own)',
      names,
    )
    .option('--requests-per-minute <n>', 'limit', whole(1))
    .option('--tokens-per-minute <n>', 'limit', whole(1))
    .option('--concurrency <n>', 'requests at the same time', whole(1))
    .option('--capture-bytes-per-day <n>', 'what the log takes of its turns in a day', whole(0))
    .action((flags: KeyFlags) => run((context) => addKey(context, flags)));
  listing(keys)
    .description('every key by the start of its hash')
    .action(() => run(listKeys));
  keys
    .command('revoke <key>')
    .description('a key opens nothing any more')
    .action((key: string) => run((context) => revokeKey(context, key)));
}
