"""What the pods of a job print: read from the kubelets, followed, and resumed line by line."""
