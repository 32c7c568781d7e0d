"""OpenPAI's job configs, v1 JSON and v2 YAML, become PaddleJobs. Pure: no I/O, no clock."""
