"""Templates of prompts: what they need, and how they are filled in."""

from pathlib import Path

import pytest

from dppp.errors import InputError
from dppp.learning.nearest_records import LabelledText
from dppp.service.teacher.models.chat.prompt import DEFAULT_TEMPLATE, PromptTemplate, read_template


def test_a_template_is_filled_in_once() -> None:
    template = PromptTemplate("costs $$5: ${choices}|$examples|$question")
    examples = [LabelledText(text="$question", label="b"), LabelledText(text="y", label="a")]
    assert template.fill_in(("a", "b"), examples, "$choices") == (
        "costs $5: a\nb|$question\nclass: b\n\ny\nclass: a|$choices"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("$choices $examples", r"has \$question 0 times"),
        ("$choices $question", r"has \$examples 0 times"),
        ("$examples $question", r"has \$choices 0 times"),
        ("$choices $examples $question $question", r"has \$question 2 times"),
        ("$choices $examples $question $answer", r"has \$answer, which nothing fills in"),
        ("$choices $examples $question 5 $", r"\$ that is not followed by a name"),
        ("$$choices $examples $question", r"has \$choices 0 times"),
    ],
)
def test_a_template_without_what_is_needed_is_refused(
    text: str, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "prompt.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=rf"prompt\.txt: .*{reason}"):
        read_template(path)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "prompt.txt"
    path.write_bytes(b"\xff$choices $examples $question")
    with pytest.raises(InputError, match="not text in UTF-8"):
        read_template(path)


def test_without_a_file_there_is_a_template() -> None:
    assert read_template(None).text == DEFAULT_TEMPLATE
