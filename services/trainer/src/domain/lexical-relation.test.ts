import { describe, expect, it } from 'vitest';

import { lexicalRelations, relateByWords } from './lexical-relation.js';

describe('how two wishes stand to each other', () => {
  it.each([
    ['Be thoughtful in your answers.', 'Be thoughtless in your answers.'],
    ['Use colourful words.', 'Use colourless words.'],
    ['Give percentages.', 'Give percentiles.'],
    ['Antworte respektvoll.', 'Antworte respektlos.'],
    ['Bundan sonra emoji kullan.', 'Bundan sonra emoji kullanma.'],
    ['Vastaa emojeilla.', 'Vastaa emojeitta.'],
    ['箇条書きを使って', '箇条書きを使わないで'],
  ])('an ending that no form of a word has tells “%s” from “%s”', (a, b) => {
    expect(relateByWords(a, b)).not.toBe('same');
    expect(relateByWords(b, a)).not.toBe('same');
  });

  it.each([
    ['Use metric units.', 'Metric units, please!'],
    ['Never use more than fifty words.', 'At most 50 words per answer.'],
    ['Answer in French.', 'Please always reply in French from now on.'],
    ['Never use emojis.', 'No emojis!'],
    ["Don't be long-winded or long.", 'Not long-winded, not long.'],
    ['Reply in at most eight words.', 'At most 8 words, always.'],
    ['Start with a summary.', 'Always start with a summary'],
    ['Answer in one sentence.', 'Just a single short sentence.'],
    ['Antworte auf Deutsch.', 'Bitte immer auf Deutsch!'],
    ["That's too formal.", 'Be casual.'],
    ['No tables.', 'Not those little tables, please.'],
    ['No tables.', "I'd like no tables."],
    ['Too little detail!', 'More detail!'],
  ])('finds the same wish in “%s” and “%s”', (a, b) => {
    expect(relateByWords(a, b)).toBe('same');
    expect(relateByWords(b, a)).toBe('same');
  });

  it.each([
    ['Use emojis.', "Don't use emojis."],
    ['Always give an example.', 'Never give an example.'],
    ['Use tables.', 'Stop using tables.'],
    ['Answer in 8 words.', 'Answer in 30 words.'],
    ['Answer in one sentence.', 'Answer in two sentences.'],
    ['Answer in French.', 'Answer in German.'],
    ['Réponds en français.', 'Antworte auf Deutsch.'],
    ['Be brief.', 'Give more detail.'],
    ['Too long!', 'Longer answers please.'],
    ['Be formal.', 'Be casual.'],
    ['Use metric units.', 'Use imperial units.'],
    ['No, use bullet points.', 'Without bullet points, please.'],
    ['Answer in one brief sentence.', 'Give a longer answer.'],
    ['Use emojis.', 'Emoji-free, please.'],
    ['Emojilerle yaz.', 'Emojisiz yaz.'],
    ['Használj emojikat.', 'Ne használj emojikat.'],
    ['Use contractions like isn’t.', 'Never use contractions.'],
    ['Utilise des émojis.', 'N’utilise plus d’émojis.'],
  ])('finds that “%s” and “%s” cannot both hold', (a, b) => {
    expect(relateByWords(a, b)).toBe('opposite');
    expect(relateByWords(b, a)).toBe('opposite');
  });

  it.each([
    ['Answer in one brief sentence.', 'Explain each step in one sentence.'],
    ['Use short sentences.', 'Give a short example.'],
    ['Call me Robin.', 'Call me Kim.'],
    ['Use fewer tables.', 'No tables.'],
    ['List pros and cons.', 'List pros and cons in a table.'],
    ['Use bullet points.', 'Use bullet points for shopping lists.'],
    ['End with a question.', 'End with a summary.'],
    ['Answer in French.', 'Explain each step in German.'],
    ["Don't answer in French.", 'Answer in German.'],
    ['Answer in one brief sentence.', 'Be brief.'],
    ['Use a formal tone.', 'Name the format.'],
    ['Please do it again.', 'Please do it again.'],
    ['At most 8 words.', 'At most 2 sentences.'],
    ['You used tables again.', 'Never use tables.'],
    ['You used tables again.', 'Use tables.'],
    ['There is no table in that. Once more.', 'Always use tables.'],
    ['Your answer has tables.', 'You left out the tables.'],
  ])('takes “%s” and “%s” for different, because it is not sure', (a, b) => {
    expect(relateByWords(a, b)).toBe('different');
    expect(relateByWords(b, a)).toBe('different');
  });

  it('relates any two wishes, whatever it was handed', async () => {
    const relate = await lexicalRelations.among([], AbortSignal.timeout(1_000));
    expect(relate('Use tables.', 'No tables!')).toBe('opposite');
  });
});
