// The HTTP API: which path asks for what, and whether it may be asked at all where there are no keys. What a handler
// throws becomes an answer in the shape of its API, and is counted.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { PageFile } from '@backtalk/console/files';
import express, { type NextFunction, type Request, type Response } from 'express';
import { gatewayErrors } from '../errors.js';
import { openPolicies } from '../domain/caller.js';
import { foreignSign } from '../domain/foreign-request.js';
import { listModels } from '../domain/model-list.js';
import { admitted } from './admit.js';
import { forClient, messagesPath, nameRequest, sendError, sendJson } from './answer.js';
import { answering, answerRoutes } from './chat.js';
import { countTokens } from './count-tokens.js';
import { feedback } from './feedback.js';
import { addLesson, changeLesson, listLessons, retireLesson, showLesson } from './lessons.js';
import { servePage } from './page.js';
import type { Parts } from './parts.js';
import { endSession, giveOutcome } from './sessions.js';
import { listVersions, showVersion } from './versions.js';

const answerPaths = {
  '/v1/chat/completions': 'chat',
  '/v1/responses': 'responses',
  [messagesPath]: 'messages',
} as const;

type Handler<Q, S> = (parts: Parts, request: Q, response: S) => Promise<void> | void;
type Method = 'get' | 'post' | 'patch' | 'delete';
type Handlers = Readonly<Partial<Record<Method, Handler<Request, Response>>>>;

/** A web page must not speak for the machine whose browser shows it. With keys, the key decides. */
function refuseForeign({ access }: Parts, { headers }: IncomingMessage): void {
  const sign = access.keys.isKeyless ? foreignSign(headers) : undefined;
  if (sign !== undefined) throw gatewayErrors.foreignRequest({ sign });
}

export function createRoutes(parts: Parts, page: readonly PageFile[]): RequestListener {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  const handled =
    <Q extends IncomingMessage, S extends ServerResponse>(name: string, handler: Handler<Q, S>) =>
    async (request: Q, response: S): Promise<void> => {
      nameRequest(request, response);
      try {
        refuseForeign(parts, request);
        await handler(parts, request, response);
      } catch (thrown) {
        parts.events.refused(name, forClient(thrown));
        sendError(request, response, thrown);
      }
      parts.events.answered(name, response.statusCode);
    };
  const routes = (path: string, name: string, { get, post, patch, delete: remove }: Handlers) => {
    const given = Object.entries({ get, post, patch, delete: remove }).filter(([, handler]) => handler !== undefined);
    const allow = given.map(([method]) => method.toUpperCase()).join(', ');
    if (get !== undefined) app.get(path, handled(name, get));
    if (post !== undefined) app.post(path, handled(name, post));
    if (patch !== undefined) app.patch(path, handled(name, patch));
    if (remove !== undefined) app.delete(path, handled(name, remove));
    app.all(
      path,
      handled(name, () => Promise.reject(gatewayErrors.wrongMethod({ allow }))),
    );
  };
  const route = (method: Method, path: string, name: string, handler: Handler<Request, Response>) =>
    routes(path, name, { [method]: handler });
  for (const [path, api] of Object.entries(answerPaths)) route('post', path, answerRoutes[api], answering(api));
  route('post', `${messagesPath}/count_tokens`, 'count_tokens', countTokens);
  route('get', '/v1/models', 'models', (given, request, response) =>
    admitted(given, request, response, ({ grant }) => {
      const data = listModels(openPolicies(given.config.policies, grant), given.serving.fleet.living());
      sendJson(response, 200, { object: 'list', data });
    }),
  );
  route('get', '/v1/models/:id', 'model', (given, request, response) =>
    admitted(given, request, response, ({ grant }) => {
      const models = listModels(openPolicies(given.config.policies, grant), given.serving.fleet.living());
      const found = models.find(({ id }) => id === request.params['id']);
      if (found === undefined) throw gatewayErrors.unknownModel({ param: 'model' });
      sendJson(response, 200, found);
    }),
  );
  route('post', '/v1/feedback', 'feedback', feedback);
  route('delete', '/v1/sessions/:id', 'sessions', endSession);
  route('post', '/v1/sessions/:id/outcome', 'outcome', giveOutcome);
  routes('/v1/lessons', 'lessons', { get: listLessons, post: addLesson });
  routes('/v1/lessons/:id', 'lesson', { get: showLesson, patch: changeLesson, delete: retireLesson });
  route('get', '/v1/versions', 'versions', listVersions);
  route('get', '/v1/versions/:id', 'version', showVersion);
  servePage(app, parts, page);
  app.use(handled('unknown', () => Promise.reject(gatewayErrors.unknownRoute())));
  // Addresses that cannot be decoded come here, and what a handler above failed to answer: no failure ends the process.
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    sendError(request, response, error instanceof URIError ? gatewayErrors.unknownRoute() : error);
  });
  const answers = new Map(
    Object.entries(answerPaths).map(([path, api]) => [path, handled(answerRoutes[api], answering(api))]),
  );
  return busyFirst(answers, app);
}

type Answering = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** Express takes 90 µs of CPU time to find a route, and a whole answer costs 500: the busy paths are found without it. */
function busyFirst(answers: ReadonlyMap<string, Answering>, others: RequestListener): RequestListener {
  return (request, response) => {
    const [path = ''] = (request.url ?? '').split('?', 1);
    const answer = request.method === 'POST' ? answers.get(path) : undefined;
    if (answer === undefined) others(request, response);
    else
      answer(request, response)
        .catch((error: unknown) => sendError(request, response, error))
        // A failure of the failure's answer: nothing is left but to close.
        .catch(() => response.destroy());
  };
}
