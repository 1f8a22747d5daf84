// Names for new things. They sort by the time of their making (UUID version 7) and hold no dash, colon or dot, so
// that they are valid broker subject tokens and job ids.
import { v7 } from 'uuid';

export function newTurnId(): string {
  return `turn_${newId()}`;
}

export function newSessionId(): string {
  return `session_${newId()}`;
}

export function newId(): string {
  return v7().replaceAll('-', '');
}
