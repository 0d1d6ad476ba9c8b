"""The service's answers under the client's names; :mod:`axformer.wire` defines them."""

from axformer.wire import artifacts, base, events, jobs, keys, queue

Job = jobs.JobRead
JobProgress = jobs.ProgressRead
JobReport = jobs.ReportRead
Place = queue.PlaceRead
Queue = queue.QueueRead
PassPath = jobs.PathRead
Event = events.EventRead
Artifact = artifacts.ArtifactRead
ArtifactList = artifacts.ArtifactList
Upload = artifacts.UploadRead
Key = keys.KeyRead
NewKey = keys.KeyCreated
RotatedKey = keys.KeyRotated
Me = keys.MeRead
AuditEntry = keys.AuditRead
Page = base.PageRead
