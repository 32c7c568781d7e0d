"""The Kubernetes API, for any resource. Knows no job."""
