"""The tasks as far as a config and a form know them: their names, and the columns of their data."""

from typing import NamedTuple


class SeenTask(NamedTuple):
    """A task."""

    name: str
    """In words."""
    data: str
    """What its data holds, for people."""
    columns: tuple[str, ...]
    """The columns that its data may have; all but ``text_pair`` it must have."""
    end: str
    """The end of the names of its models' classes."""


_TEXTS = "sequence classification"
ONE_LABEL = SeenTask(_TEXTS, "One label for each text", ("text", "text_pair", "label"), "ForSequenceClassification")
LABELS = SeenTask(_TEXTS, "Several labels for each text", ("text", "text_pair", "labels"), "ForSequenceClassification")
TAGS = SeenTask("token classification", "A tag for each word", ("tokens", "tags"), "ForTokenClassification")
_ASKED = ("question", "context", "answers")
QUESTIONS = SeenTask("question answering", "Questions about a context", _ASKED, "ForQuestionAnswering")
CHOICES = SeenTask("multiple choice", "Multiple choice", ("text", "choices", "label"), "ForMultipleChoice")
EMBEDDING = SeenTask("sentence embeddings", "Texts, or pairs of texts", ("text", "text_pair"), "")
"""Known by its files, not by its class."""
TASKS = (
    *(ONE_LABEL, LABELS, TAGS, QUESTIONS, CHOICES),
    SeenTask("masked language modelling", "Text alone", ("text",), "ForMaskedLM"),
    SeenTask("language modelling", "Text alone", ("text",), "ForCausalLM"),
    SeenTask("language modelling", "Text alone", ("text",), "LMHeadModel"),
)
OF_HEADS = {"multi_label_classification": LABELS, "token_classification": TAGS}
OF_HEADS |= {"question_answering": QUESTIONS, "multiple_choice": CHOICES}
"""The tasks of new heads other than those for one label."""
