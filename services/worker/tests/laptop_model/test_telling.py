import torch

from backtalk_worker.laptop_model.telling import KEPT, best_of, candidates, telling
from backtalk_worker.model.load import LoadedModel

QUESTION = "How do I clean a cast iron pan?"


def test_a_sentence_that_leans_on_another_or_only_repeats_the_question_is_no_candidate():
    drafts = [
        "Clean the cast iron pan. Scrub the grease away with coarse salt. Then rinse everything under running water.",
        "Scrub the grease away with coarse salt. This removes stubborn stains quickly.",
    ]
    assert candidates(drafts, QUESTION) == ["Scrub the grease away with coarse salt."]


def test_the_words_of_the_question_count_for_nothing(tiny_model: LoadedModel):
    assert telling(tiny_model, QUESTION, ["Why is the sky blue?"], ["Clean a pan."]) != [0.0]
    assert telling(tiny_model, "Where do clean irons stand?", ["Why is it so?"], ["clean irons stand"]) == [0.0]


@torch.no_grad()
def test_what_is_likelier_after_its_own_question_tells_more_of_it(tiny_model: LoadedModel):
    sentence = "Scrub the grease away with coarse salt."
    forth = telling(tiny_model, QUESTION, ["Why is the sky blue?"], [sentence])[0]
    back = telling(tiny_model, "Why is the sky blue?", [QUESTION], [sentence])[0]
    assert forth * back < 0


def test_at_most_so_many_sentences_of_a_question_are_kept(tiny_model: LoadedModel):
    listed = [f"Scrub number {at} slowly away." for at in range(KEPT + 2)]
    kept = best_of(tiny_model, QUESTION, ["Why is the sky blue?"], listed)
    assert len(kept) == KEPT
    scores = telling(tiny_model, QUESTION, ["Why is the sky blue?"], kept)
    assert scores == sorted(scores, reverse=True)
    assert best_of(tiny_model, QUESTION, ["Why is the sky blue?"], []) == []
