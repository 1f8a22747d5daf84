import random
import re
from collections import Counter

from backtalk_worker.laptop_model.answers import read_answers, read_questions
from backtalk_worker.laptop_model.kinds import KINDS, made_for, obeys_all
from backtalk_worker.laptop_model.rows import (
    ALONE,
    REPEATED,
    SEVERAL,
    WORDINGS,
    Row,
    questions_to_check,
    questions_to_train,
    told_rows,
    untold_rows,
    value_of,
    wording,
)
from backtalk_worker.laptop_model.sentences import beginnings, sentences_of, shortened


def groups_of(seed: int, count: int | None = None) -> list[list[Row]]:
    """Of each question the rows with wishes and those without."""
    rng, answers = random.Random(seed), read_answers()
    return [[*told_rows(one, rng), *untold_rows(one, answers, rng)] for one in questions_to_train(answers)[:count]]


GROUPS = groups_of(1)
ROWS = [row for group in GROUPS for row in group]
TOLD = [row for row in ROWS if row.kinds]


def test_the_same_seed_makes_the_same_rows_and_another_seed_makes_others():
    assert GROUPS[:120] == groups_of(1, 120)
    assert GROUPS[:120] != groups_of(2, 120)


def test_every_question_of_the_list_has_an_answer():
    assert [one.question for one in read_answers()] == read_questions()


def test_every_question_that_is_trained_on_comes_once():
    questions = [group[0].question for group in GROUPS]
    assert len(set(questions)) == len(questions)
    assert set(questions).isdisjoint(questions_to_check(read_answers()))


def test_a_row_without_a_wish_holds_an_answer_at_temperature_1():
    drawn = {one.question: one.drawn for one in read_answers()}
    assert [row for row in ROWS if not row.kinds and row.answer not in drawn[row.question]] == []


def test_every_target_passes_the_checks_of_its_own_wishes():
    def fails(row: Row) -> bool:
        return not obeys_all(dict(zip(row.kinds, row.values, strict=True)), row.answer)

    assert [row for row in TOLD if fails(row)] == []


def test_a_check_refuses_the_plain_answer_of_nearly_every_question():
    values = {kind.name: value_of(kind.name, "train", random.Random(1)) for kind in KINDS}
    answers = read_answers()
    passing = {
        kind.name: sum(kind.check(one.drawn[0], values[kind.name]) for one in answers) / len(answers) for kind in KINDS
    }
    assert {name: share for name, share in passing.items() if share > 0.1} == {}


def test_a_third_of_the_rows_has_no_wish_and_every_kind_has_its_share_of_the_rest():
    assert 0.6 * len(ROWS) <= len(TOLD) <= 0.7 * len(ROWS)
    counted = Counter(row.kinds[0] for row in TOLD if len(row.kinds) == 1 and "\n" not in row.wish)
    assert set(counted) == {kind.name for kind in KINDS}
    assert min(counted.values()) > 0.6 * max(counted.values())


def test_wishes_in_force_together_stand_mostly_a_blank_line_apart():
    several = [row for row in TOLD if len(row.kinds) > 1]
    assert len(several) > 0.9 * SEVERAL * len(GROUPS)
    apart = Counter(row.wish.count("\n") / (len(row.kinds) - 1) for row in several)
    assert set(apart) == {1, 2}
    assert 0.7 * len(several) < apart[2] < 0.8 * len(several)


def test_wishes_in_force_together_are_two_to_four():
    counted = Counter(len(row.kinds) for row in TOLD if len(row.kinds) > 1)
    assert set(counted) == {2, 3, 4}
    assert min(counted.values()) > 0.5 * max(counted.values())


def test_a_wish_alone_is_of_another_kind_in_each_row_of_a_question():
    for group in GROUPS:
        alone = [row.kinds[0] for row in group if len(row.kinds) == 1 and "\n" not in row.wish]
        assert len(set(alone)) == len(alone)
    assert sum(len(row.kinds) == 1 and "\n" not in row.wish for row in TOLD) > 0.9 * ALONE * len(GROUPS)


def test_what_opens_a_list_stands_on_a_line_of_its_own():
    text = made_for({"name": "Ada", "bullets": ""}, ["It rains a lot here.", "The sun is out again."], random.Random(1))
    assert text is not None
    assert text.split("\n")[0] in ("Ada:", "Hi Ada!", "Hello Ada,")
    assert obeys_all({"name": "Ada", "bullets": ""}, text)
    assert not obeys_all({"bullets": ""}, text)


def test_a_wish_that_is_repeated_stands_in_other_words_and_is_obeyed_once():
    repeated = [row for row in TOLD if len(row.kinds) == 1 and "\n" in row.wish]
    assert len(repeated) > 0.9 * REPEATED * len(GROUPS)
    assert sum(len(set(row.wish.split("\n"))) > 1 for row in repeated) > 0.9 * len(repeated)


def test_what_is_kept_for_checking_is_never_trained_on():
    def alike(text: str) -> str:
        return re.sub(r"\W+", " ", text.lower()).strip()

    for kind in KINDS:
        listed = WORDINGS[kind.name]
        trained = {alike(text) for text in (*listed["imperative"], *listed["free"])}
        assert trained.isdisjoint(map(alike, listed["check"])), kind.name
    assert set(questions_to_check(read_answers())).isdisjoint(row.question for row in TOLD)


def test_a_wish_names_its_number_or_its_phrase():
    rng = random.Random(3)
    for kind in KINDS:
        for split in ("train", "check"):
            text = wording(kind.name, value_of(kind.name, split, rng), split, rng)
            assert "{" not in text


def test_a_rule_that_cannot_be_applied_makes_no_target():
    assert made_for({"bullets": ""}, ["One sentence only."], random.Random(1)) is None
    assert made_for({"words": "5"}, ["cut before it"], random.Random(1)) is None


def test_sentences_come_without_marks_and_without_a_cut_end():
    text = "**Rinse**: Use warm water.\n\n1. Dr. Lee dries it well.\n2. Then he\n- Wait for an hour!"
    assert sentences_of(text) == ["Rinse: Use warm water.", "Dr. Lee dries it well.", "Wait for an hour!"]


def test_a_shortened_sentence_ends_where_it_can():
    sentence = "Bread rises because yeast makes gas for the dough in a warm bowl."
    assert shortened(sentence, 8) == "Bread rises because yeast makes gas."
    assert shortened("A very long and winding road", 3) is None
    assert all(not short.endswith((" because.", " the.")) for short in beginnings(sentence, 3, 10))
