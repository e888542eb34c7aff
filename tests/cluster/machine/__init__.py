"""A Kubernetes on this machine: the programs, the network, the processes, and how all of it goes away again."""
