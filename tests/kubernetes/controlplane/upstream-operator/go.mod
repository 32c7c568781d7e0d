// Builds github.com/paddleflow/paddle-operator at one pinned version; see ../build.py.
module regatta.test/upstream-operator

go 1.26.0

require github.com/paddleflow/paddle-operator v0.3.5
