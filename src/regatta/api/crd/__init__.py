"""The PaddleJob as Kubernetes is told of it: the CRD, made of what `regatta.api` knows of a job.

`python -m regatta.api.crd` writes the files under `deploy/` and `charts/`; a test compares them
with what these modules would write. Each module is one part of the definition:

- `definition`: names, columns, subresources
- `spec`: the drafts of `regatta.api.checks.schema`, with defaults and a line for `kubectl explain`
- `cel_rules`: what a schema cannot say, as CEL expressions with sentences
- `cel_changes`: likewise, what of a job that exists may change
- `pod_template`: a pod template, from Kubernetes' own schema
- `status`: the structs of `regatta.api.job`
- `structural`: from a JSON schema to the dialect that an API server takes
"""
