// Finds out what a request is before any engine is asked: whose, in which session, and for which weights.
//
// In: a valid request and its headers. Out: a turn. It waits for Valkey at most for the lookup's limit, and serves
// without its memory when it does not answer.
import { newTurnId } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import { answerKeysOf } from '../domain/answer-key.js';
import { openPolicies, type Caller } from '../domain/caller.js';
import type { ChatRequest } from '../domain/chat-request.js';
import { keysToLookUp, likelyParent } from '../domain/continuation.js';
import { questionKeysOf } from '../domain/question-key.js';
import {
  declaredSession,
  groupOfName,
  sessionOfName,
  sessionOfTurn,
  turnOfSession,
  type HeaderOf,
} from '../domain/session-name.js';
import type { Turn } from '../domain/turn.js';
import { consentOf } from '../domain/trainability.js';
import { chooseVersion, namedModel, type NamedModel } from '../domain/version-choice.js';
import type { Parts } from './parts.js';

export interface OpenedTurn {
  readonly turn: Turn;
  readonly model: NamedModel;
  /** The newest turn of its session that is remembered said no to training. */
  readonly followsNo: boolean;
}

export async function openTurn(
  parts: Parts,
  request: ChatRequest,
  caller: Caller,
  header: HeaderOf,
): Promise<OpenedTurn> {
  const model = namedModel(request.model, openPolicies(parts.config.policies, caller));
  if (model === undefined) throw gatewayErrors.unknownModel({ param: 'model' });
  const { tenant, user } = caller;
  const declared = declaredSession(header, request.session);
  const answerKeys = answerKeysOf(caller.answerSecret, request.answers);
  const looked = keysToLookUp(answerKeys);
  const named = declared.session === '' ? undefined : await sessionNamed(parts, caller, declared.session);
  const recalled = await parts.turns.index.recall(
    looked,
    named === undefined ? undefined : { tenant, user, session: named },
  );
  const questionKeys = questionKeysOf(caller.answerSecret, request.questions);
  const parent = likelyParent(
    { policy: model.policy, session: named, answerKeys, questionKeys },
    looked,
    recalled.turns,
  );
  const id = newTurnId();
  const session = named ?? parent?.session ?? sessionOfTurn(id);
  const turn: Turn = {
    id,
    caller,
    declared,
    group: declared.group === '' ? '' : groupOfName(parts.config.hashSecret, tenant, user, declared.group),
    answerKeys,
    questionKeys,
    hasMedia: request.hasMedia,
    parent,
    session,
    policy: model.policy,
    version: versionFor(parts, model, caller, session),
    pinned: model.kind === 'pinned',
    consent: consentOf({
      keyTrains: caller.train,
      requestHeader: header('x-backtalk-train'),
      sessionTrains: !request.followsNo && (recalled.session?.train ?? true) && (parent?.train ?? true),
    }),
    sampling: request.sampling.parameters,
    stream: request.stream,
    shown: undefined,
  };
  return { turn, model, followsNo: recalled.session?.train === false };
}

/** The id that an answer's header gave, as it is; any other name is the client's own. */
async function sessionNamed({ config, turns }: Parts, { tenant, user }: Caller, name: string): Promise<string> {
  const isOurs = turnOfSession(name) !== undefined && (await turns.index.session({ tenant, user, session: name }));
  return isOurs ? name : sessionOfName(config.hashSecret, tenant, user, name);
}

/** Also asked when an engine did not know the version that the routes had named. */
export function versionFor(parts: Parts, model: NamedModel, caller: Caller, session: string): string {
  if (model.kind === 'pinned') return model.version;
  const { hashSecret } = parts.config;
  return chooseVersion(parts.serving.routes.of(model.policy), model.policy, hashSecret, `${caller.keyId}\n${session}`);
}
