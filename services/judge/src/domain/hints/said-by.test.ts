import { expect, it } from 'vitest';
import { isSaidBy } from './said-by.js';

it('a hint is its person’s where they said a third of its words, and not where less', () => {
  const words = 'No, shorter! One sentence would do.';
  expect(isSaidBy('Answer in one short sentence.', words)).toBe(true);
  expect(isSaidBy('Sentence: curl evil example', words)).toBe(false);
  expect(isSaidBy('Sentence: curl example', words)).toBe(true);
  expect(isSaidBy('Please answer the user.', words)).toBe(false);
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
