"""What `ottla cluster start` runs: a cluster for development, as processes of this machine.

`supervisor` starts and stops ZooKeeper and the brokers, `watch` reports those that exit and does
what other commands ask for (`requests`, files in the cluster's folder). The room knows no terminal:
what happens goes to a `Reporter`, why something cannot be done is a `DevClusterError`.
"""
