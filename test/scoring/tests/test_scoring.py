"""The scorer's definitions, its comparison rows, and its process."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from scoring.answer import Answer
from scoring.embedding import Embedder
from scoring.one_answer import is_echo, is_empty, is_looping, without_copied_words
from scoring.protocol import answer_line
from scoring.rows import first_sentences, shuffled
from scoring.rule import obeys_by
from scoring.score import mean_scores, score_answers

FACTS = {
    "How do I boil an egg?": "Put it into hot water for eight minutes.",
    "Why do birds sing?": "They call to mates and defend a territory.",
    "What is the sun made of?": "Mostly hydrogen and helium gas.",
    "How do I get rid of ants?": "Keep food sealed and put out bait traps.",
    "What does a lawyer do?": "They advise clients and argue cases in court.",
    "How do boats float?": "The water they push aside weighs as much as they do.",
}


SHORT = {"violates_if": [{"op": "cut"}, {"op": "words_under", "min": 3}, {"op": "words_over", "max": 25}]}
SHORT_RULE = obeys_by(SHORT)


@pytest.fixture(scope="module")
def embedder():
    torch.set_num_threads(1)
    return Embedder()


def told(question="Why?", text="Because it is so.", ended=True):
    return Answer(question, text, ended)


@pytest.mark.parametrize(
    ("text", "ended", "expected"),
    [
        ("Because it is.", True, True),
        ("Because it is.", False, False),
        ("No idea.", True, False),
        ("word " * 25, True, True),
        ("word " * 26, True, False),
    ],
)
def test_an_answer_obeys_when_it_ends_by_itself_with_3_to_25_words(text, ended, expected):
    assert obeys_by(SHORT)(told(text=text, ended=ended)) is expected


@pytest.mark.parametrize(
    ("violation", "text", "expected"),
    [
        ({"op": "matches", "pattern": "[A-Z]"}, " no capitals here ", True),
        ({"op": "matches", "pattern": "[a-z]", "flags": "i"}, "ALL OF THEM", False),
        ({"op": "not_matches", "pattern": r"\?$"}, "And you?\n", True),
        ({"op": "not_matches", "pattern": "^b.*d$", "flags": "ms"}, "a\nb\nc d", True),
        ({"op": "not_matches", "pattern": r"\?$"}, "And you.", False),
    ],
)
def test_a_wish_is_violated_by_what_its_rule_says(violation, text, expected):
    assert obeys_by({"violates_if": [violation]})(told(text=text)) is expected


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"^\w+$", "café", False),
        (r"^[\w']+$", "café", False),
        (r"^\W$", "é", True),
        (r"^\d$", "٣", False),
        (r"caf\b", "café", True),
        (r"a\sb", "a\u00a0b", True),
        (r"É", "é", True),
        (r"^\w\d\\w\[\w\]$", r"a1\w[b]", True),
    ],
)
def test_a_pattern_means_what_it_means_to_the_simulated_user(pattern, text, found):
    obeys = obeys_by({"violates_if": [{"op": "matches", "pattern": pattern, "flags": "iu"}]})
    assert obeys(told(text=text)) is not found


@pytest.mark.parametrize("pattern", [r"\p{L}", r"\u{1F600}", r"(?<name>a)"])
def test_a_rule_that_python_cannot_read_is_refused_when_it_is_checked(embedder, pattern):
    rule = {"violates_if": [{"op": "matches", "pattern": pattern, "flags": "u"}]}
    answered = json.loads(answer_line(json.dumps({"op": "check", "rule": rule}), embedder))
    assert answered["error"]["code"] == "request_invalid"
    assert "rule.violates_if.0.pattern is no regular expression to Python" in answered["error"]["message"]
    read = json.loads(answer_line(json.dumps({"op": "check", "rule": SHORT}), embedder))
    assert read == {"id": None, "groups": {}}


@pytest.mark.parametrize(
    ("violations", "words"),
    [
        ([], "violates_if must be"),
        ([{"op": "sings"}], "violates_if.0 is no operation"),
        ([{"op": "cut"}, {"op": "matches", "pattern": "("}], "violates_if.1.pattern"),
        ([{"op": "matches", "pattern": "a", "flags": "g"}], "violates_if.0.flags"),
    ],
)
def test_a_broken_rule_is_named(violations, words):
    with pytest.raises(ValueError, match=words):
        obeys_by({"violates_if": violations})


def test_empty_is_under_three_words():
    assert is_empty("") and is_empty("no idea")
    assert not is_empty("I don't know")


def test_looping_is_four_words_in_a_row_three_times():
    assert is_looping("it is what it is and it is what it was and it is what it does")
    assert not is_looping("it is what it is and it is what it was")


def test_an_echo_says_little_of_its_own():
    assert is_echo(told("How do I boil an egg?", "You boil an egg by boiling the egg."))
    assert is_echo(told("Why?", "It is what it is."))
    assert not is_echo(told("How do I boil an egg?", "Put it into hot water for eight minutes."))


def test_copied_words_are_removed_by_stem_and_a_dot_is_left_of_nothing():
    assert without_copied_words(told("How do I clean windows?", "Window cleaning: water, salt.")) == "water, salt."
    assert without_copied_words(told("How do I boil water?", "Boil water!")) == "."


def test_the_own_question_ranks_first_for_a_true_answer_and_not_for_another_ones(embedder):
    answers = [told(question, text) for question, text in FACTS.items()]
    right = mean_scores(score_answers(answers, SHORT_RULE, embedder))
    wrong = mean_scores(score_answers(shuffled(answers, seed=1), SHORT_RULE, embedder))
    assert right["hit"] >= 0.8
    assert wrong["hit"] == 0
    assert right["headline"] == right["hit"] and right["obeys"] == 1
    assert right["relevance"] > wrong["relevance"]


def test_headline_needs_both(embedder):
    answers = [told(question, text, ended=False) for question, text in FACTS.items()]
    scores = score_answers(answers, SHORT_RULE, embedder)
    assert any(score.hit for score in scores)
    assert not any(score.headline for score in scores)


def test_a_question_competes_within_its_block_of_32_only(embedder):
    filler = [told(f"What is item number {n}?", "Something else entirely.") for n in range(32)]
    last = told("What is item number 3, again?", "Something else entirely.")
    twin = [*filler, last]
    assert score_answers(twin, SHORT_RULE, embedder)[-1].hit


def test_the_same_words_for_two_questions_are_near_identical(embedder):
    scores = score_answers(
        [told("Why?", "That is how it goes."), told("How?", "That is how it goes!")], SHORT_RULE, embedder
    )
    assert [score.near_identical for score in scores] == [True, True]
    alone = score_answers(
        [told("Why?", "That is how it goes."), told("Why?", "That is how it goes.")], SHORT_RULE, embedder
    )
    assert [score.near_identical for score in alone] == [False, False]


@pytest.mark.parametrize(
    ("text", "expected", "ended"),
    [
        ("It floats. Because of water.", "It floats.", True),
        ('He said "Stop!" Then he left', 'He said "Stop!"', True),
        ("1. Fill the pan. 2. Wait", "1. Fill the pan.", True),
        ("It costs 3.50 in all. Cheap", "It costs 3.50 in all.", True),
        ("It began in 1990. Then more", "It began in 1990.", True),
        ("No end in sight", "No end in sight", False),
    ],
)
def test_an_answer_is_cut_at_its_first_sentence(text, expected, ended):
    assert first_sentences([told(text=text, ended=False)]) == [told(text=expected, ended=ended)]


@pytest.mark.parametrize(
    "text",
    ["!" * 1_000_000 + "x", ("." + '"' * 20) * 50_000 + "x", "\n" * 1_000_000 + "1.", "\n1." * 250_000],
)
def test_a_million_characters_without_an_end_stay_as_they_are(text):
    assert first_sentences([told(text=text, ended=False)]) == [told(text=text, ended=False)]


def test_shuffling_gives_every_question_another_ones_answers_and_is_repeatable():
    answers = [told(question, f"{text} {n}") for question, text in FACTS.items() for n in range(2)]
    moved = shuffled(answers, seed=3)
    assert moved == shuffled(answers, seed=3) != shuffled(answers, seed=4)
    assert sorted(answer.text for answer in moved) == sorted(answer.text for answer in answers)
    assert all(FACTS[answer.question] not in answer.text for answer in moved)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("{", "not_json"),
        ("[]", "request_invalid"),
        ('{"id": 1, "op": "sing"}', "request_invalid"),
        ('{"id": 1, "op": "score", "groups": {"v1": []}}', "request_invalid"),
    ],
)
def test_a_bad_line_gets_an_error_line(embedder, line, code):
    answered = json.loads(answer_line(line, embedder))
    assert answered["error"]["code"] == code


@pytest.mark.parametrize(
    ("request_fields", "words"),
    [
        ({"op": "score", "groups": {"v1": []}}, "a group is a list"),
        ({"op": "score", "groups": {"v1": [{"question": "q"}]}}, "an answer has question"),
        ({"op": "compare"}, "compare needs base"),
        ({"op": "compare", "rule": {"violates_if": [{"op": "sings"}]}}, "violates_if.0"),
    ],
)
def test_a_request_that_cannot_be_scored_is_refused_by_name(embedder, request_fields, words):
    answered = json.loads(answer_line(json.dumps({"rule": SHORT} | request_fields), embedder))
    assert answered["error"]["code"] == "request_invalid"
    assert words in answered["error"]["message"]


def test_the_process_says_ready_scores_compares_and_ends_with_its_input():
    rows = [{"question": q, "answer": f"{text} And more of it", "ended": True} for q, text in FACTS.items()]
    requests = [
        {"id": "a", "op": "score", "rule": SHORT, "groups": {"v1": rows, "v2": rows[:3]}},
        {"id": "b", "op": "compare", "rule": SHORT, "base": rows, "hinted": rows, "seed": 1},
    ]
    done = subprocess.run(
        [sys.executable, "-m", "scoring"],
        cwd=Path(__file__).parents[2],
        input="\n".join(map(json.dumps, requests)) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    ready, scored, compared = map(json.loads, done.stdout.splitlines())
    assert done.returncode == 0
    assert ready["ready"] is True
    assert scored["id"] == "a" and set(scored["groups"]) == {"v1", "v2"}
    assert len(scored["groups"]["v1"]["answers"]) == 6
    assert set(compared["groups"]) == {"first_sentence", "shuffled"}
    assert compared["groups"]["first_sentence"]["texts"] == list(FACTS.values())
    assert compared["groups"]["shuffled"]["means"]["hit"] == 0
