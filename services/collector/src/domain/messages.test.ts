import { describe, expect, it } from 'vitest';
import { isSideRequest } from './messages.js';

const isSide = (text: string, declared = '') =>
  isSideRequest(declared, [
    { role: 'user', texts: [text], toolCallId: '', toolName: '', isError: false, toolCalls: [] },
  ]);

describe('what a client asks for itself', () => {
  it.each([
    'Create a summary of the conversation above:',
    'Extend the summary by taking into account the new messages above:',
    'Your task is to create a detailed summary of the conversation so far, paying close attention to the requests.',
    'CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\nYour task is to create a detailed summary of the conversation so far.',
    '[SUGGESTION MODE: Suggest what the user might naturally type next into Claude Code.]\n\nFIRST: Look at the messages.',
    'The user stepped away and is coming back. Recap in under 40 words.',
    'Describe your most recent action in 3-5 words using present tense.',
    'You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary for another LLM.',
    'Provide a detailed prompt for continuing our conversation above. Focus on what is next.',
    'Generate a concise, 3-5 word title for this chat.',
    '### Task:\nGenerate a concise title with an emoji summarizing the chat history.',
    'Please create a short title for our conversation',
    'Create a concise title for the conversation between the user and the assistant.',
    'Generate a short title for this conversation and reply with only the title.',
  ])('a client asks for itself: %s', (text) => expect(isSide(text)).toBe(true));

  it.each([
    'Please generate a title for the chat widget on my page.',
    'Write a short title for the discussion section of my paper.',
    'Write a summary of this article in three sentences.',
    'Create a summary of the messages that my colleague sent me.',
    'Summarize the conversation between Romeo and Juliet in act two.',
  ])('a person asks: %s', (text) => expect(isSide(text)).toBe(false));

  it('what a header says decides', () => {
    expect([isSide('Why?', 'title'), isSide('Generate a title for this chat.', 'main')]).toEqual([true, false]);
  });
});
