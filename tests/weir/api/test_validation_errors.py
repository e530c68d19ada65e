"""A model that holds a job's configuration explains its own mistakes in the same words."""

from pydantic import BaseModel, Field, ValidationError

from weir.api import JobConfig
from weir.api.validation_errors import explain


class Resource(BaseModel):
    """Stands for a resource that embeds the configuration, as the operator's does."""

    image: str = Field(pattern="^[a-z]+$")
    jobs: list[JobConfig]


def lines(given):
    try:
        Resource.model_validate(given)
    except ValidationError as error:
        return [str(problem) for problem in explain(error, Resource)]
    return []


def test_a_path_leads_through_the_models_around_the_configuration():
    """K1, U3: the nearest name is looked for where the field was written."""
    assert lines({"image": "weir", "jobs": [{}, {"checkpointing": {"minPuase": 1}}]}) == [
        "jobs.1.checkpointing.minPuase = 1: there is no such field. Remedy: did you mean minPause?"
    ]


def test_a_contradiction_is_placed_where_it_stands():
    """K1, C6: also when the configuration is a part of something larger."""
    jobs = [{"checkpointing": {"minPause": 1, "maxConcurrent": 2}}]

    assert [line.partition(":")[0] for line in lines({"image": "weir", "jobs": jobs})] == [
        "jobs.0.checkpointing.minPause = 1 ms"
    ]


def test_a_refusal_that_is_not_ours_keeps_its_own_words():
    """U3: whatever a model around ours refuses has field, value, reason and remedy too."""
    (line,) = lines({"image": "Weir", "jobs": []})
    assert line == (
        "image = Weir: String should match pattern '^[a-z]+$'."
        " Remedy: see the description of the field."
    )
