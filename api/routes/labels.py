"""``/v1/jobs/{id}/needed`` and ``labels``: the rows whose labels certify more, and the labels."""

from fastapi import APIRouter, BackgroundTasks

from api.deps import CallerDep, ReadingDep, ResourcesDep, SessionDep, SettingsDep, StorageDep, WriterDep
from api.openapi import answers
from api.services import labelling
from axformer.wire.labelling import LabellingRead, LabelsCreate, NeededRead

router = APIRouter(prefix="/jobs/{job_id}", tags=["labels"])


@router.get(
    "/needed",
    summary="See which labels would certify more",
    responses=answers(200, "The rows, in the order in which they are asked.", "needed", 401, 404, 409),
)
def get_needed(job_id: str, caller: CallerDep, session: ReadingDep, storage: StorageDep) -> NeededRead:
    """See which rows of a finished job with unlabelled rows need a label: only those whose answers changed, and only as long
    as a smaller model can still be certified. With them comes what is certified now, and what the next models take.

    The rows have no answers, so that nobody who labels them knows which model said what.
    """
    return labelling.needed_of(labelling.find(session, storage, caller.team_id, job_id))


@router.post(
    "/labels",
    summary="Label changed answers",
    responses=answers(200, "What is certified now.", "labelled", 401, 404, 409, 413, 422),
)
def post_labels(
    job_id: str,
    body: LabelsCreate,
    caller: WriterDep,
    session: SessionDep,
    storage: StorageDep,
    settings: SettingsDep,
    resources: ResourcesDep,
    after_commit: BackgroundTasks,
) -> LabellingRead:
    """Label rows of a finished job, by the names of classes or by their indices, in any order and any number of requests. All
    labels of a request are stored, or none.

    A label stands for the key that gave it, and replaces that key's earlier one. Where people disagree, a row counts as
    unlabelled. Once a model is certified that is smaller than the result, it is exported by itself, as a job.
    """
    labelled = labelling.give(session, storage, settings, caller, job_id, body)
    if labelled.has_new_export:
        after_commit.add_task(resources.wakeup.wake)
    return labelled.read
