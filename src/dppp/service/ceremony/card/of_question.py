"""What the lines of a card say where they depend on the question of the task."""

import math

from dppp.protocol.task import Task


def moved_by_one_vote(task: Task) -> str:
    """What the vote of one model may do between the two versions, in every query."""
    question = task.question
    if question.kind == "choice":
        return "move from one class to another"
    if question.kind == "labels":
        most = question.most_labels
        each = "one label for another" if most == 1 else f"up to {most} labels for {most} others"
        return f"exchange {each}, so that {_counts_that_move(task)} move by one each"
    return (
        f"move from one end of the range to the other, so that the one count moves by up to "
        f"{question.levels} steps"
    )


def losses_accounted(task: Task) -> str:
    """Which losses one query has."""
    if task.question.kind == "number":
        return f"the one count that moves by up to {task.question.levels} steps"
    return f"the {_counts_that_move(task)} that move"


def noise_in_a_count(task: Task) -> str:
    """The standard deviation, in votes."""
    deviation = math.sqrt(task.noise.variance)
    if task.question.kind == "number":
        levels = task.question.levels
        return (
            f"{deviation:.4g} steps, as much as {deviation / levels:.4g} votes from one end of the "
            "range to the other"
        )
    return f"{deviation:.4g} votes"


def bias_and_use(task: Task) -> str:
    """How useful and how biased an answer is."""
    question, votes = task.question, sum(task.votes)
    if question.kind == "number":
        error = question.standard_error(task.noise.variance, votes)
        return (
            f"Noise has mean 0; it moves the mean of {votes:,} votes by {error:.4g} (standard "
            "deviation of the honest shares). Clipping votes and means to the range, and models "
            "that fail and vote for its middle, pull answers inwards. Bias of the teachers' models "
            "stays."
        )
    name, rare = ("class", "classes") if question.kind == "choice" else ("label", "labels")
    return (
        f"Noise is the same for every {name} and has mean 0; standard deviation "
        f"{noise_in_a_count(task).removesuffix(' votes')} beside {votes:,} votes. Rare {rare} lose "
        "most. Bias of the teachers' models stays."
    )


def post_processing(task: Task) -> str:
    """From noisy counts to an answer."""
    question = task.question
    if question.kind == "choice":
        return "The class of the largest noisy count, or an abstention."
    if question.kind == "labels":
        return f"Every label whose noisy count is at least {question.share:.0%} of the votes."
    return "The noisy count divided by the number of votes, clipped to the range."


def _counts_that_move(task: Task) -> str:
    moved = task.question.change(len(task.class_names)).moved
    return "two counts" if moved == 2 else f"{moved} counts"
