import pytest
import torch

from backtalk_worker.laptop_model.telling import KEPT, Telling, best_of, candidates, telling
from backtalk_worker.model.load import LoadedModel

QUESTION = "How do I clean a cast iron pan?"


def test_a_sentence_that_leans_on_another_or_only_repeats_the_question_is_no_candidate():
    drafts = [
        "Clean the cast iron pan. Scrub the grease away with coarse salt. Then rinse everything under running water.",
        "Scrub the grease away with coarse salt. This removes stubborn stains quickly.",
    ]
    assert candidates(drafts, QUESTION) == ["Scrub the grease away with coarse salt."]


def test_the_words_of_the_question_count_for_nothing(tiny_model: LoadedModel):
    nothing = Telling(0.0, 0.0)
    assert telling(tiny_model, QUESTION, ["Why is the sky blue?"], ["Clean a pan."]) != [nothing]
    assert telling(tiny_model, "Where do clean irons stand?", ["Why is it so?"], ["clean irons stand"]) == [nothing]


@torch.no_grad()
def test_what_an_answer_tells_is_by_how_many_nats_it_is_likelier(tiny_model: LoadedModel):
    sentence, other = "Scrub grease away with salt.", "Why is the sky blue?"
    answer = tiny_model.encode(sentence)

    def nats_after(question: str) -> float:
        prompt = tiny_model.render_chat([{"role": "user", "content": question}])
        logits = tiny_model.network(torch.tensor([[*prompt, *answer]])).logits[0, len(prompt) - 1 : -1].float()
        return float(logits.log_softmax(-1).gather(1, torch.tensor(answer)[:, None]).sum())

    [told] = telling(tiny_model, QUESTION, [other], [sentence])
    assert told.nats == pytest.approx(nats_after(QUESTION) - nats_after(other), abs=1e-3)
    assert told.a_token == pytest.approx(told.nats / len(answer))


@torch.no_grad()
def test_what_is_likelier_after_its_own_question_tells_more_of_it(tiny_model: LoadedModel):
    sentence = "Scrub the grease away with coarse salt."
    forth = telling(tiny_model, QUESTION, ["Why is the sky blue?"], [sentence])[0]
    back = telling(tiny_model, "Why is the sky blue?", [QUESTION], [sentence])[0]
    assert forth.nats * back.nats < 0 and forth.a_token * back.a_token < 0


def test_at_most_so_many_sentences_of_a_question_are_kept(tiny_model: LoadedModel):
    listed = [f"Scrub number {at} slowly away." for at in range(KEPT + 2)]
    kept = best_of(tiny_model, QUESTION, ["Why is the sky blue?"], listed)
    assert len(kept) == KEPT
    scores = [one.a_token for one in telling(tiny_model, QUESTION, ["Why is the sky blue?"], kept)]
    assert scores == sorted(scores, reverse=True)
    assert best_of(tiny_model, QUESTION, ["Why is the sky blue?"], []) == []
