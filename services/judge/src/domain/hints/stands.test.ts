import { describe, expect, it } from 'vitest';
import { hearing } from '../../testing/hearing.js';
import { sentencesOf } from './stands.js';

const { standing } = hearing;
const standsIn = (words: string) => standing(words).length > 0;

describe('words that hold beyond their turn', () => {
  it.each([
    'From now on use metric units please, thanks!',
    'Always give a source.',
    'Please never call me sir.',
    'No. You should always show the working.',
    'Could you add the date every time?',
    'Could you please put the date on top every time?',
    'Stop apologising.',
    'Just so you know for later, I prefer short mails.',
    'You can skip the introduction whenever I ask for code.',
    'Treat short paragraphs as the default.',
    'No more tables, please.',
    'In future, leave the greeting out.',
    'Next time start with the result.',
    'I want you to always name the file.',
    'Ab jetzt bitte auf Deutsch.',
    'Antworte immer in ganzen Sätzen.',
    'Bitte nie Abkürzungen verwenden.',
    'Hör auf, dich zu entschuldigen.',
    'Désormais, réponds en français.',
    "Ne mets jamais d'anglicismes.",
    'À partir de maintenant, tutoie-moi.',
    'De ahora en adelante usa euros.',
    'Responde siempre en español.',
    "D'ora in poi usa i gradi Celsius.",
    'Rispondi sempre in italiano, per favore.',
    'Vanaf nu graag zonder opsommingen.',
    'Gebruik altijd komma’s.',
    'A partir de agora responde em português.',
    'Usa sempre quilómetros.',
    '从现在起请用中文回答。',
    '以后不要用表格。',
    'これからは日本語で答えてください。',
    '앞으로는 존댓말로 답해 주세요.',
    'Från och med nu vill jag ha korta svar.',
    'Отныне отвечай по-русски.',
    'Od teraz pisz krótko.',
    'Bundan sonra kısa yaz.',
    'Từ giờ trở đi hãy trả lời ngắn gọn.',
    'من الآن فصاعدًا اكتب باختصار.',
    'अब से हिंदी में जवाब दो।',
    'ต่อจากนี้ตอบสั้นๆ',
    'ຈາກນີ້ໄປຕອບສັ້ນໆ',
    'ចាប់ពីពេលនេះ សូមឆ្លើយខ្លីៗ។',
    'အခုကစပြီး တိုတိုဖြေပါ။',
  ])('a wish that stands is heard in %j', (words) => {
    expect(standsIn(words)).toBe(true);
  });

  it.each([
    'Too dense.',
    'Make this one shorter, please.',
    'As a table, please.',
    'Could you translate that into Danish?',
    'The capital is Canberra.',
    'It always rains in Bergen.',
    'I have never been to Rome.',
    'Never mind.',
    'Always a pleasure!',
    'Thanks, as always.',
    'What will cars look like in the future?',
    'Every time I visit Oslo it snows.',
    'See you next time!',
    'Why do cats always land on their feet?',
    'I hate this bot so much',
    'The rain will stop falling.',
    'Ich war noch nie in Rom.',
    'Danke wie immer.',
    'Das ist immer noch falsch.',
    'Il pleut toujours ici.',
    'Nunca he estado allí, gracias.',
    'È sempre bello.',
    'Het regent altijd in Bergen.',
    '三天以后我去北京。',
    'いつもありがとう。',
    'Это неправильно.',
    'ขอบคุณมาก',
    'शुक्रिया, यह अच्छा है।',
  ])('no wish that stands is heard in %j', (words) => {
    expect(standsIn(words)).toBe(false);
  });

  it('the standing sentences are those that say so', () => {
    expect(standing('Great, thanks. From now on use metric units. What else is there?')).toEqual([
      'From now on use metric units.',
    ]);
  });

  it.each([
    ['Great, thanks! From now on call me Dr. Watson.', 'From now on call me Dr. Watson.'],
    ['Too vague. Always give prices in U.S. Dollars.', 'Always give prices in U.S. Dollars.'],
    ['Danke. Ab jetzt immer z. B. Tabellen.', 'Ab jetzt immer z. B. Tabellen.'],
    ['Gracias. De ahora en adelante llámame Sra. Ruiz.', 'De ahora en adelante llámame Sra. Ruiz.'],
    ['thanks. from now on be brief. what is tea?', 'from now on be brief.'],
    ['No. Always say no.', 'Always say no.'],
  ])('a dot behind what is written short ends no sentence of %j', (said, sentence) => {
    expect(standing(said)).toEqual([sentence]);
  });

  it.each([
    [
      'In one sentence, please. Just like that from now on.',
      ['In one sentence, please.', 'Just like that from now on.'],
    ],
    ['Antworte in einem Satz. Ab jetzt immer so, bitte.', ['Antworte in einem Satz.', 'Ab jetzt immer so, bitte.']],
    [
      'What is tea? From now on in one line. Do it this way every time.',
      ['From now on in one line.', 'Do it this way every time.'],
    ],
    ['Perfect. Do it exactly like that from now on.', []],
    ['Wonderful answer! Do it like that from now on.', []],
    ["Don't do that again.", []],
    ['Ab jetzt bitte du, nicht Sie.', ['Ab jetzt bitte du, nicht Sie.']],
  ])('what only points at what was said before goes with it, or is no wish: %j', (said, sentences) => {
    expect(standing(said)).toEqual(sentences);
  });

  it('a list is one wish with what introduces it', () => {
    const list = 'Thanks. From now on:\n- Answer briefly.\n- use metric units\n\n- no tables\nWhat is tea?';
    expect(standing(list)).toEqual(['From now on: Answer briefly; use metric units; no tables']);
    const long = Array.from({ length: 20 }, (_, at) => `- use metric units, please ${String(at)}`).join('\n');
    const [wish = '', ...rest] = standing(`From now on:\n${long}`);
    expect(wish).toMatch(/^From now on: use metric units, please 0; .* please \d$/);
    expect([wish.length <= 200, rest]).toEqual([true, []]);
  });

  it('space at the end of a line is no sentence', () => {
    expect(sentencesOf('Thanks. \nAnd now? ')).toEqual(['Thanks.', 'And now?']);
  });

  it('reads head and tail of words that are longer than a person writes', () => {
    const wish = 'From now on use metric units.';
    const essay = 'x'.repeat(50_000);
    expect(standing(`${wish}\n${essay}\n${wish}\n${essay}\n${wish}`)).toEqual([wish, wish]);
  });
});
