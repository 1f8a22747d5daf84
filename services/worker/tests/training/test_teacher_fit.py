"""Whether another model may teach a base: the same tokens, the same vocabulary, a context as long."""

import pytest
from worker_process import write_tiny_model

from backtalk_worker.training.errors import TeacherUnsupportedError
from backtalk_worker.training.outputs.base_model import load_base_model, with_teacher


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    write_tiny_model(folder)
    return folder


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        ({"vocabulary": 49160}, "it knows 49160 tokens, the base 49152"),
        ({"context": 256}, "its context is 256 tokens, the base's 512"),
    ],
)
def test_a_teacher_that_does_not_fit_the_base_is_refused_in_one_line(model, tmp_path, made, problem):
    write_tiny_model(tmp_path, **made)
    base, teacher = (
        load_base_model(folder, name, "cpu", "float32") for folder, name in ((model, "a"), (tmp_path, "b"))
    )
    with pytest.raises(TeacherUnsupportedError, match=f"^b cannot teach a: {problem}$"):
        with_teacher(base, teacher)


def test_a_teacher_of_other_tokens_is_refused(model, tmp_path):
    write_tiny_model(tmp_path)
    base, teacher = (
        load_base_model(folder, name, "cpu", "float32") for folder, name in ((model, "a"), (tmp_path, "b"))
    )
    teacher.loaded.tokenizer.add_tokens(["<another>"])
    with pytest.raises(TeacherUnsupportedError, match="its tokenizer has other tokens"):
        with_teacher(base, teacher)
