// GET /v1/models and GET /v1/models/{id}: what can be asked here now.
import type { Request, Response } from 'express';
import { gatewayErrors } from '../errors.js';
import { listModels, type ListedModel } from '../domain/model-list.js';
import { sendJson } from './answer.js';
import type { Parts } from './parts.js';

/** OpenAI gives each model a moment of creation; versions have none that a gateway knows. */
const created = 0;

export function models(parts: Parts, request: Request, response: Response): void {
  parts.keys.identify(request.headers.authorization);
  sendJson(response, 200, { object: 'list', data: listed(parts) });
}

export function model(parts: Parts, request: Request, response: Response): void {
  parts.keys.identify(request.headers.authorization);
  const found = listed(parts).find(({ id }) => id === request.params['id']);
  if (found === undefined) throw gatewayErrors.unknownModel({ param: 'model' });
  sendJson(response, 200, found);
}

function listed({ config, fleet }: Parts): ListedModel[] {
  return listModels(config.policies, fleet.living(), created);
}
