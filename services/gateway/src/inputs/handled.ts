// Turns a handler into one that never fails: what it throws becomes an answer in OpenAI's shape, and is counted.
import type { Request, Response } from 'express';
import { forCaller, sendError } from './answer.js';
import type { Parts } from './parts.js';

export type Handler = (request: Request, response: Response) => Promise<void> | void;

export function handled({ events }: Parts, route: string, handler: Handler): Handler {
  return async (request, response) => {
    try {
      await handler(request, response);
    } catch (thrown) {
      const error = forCaller(thrown);
      events.refused(route, error);
      sendError(request, response, error);
    }
    events.answered(route, response.statusCode);
  };
}
