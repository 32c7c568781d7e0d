// Builds github.com/kubeflow/training-operator at one pinned version; see ../build.py.
module regatta.test/training-operator

go 1.26.0

require github.com/kubeflow/training-operator v1.8.1
