import math

import pytest
import torch

from backtalk_worker.engine.domain.request import LogprobsMode, Sampling
from backtalk_worker.engine.domain.sampling import Draw, DrawRequest, draw, score_prompt

PROBABILITIES = [0.5, 0.3, 0.15, 0.05]
LOGITS = torch.tensor([PROBABILITIES]).log() + 3.0


def drawn(
    sampling: Sampling,
    uniform: float = 0.0,
    banned: tuple[int, ...] = (),
    mode: LogprobsMode = "processed_logprobs",
) -> Draw:
    found = draw(LOGITS, [DrawRequest(sampling, uniform, banned)], mode)[0]
    assert found is not None
    return found


@pytest.mark.parametrize("mode", ["processed_logprobs", "raw_logprobs"])
@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_nothing_is_drawn_from_logits_that_are_not_finite(mode: LogprobsMode, broken: float):
    logits = LOGITS.repeat(3, 1)
    logits[0, 2] = broken
    logits[1, 2] = -math.inf
    asked = [DrawRequest(Sampling(max_tokens=1, top_logprobs=4), 0.5)] * 3
    found = draw(logits, asked, mode)
    assert found[0] is None
    assert found[1] is not None
    assert found[2] == draw(LOGITS, asked[:1], mode)[0]


def test_the_uniform_number_picks_by_cumulative_probability():
    sampling = Sampling(max_tokens=1)
    assert [drawn(sampling, u).token for u in (0.0, 0.49, 0.51, 0.79, 0.81, 0.999999)] == [0, 0, 1, 1, 2, 3]


def test_draws_follow_the_distribution_at_the_asked_temperature():
    sampling = Sampling(max_tokens=1, temperature=0.5)
    weights = [p**2 for p in PROBABILITIES]
    counts = [0] * 4
    for i in range(2000):
        counts[drawn(sampling, (i + 0.5) / 2000).token] += 1
    assert all(abs(c / 2000 - w / sum(weights)) < 1e-3 for c, w in zip(counts, weights, strict=True))


def test_processed_logprobs_are_those_of_the_distribution_drawn_from():
    sampling = Sampling(max_tokens=1, temperature=0.5, top_logprobs=0)
    scores = drawn(sampling).scores
    assert scores is not None
    assert math.isclose(math.exp(scores.chosen.logprob), 0.25 / sum(p**2 for p in PROBABILITIES), rel_tol=1e-5)


def test_raw_logprobs_are_the_models_own():
    sampling = Sampling(max_tokens=1, temperature=0.5, top_k=1, top_logprobs=0)
    scores = drawn(sampling, mode="raw_logprobs").scores
    assert scores is not None
    assert math.isclose(math.exp(scores.chosen.logprob), 0.5, rel_tol=1e-5)


def test_greedy_takes_the_likeliest_and_reports_temperature_one():
    scores = drawn(Sampling(max_tokens=1, temperature=0.0, top_logprobs=1), uniform=0.9).scores
    assert scores is not None
    assert (scores.chosen.token, round(math.exp(scores.chosen.logprob), 4)) == (0, 0.5)


def test_cuts_exclude_the_unlikely_and_keep_at_least_one():
    last = 0.999999
    assert drawn(Sampling(max_tokens=1, top_k=2), last).token == 1
    assert drawn(Sampling(max_tokens=1, top_p=0.6), last).token == 1
    assert drawn(Sampling(max_tokens=1, top_p=1e-9), last).token == 0
    assert drawn(Sampling(max_tokens=1, min_p=0.29), last).token == 2
    assert drawn(Sampling(max_tokens=1, allowed_ids=(2,)), 0.1).token == 2


def test_banned_ids_are_not_drawn():
    assert drawn(Sampling(max_tokens=1, temperature=0.0), banned=(0, 1)).token == 2


def test_listed_ids_are_scored_in_their_order_beside_the_drawn_one():
    scores = drawn(Sampling(max_tokens=1, temperature=0.0, top_logprobs=0, logprob_ids=(3, 0, 1))).scores
    assert scores is not None
    assert [s.token for s in scores.others] == [3, 1]
    assert math.isclose(math.exp(scores.others[0].logprob), 0.05, rel_tol=1e-5)


def test_a_row_is_drawn_the_same_whatever_stands_beside_it():
    torch.manual_seed(0)
    logits = torch.randn(5, 1000)
    requests = [DrawRequest(Sampling(max_tokens=1, temperature=0.1 + i, top_logprobs=2), i / 5) for i in range(5)]
    together = draw(logits, requests, "processed_logprobs")
    alone = [draw(logits[i : i + 1], [requests[i]], "processed_logprobs")[0] for i in range(5)]
    assert together == alone


def test_prompt_scores_carry_the_rank_and_the_likeliest_others():
    scores = score_prompt(LOGITS, [2], 2)[0]
    assert (scores.chosen.token, scores.chosen.rank) == (2, 3)
    assert [(s.token, s.rank) for s in scores.others] == [(0, 1), (1, 2)]
