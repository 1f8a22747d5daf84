"""What templates are given of a message."""

import pytest

from backtalk_worker.engine.inputs.prompts import plain_messages


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_a_thought_that_comes_back_has_both_its_names(name: str) -> None:
    [message] = plain_messages([{"role": "assistant", "content": "Yes.", name: "Rome, then."}])
    assert message == {
        "role": "assistant",
        "content": "Yes.",
        "reasoning": "Rome, then.",
        "reasoning_content": "Rome, then.",
    }
    [silent] = plain_messages([{"role": "assistant", "content": "Yes.", name: None}])
    assert silent == {"role": "assistant", "content": "Yes.", name: None}
