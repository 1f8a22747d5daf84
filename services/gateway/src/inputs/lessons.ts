// /v1/lessons: what is being learned of a person's wishes, and their word on it.
//
// In: requests to list, show, add, change and retire lessons. Out: lessons as the log has them, with what was said of them
// and the trainer has not taken in yet; each change is a fact, stored before it is confirmed. It changes no lesson itself.
// Another tenant's lesson, another person's, and one that never was are answered alike: not found.
import type { Request, Response } from 'express';
import { isInForce, keyedHash, newId, personLessonsMax } from '@backtalk/kit';
import { LessonChanged_Action, type Lesson, type LessonChanged } from '@backtalk/proto/facts';
import { gatewayErrors } from '../errors.js';
import { openPolicies, type Caller } from '../domain/caller.js';
import { parseJson } from '../domain/json-body.js';
import { factBytesLeast } from '../domain/log-bytes.js';
import {
  isFull,
  isSo,
  isVisible,
  knownLessons,
  lessonAnswer,
  lessonScope,
  mayChange,
  readAddition,
  readEdition,
  shownNow,
  type Addition,
  type Edition,
  type KnownLesson,
  type LessonOwner,
  type LessonScope,
} from '../domain/lesson.js';
import { consentOf } from '../domain/trainability.js';
import { admitted, type Admission } from './admit.js';
import { headerIn, sendJson, traceOf } from './answer.js';
import { refusePastShare } from './log-share.js';
import type { Parts } from './parts.js';
import { readBody } from './read-body.js';

const bodyBytesMax = 16 * 1024;
const idPattern = /^[A-Za-z0-9_-]{1,128}$/;

type LessonWork = (asked: Asked) => Promise<unknown>;

/** A request about lessons that was let in. */
interface Asked {
  readonly parts: Parts;
  readonly request: Request;
  readonly admission: Admission;
  /** The policies that the key opens. */
  readonly policies: readonly string[];
}

function answered(work: LessonWork) {
  return (parts: Parts, request: Request, response: Response): Promise<void> =>
    admitted(parts, request, response, async (admission) => {
      const policies = openPolicies(parts.config.policies, admission.grant);
      sendJson(response, 200, await work({ parts, request, admission, policies }));
    });
}

export const listLessons = answered(async (asked) => {
  const { policy } = asked.request.query;
  const policies = typeof policy === 'string' ? [openPolicy(asked, 'policy', policy)] : asked.policies;
  const { scope } = scopeOf(asked, userInQuery(asked));
  const data = await visible(asked, scope, policies);
  const shown = shownNowOf(data);
  return { object: 'list', data: data.map((known) => lessonAnswer(known, isOpenTo(asked, scope, known), shown)) };
});

export const showLesson = answered(async (asked) => {
  const { scope } = scopeOf(asked, userInQuery(asked));
  const { known, beside } = await find(asked, scope);
  return lessonAnswer(known, isOpenTo(asked, scope, known), shownNow(beside));
});

export const addLesson = answered(async (asked) => {
  const { value, bytes } = await body(asked);
  const given = readAddition(value);
  const { caller, scope } = scopeOf(asked, given.user);
  const policy = policyOf(asked, given);
  // The same request sent twice under one key of its client's makes one lesson.
  const repeat = headerIn(asked.request, 'idempotency-key');
  const secret = caller.answerSecret;
  const id = repeat === undefined ? newId() : keyedHash(secret, `lesson\n${policy}\n${given.text}\n${repeat}`);
  const lesson = `lesson_${id}`;
  const user = scope.user ?? '';
  const beside = (await visible(asked, scope, [policy])).map((known) => known.lesson);
  if (beside.every((one) => one.id !== lesson)) refuseFull(beside, { scopeTenant: scope.tenant, scopeUser: user });
  const change = { action: LessonChanged_Action.ACTION_ADD, text: given.text, policy, lesson, user };
  return after(policy, beside, await store(asked, caller, bytes, { ...change, id }));
});

export const changeLesson = answered(async (asked) => {
  const { value, bytes } = await body(asked);
  return change(asked, readEdition(value), bytes);
});

export const retireLesson = answered((asked) =>
  change(asked, { action: LessonChanged_Action.ACTION_RETIRE, text: '', user: userInQuery(asked) }, 0),
);

async function change(asked: Asked, { action, text, user }: Edition, bytes: number): Promise<unknown> {
  const { caller, scope } = scopeOf(asked, user);
  const { known, beside } = await find(asked, scope);
  const { policy, lesson } = known;
  if (!isOpenTo(asked, scope, known)) throw gatewayErrors.lessonShared();
  if (isSo(lesson, action, text, beside)) return lessonAnswer(known, true, shownNow(beside));
  if (action === LessonChanged_Action.ACTION_REACTIVATE && !isInForce(lesson)) refuseFull(beside, lesson);
  const said = { id: newId(), action, text, policy, lesson: lesson.id, user: lesson.scopeUser };
  return after(policy, beside, await store(asked, caller, bytes, said));
}

function refuseFull(lessons: readonly Lesson[], owner: LessonOwner): void {
  if (isFull(lessons, owner)) throw gatewayErrors.lessonsFull({ most: personLessonsMax });
}

/** To changes. */
function isOpenTo({ parts }: Asked, scope: LessonScope, { lesson }: KnownLesson): boolean {
  return mayChange(lesson, scope, parts.access.keys.isKeyless);
}

/** Made from what was read and written here: a copy of the log that lags would not know it yet. */
function after(policy: string, lessons: readonly Lesson[], change: LessonChanged): unknown {
  const known = knownLessons(policy, lessons, [change]);
  const shown = shownNowOf(known);
  return known.filter(({ lesson }) => lesson.id === change.lesson).map((one) => lessonAnswer(one, true, shown))[0];
}

/** Of several policies each by itself: teachers of one are shown nothing of another. */
function shownNowOf(known: readonly KnownLesson[]): ReadonlySet<string> {
  const policies = [...new Set(known.map(({ policy }) => policy))];
  return new Set(policies.flatMap((policy) => [...shownNow(lessonsIn(policy, known))]));
}

function lessonsIn(policy: string, known: readonly KnownLesson[]): Lesson[] {
  return known.filter((one) => one.policy === policy).map(({ lesson }) => lesson);
}

interface Found {
  readonly known: KnownLesson;
  /** Of its policy, those that may be seen, itself among them. */
  readonly beside: readonly Lesson[];
}

interface Said {
  readonly id: string;
  readonly action: LessonChanged_Action;
  readonly text: string;
  readonly policy: string;
  readonly lesson: string;
  readonly user: string;
}

/** What is not learned from teaches no lesson, either. */
function refuseDeclined({ request, admission }: Asked): void {
  const requestHeader = headerIn(request, 'x-backtalk-train');
  const consent = consentOf({ keyTrains: admission.grant.train, requestHeader, sessionTrains: true });
  if (!consent.train) throw gatewayErrors.lessonDeclined({});
}

async function store(asked: Asked, caller: Caller, bytes: number, said: Said): Promise<LessonChanged> {
  const { parts, request } = asked;
  const { access, turns, events } = parts;
  if (said.action !== LessonChanged_Action.ACTION_RETIRE) refuseDeclined(asked);
  refusePastShare(access.shares, caller);
  const fact = { ...said, tenant: caller.tenant, giver: caller.user };
  // The trainer takes it in by a batch that holds all lessons of the policy. Read first: what is stored is never said to have failed.
  const lessonsBytes = await turns.log.lessonsBytes(said.policy);
  await turns.log.store('lessonChanged', fact, traceOf(request, access.traces.samples()));
  access.shares.add(caller, 2 * factBytesLeast + bytes + lessonsBytes);
  turns.lessons.changed(said.policy, caller.tenant);
  events.lessonChanged(said.action.replace('ACTION_', '').toLowerCase());
  return fact;
}

function scopeOf({ parts, admission }: Asked, user: string | undefined): { caller: Caller; scope: LessonScope } {
  const { keyId, grant } = admission;
  const caller = parts.access.callers.of(keyId, grant, user);
  return { caller, scope: lessonScope(caller, grant, user) };
}

function userInQuery({ request }: Asked): string | undefined {
  const { user } = request.query;
  return typeof user === 'string' ? user : undefined;
}

async function body({ request, admission }: Asked): Promise<{ readonly value: unknown; readonly bytes: number }> {
  const { bytes } = await readBody(request, { bytesMax: bodyBytesMax, room: admission.room });
  return { value: parseJson(bytes), bytes: bytes.length };
}

function policyOf(asked: Asked, { policy }: Addition): string {
  if (policy !== undefined) return openPolicy(asked, policy.param, policy.name);
  const [only, ...others] = asked.policies;
  if (only === undefined || others.length > 0) throw gatewayErrors.missingParameter({ param: 'policy' });
  return only;
}

function openPolicy({ policies }: Asked, param: string, policy: string): string {
  if (!policies.includes(policy)) throw gatewayErrors.unknownModel({ param });
  return policy;
}

async function find(asked: Asked, scope: LessonScope): Promise<Found> {
  const { id } = asked.request.params;
  if (typeof id === 'string' && idPattern.test(id)) {
    const all = await visible(asked, scope, asked.policies);
    const known = all.find(({ lesson }) => lesson.id === id);
    if (known !== undefined) return { known, beside: lessonsIn(known.policy, all) };
  }
  throw gatewayErrors.unknownLesson();
}

async function visible(asked: Asked, scope: LessonScope, policies: readonly string[]): Promise<KnownLesson[]> {
  const { log } = asked.parts.turns;
  const known = await Promise.all(
    policies.map(async (policy) => {
      const { lessons, changes } = await log.lessonsOf(policy, scope.tenant);
      return knownLessons(policy, lessons, changes);
    }),
  );
  return known.flat().filter(({ lesson }) => isVisible(lesson, scope));
}
