"""The door that a person opens onto a cluster: the Kubernetes API with their own kubeconfig.

No server of ours stands in between. What the operator decides is read from the jobs; what a person
wants is written into them.
"""
