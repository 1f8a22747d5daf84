from backtalk_worker.engine.domain.plan import Budget, Need, plan_step

BUDGET = Budget(beside_answers=64, alone=256)


def test_every_answering_row_gets_its_token_however_long_a_prompt_waits():
    needs = [Need(1, False), Need(5000, True), Need(1, False)]
    assert plan_step(needs, BUDGET) == [1, 64, 1]


def test_prompts_alone_share_the_larger_budget_in_order_of_arrival():
    assert plan_step([Need(200, True), Need(100, True), Need(9, True)], BUDGET) == [200, 56, 0]


def test_a_row_that_waits_takes_nothing_from_the_budget():
    assert plan_step([Need(0, True), Need(300, True)], BUDGET) == [0, 256]
