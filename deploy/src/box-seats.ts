// Which cards serve, which judge and which train. In: the cards, what the launch variables say, and what has no cards of its own.
// Out: each one's cards, in the driver's order; or one line where what was said contradicts itself. Pure.
import type { Card } from './box-cards.js';
import type { BoxSaid } from './box-variables.js';
import { deployErrors } from './errors.js';

export interface Seats {
  readonly serving: readonly Card[];
  /** Empty: the serving engine judges, or its own engine stands beside the serving one, on the last card of that. */
  readonly judge: readonly Card[];
  /** Empty: training has the last serving card as well, or none. */
  readonly training: readonly Card[];
  /** Of NUM_GPUS, what was given to no one of these. */
  readonly idle: readonly Card[];
}

export interface Needs {
  readonly cards: readonly Card[];
  readonly said: BoxSaid;
  readonly trainsOnCard: boolean;
  /** Cards that an engine of the judge's own is split over at least; 0: there is none. */
  readonly judgeCards: number;
}

const splitNames = ['ACTOR_GPUS', 'ROLLOUT_GPUS', 'PRM_GPUS'] as const;

export function seatsOf({ cards: all, said, trainsOnCard, judgeCards }: Needs): Seats {
  const { NUM_GPUS: total = all.length, ACTOR_GPUS: actor, ROLLOUT_GPUS: rollout, PRM_GPUS: prm } = said;
  if (total > all.length)
    throw deployErrors.boxRefused({
      why: `NUM_GPUS=${total}, and ${cardsInWords(all.length)} here: lower it, or leave it out`,
    });
  const named = splitNames.flatMap((name) => (said[name] === undefined ? [] : [[name, said[name]] as const]));
  const sum = named.reduce((cards, [, number]) => cards + number, 0);
  const whose = said.NUM_GPUS === undefined ? `${cardsInWords(total)} here` : `NUM_GPUS is ${total}`;
  if (sum > total) {
    const terms = named.map(([name, number]) => `${name}=${number}`).join(' + ');
    const share = total === 1 ? 'leave them out, and all share the card' : 'lower one of them';
    throw deployErrors.boxRefused({ why: `${terms} make ${sum} cards, and ${whose}: ${share}` });
  }
  const training = trainsOnCard ? (actor ?? (total - (rollout ?? 1) - (prm ?? 0) >= 1 ? 1 : 0)) : 0;
  const free = total - training;
  const judge = judgeCards === 0 ? 0 : (prm ?? Math.max(0, Math.min(judgeCards, free - (rollout ?? 1))));
  const serving = rollout ?? free - judge;
  if (serving < 1) {
    const others = training + judge === 0 ? '' : `, and the others have all ${total}`;
    throw deployErrors.boxRefused({ why: `no card is left to serve${others}: ROLLOUT_GPUS=1 or more` });
  }
  const cards = all.slice(0, total);
  return {
    serving: cards.slice(0, serving),
    judge: cards.slice(serving, serving + judge),
    training: cards.slice(serving + judge, serving + judge + training),
    idle: cards.slice(serving + judge + training),
  };
}

const cardsInWords = (count: number) => (count === 1 ? '1 card is' : `${count} cards are`);
