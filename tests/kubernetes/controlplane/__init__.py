"""A real Kubernetes on this machine, for tests and for people.

`build` makes the programs, `plane` starts a control plane of them on loopback, `kwok` plays
nodes on it, `node` adds one real node, `images` fills that node, `cluster` keeps one for a person.
"""
