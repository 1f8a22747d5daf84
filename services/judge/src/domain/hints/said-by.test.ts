import { expect, it } from 'vitest';
import { isSaidBy } from './said-by.js';

it('a hint is its person’s where they said a third of its words, and not where less', () => {
  const words = 'No, shorter! One sentence would do.';
  expect(isSaidBy('Answer in one short sentence.', words)).toBe(true);
  expect(isSaidBy('Sentence: curl evil example', words)).toBe(false);
  expect(isSaidBy('Sentence: curl example', words)).toBe(true);
  expect(isSaidBy('Please answer the user.', words)).toBe(false);
});

it('a hint of nothing but small words is its person’s where they said half of them', () => {
  expect(isSaidBy('Utilise « tu », pas « vous ».', 'Utilise tu et pas vous avec moi')).toBe(true);
  expect(isSaidBy('Use "du", not "Sie".', 'Sag bitte du zu mir, nicht Sie')).toBe(true);
  expect(isSaidBy('Use "du", not "Sie".', 'No, shorter! One sentence would do.')).toBe(false);
});

it('a word that is small in another language counts in the hint’s own', () => {
  expect(isSaidBy('Tell about the war.', 'I would rather hear about the war.')).toBe(true);
  expect(isSaidBy('Tell about the war.', 'Das war nichts, bitte anders.')).toBe(true);
  expect(isSaidBy('Sag, wie es war.', 'Tell me about the war.')).toBe(false);
});

it('a hint in a script without spaces is its person’s by pairs of characters', () => {
  const words = '不对，我要的是公里，不是英里。距离请用公里。';
  expect(isSaidBy('请用公里给出所有距离。', words)).toBe(true);
  expect(isSaidBy('请用法语回答。', words)).toBe(false);
  expect(isSaidBy('距離はキロメートルで書いてください。', '違います。キロメートルで書いて。')).toBe(true);
});

it.each([
  ['Khmer', 'សូមប្រើគីឡូម៉ែត្រសម្រាប់ចម្ងាយ។', 'សូមឆ្លើយជាភាសាបារាំង។', 'ខុសហើយ ខ្ញុំចង់បានជាគីឡូម៉ែត្រ មិនមែនជាម៉ាយទេ។'],
  ['Lao', 'ກະລຸນາຕອບເປັນກິໂລແມັດ', 'ກະລຸນາຕອບເປັນພາສາຝຣັ່ງ', 'ຜິດແລ້ວ ຂ້ອຍຕ້ອງການກິໂລແມັດ ບໍ່ແມ່ນໄມ'],
  ['Burmese', 'အကွာအဝေးကိုကီလိုမီတာနဲ့ဖြေပါ။', 'ပြင်သစ်ဘာသာစကားဖြင့်ရေးပါ။', 'မှားနေပါတယ်။ ကီလိုမီတာနဲ့ပြောပါ၊ မိုင်နဲ့မဟုတ်ဘူး။'],
])(
  'a hint in %s is its person’s where they said it, and not where they said something else',
  (_name, hint, other, words) => {
    expect(isSaidBy(hint, words)).toBe(true);
    expect(isSaidBy(other, words)).toBe(false);
  },
);

it.each([
  [
    'German',
    'Das war leider nicht so gut, bitte noch einmal.',
    'Sag bitte nicht, dass das Konto der Firma so gut war.',
  ],
  [
    'French',
    'Ce n’est pas la bonne réponse, il faut que tu la refasses.',
    'Il faut que la caisse ne soit pas pour la ville.',
  ],
  [
    'Spanish',
    'No es lo que te he pedido, por favor otra vez.',
    'Por favor, no digas lo que es el precio de la tienda.',
  ],
  ['Italian', 'Non è quello che ti ho chiesto, per favore.', 'Per favore non dire che il prezzo è alto.'],
  ['Portuguese', 'Não é isso que eu queria, por favor.', 'Por favor, não diga que isso é da loja.'],
  ['Dutch', 'Dit is niet wat ik van je wilde, alsjeblieft.', 'Dit is niet van de bank, zeg dat alsjeblieft.'],
  ['Swedish', 'Det är inte vad jag ville ha av dig.', 'Säg att det är inte av plast.'],
  ['Polish', 'To nie jest to, o co mi chodzi, proszę.', 'Proszę, to nie jest dla banku.'],
  ['Russian', 'Это не то, что мне нужно, пожалуйста.', 'Пожалуйста, скажи, что это не для банка.'],
  ['Turkish', 'Bu istediğim şey değil, lütfen bir daha.', 'Lütfen bu banka için bir şey söyleme.'],
  ['Chinese', '请不要这样回答,这个不对。', '请不要使用这个回答。'],
])('a hint in %s that shares no more than small words is not its person’s', (_language, words, hint) => {
  expect(isSaidBy(hint, words)).toBe(false);
});

it.each([
  ['German', 'Das ist zu lang, bitte nur ein Satz.', 'Antworte bitte in nur einem Satz.'],
  ['French', 'Trop long, une seule phrase s’il te plaît.', 'Réponds en une seule phrase.'],
  ['Spanish', 'Demasiado largo, quiero una sola frase.', 'Responde con una sola frase.'],
  ['Russian', 'Слишком длинно, нужно одно предложение.', 'Отвечай одним предложением.'],
  ['Chinese', '太长了，请简短一点。', '请简短一点回答。'],
  ['letters with marks of their own', 'Trop long, et pas fran\u00e7ais.', 'Franc\u0327ais.'],
])('a hint in %s that says what its person said is theirs', (_language, words, hint) => {
  expect(isSaidBy(hint, words)).toBe(true);
});
